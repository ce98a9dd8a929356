package reviewui

import (
	"cmp"
	"errors"
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
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// maxName is how many characters of a name are shown.
const maxName = 80

// inboxRows is how many writes a page of the inbox has.
const inboxRows = 50

// inboxPage lists what waits for a reviewer.
type inboxPage struct {
	Counts []tally
	// Filters narrow the writes.
	Filters []filter
	Order   string // in which the writes are
	Writes  []waiting
	Many    *bulk // the form that decides about several, nil for none
	Steps   []waiting
	Sagas   []waiting
	More    bool // more steps or sagas than are shown
	Unread  facts
	Empty   bool
	// Least reports that the counts are lower bounds.
	Least bool
	// First and Next lead to other pages of writes, "" for none.
	First, Next string
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
	Rest   int    // values that have no link
	All    string // the link that leaves it out, where a value is chosen
}

// maxValues is how many values of a filter have a link: those of the most writes.
const maxValues = 20

// ages are the values of the age filter.
var ages = [...]struct{ value, word string }{{"1h", "over an hour"}, {"1d", "over a day"}, {"1w", "over a week"}}

// inboxQuery reads what a query selects.
func inboxQuery(q url.Values) service.InboxQuery {
	out := service.InboxQuery{Tool: q.Get("tool"), Destination: q.Get("destination"), Reason: q.Get("reason"),
		Mine: q.Get("assigned") == "me", After: q.Get("after"), Limit: inboxRows}
	for i, age := range ages {
		if q.Get("age") == age.value {
			out.Age = service.InboxAges[i]
		}
	}
	return out
}

// inboxPath is the page of what a query selects.
func inboxPath(q service.InboxQuery) string {
	to := url.Values{}
	for name, value := range map[string]string{"tool": q.Tool, "destination": q.Destination, "reason": q.Reason, "after": q.After} {
		if value != "" {
			to.Set(name, value)
		}
	}
	if i := slices.Index(service.InboxAges[:], q.Age); i >= 0 {
		to.Set("age", ages[i].value)
	}
	if q.Mine {
		to.Set("assigned", "me")
	}
	if len(to) == 0 {
		return "/inbox"
	}
	return "/inbox?" + to.Encode()
}

// counted is how many writes of a group a query selects.
func counted(q service.InboxQuery, c ledger.Waiting) int {
	switch i := slices.Index(service.InboxAges[:], q.Age); {
	case !q.Selects(c.WaitKind):
		return 0
	case i >= 0:
		return c.Older[i]
	}
	return c.Count
}

// filtersOf are the filters with their counts: of each value as many as there would be with it.
func filtersOf(in service.Inbox, q service.InboxQuery) (all []filter) {
	q.After = ""
	for _, f := range []struct {
		title, chosen string
		of            func(ledger.WaitKind) string
		with          func(service.InboxQuery, string) service.InboxQuery
	}{
		{"Tool", q.Tool, func(k ledger.WaitKind) string { return k.Tool },
			func(q service.InboxQuery, v string) service.InboxQuery { q.Tool = v; return q }},
		{"Destination", q.Destination, func(k ledger.WaitKind) string { return k.Destination },
			func(q service.InboxQuery, v string) service.InboxQuery { q.Destination = v; return q }},
		{"Waits because", q.Reason, service.WaitReason,
			func(q service.InboxQuery, v string) service.InboxQuery { q.Reason = v; return q }},
	} {
		counts := map[string]int{}
		for _, c := range in.Among {
			if n := counted(f.with(q, ""), c); n > 0 {
				counts[f.of(c.WaitKind)] += n
			}
		}
		one := filter{Title: f.title}
		if f.chosen != "" {
			one.All = inboxPath(f.with(q, ""))
		}
		values := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
		if one.Rest = max(0, len(values)-maxValues); one.Rest > 0 {
			values = values[:maxValues]
		}
		for _, v := range slices.Sorted(slices.Values(values)) {
			if v == "" {
				continue
			}
			word := v
			if f.title == "Waits because" {
				word = reasonWord(v)
			}
			one.Values = append(one.Values, tally{Class: current(v == f.chosen), Word: report.Clip(word, maxName), N: counts[v], Link: inboxPath(f.with(q, v))})
		}
		if len(one.Values) > 1 || f.chosen != "" {
			all = append(all, one)
		}
	}
	return append(all, otherFilters(in, q)...)
}

// current is the class of the chosen value of a filter.
func current(chosen bool) string {
	if chosen {
		return "current"
	}
	return ""
}

// otherFilters are those by age and by reviewer.
func otherFilters(in service.Inbox, q service.InboxQuery) (all []filter) {
	age, mine := filter{Title: "Age"}, filter{Title: "Assigned to"}
	for i, a := range ages {
		with := q
		with.Age = service.InboxAges[i]
		n := 0
		for _, c := range in.Among {
			n += counted(with, c)
		}
		if n > 0 || q.Age == with.Age {
			age.Values = append(age.Values, tally{Class: current(q.Age == with.Age), Word: a.word, N: n, Link: inboxPath(with)})
		}
	}
	if q.Age > 0 {
		with := q
		with.Age = 0
		age.All = inboxPath(with)
	}
	if len(age.Values) > 0 {
		all = append(all, age)
	}
	if in.Mine > 0 || q.Mine {
		with := q
		with.Mine = true
		mine.Values = []tally{{Class: current(q.Mine), Word: "me", N: in.Mine, Link: inboxPath(with)}}
		if q.Mine {
			with.Mine = false
			mine.All = inboxPath(with)
		}
		all = append(all, mine)
	}
	return all
}

// reasonWords say why a write waits, in the words of the filter.
var reasonWords = map[string]string{
	service.WaitsApproval: "needs approval",
	service.WaitsOverdue:  "approval is overdue",
	service.WaitsDecision: "needs a decision",
	"absent":              "the record was not found",
	"mismatched":          "the record differs",
	"duplicated":          "more records than asked for",
	"collateral":          "another field changed",
	"vacuous":             "it was so before",
	"stale":               "the change is not visible",
	"unavailable":         "the destination could not be read",
	"indeterminate":       "the result is unknown",
}

func reasonWord(reason string) string { return cmp.Or(reasonWords[reason], reason) }

// waiting is one entry of the inbox.
type waiting struct {
	Link    string
	N       int    // its number on the page
	Pick    string // the field that selects it, "" for none
	Seen    string // its value: what is shown of it
	Picked  bool
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
	q := inboxQuery(v.r.URL.Query())
	in, err := d.service.Inbox(v.r.Context(), v.who, q)
	if errors.Is(err, ledger.ErrCursor) { // of an earlier key, or copied from another tenant
		q.After = ""
		return v.to(inboxPath(q))
	}
	if err != nil {
		return err
	}
	var picks []pick
	if v.r.URL.Query().Get("select") == "all" {
		for _, w := range in.Writes {
			picks = append(picks, pickOf(w.Record))
		}
	}
	return d.showInbox(v, http.StatusOK, in, q, bulk{}, "", picks)
}

// showInbox shows a page of the inbox, with the form of a decision that was refused, if any, and
// the writes that are selected in it.
func (d *app) showInbox(v *visit, status int, in service.Inbox, q service.InboxQuery, many bulk, choice string, picks []pick) error {
	b := inboxPage{More: len(in.Steps) == maxPending || len(in.Sagas) == maxPending, Unread: unreadable(in.Unread), Filters: filtersOf(in, q)}
	now, review, held := time.Now(), 0, 0
	for _, c := range in.Counts {
		if c.State == ledger.Review {
			review += c.Count
		} else {
			held += c.Count
		}
	}
	for i, w := range in.Writes {
		one := waitingWrite(w)
		one.Link = writeFrom(w.Record.ID, inboxPath(q))
		if v.may(access.Decide) {
			p := pickOf(w.Record)
			one.N, one.Pick, one.Seen, one.Picked = i, pickPrefix+string(p.id), p.value(), slices.Contains(picks, p)
		}
		b.Writes = append(b.Writes, one)
	}
	for _, s := range in.Steps {
		b.Steps = append(b.Steps, waitingStep(s, now))
	}
	for _, s := range in.Sagas {
		b.Sagas = append(b.Sagas, waitingSaga(s))
	}
	b.Order = "overdue first, then what cannot be undone and what is risky, of equal ones the oldest"
	if in.Uncounted {
		b.Order = "the oldest first"
	}
	page := q
	if page.After = ""; q.After != "" {
		b.First = inboxPath(page)
	}
	if page.After = in.Next; in.Next != "" {
		b.Next = inboxPath(page)
	}
	if v.may(access.Decide) && len(in.Writes) > 0 {
		many.From, many.Choices, many.None = inboxPath(q), manyChoices(in.Writes, choice), inboxPath(q)
		many.All = many.None + map[bool]string{true: "&", false: "?"}[strings.Contains(many.None, "?")] + "select=all"
		b.Many = &many
	}
	b.Counts = []tally{{"bad", "in review", review, "#writes"}, {"warn", "held", held, "#writes"},
		{"warn", "to approve at the gate", len(in.Steps), "#steps"}, {"bad", "sagas", len(in.Sagas), "#sagas"}}
	total, more := review+held+len(in.Steps)+len(in.Sagas), ""
	if b.Least = in.Uncounted; b.Least || b.More {
		more = "+"
	}
	b.Empty = total == 0 && len(in.Unread) == 0
	title := "Inbox"
	if total > 0 {
		title = fmt.Sprintf("(%d%s) Inbox", total, more)
	}
	p := d.page(v, title, "inbox", b)
	p.Live, p.Message, p.Back = true, fixedMessage(v), inboxPath(q)
	return d.show(v, status, "inbox", p)
}

// pickOf selects a write as it is shown.
func pickOf(r ledger.Record) pick { return pick{r.ID, r.Seq, r.Digest} }

// maxPending is how many steps and sagas a page has.
const maxPending = 100

// fixed are the messages that are shown once, to the user who acted.
var fixed = map[string]message{
	"step":     {Class: "good", Text: "The gate has taken your decision about the step. It is kept with your name and reason."},
	"stopped":  {Class: "good", Text: "Stopped. No worker sends what it holds, from within a second on."},
	"released": {Class: "good", Text: "Released. What was held continues by itself."},
	"taken":    {Class: "good", Text: "The selected writes are assigned to you. Other reviewers see it, and can still decide."},
	"given":    {Class: "good", Text: "The selected writes are assigned to no reviewer."},
	"saga":     {Class: "good", Text: "The saga has taken your decision. Its current state is shown here."},
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
	if w.Summary != "" {
		one.Title = report.Clip(w.Summary, 2*maxName)
	}
	one.Why, one.Sets = report.Sentence(r.Reason), sets(r)
	if named := w.Business; named.Amount+named.Subject+named.Customer != "" {
		one.Sets = namedValues(named)
	}
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
	if w.Assigned != "" {
		who = append(who, "assigned to "+report.Clip(w.Assigned, maxName))
	}
	one.Who = strings.Join(who, "; ")
	return one
}

// namedValues are the values that the kind declares as what an approver reads first, without
// those that the summary has.
func namedValues(b service.Business) string {
	var all []string
	for _, named := range []struct{ name, value string }{{"amount", b.Amount}, {"subject", b.Subject}, {"customer", b.Customer}} {
		if named.value != "" && !strings.Contains(b.Summary, named.value) {
			all = append(all, named.name+" "+report.Clip(named.value, maxName))
		}
	}
	return strings.Join(all, " · ")
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
