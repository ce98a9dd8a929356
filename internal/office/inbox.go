package office

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/replays"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/workflow"
	"github.com/readback-go/readback/workflow/saga"
)

// maxInbox bounds what waits for people on one page: nobody decides about more
// in a day. Of each kind the oldest are there.
const maxInbox = 500

// Inbox is what waits for a person in one tenant.
type Inbox struct {
	// Writes are in review or held: those overdue first, then the riskiest, of
	// equal ones the oldest.
	Writes []Waiting
	// Steps wait for approval at the gate, oldest first; Sagas wait in review.
	Steps []workflow.PendingApproval
	Sagas []saga.Saga
	// More says that more waits than is shown.
	More bool
	// Unread names writes that cannot be read; what they wait for is not known.
	Unread []ledger.Unread
}

// Waiting is a write that waits for a person.
type Waiting struct {
	Record  ledger.Record
	Outcome engine.Outcome
	Write   intent.WriteType // "" where the caller makes the write itself
	Risk    intent.Risk
	// Final says that what it does, or may have done, cannot be taken back.
	Final bool
}

// Inbox lists what waits for a person.
func (o *Office) Inbox(ctx context.Context, who Who) (Inbox, error) {
	var in Inbox
	if err := who.May(access.Trace); err != nil {
		return in, err
	}
	if err := o.waiting(ctx, who, &in); err != nil {
		return in, err
	}
	var err error
	if o.parts.Steps != nil {
		if in.Steps, err = o.parts.Steps.Pending(ctx, caller(who), maxPending); err != nil {
			return in, err
		}
		in.More = in.More || len(in.Steps) == maxPending
	}
	if o.parts.Sagas != nil {
		if in.Sagas, err = o.parts.Sagas.List(ctx, who.Tenant, maxPending, saga.Review); err != nil {
			return in, err
		}
		in.More = in.More || len(in.Sagas) == maxPending
	}
	slices.SortStableFunc(in.Steps, func(a, b workflow.PendingApproval) int { return a.CreatedAt.Compare(b.CreatedAt) })
	slices.SortStableFunc(in.Sagas, func(a, b saga.Saga) int { return a.Since.Compare(b.Since) })
	return in, nil
}

// maxPending is as many as one listing of the gate or of sagas gives.
const maxPending = 100

// waiting lists the writes: the oldest there are, in the order of an inbox.
func (o *Office) waiting(ctx context.Context, who Who, in *Inbox) error {
	s := ledger.Search{States: []ledger.State{ledger.Review, ledger.Held}, Oldest: true}
	for {
		found, err := o.Find(ctx, who, s)
		if err != nil {
			return err
		}
		in.Unread = append(in.Unread, found.Unread...)
		for _, r := range found.Records {
			in.Writes = append(in.Writes, o.waits(r))
		}
		if found.Next == "" {
			break
		}
		if len(in.Writes) >= maxInbox {
			in.More = true
			break
		}
		s.After = found.Next
	}
	slices.SortStableFunc(in.Writes, func(a, b Waiting) int {
		return cmp.Or(cmp.Compare(b.weight(), a.weight()), a.Record.Created.Compare(b.Record.Created))
	})
	return nil
}

func (o *Office) waits(r ledger.Record) Waiting {
	w := Waiting{Record: r, Outcome: engine.OutcomeOf(r)}
	if declared, err := intent.DecodeStored(r.Intent); err == nil { // else its caller makes the write itself
		w.Write, w.Risk = declared.Write, declared.Risk
		_, p, err := o.parts.Registry.Lookup(r.Destination, r.Kind)
		w.Final = err == nil && slices.Contains(p.Irreversible, declared.Write)
	}
	if r.State == ledger.Held { // whether the intent asks for it or a rule
		w.Risk = intent.RiskApprove
	}
	return w
}

// weight is how much a write presses.
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

// Follow tells what happened in the own tenant behind a cursor; see
// [ledger.Follower].
func (o *Office) Follow(ctx context.Context, who Who, after string, limit int) ([]ledger.Change, string, error) {
	f, err := o.follower(who)
	if err != nil {
		return nil, "", err
	}
	return f.Follow(ctx, ledger.Following{Tenant: who.Tenant, After: after, Limit: limit})
}

// Latest is the cursor behind all that happened.
func (o *Office) Latest(ctx context.Context, who Who) (string, error) {
	f, err := o.follower(who)
	if err != nil {
		return "", err
	}
	return f.Latest(ctx)
}

func (o *Office) follower(who Who) (ledger.Follower, error) {
	if err := who.May(access.Read); err != nil {
		return nil, err
	}
	f, ok := o.parts.Ledger.(ledger.Follower)
	if !ok {
		return nil, errors.Join(ErrUnsupported, errors.New("this ledger cannot be followed"))
	}
	return f, nil
}

// Replays is how many calls got the outcome of an earlier one, from a time on.
type Replays = replays.Count

// Replays are the calls of the own tenant that got the outcome of an earlier one,
// by five minutes and in no order.
func (o *Office) Replays(ctx context.Context, who Who, since, until time.Time) ([]Replays, error) {
	if err := who.May(access.Trace); err != nil {
		return nil, err
	}
	notes, err := o.notes()
	if err != nil {
		return nil, err
	}
	return replays.Counted(ctx, notes, who.Tenant, since, until)
}

// History counts what happened in the own tenant. One that takes long to count is
// kept for ten times as long, at most a minute, and must not be changed.
func (o *Office) History(ctx context.Context, who Who, q ledger.Past) ([]ledger.Span, error) {
	if err := who.May(access.Trace); err != nil {
		return nil, err
	}
	h, ok := o.parts.Ledger.(ledger.Historian)
	if !ok {
		return nil, errors.Join(ErrUnsupported, errors.New("this ledger keeps no history"))
	}
	q.Tenant = who.Tenant
	return o.pasts.history(ctx, h, q)
}
