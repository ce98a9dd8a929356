package reviewui

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
)

// destinationsPage lists the destinations.
type destinationsPage struct {
	All     []destination
	Stops   []stopped
	Past    []stopped // released
	StopAll string    // the page that stops everything, "" for users who may not
	Rights  rights
}

// destination is one of them.
type destination struct {
	Anchor   string
	Link     string // its own page
	Name     string
	Type     string
	Breaker  badge
	Why      string
	State    facts
	Profiles []profile
	Lags     *lagChart
	Stops    []string
	Stop     string // the page that stops it, "" for users who may not
}

// profile is a destination's capabilities for one kind of record.
type profile struct {
	Kind  string
	Facts facts
}

// stopped is a stop, with its reason.
type stopped struct {
	guards.Stopped
	Release *ask
	Where   string // where it can be released, if not here
}

// destinations shows all destinations.
func (d *app) destinations(v *visit) error { return d.showDestinations(v, http.StatusOK, nil) }

// showDestinations shows them, with a form that was refused, if any.
func (d *app) showDestinations(v *visit, status int, not *ask) error {
	all, err := d.service.Destinations(v.r.Context(), v.who)
	if err != nil {
		return err
	}
	stops, err := d.service.Stops(v.r.Context(), v.who)
	if err != nil {
		return err
	}
	b := destinationsPage{Rights: v.rights()}
	now := time.Now()
	for i, one := range all {
		view := destinationOf(one, now)
		view.Anchor = fmt.Sprintf("d%d", i)
		view.Stop = v.stopLink(one.Name)
		b.All = append(b.All, view)
	}
	b.StopAll = v.stopLink("")
	for i, s := range stops {
		view := v.stopped(fmt.Sprintf("r%d", i), s, not)
		if s.Active || s.Damaged {
			b.Stops = append(b.Stops, view)
		} else {
			b.Past = append(b.Past, view)
		}
	}
	p := d.page(v, "Destinations", "destinations", b)
	p.Message, p.Back = fixedMessage(v), "/destinations"
	p.Live = not == nil
	return d.show(v, status, "destinations", p)
}

func destinationOf(one service.Destination, now time.Time) destination {
	d := destination{Link: destinationPath(one.Name), Name: report.Clip(one.Name, maxName), Type: report.Clip(one.Type, maxName), Breaker: breakerStatus(one.Breaker), Lags: lagsOf(one.Lags)}
	if one.Breaker.State != "closed" {
		d.Why = report.Sentence(one.Breaker.Why)
	}
	if one.Breaker.State != "closed" {
		d.State.at("One send is tried", one.Breaker.Until, now)
	}
	if !one.Pause.IsZero() {
		d.State.at("It asked for a pause, over", one.Pause, now)
		d.State.add("Why", report.Sentence(one.PauseWhy))
	}
	use := fmt.Sprintf("%d sends under way", one.InUse)
	if one.InUse == 1 {
		use = "1 send under way"
	}
	if one.Limit > 0 {
		use += fmt.Sprintf(", at most %d", one.Limit)
	}
	d.State.add("Under way", use)
	rate := "no limit is known"
	if one.Rate.Calls > 0 {
		rate = fmt.Sprintf("at most %d calls in %s", one.Rate.Calls, report.Short(one.Rate.Per))
	}
	d.State.add("Rate", rate)
	for _, s := range one.Stops {
		last := s.Last()
		d.Stops = append(d.Stops, report.Clip(fmt.Sprintf("Stopped (%s) by %s: %s", s.Scope, last.By, last.Reason), maxText))
	}
	for _, p := range one.Profiles {
		d.Profiles = append(d.Profiles, profile{report.Clip(p.Kind, maxName), profileFacts(p)})
	}
	return d
}

// stopLink is the page that shows what a stop of a destination, or of all, would affect.
func (v *visit) stopLink(name string) string {
	if !v.may(access.Operate) {
		return ""
	}
	return "/destinations/stop?" + url.Values{"destination": {name}}.Encode()
}

// stopPage shows what a stop would affect, and asks for its reason.
type stopPage struct {
	Title             string
	Destination, Tool string
	Rows              []affected
	Workflows, Sagas  string
	Stopped           []stopped // what holds it already
	Uncounted         string    // why the effect is not known
	Form              *ask
}

// affected are the open writes in one state.
type affected struct {
	State, What string
	Count       int
	Link        string
}

// previewStop shows what a stop would affect.
func (d *app) previewStop(v *visit) error {
	q := v.r.URL.Query()
	s := guards.Scope{Destination: q.Get("destination"), Tool: strings.TrimSpace(q.Get("tool"))}
	return d.showStop(v, http.StatusOK, s, stopForm(s))
}

// stopForm is the form that stops sends of a scope.
func stopForm(s guards.Scope) *ask {
	to := ""
	if s.Destination != "" {
		to += " to " + report.Clip(s.Destination, maxName)
	}
	if s.Tool != "" {
		to += " by the tool " + report.Clip(s.Tool, maxName)
	}
	if to == "" {
		to = " anywhere"
	}
	return &ask{ID: "stop", Action: "/destinations/stop", Title: "Stop sends" + to, Hidden: []hidden{{"destination", s.Destination}, {"tool", s.Tool}},
		Text:   "Within a second no worker sends anything of this tenant" + to + ". readback still reads back what was sent. New writes are recorded and wait. The stop lasts until an operator releases it.",
		Button: "Stop", Open: true}
}

