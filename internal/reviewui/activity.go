package reviewui

import (
	"math"
	"net/http"
	"time"

	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

// activityPage shows the results of writes over time.
type activityPage struct {
	Windows []choiceLink
	Totals  []tally
	Charts  []bars
	Empty   bool
}

// window is the time span of the charts, and its steps.
type window struct {
	name       string
	back, step time.Duration
}

var windows = []window{{"1h", time.Hour, time.Minute}, {"24h", 24 * time.Hour, 30 * time.Minute}, {"7d", 7 * 24 * time.Hour, 3 * time.Hour}}

// activity shows the results of writes over time.
func (d *app) activity(v *visit) error {
	w, since, until := v.window(time.Now())
	spans, err := d.service.History(v.r.Context(), v.who, ledger.Past{Since: since, Until: until, Step: w.step})
	if err != nil {
		return err
	}
	repeats, err := d.service.Replays(v.r.Context(), v.who, since, until)
	if err != nil {
		return err
	}
	b := activityOf(spans, repeats, since, w)
	b.Windows = w.links("/activity")
	p := d.page(v, "Activity", "activity", b)
	p.Live = true
	return d.show(v, http.StatusOK, "activity", p)
}

// window is the requested time span, a day by default, in whole steps.
func (v *visit) window(now time.Time) (w window, since, until time.Time) {
	w = windows[1]
	for _, one := range windows {
		if one.name == v.r.URL.Query().Get("in") {
			w = one
		}
	}
	until = now.UTC().Truncate(w.step).Add(w.step)
	return w, until.Add(-w.back), until
}

// links are those to the same page with each time span.
func (w window) links(path string) (all []choiceLink) {
	for _, one := range windows {
		all = append(all, choiceLink{one.name, path + "?in=" + one.name, one == w})
	}
	return all
}

// groups are the outcomes that share a bar, lowest first.
var groups = []struct {
	class, word string
	of          []ledger.Status
}{
	{"bar-good", "verified", []ledger.Status{ledger.Verified}},
	{"bar-calm", "known not to be there", []ledger.Status{ledger.NotApplied, ledger.Compensated, ledger.Denied, ledger.Expired}},
	{"bar-warn", "settled by a reviewer or a caller", []ledger.Status{ledger.Accepted, ledger.Abandoned, ledger.Reported}},
}

// activityOf puts counts into charts, times without events included.
func activityOf(spans []ledger.Span, repeats []service.Replays, since time.Time, w window) activityPage {
	times, filled := spread(spans, since, w)
	again, calls := replayed(repeats, since, w)
	b := activityPage{Empty: len(spans) == 0 && calls == 0, Totals: append(totals(filled), tally{"calm", "calls repeated", calls, ""})}
	b.Charts = append(outcomeCharts(filled, times, w), drawn("replays", "Calls repeated", "calls that got the outcome of an earlier one", times, w.step, []series{again}))
	b.Charts = append(b.Charts, callCharts(filled, times, w)...)
	return b
}

// spread puts counts into the steps of a window.
func spread(spans []ledger.Span, since time.Time, w window) ([]time.Time, []ledger.Span) {
	n := int(w.back / w.step)
	times, filled := make([]time.Time, n), make([]ledger.Span, n)
	for i := range times {
		times[i] = since.Add(time.Duration(i) * w.step)
	}
	for _, s := range spans {
		i := int(s.From.Sub(since) / w.step)
		if i >= 0 && i < n && !s.From.Before(since) {
			filled[i] = merged(filled[i], s)
		}
	}
	return times, filled
}

// over is a series of one number of each span.
func over(filled []ledger.Span, word, class string, value func(ledger.Span) float64) series {
	s := series{Class: class, Word: word}
	for _, one := range filled {
		s.Values = append(s.Values, value(one))
	}
	return s
}

// outcomeCharts are those of what became of the writes.
func outcomeCharts(filled []ledger.Span, times []time.Time, w window) []bars {
	var outcomes []series
	for _, g := range groups {
		outcomes = append(outcomes, over(filled, g.word, g.class, func(s ledger.Span) float64 { return settledAs(s, g.of) }))
	}
	return []bars{
		drawn("outcomes", "Writes by outcome", "writes settled", times, w.step, outcomes),
		shareChart(filled, times, w),
		drawn("people", "Sent to a reviewer", "writes", times, w.step, []series{
			over(filled, "went to review", "bar-bad", func(s ledger.Span) float64 { return float64(s.Review) }),
			over(filled, "held for approval", "bar-warn", func(s ledger.Span) float64 { return float64(s.Held) })}),
		drawn("saved", "Duplicates prevented", "writes verified after a send without an answer, without a second send", times, w.step, []series{
			over(filled, "duplicates prevented", "bar-good", func(s ledger.Span) float64 { return float64(s.Saved) })}),
	}
}

// shareChart is the part of the settled writes that were verified, in percent.
func shareChart(filled []ledger.Span, times []time.Time, w window) bars {
	share := func(s ledger.Span) float64 {
		return math.Round(1000*ratio(int(settledAs(s, groups[0].of)), all(s))) / 10
	}
	rest := func(s ledger.Span) float64 {
		if all(s) == 0 {
			return 0
		}
		return math.Round(10*(100-share(s))) / 10
	}
	c := drawn("share", "Verified share", "percent of the writes settled", times, w.step, []series{
		over(filled, "verified", "bar-good", share), over(filled, "settled otherwise", "bar-warn", rest)})
	var sum ledger.Span
	for _, s := range filled {
		sum = merged(sum, s)
	}
	c.Most, c.Legend[0].Total, c.Legend[1].Total = "", figure(share(sum))+" %", figure(rest(sum))+" %"
	return c
}

// callCharts are those of what the writes took.
func callCharts(filled []ledger.Span, times []time.Time, w window) []bars {
	charts := []bars{
		drawn("reads", "Read-backs per write", "reads for each settled write", times, w.step, []series{
			over(filled, "reads per write", "bar-calm", func(s ledger.Span) float64 { return ratio(s.Reads, all(s)) })}),
		drawn("sends", "Sends per write", "sends for each settled write", times, w.step, []series{
			over(filled, "sends per write", "bar-calm", func(s ledger.Span) float64 { return ratio(s.Sends, all(s)) })}),
	}
	for i := range charts { // sums of quotients have no meaning
		charts[i].Legend = nil
	}
	return charts
}

// replayed are the repeats in the steps of a window, and their total.
func replayed(repeats []service.Replays, since time.Time, w window) (series, int) {
	s, total := series{Class: "bar-calm", Word: "calls repeated", Values: make([]float64, w.back/w.step)}, 0
	for _, r := range repeats {
		i := max(int(r.From.Sub(since)/w.step), 0) // a coarse count can begin before the window
		if i < len(s.Values) {
			s.Values[i] += float64(r.N)
			total += r.N
		}
	}
	return s, total
}

// merged is the sum of two spans.
func merged(a, b ledger.Span) ledger.Span {
	sum := ledger.Span{Settled: map[ledger.Status]int{}, Review: a.Review + b.Review, Held: a.Held + b.Held,
		Saved: a.Saved + b.Saved, Sends: a.Sends + b.Sends, Reads: a.Reads + b.Reads}
	for _, s := range []ledger.Span{a, b} {
		for k, n := range s.Settled {
			sum.Settled[k] += n
		}
	}
	return sum
}

func settledAs(s ledger.Span, of []ledger.Status) float64 {
	n := 0
	for _, one := range of {
		n += s.Settled[one]
	}
	return float64(n)
}

func all(s ledger.Span) int {
	n := 0
	for _, one := range s.Settled {
		n += one
	}
	return n
}

func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// totals are the sums over the whole window.
func totals(spans []ledger.Span) []tally {
	var sum ledger.Span
	for _, s := range spans {
		sum = merged(sum, s)
	}
	return []tally{{"good", "verified", int(settledAs(sum, groups[0].of)), ""}, {"calm", "known not to be there", int(settledAs(sum, groups[1].of)), ""},
		{"warn", "settled by a reviewer or a caller", int(settledAs(sum, groups[2].of)), ""}, {"bad", "went to review", sum.Review, ""},
		{"warn", "held", sum.Held, ""}, {"good", "duplicates prevented", sum.Saved, ""}}
}
