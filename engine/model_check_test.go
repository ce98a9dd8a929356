package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// account is the destination's own account of one write.
type account struct {
	live    []*orders.Order // under its key
	ours    int             // those of them that our request made
	applied int             // effects of our requests that were not reverted
	crowd   int             // the maximum of records of ours at one time
}

// asOf returns the account of the destination at a moment, from its own log.
func (h *history) asOf(n int, at time.Time) account {
	stamp := h.plan.intent(n).Stamp()
	var a account
	live, ours, known := map[string]*orders.Order{}, map[string]bool{}, map[string]bool{}
	for _, e := range h.world.Effects() {
		if e.At.After(at) || !e.Applied() || e.OrderID != h.orderID(n) {
			continue
		}
		// A delete has no stamp; only our write requests one under this key.
		byUs := e.By == orders.ByRequest && (e.Stamp == stamp || e.Op == orders.OpDelete && h.plan.Writes[n].Write == intent.Delete)
		switch {
		case byUs:
			a.applied++
		case e.By == orders.ByItself && known[e.ID]: // reverted; a duplicate that it makes has its own id
			a.applied = max(a.applied-1, 0)
		}
		known[e.ID] = true
		if e.After == nil {
			delete(live, e.ID)
			delete(ours, e.ID)
			continue
		}
		live[e.ID] = e.After
		if byUs && e.Op == orders.OpCreate {
			ours[e.ID] = true
			a.crowd = max(a.crowd, len(ours))
		}
	}
	for _, o := range live {
		a.live = append(a.live, o)
	}
	a.ours = len(ours)
	return a
}

// exact reports whether the account is as the write declares.
func (h *history) exact(n int, a account) bool {
	w := h.plan.intent(n)
	if w.Write == intent.Delete {
		return len(a.live) == 0
	}
	if len(a.live) != 1 || w.Write == intent.Create && a.ours != 1 {
		return false
	}
	f := a.live[0].Fields
	return f["amount_cents"] == w.Expect["amount_cents"] && f["currency"] == w.Expect["currency"]
}

// moments returns the times whose state a read made now may show.
func (h *history) moments(n int) []time.Time {
	now := time.Now()
	all := []time.Time{now}
	for _, e := range h.world.Effects() {
		// Lagging replicas show the last two seconds, faults as much.
		if e.OrderID == h.orderID(n) && now.Sub(e.At) <= 2*orders.DefaultLag {
			all = append(all, e.At.Add(-time.Nanosecond))
		}
	}
	return all
}

func (h *history) ever(n int, holds func(account) bool) bool {
	for _, at := range h.moments(n) {
		if holds(h.asOf(n, at)) {
			return true
		}
	}
	return false
}

// lagged returns what a lagging search shows beside the record that our response named: not
// what another actor made a moment ago.
func (h *history) lagged(n int, a account) account {
	if !slices.ContainsFunc(h.plan.Moves, func(m move) bool { return m.Fault == orders.LaggingRead }) {
		return a
	}
	a.live = slices.DeleteFunc(slices.Clone(a.live), func(o *orders.Order) bool {
		return slices.ContainsFunc(h.world.Effects(), func(e orders.Effect) bool {
			return e.ID == o.ID && e.Op == orders.OpCreate && e.By == orders.ByOther && time.Since(e.At) <= 2*orders.DefaultLag
		})
	})
	return a
}

// settledNow is notified of every commit that settles a write: its outcome must be true at the
// destination.
func (h *history) settledNow(rec ledger.Record) {
	for n := range modelWrites {
		if h.id(n) != rec.ID {
			continue
		}
		verified := func(a account) bool { return h.exact(n, a) || h.exact(n, h.lagged(n, a)) }
		nothing := func(a account) bool { return a.applied == 0 }
		undone := func(a account) bool { return a.ours == 0 }
		switch {
		case rec.Settlement == ledger.Verified && !h.ever(n, verified):
			h.fail("write %d is settled as verified, and the destination has %s%s", n, shown(h.asOf(n, time.Now())), h.life(rec.ID))
		case rec.Settlement == ledger.NotApplied && !h.ever(n, nothing):
			h.fail("write %d is settled as not applied, and the destination has %s%s", n, shown(h.asOf(n, time.Now())), h.life(rec.ID))
		case rec.Settlement == ledger.Compensated && h.plan.Writes[n].Write == intent.Create && !h.ever(n, undone):
			h.fail("write %d is settled as compensated, and the destination has %s%s", n, shown(h.asOf(n, time.Now())), h.life(rec.ID))
		}
	}
}

