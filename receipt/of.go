package receipt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// Options configures what a receipt states beyond the minimum.
type Options struct {
	// Values includes the values of the business key and of the observation, except sensitive
	// ones. Default: only their digests.
	Values bool
	// Version is the version of readback that issues the receipt. Required.
	Version string
	// Undoing is the write that undid this one, with its events; required for a write that was
	// compensated. Its profile is that of the write. Default none.
	Undoing       ledger.Record
	UndoingEvents []ledger.Event
	// Vault opens the sensitive values of the stored intent, so that it can be compared with its
	// digest; the receipt contains none of them. Default nil: a write with sensitive values gets
	// no receipt.
	Vault *redact.Vault
	// Head is the newest signed head of the tenant's chain. Default none.
	Head *Head
}

// Of returns the receipt of a write, from its record, all its events, and its destination's
// profile. It fails with [ErrNotObserved] unless everything it would state was observed, and with
// [ErrContradiction] if the record, its intent and its events differ.
func Of(r ledger.Record, events []ledger.Event, p connectors.Profile, o Options) (Statement, error) {
	main, err := lifeOf(r, events, o)
	if err != nil {
		return Statement{}, err
	}
	if p.Destination != r.Destination || p.Kind != r.Kind {
		return Statement{}, fmt.Errorf("the profile is of %s at %q, and write %s is about %s at %q", p.Kind, p.Destination, r.ID, r.Kind, r.Destination)
	}
	seen, undoing, err := main.proof(p, o)
	if err != nil {
		return Statement{}, err
	}
	for _, l := range []*life{main, seen.of} {
		if err := l.late(seen.seen()); err != nil {
			return Statement{}, err
		}
	}
	s := main.statement(o)
	if err := seen.describe(&s.Predicate, p, o.Values); err != nil {
		return Statement{}, err
	}
	if undoing != nil {
		s.Predicate.Undoing = &Subject{Name: string(undoing.rec.ID), Digest: digestOf(undoing.rec)}
	}
	s.Predicate.Claim = claims[claimed{s.Predicate.Settlement, s.Predicate.Verdict}]
	if s.Predicate.Rechecks, err = main.rechecks(o.Values); err != nil {
		return Statement{}, err
	}
	s.Predicate.Ledger.At = utc(r.Now)
	if r.Now.IsZero() { // the record was not read from a ledger
		s.Predicate.Ledger.At = utc(events[len(events)-1].At)
	}
	s.Predicate.Recheck = pending(s.Predicate.Ledger.At, main, seen.of)
	if s.Predicate.Write.BusinessKey, err = textOf(main.key, o.Values); err != nil {
		return Statement{}, contradiction("the business key in the stored intent cannot be read: %v", err)
	}
	return s, s.check()
}

// pending is the next pending recheck of some writes, as of a time; nil for none.
func pending(now time.Time, of ...*life) (next *Recheck) {
	for _, l := range of {
		due, until := utc(l.rec.Due), utc(l.rec.RecheckUntil)
		if due.IsZero() {
			continue
		}
		if next == nil {
			next = &Recheck{Due: due, Until: due}
		}
		if due.Before(next.Due) {
			next.Due = due
		}
		for _, t := range []time.Time{due, until} {
			if t.After(next.Until) {
				next.Until = t
			}
		}
	}
	if next != nil {
		next.State = recheckState(next.Due, now)
	}
	return next
}

func recheckState(due, now time.Time) string {
	if now.After(due) {
		return RecheckOverdue
	}
	return RecheckPending
}

// life is one write, rebuilt from its events.
type life struct {
	rec    ledger.Record // rebuilt
	events []ledger.Event
	intent intent.WriteIntent
	shown  intent.WriteIntent // redacted for display: names of members can be sensitive too
	key    []byte             // the business key as stored, in JSON
}

// lifeOf rebuilds a write and compares its record and its intent with the result.
func lifeOf(r ledger.Record, events []ledger.Event, o Options) (*life, error) {
	if r.Tombstone {
		return nil, unobserved("write %s was pruned: what was seen of it is no longer kept", r.ID)
	}
	rebuilt, err := ledger.Rebuild(events)
	if err != nil {
		return nil, contradiction("write %s cannot be rebuilt from its events: %v", r.ID, err)
	}
	if err := agree(r, rebuilt); err != nil {
		return nil, err
	}
	l := &life{rec: rebuilt, events: events}
	if err := l.settled(); err != nil {
		return nil, err
	}
	return l, l.declared(r, o)
}

// why is the reason against a receipt, for each settlement that is no observation.
var why = map[ledger.Status]string{
	ledger.Accepted:  "a reviewer accepted it as it is, and that is no observation",
	ledger.Abandoned: "a reviewer gave it up, and its effect stays unknown",
	ledger.Denied:    "a reviewer refused it: nothing was sent, and nothing was to be observed",
	ledger.Expired:   "no reviewer approved it in time: nothing was sent, and nothing was to be observed",
	ledger.Reported:  "the destination accepted it and cannot be read: it was not verified",
}

