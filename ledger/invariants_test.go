package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"pgregory.net/rapid"
)

var (
	kinds = []ledger.EventKind{
		ledger.EvReserved, ledger.EvHeld, ledger.EvAgreed, ledger.EvOverdue, ledger.EvApproved, ledger.EvDelegated, ledger.EvYielded, ledger.EvRead, ledger.EvAnnounced, ledger.EvSent,
		ledger.EvRecovered, ledger.EvDeferred, ledger.EvEscalated, ledger.EvDirected, ledger.EvCompensating,
		ledger.EvSettled, ledger.EvRechecked, ledger.EvLate, ledger.EvFreed, ledger.EvRestored,
	}
	endings = []ledger.Status{
		"", "odd", ledger.Verified, ledger.NotApplied, ledger.Compensated, ledger.Accepted, ledger.Abandoned, ledger.Denied, ledger.Expired, ledger.Reported,
	}
	fates = []string{ledger.FateUnknown, ledger.FateAnswered, "refused", "not_sent"}
)

// anyEvent is one that a worker, right or wrong, might append.
func anyEvent(t *rapid.T) ledger.Event {
	return ledger.Event{
		Kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
		By:   rapid.SampledFrom([]string{"", "p", "q", "agent"}).Draw(t, "by"), Reason: "r",
		Ago:        time.Duration(rapid.Int64Range(-1, 1e12).Draw(t, "ago")),
		Count:      rapid.IntRange(-1, 3).Draw(t, "count"),
		Before:     rapid.Bool().Draw(t, "before"),
		Generation: rapid.IntRange(0, 2).Draw(t, "generation"),
		SendFor:    time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "for")),
		Fate:       rapid.SampledFrom(fates).Draw(t, "fate"),
		In:         time.Duration(rapid.Int64Range(-1, 1e12).Draw(t, "in")),
		Settlement: rapid.SampledFrom(endings).Draw(t, "settlement"),
		Child:      rapid.SampledFrom([]ledger.ID{"", "wr_2"}).Draw(t, "child"),
		Need:       rapid.IntRange(0, 2).Draw(t, "need"),
		Directed:   "retry",
		LostFrom:   at.Add(-time.Hour), LostUntil: at.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "lost")) * time.Minute),
		Conflict: rapid.Bool().Draw(t, "conflict"), NeedsRecheck: rapid.Bool().Draw(t, "needs recheck"),
	}
}

// broken returns what is wrong with a record by itself, or "".
func broken(r ledger.Record) string {
	settled := r.State == ledger.Settled
	switch {
	case settled != (r.Settlement != ""), settled != !r.SettledAt.IsZero():
		return fmt.Sprintf("%s with settlement %q at %s", r.State, r.Settlement, r.SettledAt)
	case (r.Owner == "") != r.LeaseUntil.IsZero():
		return fmt.Sprintf("owner %q, leased until %s", r.Owner, r.LeaseUntil)
	case (r.Sends > 0) != !r.FirstSend.IsZero(), (r.Sends > 0) != !r.KeySend.IsZero(), (r.Sends > 0) != !r.LastSend.IsZero():
		return fmt.Sprintf("%d sends, first %s, key %s, last %s", r.Sends, r.FirstSend, r.KeySend, r.LastSend)
	case r.KeySend.Before(r.FirstSend), r.LastSend.Before(r.KeySend):
		return fmt.Sprintf("first send %s, key %s, last %s", r.FirstSend, r.KeySend, r.LastSend)
	case r.Sends == 0 && (r.State == ledger.Sending || r.Unknown || r.Answered):
		return fmt.Sprintf("%s, unknown %v, answered %v, and never sent", r.State, r.Unknown, r.Answered)
	case r.Unsent > r.Sends:
		return fmt.Sprintf("%d of %d sends were not taken up", r.Unsent, r.Sends)
	case r.Sends > 0 && r.Restored.IsZero() && (r.State == ledger.Held || r.State == ledger.Queued || r.Settlement == ledger.Denied):
		return fmt.Sprintf("%s after %d sends", r.Phase(), r.Sends)
	case r.Settlement == ledger.Verified && r.Reads == 0:
		return "verified and never read"
	case r.State == ledger.Sending && r.Due.IsZero():
		return "announced, and no read will ever follow"
	}
	return brokenApproval(r)
}

