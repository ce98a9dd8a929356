package eval

import (
	"fmt"
	"maps"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/readback-go/readback/internal/yamlfile"
)

// Rate is one rate of tier 2, as it is now and as it was.
type Rate struct {
	// Name is its name in the file, About what it is.
	Name  string `json:"name"`
	About string `json:"about"`
	// World says that it was read from the world. Else it is what the run counted
	// itself: its ledger or its metrics.
	World bool `json:"world"`
	// Value is a proportion or a mean, in Unit; Low and High are the interval of
	// it. Of is the number of cases, Cases, of a proportion, how many of them.
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Unit  string  `json:"unit"`
	Cases int     `json:"cases,omitempty"`
	Of    int     `json:"of"`
	// Median, P95 and P99 are quantiles, of means alone.
	Median float64 `json:"median,omitempty"`
	P95    float64 `json:"p95,omitempty"`
	P99    float64 `json:"p99,omitempty"`
	// Was is the baseline's, Difference how far this one is above it, with its
	// interval. Nil where there is nothing to compare with.
	Was        *Was        `json:"was,omitempty"`
	Difference *Difference `json:"difference,omitempty"`
	// Asked says that the file wants it compared, Result what came of that, Why
	// the reason.
	Asked  bool   `json:"asked"`
	Result Result `json:"result"`
	Why    string `json:"why"`
}

// Was is a rate in the baseline.
type Was struct {
	Value float64 `json:"value"`
	Of    int     `json:"of"`
}

// Difference is how far a rate is above the baseline's.
type Difference struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Method is how the interval was made: "newcombe" or "bootstrap".
	Method string `json:"method"`
}

// measure is what was counted for one rate: cases among others, or samples.
type measure struct {
	cases, of int
	samples   []float64 // sorted; nil for a proportion
}

func (m measure) value() float64 {
	switch {
	case m.samples != nil:
		return stat.Mean(m.samples, nil)
	case m.of == 0:
		return 0
	}
	return float64(m.cases) / float64(m.of)
}

// known are the rates that there are.
var known = map[string]struct {
	about string
	mean  bool
	unit  string
	world bool
}{
	"replays":          {"calls that got the outcome of an earlier one", false, "of calls", false},
	"retries":          {"writes that were sent more than once", false, "of writes sent", false},
	"duplicates":       {"writes of which more records were found than declared", false, "of writes", false},
	"review":           {"writes that wait for a person", false, "of writes", false},
	"lag":              {"how long reads lagged behind writes", true, "s", false},
	"time_to_verified": {"from the last send until it was settled as verified", true, "s", false},
	"reads_per_write":  {"reads of a write that was sent", true, "reads", false},
	"silent_wrong":     {"claims that the world denies", false, "of claims", true},
	"over_halting":     {"writes that wait for a person though the world is as declared", false, "of claims", true},
	"false_aborts":     {"writes given up that could have been sent again without harm", false, "of claims", true},
}

// rates are those of a run, and what is asked of them.
type rates struct {
	confidence, least int
	asked             map[string]rateForm
	have              map[string]measure
}

