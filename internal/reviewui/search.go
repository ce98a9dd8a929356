package reviewui

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxQuery is the longest search text: no name is longer.
	maxQuery = 255
	// maxFound is how many writes one page of a search holds.
	maxFound = 50
	// maxFrom is the largest offset in a workflow's steps: none has more.
	maxFrom = 1000
	// maxChosen is how many writes, or steps, of a whole name are shown below what was searched.
	maxChosen = 20
)

// searchPage is a search and its results.
type searchPage struct {
	Q, By, State, Destination, Since, Until string
	Oldest                                  bool
	States, Destinations                    []option
	Problem                                 map[string]string
	Groups                                  []group
	From                                    int    // offset in the steps of the workflow
	Saga                                    string // the saga of that name
	SagaName                                string
	Asked                                   bool
	Error                                   string
}

type option struct {
	Value, Word string
	Chosen      bool
}

// group is the result of one kind of name.
type group struct {
	Title  string
	Rows   []waiting
	Next   string // the next page
	Unread facts
}

// way is one kind of whole name by which links of other pages search.
type way struct {
	value, word string
	queried     bool // a search by text finds it too
	set         func(*ledger.Search, string)
}

var ways = []way{
	{"workflow", "workflow", true, func(s *ledger.Search, q string) { s.Workflow = q }},
	{"correlation", "correlation id", false, func(s *ledger.Search, q string) { s.CorrelationID = q }},
	{"operation", "idempotency key", true, func(s *ledger.Search, q string) { s.IdempotencyKey = q }},
	{"key", "key digest", false, func(s *ledger.Search, q string) { s.KeyDigest = q }},
}

// states are the states in which a write is not settled, those that wait for a reviewer first.
var states = []ledger.State{ledger.Review, ledger.Held, ledger.Queued, ledger.Sending, ledger.Checking, ledger.Compensating, ledger.Delegated}

// search finds writes.
func (d *app) search(v *visit) error {
	q := v.r.URL.Query()
	b := searchPage{Q: strings.TrimSpace(q.Get("q")), By: q.Get("by"), State: q.Get("state"), Destination: q.Get("destination"),
		Since: q.Get("since"), Until: q.Get("until"), Oldest: q.Get("oldest") == "yes", From: from(q.Get("from")), Problem: map[string]string{}, Asked: len(q) > 0}
	base := b.base()
	d.choices(v, &b)
	if len(b.Problem) == 0 && b.Asked {
		switch only, err := d.find(v, &b, base, q.Get("after")); {
		case only != "":
			return v.to(only)
		case errors.Is(err, ledger.ErrCursor):
			b.Error = "The next page cannot be found from here: search again."
		case err != nil:
			return err
		}
	}
	p := d.page(v, "Search", "search", b)
	return d.show(v, http.StatusOK, "search", p)
}

// from reads an offset; 0 if it is invalid.
func from(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxFrom {
		return 0
	}
	return n
}

// base is the search that the filters describe; it records what is wrong with them.
func (b *searchPage) base() ledger.Search {
	s := ledger.Search{Oldest: b.Oldest, Limit: maxFound, Destination: b.Destination}
	if len(b.Q) > maxQuery {
		b.Problem["q"] = "That is longer than any name here."
	} else if _, err := (ledger.Search{Tenant: "any", Query: b.Q}).Checked(); err != nil {
		b.Problem["q"] = "There is nothing to search for in that: type a part of a name."
	}
	switch {
	case b.State == "":
	case slices.Contains(states, ledger.State(b.State)):
		s.States = []ledger.State{ledger.State(b.State)}
	case slices.Contains(service.Settlements, ledger.Status(b.State)):
		s.Settlements = []ledger.Status{ledger.Status(b.State)}
	default:
		b.Problem["state"] = "There is no such state."
	}
	s.Since = b.moment("since", b.Since)
	s.Until = b.moment("until", b.Until)
	return s
}

// moment reads a time in UTC, in the form of browsers or as users type it.
func (b *searchPage) moment(field, text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	b.Problem[field] = "Not a time; write it as 2026-01-31 18:00, in UTC."
	return time.Time{}
}

// choices sets the options of the filters.
func (d *app) choices(v *visit, b *searchPage) {
	b.States = []option{{"", "any state", b.State == ""}}
	for _, s := range states {
		b.States = append(b.States, option{string(s), report.Word(s), string(s) == b.State})
	}
	for _, s := range service.Settlements {
		b.States = append(b.States, option{string(s), "settled: " + report.Word(s), string(s) == b.State})
	}
	b.Destinations = []option{{"", "any destination", b.Destination == ""}}
	all, err := d.service.Destinations(v.r.Context(), v.who)
	if err != nil {
		return // the search works without the list
	}
	for _, one := range all {
		b.Destinations = append(b.Destinations, option{one.Name, report.Clip(one.Name, maxName), one.Name == b.Destination})
	}
}