// showStop shows the page of a stop. It does so, too, if its effect cannot be counted: a stop
// must not wait for that.
func (d *app) showStop(v *visit, status int, s guards.Scope, form *ask) error {
	b := stopPage{Title: form.Title, Destination: s.Destination, Tool: report.Clip(s.Tool, maxName), Form: form}
	effect, err := d.service.StopEffect(v.r.Context(), v.who, s)
	if f, _ := failureOf(err); err != nil && f.Status < http.StatusInternalServerError {
		return err
	}
	if err != nil {
		d.log.ErrorContext(v.r.Context(), "the effect of a stop cannot be counted", "error", err)
		b.Uncounted = "What the stop would affect cannot be counted now. It can be made all the same."
	}
	for _, w := range effect.Writes {
		if w.Count == 0 {
			continue
		}
		row := affected{State: report.Clip(report.Word(w.State), maxName), What: report.Clip(w.What, maxText), Count: w.Count}
		if s.Tool == "" {
			row.Link = openPath(s.Destination, w.State)
		}
		b.Rows = append(b.Rows, row)
	}
	b.Workflows, b.Sagas = strconv.Itoa(effect.Workflows), strconv.Itoa(effect.Sagas)
	if effect.More {
		b.Workflows, b.Sagas = "at least "+b.Workflows, "at least "+b.Sagas
	}
	for i, one := range effect.Stops {
		b.Stopped = append(b.Stopped, v.stopped(fmt.Sprintf("r%d", i), one, nil))
	}
	p := d.page(v, form.Title, "destinations", b)
	if status != http.StatusOK {
		p.Back = "/destinations"
	}
	return d.show(v, status, "stop", p)
}

// or returns the refused form if it is this one.
func (a *ask) or(not *ask) *ask {
	if not == nil || not.Action != a.Action || len(not.Hidden) != len(a.Hidden) {
		return a
	}
	for i, h := range a.Hidden {
		if not.Hidden[i] != h {
			return a
		}
	}
	not.ID, not.Title, not.Text, not.Button = a.ID, a.Title, a.Text, a.Button
	if not.Field != nil && a.Field != nil {
		not.Field.Label, not.Field.Hint = a.Field.Label, a.Field.Hint
	}
	return not
}

func (v *visit) stopped(id string, s guards.Stopped, not *ask) stopped {
	one := stopped{Stopped: s}
	switch {
	case !s.Active && !s.Damaged:
	case s.Tenant != v.who.Tenant || s.Damaged:
		one.Where = "It holds more than this tenant, and is released on the command line: readback release."
	case v.may(access.Operate):
		f := &ask{ID: "release-" + id, Action: "/destinations/release", Title: "Release", Hidden: []hidden{{"destination", s.Destination}, {"tool", s.Tool}, {"seen", seenOf(s)}},
			Text: "What it holds is sent again, in the order of the queue.", Button: "Release"}
		one.Release = f.or(not)
	}
	return one
}

// stop holds sends.
func (d *app) stop(v *visit) error {
	scope := guards.Scope{Destination: v.form.Get("destination"), Tool: v.form.Get("tool")}
	form := stopForm(scope)
	return d.switched(v, form, "stopped", func(status int) error { return d.showStop(v, status, scope, form) },
		func(reason string) error { return d.service.Stop(v.r.Context(), v.who, scope, reason) })
}

// release releases a stop.
func (d *app) release(v *visit) error {
	scope := guards.Scope{Destination: v.form.Get("destination"), Tool: v.form.Get("tool")}
	seen := v.form.Get("seen")
	form := &ask{Action: "/destinations/release", Hidden: []hidden{{"destination", scope.Destination}, {"tool", scope.Tool}, {"seen", seen}}}
	again := func(status int) error { return d.showDestinations(v, status, form) }
	return d.switched(v, form, "released", again, func(reason string) error {
		stops, err := d.service.Stops(v.r.Context(), v.who)
		if err != nil {
			return err
		}
		scope.Tenant = v.who.Tenant
		for _, s := range stops {
			if s.Scope == scope && s.Active && seenOf(s) != seen {
				return errOtherStop
			}
		}
		return d.service.Release(v.r.Context(), v.who, scope, reason)
	})
}

// seenOf distinguishes the stop on the page from a later one of the same scope, which has
// another reason.
func seenOf(s guards.Stopped) string { return s.Last().At.UTC().Format(time.RFC3339Nano) }

// switched stops or releases, or shows the form again with what is wrong.
func (d *app) switched(v *visit, form *ask, done string, again func(status int) error, do func(reason string) error) error {
	reason, problem := reasonOf(v.form)
	if problem != "" {
		form.again(v.form, problem, nil)
		return again(http.StatusUnprocessableEntity)
	}
	err := do(reason)
	if err == nil {
		return v.saying("/destinations", done)
	}
	f, expected := failureOf(err)
	if !expected || f.Status == http.StatusNotFound || errors.Is(err, guards.ErrNotStopped) || errors.Is(err, errOtherStop) {
		return err // the page has no form for it
	}
	form.again(v.form, "", err)
	return again(f.Status)
}
