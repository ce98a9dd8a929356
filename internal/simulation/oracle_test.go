package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// known is one write of the ledger with the destination's record of it.
type known struct {
	rec     ledger.Record
	intent  intent.WriteIntent
	name    string
	effects []orders.Effect // that our sends had, in order
}

// lag is how far a read may lag.
func (r *run) lag() time.Duration {
	longest := time.Duration(0)
	for _, l := range r.plan.options.Lags {
		longest = max(longest, l)
	}
	return longest
}

// author is the actor that made an effect.
func (r *run) author(e orders.Effect) string {
	if e.By != orders.ByRequest {
		return ""
	}
	for id, name := range r.names {
		if rec, there := r.final[id]; there {
			if w, err := intent.DecodeStored(rec.Intent); err == nil && w.Stamp() == e.Stamp {
				return name
			}
		}
	}
	return e.Stamp
}

// state is what is under the key at a moment, from the destination's history.
func state(effects []orders.Effect, at time.Time) map[string]orders.Effect {
	live := map[string]orders.Effect{}
	for _, e := range effects {
		switch {
		case e.At.After(at) || !e.Applied():
		case e.After == nil || e.After.Fields["order_id"] != "S-1":
			delete(live, e.ID)
		default:
			live[e.ID] = e
		}
	}
	return live
}

// creator is the effect that made a record.
func creator(effects []orders.Effect, id string) orders.Effect {
	for _, e := range effects {
		if e.ID == id && e.Applied() && e.After != nil {
			return e
		}
	}
	return orders.Effect{}
}

// exact reports whether the record was at a moment as the write declares, and,
// where it is a create, by our hand.
func (r *run) exact(w intent.WriteIntent, sent bool, effects []orders.Effect, at time.Time) bool {
	live := state(effects, at)
	if w.Write == intent.Delete {
		if id, _ := w.Key["id"].(string); id != "" {
			_, there := live[id]
			return !there
		}
		return len(live) == 0
	}
	if len(live) != 1 {
		return false
	}
	for id, e := range live {
		for name, v := range w.Expect {
			if e.After.Fields[name] != v {
				return false
			}
		}
		for _, name := range w.Absent {
			if _, there := e.After.Fields[name[1:]]; there {
				return false
			}
		}
		made := creator(effects, id)
		ours := made.By == orders.ByRequest && made.Stamp == w.Stamp()
		copied := made.By == orders.ByOther && (made.After.Stamp == w.Stamp() || !r.plan.options.Stamps) // an exact copy is indistinguishable from ours
		if w.Write == intent.Create && sent && !ours && !copied {
			return false
		}
	}
	return true
}

// checkSettled compares a commit of a process with the destination at the time of the commit.
func (r *run) checkSettled(p *process, rec ledger.Record) {
	w, err := intent.DecodeStored(rec.Intent)
	if err != nil {
		r.fail("%s cannot be decoded: %v", r.nameOf(rec.ID), err)
		return
	}
	effects := r.world.Effects()
	if rec.Settlement != ledger.Verified || w.Destination != "orders" {
		return
	}
	p.mu.Lock()
	since := p.reads[w.Stamp()]
	p.mu.Unlock()
	r.mu.Lock()
	r.seen[rec.ID] = since
	for _, s := range r.settled {
		other, err := intent.DecodeStored(s.rec.Intent)
		if err == nil && s.rec.ID != rec.ID && other.Stamp() != w.Stamp() && s.rec.KeyDigest == rec.KeyDigest && rec.KeyDigest != "" &&
			s.rec.Created.Before(rec.Created) && s.at.After(since) {
			since = s.at // what was read before another write of the record was settled is not its state
		}
	}
	r.mu.Unlock()
	since = since.Add(-r.lag() - 1) // another actor may act in the moment of the read
	moments := []time.Time{time.Now(), since}
	for _, e := range effects {
		if e.At.After(since) {
			moments = append(moments, e.At)
		}
	}
	if !slices.ContainsFunc(moments, func(at time.Time) bool { return r.exact(w, rec.Sends > 0, effects, at) }) {
		r.fail("verified: %s is settled as verified, and the destination did not show it since %v", r.nameOf(rec.ID), since.Sub(epoch))
	}
}