// settled refuses a write whose result is not known, or was not observed.
func (l *life) settled() error {
	r := l.rec
	switch {
	case r.Delegated:
		return unobserved("write %s was made by its caller: the intent that a read was compared with is not in its events", r.ID)
	case r.State == ledger.Review:
		return unobserved("write %s waits for a reviewer; it is not settled", r.ID)
	case r.State == ledger.Held:
		return unobserved("write %s waits for approval; nothing was sent", r.ID)
	case r.Unverified:
		return unobserved("write %s the destination accepted it; it is read back later; ask again then", r.ID)
	case r.State != ledger.Settled:
		return unobserved("write %s is under way (%s); ask again when it is settled", r.ID, r.Phase())
	}
	if reason, never := why[r.Settlement]; never {
		return unobserved("write %s is %s: %s", r.ID, r.Settlement, reason)
	}
	return nil
}

// declared reads the stored intent and compares it with the digest and the identity in the
// events.
func (l *life) declared(r ledger.Record, o Options) error {
	stored, err := intent.DecodeStored(r.Intent)
	if err != nil {
		return contradiction("write %s: the stored intent cannot be read: %v", r.ID, err)
	}
	if l.shown, err = intent.DecodeStored(redact.Shown(r.Intent)); err != nil {
		return contradiction("write %s: the stored intent cannot be read: %v", r.ID, err)
	}
	if l.key, err = intent.Canonical(stored.Key); err != nil {
		return contradiction("write %s: the stored business key cannot be read: %v", r.ID, err)
	}
	l.intent, err = o.Vault.Scope(r.Tenant, string(r.ID)).OpenIntent(r.Intent)
	switch {
	case errors.Is(err, redact.ErrNoKey):
		return unobserved("write %s has sensitive values, and there is no key here that opens them, so that its intent cannot be held against its digest", r.ID)
	case err != nil:
		return contradiction("write %s: the sensitive values of the stored intent cannot be opened: %v", r.ID, err)
	}
	same, err := ledger.NewRecord(l.intent)
	if err != nil {
		return contradiction("write %s: the stored intent is none: %v", r.ID, err)
	}
	if !o.Vault.SameIntent(r.Tenant, same.Digest, l.rec.Digest) || same.StructuralKey != l.rec.StructuralKey ||
		same.Destination != l.rec.Destination || same.Kind != l.rec.Kind || same.Parent != l.rec.Parent {
		return contradiction("write %s: the stored intent is not the one that its events are about (digest %.12s…, the events say %.12s…)", r.ID, same.Digest, l.rec.Digest)
	}
	return nil
}

// statement is the receipt of a write, without the observation.
func (l *life) statement(o Options) Statement {
	r := l.rec
	settling := l.events[l.settling()]
	return Statement{
		Type: statementType, PredicateType: PredicateType,
		Subject: []Subject{{Name: string(r.ID), Digest: digestOf(r)}},
		Predicate: Predicate{
			Tenant:     r.Tenant,
			Write:      Write{Type: l.intent.Write, Destination: r.Destination, Kind: r.Kind, StructuralKey: r.StructuralKey},
			Settlement: r.Settlement,
			Times:      Times{Created: utc(r.Created), FirstSend: utc(r.FirstSend), LastSend: utc(r.LastSend), Settled: utc(r.SettledAt)},
			Attempts:   Attempts{Sends: r.Sends, Unsent: r.Unsent, Reads: r.Reads},
			By:         l.by(settling),
			Trace:      traceID(r.Trace),
			Ledger:     Ledger{Event: r.Seq, Head: o.Head},
			Readback:   o.Version,
		},
	}
}

// by returns the deciding actors. Only reviewers are named; the worker does not matter.
func (l *life) by(settling ledger.Event) By {
	by := By{Rule: settling.Rule}
	for _, e := range l.events {
		switch {
		case (e.Kind == ledger.EvAgreed || e.Kind == ledger.EvApproved) && len(by.Approved) < maxNames:
			by.Approved = append(by.Approved, e.By)
		case e.Kind == ledger.EvDirected && e.Rule == byReviewer:
			by.Directed = e.By
		case e.Kind == ledger.EvHeld: // approvals before a second hold are void
			by.Approved = nil
		}
	}
	return by
}

// byReviewer is the rule of a reviewer's decision.
const byReviewer = "person"

// settling is the index of the event that finally settled the write.
func (l *life) settling() int {
	return len(l.events) - 1 - slices.IndexFunc(reversed(l.events), func(e ledger.Event) bool { return e.Kind == ledger.EvSettled })
}

func reversed(events []ledger.Event) []ledger.Event {
	back := slices.Clone(events)
	slices.Reverse(back)
	return back
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Round(0)
}

// traceID is the trace ID of a traceparent, "" if that is invalid.
func traceID(traceparent string) string {
	parts := strings.Split(traceparent, "-")
	const id = 32
	if len(parts) < 4 || len(parts[1]) != id || !isHex(parts[1]) {
		return ""
	}
	return parts[1]
}