// brokenApproval is broken for what reviewers and callers do.
func brokenApproval(r ledger.Record) string {
	alone := map[string]bool{}
	for _, by := range r.Agreed {
		alone[by] = true
	}
	switch {
	case len(alone) != len(r.Agreed), alone["agent"], alone[""]:
		return fmt.Sprintf("asked for by agent, approved by %v", r.Agreed)
	case r.State == ledger.Held && len(r.Agreed) >= max(r.Need, 1):
		return fmt.Sprintf("%d of %d have agreed, and it is held", len(r.Agreed), r.Need)
	case r.State != ledger.Held && r.Settlement != ledger.Denied && r.Settlement != ledger.Expired && len(r.Agreed) < r.Need && !reportedDone(r):
		return fmt.Sprintf("%s after %d of %d have agreed", r.Phase(), len(r.Agreed), r.Need)
	case r.Delegated && (r.Sends > 0 || r.State == ledger.Checking || r.State == ledger.Compensating):
		return fmt.Sprintf("delegated, and %s after %d sends", r.State, r.Sends)
	case !r.Delegated && (r.State == ledger.Delegated || r.Settlement == ledger.Reported):
		return "its caller may make it, and it is not delegated"
	case r.State == ledger.Delegated && !r.Due.IsZero():
		return "no actor's work, and due"
	}
	return ""
}

// reportedDone reports whether a write is or was in review because its caller reported it as done,
// approved or not: from then on it must not be made.
func reportedDone(r ledger.Record) bool {
	return r.Delegated && (r.State == ledger.Review || r.State == ledger.Settled)
}

// worse returns what a step must never do to a record, or "".
func worse(a, b ledger.Record) string {
	switch {
	case b.Seq < a.Seq, b.Sends < a.Sends, b.Reads < a.Reads, b.Generation < a.Generation, b.Unsent < a.Unsent, b.Fence < a.Fence:
		return "a number fell"
	case b.Sends > a.Sends+1:
		return "several sends in one step"
	case a.Unknown && !b.Unknown, a.Answered && !b.Answered, a.NeedsRecheck && !b.NeedsRecheck:
		return "the fate of a send was forgotten"
	case !a.FirstSend.IsZero() && !a.FirstSend.Equal(b.FirstSend) && a.Restored.Equal(b.Restored), !a.Created.Equal(b.Created):
		return "the past was changed"
	case b.Updated.Before(a.Updated):
		return "time ran backwards"
	case a.State == ledger.Sending && b.State != ledger.Sending && b.State != ledger.Checking:
		return fmt.Sprintf("from sending to %s without a read", b.State)
	}
	return ""
}

// life is a record under random operations: the machine that rapid drives.
type life struct {
	rec    ledger.Record
	events []ledger.Event
	now    time.Time
}

// pass lets some time go by.
func (l *life) pass(t *rapid.T) {
	l.now = l.now.Add(time.Duration(rapid.Int64Range(0, 1e11).Draw(t, "pass")))
}

