package eval

import (
	"fmt"
	"maps"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/readback-go/readback/internal/yamlfile"
)

const (
	// defaultConfidence is that of intervals, in percent.
	defaultConfidence = 95
	// defaultLeast is how many cases a rate needs before it is compared: with
	// fewer, intervals are so wide that nothing could ever be worse.
	defaultLeast = 20
	// leastSamples is how many samples a mean needs before it is compared, whatever the file
	// sets: resampling fewer always gives the same.
	leastSamples = 3
	// rounding is how far apart, relative to their size, two means may be that are
	// the same: sums of other lengths round in other ways.
	rounding = 1e-9
)

// Rate is one rate of tier 2, as it is now and as it was.
type Rate struct {
	// Name is its name in the file, About its description.
	Name  string `json:"name"`
	About string `json:"about"`
	// World means that it was read from the world. Otherwise it is what the run counted itself:
	// its ledger or its metrics.
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
	// Asked means that the file requests its comparison, Result is the result, Why the reason.
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
	"review":           {"writes that wait for a reviewer", false, "of writes", false},
	"lag":              {"how long reads lagged behind writes", true, "s", false},
	"time_to_verified": {"from the last send until it was settled as verified", true, "s", false},
	"reads_per_write":  {"reads of a write that was sent", true, "reads", false},
	"silent_wrong":     {"claims that the world denies", false, "of claims", true},
	"over_halting":     {"writes that wait for a reviewer though the world is as declared", false, "of claims", true},
	"false_aborts":     {"writes given up that could have been sent again without harm", false, "of claims", true},
}

// rates are those of a run, and the requests for them.
type rates struct {
	confidence, least int
	asked             map[string]rateForm
	have              map[string]measure
}

// readRates reads what a run counted.
func (l *loader) readRates(form *ratesForm, claimed *counter) *rates {
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
	export := l.f
	if form.Writes.Value != "" {
		export = &File{path: l.path}
		export.readExport(&l.ps, l.beside(form.Writes), func(page) {}, func(write) uint8 { return 0 })
	}
	counted := claimed
	if export.writes() {
		counted = &counter{}
		err := export.eachWrite(func(w write) {
			if w.exported.status() != "" {
				counted.add(w.exported)
			}
		})
		if err != nil {
			l.ps.say(l.path, 0, "", "%s", err)
		}
	}
	r.count(counted)
	if claimed.replays.of > 0 {
		r.have["replays"] = claimed.replays
	}
	if form.Counts.Value != "" {
		r.read(&l.ps, l.beside(form.Counts))
	}
	return r
}

// counter counts the claims about writes, and the answers to callers.
type counter struct {
	retries, duplicates, review, replays measure
	reads, waits                         []float64
}

// add counts one write.
func (c *counter) add(e exported) {
	c.duplicates.of++
	c.review.of++
	if e.status() == "review" {
		c.review.cases++
	}
	if e.Verdict == "duplicated" {
		c.duplicates.cases++
	}
	if e.Sends-e.Unsent < 1 {
		return
	}
	c.retries.of++
	if e.Sends-e.Unsent > 1 {
		c.retries.cases++
	}
	c.reads = append(c.reads, float64(e.Reads))
	if e.status() == "verified" && !e.LastSend.IsZero() && !e.SettledAt.Before(e.LastSend) {
		c.waits = append(c.waits, e.SettledAt.Sub(e.LastSend).Seconds())
	}
}

// call counts one answer to a caller, and whether it was a replay.
func (c *counter) call(e exported) {
	if e.ID == "" || e.State != "" {
		return // no answer to a call
	}
	c.replays.of++
	if e.Replayed {
		c.replays.cases++
	}
}

// count takes the numbers from what was claimed of writes.
func (r *rates) count(c *counter) {
	if c.duplicates.of == 0 {
		return
	}
	r.have["retries"], r.have["duplicates"], r.have["review"] = c.retries, c.duplicates, c.review
	r.sampled("reads_per_write", c.reads)
	r.sampled("time_to_verified", c.waits)
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

// against reports whether a rate is worse than before: only if the whole interval of the
// difference is beyond the tolerance.
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
		one.Why = "reported, and not requested to be compared"
	case now.of < least || was.of < least:
		one.Why = fmt.Sprintf("%d cases now and %d in the baseline are too few; want %d", now.of, was.of, least)
	case up && worse != "down", down && (worse == "down" || worse == "either"):
		one.Result, one.Why = Fail, fmt.Sprintf("worse: the difference is surely beyond %g", form.More.value)
	default:
		one.Result, one.Why = Pass, fmt.Sprintf("not shown to be worse by more than %g", form.More.value)
	}
}
