package explorer

import (
	"maps"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

// inverse is how a write is undone that left what a read shows, nil where it cannot be.
// A reviewer's undo requires what the write left besides.
func (s *scenario) inverse(w *world, i int, left *seen, reviewer bool) *inverse {
	b := w.before[i]
	if b == nil {
		return nil
	}
	of := [3]uint16{b.nr, left.nr, 0}
	if reviewer {
		of[2] = 1
	}
	if by, known := s.inverses[of]; known {
		return by
	}
	parent := w.rec[i]
	undo, err := s.inverter.Invert(s.writes[i], &b.Observation, left.Observation)
	if err != nil {
		s.inverses[of] = nil
		return nil
	}
	undo.Tenant, undo.Workflow, undo.Step, undo.Tool, undo.Call = parent.Tenant, parent.Workflow, parent.Step, parent.Tool, parent.Call
	undo.Compensates = string(parent.ID)
	if reviewer && len(undo.Require) == 0 && undo.Write != intent.Create && len(left.Records) == 1 {
		undo.Require = maps.Clone(left.Records[0].Fields)
	}
	if s.broken == "the undo does not require what the write left" {
		undo.Require = nil
	}
	rec, err := ledger.NewRecord(undo)
	if err == nil {
		err = undo.Validate()
	}
	if err != nil && undo.Require != nil {
		panic(err)
	}
	s.inverses[of] = &inverse{intent: undo, rec: rec, nr: uint8(len(s.inverses) + 1)}
	return s.inverses[of]
}

// compensates are the next steps of an executor that holds a write which is undone.
func (s *scenario) compensates(w *world, e int, who string, record func(*world, ...ledger.Event) string, add func(string, func(*world) string)) {
	i, child := int(w.exec[e].holds), w.rec[undoing]
	rec := w.rec[i]
	c := s.caseOf(w, e, *rec, s.intent(w, i), w.own(e))
	horizon, _ := s.profile.Horizon.Declared()
	wait := max(horizon-c.SinceSend, 0)
	switch {
	case rec.LeftQueue && rec.Unknown && rec.Sends-rec.Unsent > 1 && policies.Counting(c) && wait > 0:
		add(who+"waits before the undo: a send may still land", func(w *world) string {
			return record(w, ledger.Event{Kind: ledger.EvDeferred, In: max(wholeTicks(wait), s.pace(w))})
		})
	case child == nil:
		add(who+"begins the undo", func(w *world) string {
			begun, behind := w.undo.rec, ledger.ID("")
			if rec.LeftQueue {
				begun.KeyDigest = rec.KeyDigest
				for _, o := range w.rec {
					if o != nil && o.InQueue() {
						behind = o.ID
					}
				}
			}
			begun, _, err := ledger.Begin(ledger.Reservation{Record: begun}, behind, w.now())
			if err != nil {
				panic(err)
			}
			w.rec[undoing] = &begun
			return record(w, ledger.Event{Kind: ledger.EvDeferred})
		})
	case child.State == ledger.Settled && child.Settlement == ledger.Verified,
		s.broken == "a write counts as undone when its undo was sent" && child.Sends > 0:
		add(who+"finds it undone", func(w *world) string { return record(w, s.compensated(w, e, i)) })
	default:
		add(who+"gives it to a reviewer: its undo is "+child.Phase(), func(w *world) string {
			return record(w, ledger.Event{Kind: ledger.EvEscalated, In: tick})
		})
	}
}

// compensated is the end of a write whose undo was verified.
func (s *scenario) compensated(w *world, e, i int) ledger.Event {
	return s.settles(*w.rec[i], ledger.Compensated, s.caseOf(w, e, *w.rec[i], s.intent(w, i), w.own(e)))
}

// reviewer has a write undone that was settled as verified.
func (s *scenario) reviewer(w *world, add func(string, func(*world) string)) {
	i := s.undoes
	r := w.rec[i]
	if r.Settlement != ledger.Verified || r.Sends == 0 || r.Child != "" || r.LeaseUntil.After(w.now()) {
		return
	}
	k := verify.Case{Intent: s.writes[i], Profile: s.profile, Stamp: s.stamps[i], Seen: w.left.Observation, Since: w.leftSince}
	if b := w.before[i]; b != nil {
		k.Before = &b.Observation
	}
	if r.Answered {
		k.Receipt = &connectors.Receipt{Ref: w.answer.Ref, Version: w.answer.Version}
	}
	c := policies.CaseOf(*r, s.writes[i], s.profile, w.now(), 0, 0)
	c.Judgement = verify.Judge(k)
	if s.broken == "the undo does not ask whose the record is" {
		c.Own = true
	}
	add(s.say("a reviewer has %s undone", named(uint8(i))), func(w *world) string {
		w.may.undos--
		ev := ledger.Event{Kind: ledger.EvEscalated, By: "reviewer", Rule: "undo"}
		if by := s.inverse(w, i, w.left, true); by != nil && policies.Undo(c, false).Kind == policies.Compensate {
			w.undo = by
			ev.Kind, ev.Child, ev.Evidence = ledger.EvCompensating, by.rec.ID, by.rec.Intent
		}
		if err := s.append(w, i, r.Fence, ev); err != nil {
			panic(err)
		}
		return ""
	})
}

// changedSince reports whether the record that an undo is about to change or delete is
// not as the write left it, where its intent cannot require that.
func (s *scenario) changedSince(w *world, reading *seen) bool {
	in := &w.undo.intent
	if in.Write == intent.Create || len(reading.Records) != 1 || len(w.left.Records) != 1 || s.broken == "the undo does not require what the write left" {
		return false
	}
	was, now := w.left.Records[0], reading.Records[0]
	if was.Ref != now.Ref {
		return true
	}
	return in.Write == intent.Delete && (was.Stamp != "" && now.Stamp != "" && was.Stamp != now.Stamp || !cmp.Equal(was.Fields, now.Fields))
}

// undone names what is wrong with a write that is settled as compensated: what it did
// must be gone, and the state from before be back, unless it was changed again since.
func (s *scenario) undone(w *world, i int) string {
	by, b, there := uint8(i+1), w.before[i], false
	wrong := func(what string) string { return named(by-1) + " is settled as compensated, and " + what }
	for _, r := range w.rows {
		if r.id == 0 {
			continue
		}
		there = true
		if r.maker == by {
			return wrong("the record that it made is there")
		}
		for name, f := range map[string]field{"amount": r.amount, "note": r.note} {
			switch {
			case f.by == by:
				return wrong("the " + name + " that it set is there")
			case f.by == undo && len(b.Records) == 1 && f.value != valueOf(b.Records[0].Fields, name):
				return wrong("its undo did not bring back the " + name + " from before")
			}
		}
	}
	if len(b.Records) == 1 && !there && w.changes == 0 && w.effects[1-i] == 0 {
		return wrong("the record is not there")
	}
	return ""
}