func shown(a account) string {
	text, err := json.Marshal(a.live)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// check checks every write against the invariants.
func (h *history) check() {
	synctest.Wait() // until work without waiting callers ends
	for n := range modelWrites {
		rec, there := h.recorded(n)
		a := h.asOf(n, time.Now())
		switch {
		case !there && a.applied > 0:
			h.fail("write %d has an effect, and the ledger does not know it", n)
		case !there:
			continue
		case a.crowd > 1 && !h.forced[n]:
			h.fail("write %d was made twice%s", n, h.life(rec.ID))
		case h.unknown[n] && !rec.Unknown:
			h.fail("write %d forgot that a send has an unknown fate%s", n, h.life(rec.ID))
		case rec.State == ledger.Review && rec.Reason == "":
			h.fail("write %d is in review without a reason%s", n, h.life(rec.ID))
		}
		h.unknown[n] = rec.Unknown
		h.checkEvents(n, rec)
		h.checkCalls(n, rec)
	}
}

// checkCalls: every request that reached the destination was announced.
func (h *history) checkCalls(n int, rec ledger.Record) {
	stamp, calls := h.plan.intent(n).Stamp(), 0
	for _, c := range h.world.Calls() {
		ours := c.Stamp == stamp || c.Op == orders.OpDelete && h.plan.Writes[n].Write == intent.Delete && c.OrderID == h.orderID(n)
		if c.Op != orders.OpRead && ours {
			calls++
		}
	}
	if calls > rec.Sends {
		h.fail("write %d reached the destination %d times, announced %d%s", n, calls, rec.Sends, h.life(rec.ID))
	}
}

// checkEvents: the record follows from its events, a settled write is opened only by a recheck,
// and after a send that may have been applied comes a read before the next send.
func (h *history) checkEvents(n int, rec ledger.Record) {
	events, err := h.ledger.Events(context.Background(), "acme", rec.ID)
	if err != nil {
		h.fail("events of write %d: %v", n, err)
		return
	}
	folded := rec.Identity()
	read := true
	for i, e := range events {
		next, err := ledger.Apply(folded, e, e.At)
		switch {
		case err != nil:
			h.fail("event %d of write %d: %v%s", i, n, err, h.life(rec.ID))
			return
		case folded.State == ledger.Settled && next.State != ledger.Settled && !opens(e):
			h.fail("event %d opens write %d, which was settled: %s by %q%s", i, n, e.Kind, e.Rule, h.life(rec.ID))
		case e.Kind == ledger.EvAnnounced && !read && (folded.Unknown || folded.Answered):
			h.fail("event %d sends write %d again, without a read since%s", i, n, h.life(rec.ID))
		}
		switch e.Kind {
		case ledger.EvRead:
			read = read || e.Verdict != "unavailable"
		case ledger.EvAnnounced:
			read = false
		}
		folded = next
	}
	brief := func(r ledger.Record) []any {
		return []any{r.State, r.Settlement, r.Sends, r.Unsent, r.Reads, r.Unknown, r.Answered, r.EffectSeen, r.Seq, r.Due}
	}
	if diff := cmp.Diff(brief(folded), brief(rec)); diff != "" {
		h.fail("write %d does not follow from its events:\n%s", n, diff)
	}
	again, err := ledger.Rebuild(events)
	if err != nil {
		h.fail("write %d cannot be rebuilt: %v%s", n, err, h.life(rec.ID))
		return
	}
	again.Now, again.Owner, again.LeaseUntil = rec.Now, rec.Owner, rec.LeaseUntil // the reading process and the lease are not events
	if diff := cmp.Diff(engine.OutcomeOf(rec), engine.OutcomeOf(again)); diff != "" {
		h.fail("the outcome of write %d does not follow from its events alone:\n%s", n, diff)
	}
}

// opens reports whether an event may open a settled write: a recheck that contradicts it, and
// an undo that a named caller requested.
func opens(e ledger.Event) bool {
	undoes := e.Rule == "undo" && e.By == "ada"
	return e.Kind == ledger.EvEscalated && (e.Rule == "recheck" || undoes) || e.Kind == ledger.EvCompensating && undoes
}

// end lets everything settle and asks the destination what happened.
func (h *history) end() {
	h.world.Clear()
	h.pass(2 * time.Hour)
	h.idle = 10 * time.Minute
	h.pass(100 * time.Hour)
	h.check()
	for n := range modelWrites {
		rec, there := h.recorded(n)
		switch {
		case !there:
		case rec.State == ledger.Sending, rec.State == ledger.Checking, rec.State == ledger.Queued, rec.State == ledger.Compensating:
			h.fail("write %d is %s for ever%s", n, rec.Phase(), h.life(rec.ID))
		case h.plan.decidable() && rec.State == ledger.Review:
			h.fail("write %d is in review, and could be decided: %s%s", n, rec.Reason, h.life(rec.ID))
		case h.plan.decidable() && rec.Settlement == ledger.Verified && !h.exact(n, h.asOf(n, time.Now())):
			h.fail("write %d is verified at the end, and the destination has %s%s", n, shown(h.asOf(n, time.Now())), h.life(rec.ID))
		}
	}
	for _, e := range h.engines {
		e.Close()
	}
	if h.guard.inside != 0 {
		h.fail("%d sends are inside the guard for ever", h.guard.inside)
	}
}
