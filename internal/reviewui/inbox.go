package reviewui

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// maxName is how many characters of a name are shown.
const maxName = 80

// inboxPage lists what waits for a reviewer.
type inboxPage struct {
	Counts []tally
	// Filters narrow the writes to those of one tool, destination or state.
	Filters []filter
	Writes  []waiting
	Steps   []waiting
	Sagas   []waiting
	More    bool
	Unread  facts
	Empty   bool
}

// tally is a count with a name.
type tally struct {
	Class, Word string
	N           int
	Link        string
}

// filter is one property by which writes can be narrowed, with the link for each value.
type filter struct {
	Title  string
	Values []tally
	Chosen string
	All    string // the link that leaves it out, where a value is chosen
}

// filters are the properties of a write that narrow the inbox, by their query parameter.
var filters = []struct {
	name, title string
	of          func(service.Waiting) string
}{
	{"tool", "Tool", func(w service.Waiting) string { return w.Record.Tool }},
	{"destination", "Destination", func(w service.Waiting) string { return w.Record.Destination }},
	{"state", "Waits for", func(w service.Waiting) string {
		if w.Record.State == ledger.Review {
			return "a decision"
		}
		return "approval"
	}},
}

// narrowed are the writes that the query chooses, and the filters with their counts: of each
// value as many as there would be with it.
func narrowed(all []service.Waiting, q url.Values) (shown []service.Waiting, out []filter) {
	fits := func(w service.Waiting, without string) bool {
		for _, f := range filters {
			if chosen := q.Get(f.name); f.name != without && chosen != "" && f.of(w) != chosen {
				return false
			}
		}
		return true
	}
	with := func(name, value string) string {
		to := url.Values{}
		for _, f := range filters {
			if v := q.Get(f.name); v != "" {
				to.Set(f.name, v)
			}
		}
		if to.Del(name); value != "" {
			to.Set(name, value)
		}
		if len(to) == 0 {
			return "/inbox"
		}
		return "/inbox?" + to.Encode()
	}
	for _, f := range filters {
		counts := map[string]int{}
		for _, w := range all {
			if v := f.of(w); v != "" && fits(w, f.name) {
				counts[v]++
			}
		}
		one := filter{Title: f.title, Chosen: report.Clip(q.Get(f.name), maxName)}
		if one.Chosen != "" {
			one.All = with(f.name, "")
		}
		for _, v := range slices.Sorted(maps.Keys(counts)) {
			one.Values = append(one.Values, tally{Word: report.Clip(v, maxName), N: counts[v], Link: with(f.name, v)})
		}
		if len(one.Values) > 1 || one.Chosen != "" {
			out = append(out, one)
		}
	}
	for _, w := range all {
		if fits(w, "") {
			shown = append(shown, w)
		}
	}
	return shown, out
}

// waiting is one entry of the inbox.
type waiting struct {
	Link    string
	Title   string
	Sets    string // the first values that it sets
	From    string // its tool and workflow
	ID      string
	Badges  []badge
	Why     string
	Since   time.Time
	Ago     string
	Until   time.Time // zero for no end
	UntilIn string
	Who     string // who asked, who approved
}

// inbox shows what waits for a reviewer.
func (d *app) inbox(v *visit) error {
	in, err := d.service.Inbox(v.r.Context(), v.who)
	if err != nil {
		return err
	}
	b := inboxPage{More: in.More, Unread: unreadable(in.Unread)}
	now, review, held := time.Now(), 0, 0
	for _, w := range in.Writes {
		if w.Record.State == ledger.Review {
			review++
		} else {
			held++
		}
	}
	var shown []service.Waiting
	shown, b.Filters = narrowed(in.Writes, v.r.URL.Query())
	for _, w := range shown {
		b.Writes = append(b.Writes, waitingWrite(w))
	}
	for _, s := range in.Steps {
		b.Steps = append(b.Steps, waitingStep(s, now))
	}
	for _, s := range in.Sagas {
		b.Sagas = append(b.Sagas, waitingSaga(s))
	}
	b.Counts = []tally{{"bad", "in review", review, "#writes"}, {"warn", "held", held, "#writes"},
		{"warn", "to approve at the gate", len(in.Steps), "#steps"}, {"bad", "sagas", len(in.Sagas), "#sagas"}}
	total := len(in.Writes) + len(in.Steps) + len(in.Sagas)
	b.Empty = total == 0 && len(in.Unread) == 0
	title := "Inbox"
	if total > 0 {
		title = fmt.Sprintf("(%d) Inbox", total)
		if in.More { // the counts are of the entries shown
			title = fmt.Sprintf("(%d+) Inbox", total)
		}
	}
	p := d.page(v, title, "inbox", b)
	p.Live, p.Message = true, fixedMessage(v)
	return d.show(v, http.StatusOK, "inbox", p)
}

