package reviewui

import (
	"errors"
	"fmt"
	"net/http"
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
	StopAll *ask      // stops everything
	Rights  rights
}

// destination is one of them.
type destination struct {
	Anchor   string
	Name     string
	Type     string
	Breaker  badge
	Why      string
	State    facts
	Profiles []profile
	Lags     *lagChart
	Stops    []string
	Stop     *ask
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
		view.Stop = v.stopForm(view.Anchor, one.Name, not)
		b.All = append(b.All, view)
	}
	b.StopAll = v.stopForm("all", "", not)
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
	d := destination{Name: report.Clip(one.Name, maxName), Type: report.Clip(one.Type, maxName), Breaker: breakerStatus(one.Breaker), Lags: lagsOf(one.Lags)}
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

// stopForm stops sends to one destination, or to all; nil for users who may not.
func (v *visit) stopForm(id, name string, not *ask) *ask {
	if !v.may(access.Operate) {
		return nil
	}
	f := &ask{ID: "stop-" + id, Action: "/destinations/stop", Title: "Stop all sends", Hidden: []hidden{{"destination", name}},
		Text:   "Nothing of this tenant is sent anywhere, by any worker, from within a second on. What was sent is still read back.",
		Button: "Stop", Field: &input{Name: "tool", Label: "Only of this tool (optional)", Hint: "Leave it empty for all tools."}}
	if name != "" {
		f.Title = "Stop sends to it"
		f.Text = "Nothing of this tenant is sent to it, by any worker, from within a second on. What was sent is still read back."
	}
	return f.or(not)
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
	form := &ask{Action: "/destinations/stop", Hidden: []hidden{{"destination", scope.Destination}}, Field: &input{Name: "tool"}}
	return d.switched(v, form, "stopped", func(reason string) error { return d.service.Stop(v.r.Context(), v.who, scope, reason) })
}

// release releases a stop.
func (d *app) release(v *visit) error {
	scope := guards.Scope{Destination: v.form.Get("destination"), Tool: v.form.Get("tool")}
	seen := v.form.Get("seen")
	form := &ask{Action: "/destinations/release", Hidden: []hidden{{"destination", scope.Destination}, {"tool", scope.Tool}, {"seen", seen}}}
	return d.switched(v, form, "released", func(reason string) error {
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

func (d *app) switched(v *visit, form *ask, done string, do func(reason string) error) error {
	reason, problem := reasonOf(v.form)
	if problem != "" {
		form.again(v.form, problem, nil)
		return d.showDestinations(v, http.StatusUnprocessableEntity, form)
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
	return d.showDestinations(v, f.Status, form)
}
