package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/replays"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// MaxInbox bounds the writes of one page of the inbox.
const MaxInbox = 500

// InboxQuery narrows the writes of an inbox. The zero value selects all.
type InboxQuery struct {
	// Tool, Destination and Reason select the writes with these; see [WaitReason]. Default: any.
	Tool, Destination, Reason string
	// Age selects writes that are at least as old, one of [InboxAges]. Default 0: of any age.
	Age time.Duration
	// Mine selects the writes that are assigned to the caller. They are on one page.
	Mine bool
	// After continues after a page: its Inbox.Next. Default: from the start.
	After string
	// Limit is the most writes to return, at most [MaxInbox]. Default [MaxInbox].
	Limit int
}

// InboxAges are the ages by which an inbox is narrowed.
var InboxAges = [ledger.WaitAges]time.Duration{time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}

// Inbox is what waits for a reviewer in one tenant.
type Inbox struct {
	// Writes are in review or held: those overdue first, then those that cannot be undone, then
	// the riskiest, of equal ones the oldest.
	Writes []Waiting
	// Next is the InboxQuery.After of the next page; "" at the end.
	Next string
	// Counts counts all writes that wait, whatever the query is, by what they wait for.
	Counts []ledger.Waiting
	// Among are the counts of those that a query narrows: of all, or of those assigned to the
	// caller.
	Among []ledger.Waiting
	// Uncounted reports that there are more groups than Counts has. The order is then that of
	// age alone.
	Uncounted bool
	// Mine is how many writes are assigned to the caller.
	Mine int
	// Steps wait for approval at the gate, oldest first; Sagas wait in review.
	Steps []gate.PendingApproval
	Sagas []saga.Saga
	// More reports that more waits than is shown.
	More bool
	// Unread names writes that cannot be read; what they wait for is not known.
	Unread []ledger.Unread
}

// Waiting is a write that waits for a reviewer.
type Waiting struct {
	Record  ledger.Record
	Outcome engine.Outcome
	Business
	Write intent.WriteType // "" where the caller makes the write itself
	Risk  intent.Risk
	// Final reports that its effect, or possible effect, cannot be undone.
	Final bool
	// Reason is why it waits; see [WaitReason].
	Reason string
	// Assigned is the reviewer who has taken it, "" for none.
	Assigned string
}

// Reasons why a write waits, besides the verdict of its last read.
const (
	WaitsApproval = "approval" // nothing was sent
	WaitsOverdue  = "overdue"  // the same, and an approval deadline passed
	WaitsDecision = "decision" // in review, and no read has a verdict
)

// WaitReason is why writes of a group wait: one of the reasons above, or the verdict.
func WaitReason(k ledger.WaitKind) string {
	switch {
	case k.State == ledger.Held && k.Overdue:
		return WaitsOverdue
	case k.State == ledger.Held:
		return WaitsApproval
	case k.Verdict == "":
		return WaitsDecision
	}
	return k.Verdict
}

// Selects reports whether a query selects the writes of a group, whatever their age is.
func (q InboxQuery) Selects(k ledger.WaitKind) bool {
	fits := func(want, have string) bool { return want == "" || want == have }
	return fits(q.Tool, k.Tool) && fits(q.Destination, k.Destination) && fits(q.Reason, WaitReason(k))
}

// Inbox lists what waits for a reviewer.
func (o *Service) Inbox(ctx context.Context, who Who, q InboxQuery) (Inbox, error) {
	var in Inbox
	if err := who.May(access.Trace); err != nil {
		return in, err
	}
	if err := o.waiting(ctx, who, q, &in); err != nil {
		return in, err
	}
	var err error
	if in.Steps, err = o.pending(ctx, who); err != nil {
		return in, err
	}
	in.More = in.Next != "" || len(in.Steps) == maxPending
	if o.parts.Sagas != nil {
		if in.Sagas, err = o.parts.Sagas.List(ctx, who.Tenant, maxPending, saga.Review); err != nil {
			return in, err
		}
		in.More = in.More || len(in.Sagas) == maxPending
	}
	slices.SortStableFunc(in.Sagas, func(a, b saga.Saga) int { return a.Since.Compare(b.Since) })
	return in, nil
}

// maxPending is the page size of the gate and of sagas.
const maxPending = 100