// append appends up to three events under the right fence or another one.
func (l *life) append(t *rapid.T) {
	l.pass(t)
	var batch []ledger.Event
	for range rapid.IntRange(0, 3).Draw(t, "events") {
		batch = append(batch, anyEvent(t))
	}
	fence := l.rec.Fence - rapid.SampledFrom([]int64{0, 0, 0, 1, -1}).Draw(t, "stale")
	next, stamped, err := ledger.Advance(l.rec, fence, batch, l.now)
	late := len(batch) == 1 && batch[0].Kind == ledger.EvLate
	switch {
	case err != nil:
		if fence != l.rec.Fence && !late && !errors.Is(err, ledger.ErrFenced) {
			t.Fatalf("fence %d of %d: error %v", fence, l.rec.Fence, err)
		}
		if diff := cmp.Diff(l.rec, next); diff != "" || stamped != nil {
			t.Fatalf("a refused append changed the record (-before +after):\n%s\nevents %v", diff, stamped)
		}
		return
	case fence != l.rec.Fence && !late:
		t.Fatalf("fence %d of %d was let through", fence, l.rec.Fence)
	case next.Seq != l.rec.Seq+int64(len(batch)), len(stamped) != len(batch):
		t.Fatalf("seq %d after %d and %d events, %d stamped", next.Seq, l.rec.Seq, len(batch), len(stamped))
	case late && next.LeaseUntil != l.rec.LeaseUntil, late && next.State != l.rec.State:
		t.Fatalf("late evidence changed %s until %s into %s until %s", l.rec.State, l.rec.LeaseUntil, next.State, next.LeaseUntil)
	case !late && next.Owner != "" && !next.LeaseUntil.Equal(l.now.Add(next.LeaseFor)):
		t.Fatalf("the lease was not extended: until %s", next.LeaseUntil)
	}
	if len(batch) <= 1 {
		if how := worse(l.rec, next); how != "" {
			t.Fatalf("%s: %+v\nbefore %+v\nafter  %+v", how, batch, l.rec, next)
		}
	}
	l.rec, l.events = next, append(l.events, stamped...)
}

// claim leases the record, when that is allowed.
func (l *life) claim(t *rapid.T) {
	l.pass(t)
	if !l.rec.Claimable(l.now, rapid.Bool().Draw(t, "early")) {
		return
	}
	if l.rec.LeaseUntil.After(l.now) {
		t.Fatalf("lent twice until %s", l.rec.LeaseUntil)
	}
	next := l.rec.Lend(rapid.SampledFrom([]string{"one", "two"}).Draw(t, "owner"), time.Minute, l.now)
	if next.Fence <= l.rec.Fence {
		t.Fatalf("fence %d after %d", next.Fence, l.rec.Fence)
	}
	l.rec = next
}

// check holds after every step.
func (l *life) check(t *rapid.T) {
	if how := broken(l.rec); how != "" {
		t.Fatalf("%s: %+v", how, l.rec)
	}
	again, err := ledgertest.Replay(l.rec, l.events)
	if err != nil {
		t.Fatal(err)
	}
	lease := cmpopts.IgnoreFields(ledger.Record{}, "Owner", "LeaseUntil", "LeaseFor", "Fence", "Now")
	if diff := cmp.Diff(l.rec, again, lease); diff != "" {
		t.Fatalf("the record does not follow from its events (-record +events):\n%s", diff)
	}
	alone, err := ledger.Rebuild(l.events)
	if err != nil {
		t.Fatalf("from its events alone: %v", err)
	}
	if diff := cmp.Diff(l.rec, alone, lease, cmpopts.IgnoreFields(ledger.Record{}, "Intent")); diff != "" {
		t.Fatalf("the record is not rebuilt from its events alone (-record +rebuilt):\n%s", diff)
	}
}

// No sequence of events and claims breaks a record.
func TestInvariants(t *testing.T) {
	key := fmt.Sprintf("%064x", 1)
	rapid.Check(t, func(t *rapid.T) {
		l := &life{now: at}
		res := ledger.Reservation{
			Record: ledger.Record{ID: ledger.IDOf(key), StructuralKey: key, Tenant: "a", Intent: []byte("{}"), RequestedBy: "agent"},
			Owner:  "one", LeaseFor: time.Minute,
		}
		if res.Record.Delegated = rapid.Bool().Draw(t, "entrusted"); res.Record.Delegated {
			res.Events = []ledger.Event{{Kind: rapid.SampledFrom([]ledger.EventKind{ledger.EvDelegated, ledger.EvHeld}).Draw(t, "begins"), Need: 2}}
		}
		var err error
		if l.rec, l.events, err = ledger.Begin(res, "", l.now); err != nil {
			t.Fatal(err)
		}
		t.Repeat(map[string]func(*rapid.T){"": l.check, "append": l.append, "claim": l.claim})
	})
}