// readRates reads what a run counted.
func (l *loader) readRates(form *ratesForm, outcomes []exported) *rates {
	r := &rates{confidence: form.Confidence, least: form.Least, asked: form.Compare, have: map[string]measure{}}
	if r.confidence == 0 {
		r.confidence = defaultConfidence
	}
	if r.confidence < 50 || r.confidence > 99 {
		l.At(form.At, "has a confidence of %d; want 50 to 99, in percent", form.Confidence)
		r.confidence = defaultConfidence
	}
	if r.least < 0 {
		l.At(form.At, "has least: %d; want 1 or more: with so few cases nothing is compared", r.least)
	}
	if r.least <= 0 {
		r.least = defaultLeast
	}
	names := slices.Sorted(maps.Keys(known))
	for _, name := range slices.Sorted(maps.Keys(form.Compare)) {
		c := form.Compare[name]
		if _, ok := known[name]; !ok {
			near, _ := yamlfile.Nearest(name, names)
			want := "want one of " + yamlfile.Names(known)
			if near != "" {
				want = "did you mean " + near + "?"
			}
			l.At(c.At, "is not known; %s", want)
		}
		if c.Least < 0 {
			l.At(c.At, "has least: %d; want 1 or more: with so few cases nothing is compared", c.Least)
		}
		if w := c.Worse.Value; w != "" && w != "up" && w != "down" && w != "either" {
			l.At(c.Worse.Place, "is %q; want up, down or either: which way it gets worse", yamlfile.Clip(w))
		}
	}
	writes := l.f.writes
	if form.Writes.Value != "" {
		writes = readWrites(&l.ps, readLines(&l.ps, l.beside(form.Writes)))
	}
	all := outcomes
	if len(writes) > 0 {
		all = nil
		for _, w := range writes {
			if w.exported.status() != "" {
				all = append(all, w.exported)
			}
		}
	}
	r.count(all)
	r.calls(outcomes)
	if form.Counts.Value != "" {
		r.read(&l.ps, l.beside(form.Counts))
	}
	return r
}

// count takes the numbers from what was claimed of writes.
func (r *rates) count(all []exported) {
	var retries, duplicates, review measure
	var reads, waits []float64
	for _, e := range all {
		duplicates.of++
		review.of++
		if e.status() == "review" {
			review.cases++
		}
		if e.Verdict == "duplicated" {
			duplicates.cases++
		}
		if e.Sends-e.Unsent < 1 {
			continue
		}
		retries.of++
		if e.Sends-e.Unsent > 1 {
			retries.cases++
		}
		reads = append(reads, float64(e.Reads))
		if e.status() == "verified" && !e.LastSend.IsZero() && !e.SettledAt.Before(e.LastSend) {
			waits = append(waits, e.SettledAt.Sub(e.LastSend).Seconds())
		}
	}
	if len(all) == 0 {
		return
	}
	r.have["retries"], r.have["duplicates"], r.have["review"] = retries, duplicates, review
	r.sampled("reads_per_write", reads)
	r.sampled("time_to_verified", waits)
}

// calls counts replays among the answers that callers got.
func (r *rates) calls(outcomes []exported) {
	var m measure
	for _, e := range outcomes {
		if e.ID == "" || e.State != "" {
			continue // no answer to a call
		}
		m.of++
		if e.Replayed {
			m.cases++
		}
	}
	if m.of > 0 {
		r.have["replays"] = m
	}
}

func (r *rates) sampled(name string, samples []float64) {
	if len(samples) == 0 {
		return
	}
	samples = slices.Clone(samples)
	slices.Sort(samples)
	r.have[name] = measure{of: len(samples), samples: thinned(samples)}
}

// counts are numbers that a run counted in its own way.
type counts struct {
	Counts  int                  `json:"counts"`
	Shares  map[string][]int     `json:"shares"`
	Samples map[string][]float64 `json:"samples"`
}

// read takes the numbers from a file of counts, over those of the export.
func (r *rates) read(ps *problems, path string) {
	for _, l := range readLines(ps, path) {
		var c counts
		if !strictly(ps, l, []string{"counts", "shares", "samples"}, &c) {
			continue
		}
		if c.Counts != Version {
			ps.say(l.file, l.n, "counts", "is %d; want %d, the version of the format", c.Counts, Version)
			continue
		}
		for name, pair := range c.Shares {
			switch k, ok := known[name]; {
			case !ok || k.mean || k.world:
				ps.say(l.file, l.n, "shares."+yamlfile.Clip(name), "is no share that a run counts; want one of duplicates, replays, retries, review")
			case len(pair) != 2 || pair[0] < 0 || pair[1] < pair[0]:
				ps.say(l.file, l.n, "shares."+name, "wants two numbers: how many, and of how many")
			default:
				r.have[name] = measure{cases: pair[0], of: pair[1]}
			}
		}
		for name, samples := range c.Samples {
			if k, ok := known[name]; !ok || !k.mean {
				ps.say(l.file, l.n, "samples."+yamlfile.Clip(name), "is nothing that has a mean; want one of lag, reads_per_write, time_to_verified")
				continue
			}
			if slices.ContainsFunc(samples, func(v float64) bool { return !sampleHolds(v) }) {
				ps.say(l.file, l.n, "samples."+name, "has a value that cannot be; want 0 to %g", maxSample)
				continue
			}
			r.sampled(name, samples)
		}
	}
}