// fixed are the messages that are shown once, to the user who acted.
var fixed = map[string]message{
	"step":     {"good", "The gate has taken your decision about the step. It is kept with your name and reason."},
	"stopped":  {"good", "Stopped. No worker sends what it holds, from within a second on."},
	"released": {"good", "Released. What was held continues by itself."},
	"saga":     {"good", "The saga has taken your decision. Its current state is shown here."},
}

// messageCookie carries the name of a message to the next page. A link cannot fake one.
const messageCookie = "readback_message"

// saying redirects to another page, which shows a message once.
func (v *visit) saying(path, word string) error {
	v.remember(messageCookie, word, time.Minute)
	return v.to(path)
}

// fixedMessage is the message to show, nil for none.
func fixedMessage(v *visit) *message {
	c, err := v.r.Cookie(messageCookie)
	if err != nil {
		return nil
	}
	v.remember(messageCookie, "", -time.Second)
	if s, ok := fixed[c.Value]; ok {
		return &s
	}
	return nil
}

// rowOf is a write in a list.
func rowOf(r ledger.Record, o engine.Outcome) waiting {
	now := r.Now
	if now.IsZero() {
		now = time.Now()
	}
	return waiting{Link: writePath(r.ID), Title: report.Clip(report.Subject(r), 2*maxName), ID: report.Safe(string(r.ID)),
		Since: r.Created, Ago: report.Ago(r.Created, now), Badges: []badge{status(o.Status)}}
}

// sets are the first values that a write sets, as an approver knows them: the amount, the
// currency, the customer.
func sets(r ledger.Record) string {
	w, err := intent.DecodeStored(r.Intent)
	if err != nil {
		return ""
	}
	var all []string
	for _, l := range leaves(nil, "", w.Expect) {
		if _, isList := l.value.([]any); isList {
			continue
		}
		if len(all) == maxSets {
			all = append(all, "…")
			break
		}
		all = append(all, strings.TrimPrefix(l.path, "/")+" "+report.Clip(report.OneLine(l.value), maxName))
	}
	return report.Safe(strings.Join(all, " · "))
}

// maxSets is how many values a row of the inbox shows.
const maxSets = 4

func waitingWrite(w service.Waiting) waiting {
	r, one := w.Record, rowOf(w.Record, w.Outcome)
	one.Why, one.Sets = report.Sentence(r.Reason), sets(r)
	one.From = report.Clip("tool "+r.Tool+", workflow "+r.Workflow, 2*maxName)
	if r.Overdue {
		one.Badges = append(one.Badges, badge{"bad", "!", "overdue"})
	}
	if w.Final {
		one.Badges = append(one.Badges, badge{"bad", "⚠", "irreversible"})
	}
	if w.Risk != "" {
		one.Badges = append(one.Badges, badge{"calm", "", "risk " + report.Clip(string(w.Risk), maxName)})
	}
	if r.State == ledger.Review && r.Verdict != "" {
		one.Badges = append(one.Badges, badge{"calm", "", report.Clip(r.Verdict, maxName)})
	}
	var who []string
	if r.State == ledger.Held {
		who = append(who, "approved by "+report.Approvals(r))
		if !r.Due.IsZero() && !r.Overdue {
			one.Until, one.UntilIn = r.Due, report.Ago(r.Due, r.Now)
		}
	}
	if r.RequestedBy != "" {
		who = append(who, "asked for by "+report.Clip(r.RequestedBy, maxName))
	}
	one.Who = strings.Join(who, "; ")
	return one
}

// stepRow is a step in a list.
func stepRow(workflow, workflowName, step, stepName string) waiting {
	return waiting{Link: stepPath(workflow, step), Title: report.Clip("step "+cmp.Or(stepName, step)+" of "+workflowName, 2*maxName), ID: report.Clip(workflow+" / "+step, 2*maxName)}
}

func waitingStep(s gate.PendingApproval, now time.Time) waiting {
	one := stepRow(s.WorkflowID, s.WorkflowName, s.StepID, s.StepName)
	one.Why, one.Since, one.Ago, one.Badges = report.Sentence(s.DecisionReason), s.CreatedAt, report.Ago(s.CreatedAt, now), []badge{{"warn", "‖", "held step"}}
	one.Who = fmt.Sprintf("approved by %d of %d", len(s.ApprovedBy), max(s.Need, 1))
	if s.Overdue {
		one.Badges = append(one.Badges, badge{"bad", "!", "overdue"})
	} else if s.ExpiresAt != nil {
		one.Until, one.UntilIn = *s.ExpiresAt, report.Ago(*s.ExpiresAt, now)
	}
	return one
}

func waitingSaga(s saga.Saga) waiting {
	return waiting{Link: sagaPath(s.ID), Title: report.Clip("saga "+s.ID, 2*maxName), ID: report.Clip(s.ID, maxName), Why: report.Sentence(s.Reason),
		Since: s.Since, Ago: report.Ago(s.Since, s.Now), Badges: []badge{badgeOf(sagaBadges, s.State)}}
}
