package rest

import (
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/jsonplace"
	"github.com/readback-go/readback/internal/yamlfile"
)

// fileSettles is where a record shows what became of it.
type fileSettles struct {
	At     yamlfile.Place
	Path   yamlfile.Text   `yaml:"path"`
	Open   []yamlfile.Text `yaml:"open"`
	Good   []yamlfile.Text `yaml:"good"`
	Bad    []yamlfile.Text `yaml:"bad"`
	Within yamlfile.Span   `yaml:"within"`
}

// settles is the same, checked.
type settles struct {
	place     *jsonplace.Place
	good, bad []string
	within    time.Duration
}

func (l *loader) settles(f *fileSettles) *settles {
	if f == nil {
		return nil
	}
	s := &settles{place: l.singular(f.Path), good: yamlfile.Values(f.Good), bad: yamlfile.Values(f.Bad), within: time.Duration(f.Within)}
	l.Required(f.Path, f.At, "path", "where the status is, such as $.status")
	if len(f.Good) == 0 || len(f.Open) == 0 {
		l.At(f.At, "want open and good: the statuses that may change, and those that mean that it took effect")
	}
	if f.Within <= 0 {
		l.Say(f.At.Line, f.At.Field+".within", "is missing; want how long a record may stay open, or become bad after it was good, such as 10d")
	}
	seen := map[string]bool{}
	for _, t := range slices.Concat(f.Open, f.Good, f.Bad) {
		if seen[t.Value] {
			l.At(t.Place, "%q is listed twice; want each status in one of open, good and bad", yamlfile.Clip(t.Value))
		}
		seen[t.Value] = true
	}
	if len(f.Bad) == 0 {
		l.warn(f.At, "names no bad status: a record that failed stays open until within has passed; want bad, with the statuses that mean that it did not take effect")
	}
	return s
}

// found is a record and what became of it.
type found struct {
	connectors.Record
	// open is why it is not decided yet, failed why it had no effect, "" for neither.
	open, failed string
}

// of reads what became of a record. A status that is not known decides nothing.
func (s *settles) of(object map[string]any) (open, failed string) {
	if s == nil {
		return "", ""
	}
	status := scalar(s.place, object)
	switch {
	case slices.Contains(s.good, status):
		return "", ""
	case slices.Contains(s.bad, status):
		return "", fmt.Sprintf("%s is %q", s.place.Text(), status)
	}
	return fmt.Sprintf("%s is %q", s.place.Text(), status), ""
}