// world adds the rates that were read from the world.
func (r *rates) world(c *Claims) {
	if c == nil {
		return
	}
	for name, s := range map[string]Share{"silent_wrong": c.SilentWrong, "over_halting": c.OverHalting, "false_aborts": c.FalseAborts} {
		r.have[name] = measure{cases: s.Cases, of: c.Judged}
	}
}

// compare holds every rate against the baseline. Without one nothing is worse.
func (r *rates) compare(f *File, base *Baseline, recording bool) ([]Rate, error) {
	if base != nil {
		if err := base.fits(f, r); err != nil {
			return nil, err
		}
	}
	var all []Rate
	for _, name := range slices.Sorted(maps.Keys(known)) {
		m, have := r.have[name]
		form, asked := r.asked[name]
		if !have && !asked {
			continue
		}
		one := r.rate(name, m)
		one.Asked = asked && (base != nil || !recording)
		switch {
		case !have:
			one.Why = "there are no numbers of it: neither the export nor counts has any"
		case base == nil:
			one.Why = "there is no baseline to compare with"
		default:
			r.against(&one, m, base.rates[name], form)
		}
		all = append(all, one)
	}
	return all, nil
}

func (r *rates) rate(name string, m measure) Rate {
	k := known[name]
	one := Rate{Name: name, About: k.about, World: k.world, Unit: k.unit, Cases: m.cases, Of: m.of}
	if m.of == 0 {
		one.High = 1
		return one
	}
	one.Value = m.value()
	if m.samples == nil {
		one.Low, one.High = wilson(m.cases, m.of, r.confidence)
		return one
	}
	one.Low, one.High = bootstrap(m.samples, nil, r.confidence)
	one.Median, one.P95, one.P99 = quantile(0.5, m.samples), quantile(0.95, m.samples), quantile(0.99, m.samples)
	return one
}

// against says whether a rate is worse than it was: only where the whole interval
// of the difference lies beyond what is tolerated.
func (r *rates) against(one *Rate, now, was measure, form rateForm) {
	if was.of == 0 {
		one.Why = "the baseline does not have it"
		return
	}
	one.Was = &Was{Value: was.value(), Of: was.of}
	d := &Difference{Value: now.value() - was.value(), Method: "newcombe"}
	if now.samples != nil {
		d.Method = "bootstrap"
		d.Low, d.High = bootstrap(now.samples, was.samples, r.confidence)
	} else {
		d.Low, d.High = newcombe(now, was, r.confidence)
	}
	one.Difference = d
	least := r.least
	if form.Least > 0 {
		least = form.Least
	}
	if now.samples != nil { // of one value there is no interval
		least = max(least, leastSamples)
	}
	more := form.More.value + rounding*max(one.Value, one.Was.Value)
	up, down := d.Low > more, -d.High > more
	worse := form.Worse.Value
	switch {
	case !one.Asked:
		one.Why = "told, and not asked to be compared"
	case now.of < least || was.of < least:
		one.Why = fmt.Sprintf("%d cases now and %d in the baseline are too few; want %d", now.of, was.of, least)
	case up && worse != "down", down && (worse == "down" || worse == "either"):
		one.Result, one.Why = Fail, fmt.Sprintf("worse: the difference is surely beyond %g", form.More.value)
	default:
		one.Result, one.Why = Pass, fmt.Sprintf("not shown to be worse by more than %g", form.More.value)
	}
}
