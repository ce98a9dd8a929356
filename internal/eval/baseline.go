package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/yamlfile"
)

const (
	// maxFile limits the file of checks: it is written by hand.
	maxFile = 1 << 20
	// maxSample bounds one value, in seconds or reads: thirty thousand years. Sums of
	// far greater ones have no difference any more.
	maxSample = 1e12
	// maxSamples is how many values a baseline keeps of a distribution, evenly
	// over its quantiles.
	maxSamples = 1000
)

// Baseline is what rates are compared with: those of a run that was found good.
// It is a file under review, as tests are.
type Baseline struct {
	path       string
	evaluation string
	taken      time.Time
	rates      map[string]measure
}

// baselineForm is a baseline as it is written.
type baselineForm struct {
	Baseline   int                     `json:"baseline"`
	Evaluation string                  `json:"evaluation"`
	Taken      time.Time               `json:"taken"`
	Rates      map[string]baselineRate `json:"rates"`
}

type baselineRate struct {
	Cases int `json:"cases"`
	Of    int `json:"of"`
	// Values are the samples of a mean, each distinct one with how many times it
	// was seen: "2x90 3x10".
	Values string `json:"values,omitempty"`
}

// ReadBaseline reads a baseline strictly. The error wraps [ErrBaseline].
func ReadBaseline(path string) (*Baseline, error) {
	text, err := yamlfile.ReadBounded(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBaseline, err)
	}
	// The version first: another one may have other members.
	var version struct {
		Baseline int `json:"baseline"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("%w: %s: is no baseline: %w", ErrBaseline, path, err)
	}
	if version.Baseline != Version {
		return nil, fmt.Errorf("%w: %s: is of version %d; want %d: record it anew with --record", ErrBaseline, path, version.Baseline, Version)
	}
	var form baselineForm
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&form); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBaseline, path, err)
	}
	b := &Baseline{path: path, evaluation: form.Evaluation, taken: form.Taken, rates: map[string]measure{}}
	for name, r := range form.Rates {
		m := measure{cases: r.Cases, of: r.Of}
		if r.Values != "" {
			if m.samples, err = samplesOf(r.Values); err != nil {
				return nil, fmt.Errorf("%w: %s: rates.%s.values: %w", ErrBaseline, path, yamlfile.Clip(name), err)
			}
		}
		if m.of < 1 || m.cases < 0 || m.cases > m.of {
			return nil, fmt.Errorf("%w: %s: rates.%s: %d of %d cases cannot be", ErrBaseline, path, yamlfile.Clip(name), r.Cases, r.Of)
		}
		if n := len(m.samples); m.samples != nil && n != min(m.of, maxSamples) {
			return nil, fmt.Errorf("%w: %s: rates.%s: has %d values, and is declared to be of %d cases; want one for each, up to %d", ErrBaseline, path, yamlfile.Clip(name), n, m.of, maxSamples)
		}
		b.rates[name] = m
	}
	return b, nil
}

// fits refuses a baseline of another evaluation, or one without the rates that are
// to be compared.
func (b *Baseline) fits(f *File, r *rates) error {
	if b.evaluation != f.name {
		return fmt.Errorf("%w: %s: is of the evaluation %q; want one of %q", ErrBaseline, b.path, yamlfile.Clip(b.evaluation), f.name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.asked)) {
		was, ok := b.rates[name]
		switch {
		case !ok:
			return fmt.Errorf("%w: %s: has no rate %s, which %s wants compared; it has %s: record it anew with --record", ErrBaseline, b.path, name, f.path, yamlfile.Names(b.rates))
		case known[name].mean != (was.samples != nil):
			return fmt.Errorf("%w: %s: the rate %s is of another kind; record it anew with --record", ErrBaseline, b.path, name)
		}
	}
	return nil
}

// Record writes the rates of a report as a baseline. It fails where there are
// none.
func Record(f *File, out io.Writer, taken time.Time) error {
	if f.rates == nil || len(f.rates.have) == 0 {
		return fmt.Errorf("%w: %s has no rates that could be recorded; want rates: with writes or counts", ErrInvalid, f.path)
	}
	form := baselineForm{Baseline: Version, Evaluation: f.name, Taken: taken.UTC(), Rates: map[string]baselineRate{}}
	for name, m := range f.rates.have {
		if m.of > 0 {
			form.Rates[name] = baselineRate{Cases: m.cases, Of: m.of, Values: valuesOf(m.samples)}
		}
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(form)
}

// valuesOf writes sorted samples, each distinct one once.
func valuesOf(samples []float64) string {
	var parts []string
	for i := 0; i < len(samples); {
		n := 1
		for i+n < len(samples) && samples[i+n] == samples[i] {
			n++
		}
		parts = append(parts, strconv.FormatFloat(samples[i], 'g', -1, 64)+"x"+strconv.Itoa(n))
		i += n
	}
	return strings.Join(parts, " ")
}

func samplesOf(text string) ([]float64, error) {
	all := []float64{}
	for part := range strings.FieldsSeq(text) {
		value, times, ok := strings.Cut(part, "x")
		v, err := strconv.ParseFloat(value, 64)
		n, errN := strconv.Atoi(times)
		if !ok || err != nil || !sampleHolds(v) || errN != nil || n < 1 || n > maxSamples-len(all) {
			return nil, fmt.Errorf("%q; want values of 0 to %g and how often each was seen, such as 2x90, %d in all", yamlfile.Clip(part), maxSample, maxSamples)
		}
		for range n {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all, nil
}

// sampleHolds reports whether a value can be one of a rate. What is no number is
// worse than nothing and better than nothing at once.
func sampleHolds(v float64) bool { return v >= 0 && v <= maxSample }
