package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/replays"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// maxInbox bounds the entries on one page: no reviewer decides about more in a day. Of
// each kind the oldest are shown.
const maxInbox = 500

// Inbox is what waits for a reviewer in one tenant.
type Inbox struct {
	// Writes are in review or held: those overdue first, then the riskiest, of equal ones
	// the oldest.
	Writes []Waiting
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
}

// Inbox lists what waits for a reviewer.
func (o *Service) Inbox(ctx context.Context, who Who) (Inbox, error) {
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
	slices.SortStableFunc(in.Steps, func(a, b gate.PendingApproval) int { return a.CreatedAt.Compare(b.CreatedAt) })
	slices.SortStableFunc(in.Sagas, func(a, b saga.Saga) int { return a.Since.Compare(b.Since) })
	return in, nil
}

// maxPending is the page size of the gate and of sagas.
const maxPending = 100

// waiting lists the oldest writes, in the order of an inbox.
func (o *Service) waiting(ctx context.Context, who Who, in *Inbox) error {
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

func (o *Service) waits(r ledger.Record) Waiting {
	w := Waiting{Record: r, Outcome: engine.OutcomeOf(r)}
	declared, err := intent.DecodeStored(r.Intent)
	if err == nil { // else its caller makes the write itself
		w.Write, w.Risk = declared.Write, declared.Risk
	}
	if _, p, err := o.parts.Registry.Lookup(r.Destination, r.Kind); err == nil {
		w.Final = slices.Contains(p.Irreversible, declared.Write)
		w.Business = business(r, declared, &p)
	} else {
		w.Business = business(r, declared, nil)
	}
	if r.State == ledger.Held { // whether the intent or a rule requires it
		w.Risk = intent.RiskApprove
	}
	return w
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