// checkEnd holds everything against the destination when nothing is under way
// any more.
func (r *run) checkEnd() {
	ctx := context.Background()
	recs, err := r.books[0].List(ctx, ledger.Filter{Tenant: "acme"})
	if err != nil {
		r.fail("list: %v", err)
		return
	}
	for _, rec := range recs {
		r.final[rec.ID] = rec
	}
	slices.Reverse(recs)
	effects := r.world.Effects()
	byStamp := map[string]*known{}
	var all []*known
	for _, rec := range recs {
		w, err := intent.DecodeStored(rec.Intent)
		if err != nil {
			r.fail("%s cannot be decoded: %v", rec.ID, err)
			continue
		}
		k := &known{rec: rec, intent: w, name: r.nameOf(rec.ID)}
		all = append(all, k)
		byStamp[w.Stamp()] = k
	}
	for _, e := range effects {
		if e.By == orders.ByRequest && e.Applied() {
			if k := byStamp[e.Stamp]; k != nil {
				k.effects = append(k.effects, e)
			} else {
				r.fail("unknown: effect %d has an author that the ledger does not know", e.Seq)
			}
		}
	}
	for _, w := range r.plan.writes {
		if w.saga {
			r.checkSaga(w)
		}
	}
	for _, k := range all {
		if k.rec.Delegated || k.intent.Destination != "orders" {
			continue // the gate's caller makes it, and checkGate holds it; or it is of the saga's other step
		}
		r.checkOpen(k, byStamp)
		r.checkCount(k, effects)
		r.checkNotApplied(k, effects)
		r.checkUndo(k, byStamp, effects)
		for _, e := range k.effects {
			r.checkReplaced(k, e, byStamp, effects)
		}
	}
}

// reported means that a reviewer has the write.
func reported(k *known) bool { return k != nil && k.rec.State == ledger.Review }

// checkOpen: nothing is open for ever, unless it waits for a reviewer.
func (r *run) checkOpen(k *known, all map[string]*known) {
	byID := map[ledger.ID]*known{}
	for _, other := range all {
		byID[other.rec.ID] = other
	}
	path := []string{k.name + ": " + k.rec.Phase()}
	for at, seen := k, map[ledger.ID]bool{}; ; {
		next := ledger.ID("")
		switch at.rec.State {
		case ledger.Settled, ledger.Review, ledger.Held:
			if at == k || at.rec.State != ledger.Settled {
				return
			}
		case ledger.Queued:
			next = at.rec.QueuedBehind
		case ledger.Compensating:
			next = at.rec.Child
		}
		if seen[at.rec.ID] || byID[next] == nil {
			r.fail("open: for ever: %s", strings.Join(path, ", which waits for "))
			return
		}
		seen[at.rec.ID] = true
		at = byID[next]
		path = append(path, at.name+": "+at.rec.Phase())
	}
}

// sendOf is the send that had an effect, and whether an earlier one of the same
// write may have reached the destination too.
func (r *run) sendOf(e orders.Effect) (s *send, first bool) {
	var request orders.Call
	for _, c := range r.world.Calls() {
		if c.Request == e.Request {
			request = c
		}
	}
	first = true
	for _, s := range r.sends {
		switch {
		case s.stamp != e.Stamp || s.reached.IsZero():
		case s.reached.Equal(request.At):
			return s, first
		case !s.refused:
			first = false
		}
	}
	return nil, true
}

// visible reports whether what happened at a moment was there for the read on
// which a send was based.
func (r *run) visible(at time.Time, s *send) bool {
	return s != nil && !s.read.IsZero() && at.Before(s.read.Add(-r.lag())) // another actor may act right after the read
}

// checkCount: a create makes one record. Another one is harmless only if the first was
// unknowable: no answer to it was recorded; or the destination is declared to take effects back,
// and another actor removed it or our marks; or the destination took it back. If another actor
// did, it is also harmless if a reviewer knows, or if it is of a send that had been made before.
func (r *run) checkCount(k *known, effects []orders.Effect) {
	var before *orders.Effect
	for _, e := range k.effects {
		if e.Op != orders.OpCreate {
			continue
		}
		if before != nil && !r.excused(k, *before, e, effects) {
			r.fail("count: %s made %s and %s", k.name, before.ID, e.ID)
		}
		before = &e
	}
}

func (r *run) excused(k *known, first, second orders.Effect, effects []orders.Effect) bool {
	at := r.answers[k.rec.ID]
	answered := !at.IsZero() && at.Before(second.At)
	s, _ := r.sendOf(second)
	for _, e := range effects {
		if e.Seq <= first.Seq || e.Seq >= second.Seq || e.ID != first.ID {
			continue
		}
		if e.By == orders.ByItself {
			return true
		}
		if e.By == orders.ByOther && (!answered || reported(k) || s != nil && s.begun.Before(e.At) || r.plan.options.Rollback != connectors.Bound{}) &&
			(e.After == nil || e.After.Fields["order_id"] != "S-1" || e.After.Stamp != first.After.Stamp) {
			return true
		}
	}
	return false
}

// checkNotApplied: what is settled as not applied has no effect, unless another
// actor made the effect of an unanswered send unrecognisable.
func (r *run) checkNotApplied(k *known, effects []orders.Effect) {
	if k.rec.State != ledger.Settled || k.rec.Settlement != ledger.NotApplied || len(k.effects) == 0 {
		return
	}
	last := k.effects[len(k.effects)-1]
	if last.Before != nil && last.After != nil && len(changed(last)) == 0 && len(last.After.Fields) == len(last.Before.Fields) {
		return // the destination dropped what was to change
	}
	for _, e := range effects {
		if e.Seq > last.Seq && e.ID == last.ID && e.By != orders.ByRequest {
			return
		}
	}
	r.fail("not applied: %s is settled as not applied, and had effect %d", k.name, last.Seq)
}

