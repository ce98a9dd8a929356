package reviewui

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

// healthPage is one destination: its state, what is open there, and what happened.
type healthPage struct {
	destination
	Status  badge
	Says    string // the state in a sentence
	Windows []choiceLink
	Totals  []tally
	Charts  []bars
	Empty   bool // nothing happened in the window
	Open    []openWrites
	Refused []refusedWrite
	Acts    []stopped // of the stops that concern it
}

// openWrites are its open writes in one state.
type openWrites struct {
	State      string
	Count, Due int
	Oldest     string // how long ago the oldest was created
	Link       string
}

// refusedWrite is a write that the destination refused, in its words.
type refusedWrite struct {
	Words, Title, Link string
	At                 time.Time
}

// health shows one destination.
func (d *app) health(v *visit) error {
	h, err := d.service.Health(v.r.Context(), v.who, v.r.PathValue("name"))
	if err != nil {
		return err
	}
	now := time.Now()
	w, since, until := v.window(now)
	spans, err := d.service.History(v.r.Context(), v.who, ledger.Past{Destination: h.Name, Since: since, Until: until, Step: w.step})
	if err != nil {
		return err
	}
	b := healthOf(h, spans, since, w, now)
	b.Stop = v.stopLink(h.Name)
	b.Windows = w.links(b.Link)
	p := d.page(v, b.Name, "destinations", b)
	p.Live = true
	return d.show(v, http.StatusOK, "health", p)
}

func healthOf(h service.Health, spans []ledger.Span, since time.Time, w window, now time.Time) healthPage {
	b := healthPage{destination: destinationOf(h.Destination, now), Empty: len(spans) == 0}
	b.Status, b.Says = healthStatus(h.Destination, now)
	b.Why = "" // it is in the sentence
	times, filled := spread(spans, since, w)
	b.Totals = totals(filled)
	b.Charts = append(outcomeCharts(filled, times, w), callCharts(filled, times, w)...)
	for _, s := range h.Past {
		b.Acts = append(b.Acts, stopped{Stopped: s})
	}
	b.Charts = append(b.Charts, stopChart(h.Past, times, w, now))
	for _, q := range h.Queues {
		row := openWrites{State: report.Clip(report.Word(q.State), maxName), Count: q.Count, Due: q.Due, Link: openPath(h.Name, q.State)}
		if q.State == ledger.Settled {
			row.State, row.Link = "settled, to be read again", "" // a search would show all that are settled
		}
		if !q.OldestCreated.IsZero() {
			row.Oldest = report.Ago(q.OldestCreated, now)
		}
		b.Open = append(b.Open, row)
	}
	for _, r := range h.Refused {
		b.Refused = append(b.Refused, refusedWrite{report.Clip(strings.TrimPrefix(report.Words(*r.Refusal), "the destination's own words: "), maxText), report.Clip(report.Subject(r), maxText), writePath(r.ID), r.LastSend})
	}
	return b
}

// healthStatus is what an operator has to know first, the strongest reason alone.
func healthStatus(d service.Destination, now time.Time) (badge, string) {
	switch {
	case len(d.Stops) > 0:
		s := d.Stops[0]
		return badge{"bad", "■", "stopped"}, report.Clip(fmt.Sprintf("%s stopped it %s: %s readback sends nothing to it and still reads back what was sent.",
			s.Last().By, report.Ago(s.Last().At, now), report.Sentence(s.Last().Reason)), maxText)
	case !d.Breaker.Login.IsZero():
		return badge{"bad", "■", "login refused"}, fmt.Sprintf("It has refused our login since %s. Its writes wait. Correct its credentials in the configuration.", report.Ago(d.Breaker.Login, now))
	case d.Breaker.State == "open":
		return badge{"bad", "■", "not reachable"}, fmt.Sprintf("Too many sends to it failed: %s Its writes wait. readback tries one send %s.", report.Sentence(d.Breaker.Why), report.Ago(d.Breaker.Until, now))
	case d.Breaker.State == "half-open":
		return badge{"warn", "◐", "being tried"}, fmt.Sprintf("Too many sends to it failed: %s readback tries one send; the others wait for its result.", report.Sentence(d.Breaker.Why))
	case !d.Pause.IsZero():
		return badge{"warn", "‖", "paused"}, fmt.Sprintf("It asked for fewer calls: %s Sends continue %s.", report.Sentence(d.PauseWhy), report.Ago(d.Pause, now))
	}
	return badge{"good", "✓", "reachable"}, "Nothing holds sends to it."
}

// stopChart is for how many minutes of each step all sends to a destination were stopped.
func stopChart(stops []guards.Stopped, times []time.Time, w window, now time.Time) bars {
	type span struct{ from, to time.Time }
	var all []span
	for _, s := range stops {
		if s.Tool != "" {
			continue // it holds a part of the sends only
		}
		var from time.Time
		for _, act := range s.Log {
			switch {
			case !act.Released && from.IsZero():
				from = act.At
			case act.Released && !from.IsZero():
				all, from = append(all, span{from, act.At}), time.Time{}
			}
		}
		if !from.IsZero() {
			all = append(all, span{from, now})
		}
	}
	slices.SortFunc(all, func(a, b span) int { return a.from.Compare(b.from) })
	minutes := series{Class: "bar-bad", Word: "minutes stopped", Values: make([]float64, len(times))}
	for i, at := range times {
		end, sum := at, time.Duration(0) // what overlaps counts once
		for _, s := range all {
			from, to := at.Add(max(s.from.Sub(at), end.Sub(at))), at.Add(min(s.to.Sub(at), w.step))
			if to.After(from) {
				sum, end = sum+to.Sub(from), to
			}
		}
		minutes.Values[i] = float64(sum.Round(time.Minute/100)) / float64(time.Minute)
	}
	return drawn("stops", "Stops", "minutes in which nothing was sent", times, w.step, []series{minutes})
}
