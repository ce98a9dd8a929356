package reviewui

import (
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
	w := windows[1]
	for _, one := range windows {
		if one.name == v.r.URL.Query().Get("in") {
			w = one
		}
	}
	until := time.Now().UTC().Truncate(w.step).Add(w.step)
	since := until.Add(-w.back)
	spans, err := d.service.History(v.r.Context(), v.who, ledger.Past{Since: since, Until: until, Step: w.step})
	if err != nil {
		return err
	}
	repeats, err := d.service.Replays(v.r.Context(), v.who, since, until)
	if err != nil {
		return err
	}
	b := activityOf(spans, repeats, since, w)
	for _, one := range windows {
		b.Windows = append(b.Windows, choiceLink{one.name, "/activity?in=" + one.name, one == w})
	}
	p := d.page(v, "Activity", "activity", b)
	p.Live = true
	return d.show(v, http.StatusOK, "activity", p)
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
	over := func(word, class string, value func(ledger.Span) float64) series {
		s := series{Class: class, Word: word}
		for _, one := range filled {
			s.Values = append(s.Values, value(one))
		}
		return s
	}
	var outcomes []series
	for _, g := range groups {
		outcomes = append(outcomes, over(g.word, g.class, func(s ledger.Span) float64 { return settledAs(s, g.of) }))
	}
	again, calls := replayed(repeats, since, w)
	b := activityPage{Empty: len(spans) == 0 && calls == 0, Totals: append(totals(filled), tally{"calm", "calls repeated", calls, ""}), Charts: []bars{
		drawn("outcomes", "Writes by outcome", "writes settled", times, w.step, outcomes),
		drawn("people", "Sent to a reviewer", "writes", times, w.step, []series{
			over("went to review", "bar-bad", func(s ledger.Span) float64 { return float64(s.Review) }),
			over("held for approval", "bar-warn", func(s ledger.Span) float64 { return float64(s.Held) })}),
		drawn("saved", "Duplicates prevented", "writes verified after a send without an answer, without a second send", times, w.step, []series{
			over("duplicates prevented", "bar-good", func(s ledger.Span) float64 { return float64(s.Saved) })}),
		drawn("replays", "Calls repeated", "calls that got the outcome of an earlier one", times, w.step, []series{again}),
		drawn("reads", "Read-backs per write", "reads for each settled write", times, w.step, []series{
			over("reads per write", "bar-calm", func(s ledger.Span) float64 { return ratio(s.Reads, all(s)) })}),
		drawn("sends", "Sends per write", "sends for each settled write", times, w.step, []series{
			over("sends per write", "bar-calm", func(s ledger.Span) float64 { return ratio(s.Sends, all(s)) })}),
	}}
	for i := range b.Charts[4:] { // sums of quotients have no meaning
		b.Charts[4+i].Legend = nil
	}
	return b
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