// value is the actor that set the field of a record to the value that an effect replaced.
func value(effects []orders.Effect, before orders.Effect, name string) (by orders.Effect, found bool) {
	for _, e := range effects {
		if e.Seq >= before.Seq {
			break
		}
		if e.ID != before.ID || !e.Applied() || e.After == nil {
			continue
		}
		if e.Before == nil || e.Before.Fields[name] != e.After.Fields[name] {
			by, found = e, true
		}
	}
	return by, found
}

// changed lists the fields of the record that an effect replaced or deleted.
func changed(e orders.Effect) []string {
	var names []string
	if e.Before == nil {
		return nil
	}
	for name, v := range e.Before.Fields {
		if name == "updated_at" || name == "order_id" {
			continue
		}
		if e.After == nil || e.After.Fields[name] != v {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// checkReplaced: nothing of another actor is replaced or deleted by anything
// but the first send of a write that declares it; nothing of a later write of
// ours is replaced by an earlier one.
func (r *run) checkReplaced(k *known, e orders.Effect, byStamp map[string]*known, effects []orders.Effect) {
	s, first := r.sendOf(e)
	for _, name := range changed(e) {
		by, found := value(effects, e, name)
		if !found {
			continue
		}
		switch by.By {
		case orders.ByOther:
			undo := k.rec.Parent != ""
			since := time.Time{}
			if !undo {
				for _, other := range r.sends {
					if other.stamp == e.Stamp && (since.IsZero() || other.begun.Before(since)) {
						since = other.begun
					}
				}
			}
			if undo && !r.plan.options.Versions && by.At.Before(r.seen[k.rec.Parent]) {
				continue // it existed when the write was first seen: indistinguishable from the destination's own additions
			}
			if (undo || !first && by.At.After(since)) && r.visible(by.At, s) {
				r.fail("foreign: %s replaced %s, which another actor had set (effect %d) before the read on which the send was based", k.name, name, by.Seq)
				return
			}
		case orders.ByRequest:
			other := byStamp[by.Stamp]
			if other == nil || other == k || k.rec.Parent != "" || other.rec.Parent != "" || reported(k) || reported(other) {
				continue
			}
			if k.rec.Created.Before(other.rec.Created) {
				r.fail("order: %s replaced what %s, which is later in its queue, had made", k.name, other.name)
				return
			}
		}
	}
	if e.Op != orders.OpCreate || reported(k) || k.rec.Parent != "" {
		return
	}
	for id, there := range state(effects, e.At.Add(-1)) {
		other := byStamp[there.Stamp]
		made := creator(effects, id)
		if other != nil && other != k && made.Stamp == there.Stamp && made.By == orders.ByRequest && other.rec.State == ledger.Settled &&
			other.rec.Settlement == ledger.Verified && other.rec.SettledAt.Before(k.rec.FirstSend) && len(r.acted) == 0 {
			r.fail("place: %s made a record beside that of %s, which was verified before it was sent", k.name, other.name)
			return
		}
	}
	for _, earlier := range effects {
		if earlier.Seq < e.Seq && earlier.By == orders.ByRequest && earlier.Op == orders.OpDelete {
			if other := byStamp[earlier.Stamp]; other != nil && other.rec.Parent == "" && !reported(other) && k.rec.Created.Before(other.rec.Created) {
				r.fail("order: %s brought back what %s, which is later in its queue, had deleted", k.name, other.name)
				return
			}
		}
	}
}

// checkUndo: an undo restores the state before the write, and reports nothing else.
func (r *run) checkUndo(k *known, byStamp map[string]*known, effects []orders.Effect) {
	if k.rec.Parent == "" || len(k.effects) == 0 {
		return
	}
	var parent *known
	for _, other := range byStamp {
		if other.rec.ID == k.rec.Parent {
			parent = other
		}
	}
	if parent == nil || len(parent.effects) == 0 || reported(k) || reported(parent) {
		return
	}
	undo, done := k.effects[0], parent.effects[0]
	if undo.ID != done.ID || undo.After == nil || done.Before == nil {
		return
	}
	for _, name := range changed(undo) {
		want, got := done.Before.Fields[name], undo.After.Fields[name]
		by, found := value(effects, done, name)
		if got != want && found && by.By == orders.ByRequest && by.Stamp != done.Stamp {
			r.fail("undo: %s brought %s back to %v; before the write it was %v, from %s", k.name, name, got, want, fmt.Sprint(r.nameOfStamp(byStamp, by.Stamp)))
			return
		}
	}
}

func (r *run) nameOfStamp(byStamp map[string]*known, stamp string) string {
	if k := byStamp[stamp]; k != nil {
		return k.name
	}
	return stamp
}
