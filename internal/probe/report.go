package probe

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/readback-go/readback/internal/visible"
)

// maxValue is how much of a value or an error is shown.
const maxValue = 60

// Result is how the measurement compares with the declaration.
type Result string

// The results. The zero value is none of them.
const (
	OK          Result = "ok"           // as declared
	Weaker      Result = "WEAKER"       // the destination does not keep what is declared
	Stronger    Result = "stronger"     // it did more than is declared, which is no promise
	NotMeasured Result = "not measured" // nothing could be found out, see Measured
)

// Line is one thing that was measured.
type Line struct {
	About    string `json:"about"`
	Measured string `json:"measured"`
	Declared string `json:"declared"`
	Result   Result `json:"result"`
}

// Leftover is a record that the probe made and could not remove.
type Leftover struct {
	Name string `json:"name"`          // of the sample
	Ref  string `json:"ref,omitempty"` // the destination's own id
	URL  string `json:"url,omitempty"` // where a user finds it
	Why  string `json:"why"`
	// Kept: nothing went wrong, the kind of record cannot be removed; what can
	// be undone of it is.
	Kept bool `json:"kept,omitempty"`
}

// Report is what a probe found.
type Report struct {
	Destination string `json:"destination"`
	Kind        string `json:"kind"`
	Run         string `json:"run"` // part of the name of every sample
	Rounds      int    `json:"rounds"`
	// Writes is how many sends the probe could make at most, Sent how many it
	// made, cleaning up included.
	Writes int       `json:"writes"`
	Sent   int       `json:"sent"`
	Began  time.Time `json:"began,omitzero"`
	Ended  time.Time `json:"ended,omitzero"`
	Lines  []Line    `json:"lines"`
	// Weaker are the lines that are weaker than declared, in words. Not empty:
	// the profile promises too much for this destination.
	Weaker []string `json:"weaker,omitempty"`
	// Left are the records that are still there.
	Left []Leftover `json:"left,omitempty"`
}

func (r *run) line(about, measured, declared string, result Result) {
	l := Line{About: about, Measured: shown(measured), Declared: declared, Result: result}
	r.report.Lines = append(r.report.Lines, l)
	if result == Weaker {
		r.report.Weaker = append(r.report.Weaker, fmt.Sprintf("%s: %s; declared: %s", l.About, l.Measured, l.Declared))
	}
}

// found is the line of a check.
func (r *run) found(k check, measured string, result Result) {
	r.line(k.name, measured, k.declared, result)
}

// finished is the report with its end.
func (r *run) finished() Report {
	r.report.Ended = time.Now()
	return r.report
}

// shown makes text from a destination fit for a screen and cuts it.
func shown(s string) string { return visible.Clip(s, 4*maxValue) }

// Text is the report as a table.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "probe %s of %s/%s: %d rounds, %d of at most %d writes, %v\n\n",
		r.Run, r.Destination, r.Kind, r.Rounds, r.Sent, r.Writes, r.Ended.Sub(r.Began).Round(time.Millisecond))
	rows := "\tMEASURED\tDECLARED\tRESULT\n"
	for _, l := range r.Lines {
		rows += strings.Join([]string{l.About, l.Measured, l.Declared, string(l.Result)}, "\t") + "\n"
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = w.Write([]byte(rows)) // a Builder takes everything
	_ = w.Flush()
	if len(r.Weaker) > 0 {
		fmt.Fprintf(&b, "\nWEAKER THAN DECLARED, so that writes could be called verified or sent again when they must not:\n")
		for _, what := range r.Weaker {
			fmt.Fprintf(&b, "  %s\n", what)
		}
	}
	if len(r.Left) > 0 {
		fmt.Fprintf(&b, "\nStill there, please remove:\n")
		for _, l := range r.Left {
			fmt.Fprintf(&b, "  %s %s %s (%s)\n", l.Name, l.Ref, l.URL, l.Why)
		}
	}
	return b.String()
}