// pending lists the steps that wait for approval, oldest first.
func (o *Service) pending(ctx context.Context, who Who) ([]gate.PendingApproval, error) {
	if o.parts.Steps == nil {
		return nil, nil
	}
	all, err := o.parts.Steps.Pending(ctx, caller(who), maxPending)
	slices.SortStableFunc(all, func(a, b gate.PendingApproval) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all, err
}

// PendingSteps lists the steps that wait for approval at the gate, oldest first, at most 100.
func (o *Service) PendingSteps(ctx context.Context, who Who) ([]gate.PendingApproval, error) {
	if err := who.May(access.Trace); err != nil {
		return nil, err
	}
	return o.pending(ctx, who)
}

// waiting reads one page of writes, and the counts of all.
func (o *Service) waiting(ctx context.Context, who Who, q InboxQuery, in *Inbox) error {
	if q.Limit <= 0 || q.Limit > MaxInbox {
		q.Limit = MaxInbox
	}
	now := time.Now()
	var before [ledger.WaitAges]time.Time
	for i, age := range InboxAges {
		before[i] = now.Add(-age)
	}
	var err error
	if in.Counts, in.Uncounted, err = o.counts.of(ctx, o.parts.Ledger, who.Tenant, before); err != nil {
		return err
	}
	mine, err := o.assigned(ctx, who)
	if err != nil {
		return err
	}
	in.Among = in.Counts
	if in.Mine = len(mine); q.Mine {
		in.Among = countOf(mine, before)
		in.Writes = slices.DeleteFunc(mine, func(w Waiting) bool {
			kind, _ := ledger.WaitKindOf(w.Record)
			return !q.Selects(kind) || w.Record.Created.After(now.Add(-q.Age))
		})
		slices.SortStableFunc(in.Writes, func(a, b Waiting) int {
			return cmp.Or(cmp.Compare(b.weight(), a.weight()), a.Record.Created.Compare(b.Record.Created))
		})
		return nil
	}
	if err := o.inboxPage(ctx, who, q, now, in); err != nil {
		return err
	}
	for i, w := range in.Writes {
		if in.Writes[i].Assigned, err = o.assignee(ctx, who.Tenant, w.Record.ID); err != nil {
			return err
		}
	}
	return nil
}

// countOf counts writes as the ledger does.
func countOf(all []Waiting, before [ledger.WaitAges]time.Time) (counts []ledger.Waiting) {
	for _, w := range all {
		kind, _ := ledger.WaitKindOf(w.Record)
		one := ledger.Waiting{WaitKind: kind, Count: 1}
		for i, t := range before {
			if w.Record.Created.Before(t) {
				one.Older[i] = 1
			}
		}
		counts = append(counts, one) // of equal groups several, which callers add up
	}
	return counts
}

// class is the groups of writes that are equally urgent, which the ledger lists by age. Without
// groups it is all writes that wait.
type class struct {
	weight int
	kinds  []ledger.WaitKind
}

// classes are those that a query selects, the most urgent first.
func (o *Service) classes(q InboxQuery, in *Inbox) (all []class) {
	if in.Uncounted {
		return []class{{}}
	}
	kinds := map[int][]ledger.WaitKind{}
	for _, c := range in.Counts {
		if q.Selects(c.WaitKind) {
			weight := o.weightOf(c.WaitKind)
			kinds[weight] = append(kinds[weight], c.WaitKind)
		}
	}
	for weight, of := range kinds {
		all = append(all, class{weight, of})
	}
	slices.SortFunc(all, func(a, b class) int { return cmp.Compare(b.weight, a.weight) })
	return all
}

// maxInboxReads bounds how often one page reads from the ledger: a page may hold fewer writes than
// requested, or none, and continue.
const maxInboxReads = 20

// inboxPage reads the next writes that a query selects.
func (o *Service) inboxPage(ctx context.Context, who Who, q InboxQuery, now time.Time, in *Inbox) error {
	cursor, err := o.openCursor(ctx, who, q.After)
	if err != nil {
		return err
	}
	weight, after, err := inboxPlace(cursor)
	if err != nil {
		return err
	}
	reads := 0
	for _, c := range o.classes(q, in) {
		if cursor != "" && c.weight > weight {
			continue
		}
		s := ledger.Search{Tenant: who.Tenant, Waits: c.kinds, Oldest: true, Destination: q.Destination}
		if len(c.kinds) == 0 {
			s.States = []ledger.State{ledger.Review, ledger.Held}
		}
		if q.Age > 0 {
			s.Until = now.Add(-q.Age)
		}
		if c.weight == weight {
			s.After = after
		}
		for more := true; more; more = s.After != "" {
			if s.Limit = min(q.Limit-len(in.Writes), maxFound); s.Limit == 0 || reads == maxInboxReads {
				in.Next, err = o.sealCursor(ctx, who, fmt.Sprint(c.weight, ":", s.After))
				return err
			}
			reads++
			found, err := o.parts.Ledger.Find(ctx, s)
			if err != nil {
				return err
			}
			in.Unread = append(in.Unread, found.Unread...)
			for _, r := range found.Records {
				if kind, ok := ledger.WaitKindOf(r); ok && q.Selects(kind) {
					in.Writes = append(in.Writes, o.waits(Shown(r)))
				}
			}
			s.After = found.Next
		}
	}
	return nil
}

// maxFound is the largest page of a search in the ledger.
const maxFound = 200

// inboxPlace parses a cursor of the inbox: the class, and the ledger's cursor in it.
func inboxPlace(cursor string) (weight int, after string, err error) {
	if cursor == "" {
		return -1, "", nil
	}
	class, after, ok := strings.Cut(cursor, ":")
	if weight, err = strconv.Atoi(class); err != nil || !ok {
		return 0, "", fmt.Errorf("%w: want one that an inbox gave", ledger.ErrCursor)
	}
	return weight, after, nil
}

func (o *Service) waits(r ledger.Record) Waiting {
	w := Waiting{Record: r, Outcome: engine.OutcomeOf(r)}
	declared, err := intent.DecodeStored(r.Intent)
	if err == nil { // else its caller makes the write itself
		w.Write, w.Risk = declared.Write, declared.Risk
	}
	p := o.profileOf(r)
	w.Final = p != nil && slices.Contains(p.Irreversible, declared.Write)
	w.Business = business(r, declared, p)
	if r.State == ledger.Held { // whether the intent or a rule requires it
		w.Risk = intent.RiskApprove
	}
	if kind, ok := ledger.WaitKindOf(r); ok {
		w.Reason = WaitReason(kind)
	}
	return w
}

// weightOf is how urgent the writes of a group are.
func (o *Service) weightOf(k ledger.WaitKind) int {
	w := Waiting{Record: ledger.Record{Overdue: k.Overdue}, Risk: intent.Risk(k.Risk)}
	if k.State == ledger.Held {
		w.Risk = intent.RiskApprove
	}
	_, p, err := o.parts.Registry.Lookup(k.Destination, k.Kind)
	w.Final = err == nil && slices.Contains(p.Irreversible, intent.WriteType(k.Write))
	return w.weight()
}

// weight is how urgent a write is.
func (w Waiting) weight() int {
	weight := 0
	if w.Record.Overdue {
		weight += 8
	}
	if w.Final {
		weight += 4
	}
	switch w.Risk {
	case intent.RiskApprove:
		weight += 2
	case intent.RiskLog:
		weight++
	}
	return weight
}

// Follow returns the changes of the own tenant after a cursor; see [ledger.Feed.Follow].
func (o *Service) Follow(ctx context.Context, who Who, after string, limit int) ([]ledger.Change, string, error) {
	err := mayFollow(who)
	if err != nil {
		return nil, "", err
	}
	if after, err = o.openCursor(ctx, who, after); err != nil {
		return nil, "", err
	}
	changes, next, err := o.parts.Ledger.Follow(ctx, ledger.Following{Tenant: who.Tenant, After: after, Limit: limit})
	if err != nil {
		return nil, "", uncounted(err)
	}
	for i := range changes {
		if changes[i].Cursor, err = o.sealCursor(ctx, who, changes[i].Cursor); err != nil {
			return nil, "", err
		}
	}
	next, err = o.sealCursor(ctx, who, next)
	return changes, next, err
}

// Latest is the cursor after the last change.
func (o *Service) Latest(ctx context.Context, who Who) (string, error) {
	if err := mayFollow(who); err != nil {
		return "", err
	}
	latest, err := o.parts.Ledger.Latest(ctx)
	if err != nil {
		return "", err
	}
	return o.sealCursor(ctx, who, latest)
}

func mayFollow(who Who) error {
	if err := who.May(access.Read); err != nil {
		return err
	}
	if who.Scope != nil {
		return fmt.Errorf("%w: the events are those of the whole tenant, and this token has a scope; ask for the outcome of each write", access.ErrForbidden)
	}
	return nil
}

// Replays is the number of calls that got the outcome of an earlier one, from a time on.
type Replays = replays.Count

// Replays are the calls of the own tenant that got the outcome of an earlier one,
// by five minutes and in no order.
func (o *Service) Replays(ctx context.Context, who Who, since, until time.Time) ([]Replays, error) {
	if err := who.May(access.Trace); err != nil {
		return nil, err
	}
	return replays.Counted(ctx, o.parts.Ledger, who.Tenant, since, until)
}

// History counts events of the own tenant. A result that takes long to count is cached
// for ten times as long, at most a minute, and must not be changed.
func (o *Service) History(ctx context.Context, who Who, q ledger.Past) ([]ledger.Span, error) {
	if err := who.May(access.Trace); err != nil {
		return nil, err
	}
	q.Tenant = who.Tenant
	return o.pasts.history(ctx, o.parts.Ledger, q)
}