// find searches by what a user knows of a write, or by a whole name of one kind. Only is the page
// of the write whose ID it is.
func (d *app) find(v *visit, b *searchPage, base ledger.Search, after string) (only string, err error) {
	exact := slices.IndexFunc(ways, func(w way) bool { return w.value == b.By })
	base.After = after
	if b.Q == "" || exact < 0 {
		base.Query = b.Q
		found, err := d.group(v, b, base, "Writes", way{})
		if err != nil || b.Q == "" || after != "" {
			return "", err
		}
		if len(found.Records) == 1 && found.Next == "" && slices.Contains(found.Matched[found.Records[0].ID], "id") {
			return writePath(found.Records[0].ID), nil
		}
	}
	for i, w := range ways {
		s := base
		switch {
		case exact >= 0 && i != exact:
			continue
		case exact < 0:
			s.Query, s.Limit = "", maxChosen
		}
		w.set(&s, b.Q)
		if w.value == "workflow" {
			if err := d.steps(v, b, s.Limit); err != nil {
				return "", err
			}
		}
		if exact < 0 && w.queried { // its writes were found
			continue
		}
		if _, err := d.group(v, b, s, "By "+w.word, w); err != nil {
			return "", err
		}
	}
	if exact < 0 {
		if s, err := d.service.Saga(v.r.Context(), v.who, b.Q); err == nil {
			b.Saga, b.SagaName = sagaPath(s.ID), report.Clip(s.ID, maxName)
		} else if _, expected := failureOf(err); !expected {
			return "", err
		}
	}
	return "", nil
}

// steps finds the gate's decisions about the steps of a workflow, also of those that were
// blocked and have no write. They have no state or destination of a write, so a search
// with such a filter finds none.
func (d *app) steps(v *visit, b *searchPage, limit int) error {
	if b.State+b.Destination+b.Since+b.Until != "" {
		return nil
	}
	found, err := d.service.WorkflowSteps(v.r.Context(), v.who, b.Q, limit, b.From)
	if refused := (*gate.Error)(nil); errors.As(err, &refused) && (refused.Code == gate.NotFound || refused.Code == gate.BadRequest) || errors.Is(err, service.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	g := group{Title: "Steps of the workflow"}
	for _, t := range found.Steps {
		g.Rows = append(g.Rows, foundStep(t))
	}
	if next := found.More(); next > 0 {
		g.Next = "/search?" + url.Values{"by": {"workflow"}, "q": {b.Q}, "from": {strconv.Itoa(next)}}.Encode()
	}
	if len(g.Rows) > 0 {
		b.Groups = append(b.Groups, g)
	}
	return nil
}

func foundStep(t gate.StepTrace) waiting {
	one := stepRow(t.WorkflowID, t.WorkflowName, t.StepID, t.StepName)
	one.Why, one.Badges = report.Sentence(t.Reason), []badge{badgeOf(stepBadges, t.Status())}
	if by, at := report.LastAsked(t); by != "" {
		one.Since, one.Ago, one.Who = at, report.Ago(at, time.Now()), "asked by "+by
	}
	return one
}

func (d *app) group(v *visit, b *searchPage, s ledger.Search, title string, w way) (service.Found, error) {
	found, err := d.service.Find(v.r.Context(), v.who, s)
	if err != nil {
		return found, err
	}
	g := group{Title: title, Unread: unreadable(found.Unread)}
	for _, r := range found.Records {
		one := foundWrite(r)
		if summary := found.Business[r.ID].Summary; summary != "" {
			one.Title = report.Clip(summary, 2*maxName)
		}
		if by := report.FoundBy(found.Matched[r.ID]); by != "" {
			one.Who += ", found by " + by
		}
		g.Rows = append(g.Rows, one)
	}
	if found.Next != "" {
		q := url.Values{"after": {found.Next}}
		for name, value := range map[string]string{"q": b.Q, "by": w.value, "state": b.State, "destination": b.Destination, "since": b.Since, "until": b.Until} {
			if value != "" {
				q.Set(name, value)
			}
		}
		if b.Oldest {
			q.Set("oldest", "yes")
		}
		g.Next = "/search?" + q.Encode()
	}
	if len(g.Rows) > 0 || g.Next != "" || len(g.Unread) > 0 {
		b.Groups = append(b.Groups, g)
	}
	return found, nil
}

func foundWrite(r ledger.Record) waiting {
	o := engine.OutcomeOf(r)
	one := rowOf(r, o)
	one.Why, one.Who = report.Clip(o.Text, maxText), report.Clip("workflow "+r.Workflow, 2*maxName)
	if gone, _ := report.Gone(r); gone != "" {
		one.Badges = append(one.Badges, badge{"calm", "†", gone})
	}
	return one
}
