package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
)

// Choice is one of the words that a person can say about a write now, and what
// saying it would do.
type Choice struct {
	Word Word `json:"word"`
	// Allowed says whether [Engine.Resolve] would take it from whoever asks; Why
	// is why not. A worker that holds the write for the moment does not count:
	// Resolve then fails with [ErrBusy], and can be asked again.
	Allowed bool   `json:"allowed"`
	Why     string `json:"why,omitempty"`
	// Effect is what it would do, Danger what could go wrong ("a second send could
	// duplicate, because …"), both sentences for a person. "" is no danger known.
	Effect string `json:"effect"`
	Danger string `json:"danger,omitempty"`
	// Force says that the word comes to nothing without [Decision.Force].
	Force bool `json:"force,omitempty"`
}

// Words lists every word of a person, in the order in which they are shown.
func Words() []Word {
	return []Word{WordApprove, WordDeny, WordAccept, WordRetry, WordCompensate, WordAbandon}
}

// UndoingOf is the id of the one write that can undo a write, or remove its
// surplus record; there may be none of that id.
func UndoingOf(r ledger.Record) ledger.ID { return undoingID(r) }

// ChoicesOf lists what can be decided about a write as it stands, every word for
// one that is held or in review, and none where it waits for nobody. The profile
// is nil where the destination is not known. The undoing is the write named by
// [UndoingOf], where there is one.
//
// It asks what [Engine.Resolve] asks, with the default budget of sends, and where
// the time for an approval is over it takes the write for expired, which it is
// unless a rule lets it go on waiting. [Engine.Choices] knows both.
func ChoicesOf(r ledger.Record, p *connectors.Profile, who Principal, undoing ...ledger.Record) []Choice {
	if r.State != ledger.Held && r.State != ledger.Review {
		return nil
	}
	v := chooser{rec: r, profile: p, who: who, budget: policies.DefaultBudget, undoing: undoing}
	v.stored, v.damaged = storedShown(r)
	return v.choices()
}

// Choices lists what whoever calls can decide about a write as it stands now; see
// [ChoicesOf]. It fails as the ledger does.
func (e *Engine) Choices(ctx context.Context, tenant string, id ledger.ID) ([]Choice, error) {
	rec, err := e.ledger.Get(ctx, tenant, id)
	if err != nil || rec.State != ledger.Held && rec.State != ledger.Review {
		return nil, err
	}
	v := chooser{rec: rec, who: Caller(ctx), budget: e.opts.Budget, waits: lapsed(rec) && e.waitsOn(rec)}
	if v.stored, v.damaged = e.open(rec); v.damaged != nil {
		v.stored.seals = nil
	}
	if _, p, err := e.reg.Lookup(rec.Destination, rec.Kind); err == nil {
		v.profile = &p
	}
	switch child, err := e.ledger.Get(ctx, tenant, undoingID(rec)); {
	case err == nil:
		v.undoing = []ledger.Record{child}
	case !errors.Is(err, ledger.ErrNotFound):
		return nil, err
	}
	return v.choices(), nil
}

// chooser knows what a choice depends on.
type chooser struct {
	rec     ledger.Record
	profile *connectors.Profile
	who     Principal
	budget  int
	undoing []ledger.Record
	waits   bool // it goes on waiting although the time for its approval is over

	stored  storedWrite
	damaged error // the stored intent or pre-state cannot be read
}

// storedShown is what a record keeps of its write as it may be shown: equal
// values are still equal.
func storedShown(rec ledger.Record) (s storedWrite, err error) {
	if s.intent, err = intent.DecodeStored(redact.Shown(rec.Intent)); err != nil {
		return s, fmt.Errorf("%w: write %s: the stored intent: %w", ledger.ErrCorrupt, rec.ID, err)
	}
	if len(rec.Before) > 0 {
		s.before = new(connectors.Observation)
		if err := decodeExact(redact.Shown(rec.Before), s.before); err != nil {
			return s, fmt.Errorf("%w: write %s: the stored pre-state: %w", ledger.ErrCorrupt, rec.ID, err)
		}
	}
	return s, nil
}

func (v *chooser) choices() []Choice {
	all := make([]Choice, 0, len(Words()))
	for _, word := range Words() {
		c := Choice{Word: word}
		if err := v.refused(word); err != nil {
			c.Why = err.Error()
		} else {
			c.Allowed = true
		}
		v.tell(&c)
		all = append(all, c)
	}
	return all
}

// refused is why Resolve would not take a word.
func (v *chooser) refused(word Word) error {
	d := Decision{Word: word, By: v.who.Name}
	if err := cmp.Or(v.who.decides(), d.refused(v.rec)); err != nil {
		return err
	}
	for _, child := range v.undoing {
		if err := d.beside(child); err != nil {
			return err
		}
	}
	switch {
	case lapsed(v.rec) && !v.waits:
		return fmt.Errorf("write %s: %w: %s", v.rec.ID, ErrExpired, overAt(v.rec))
	case !d.goesOn():
		return nil
	case v.damaged != nil:
		return v.damaged
	case v.profile == nil:
		return fmt.Errorf("%w: %q with kind %q is not registered here", connectors.ErrUnknownDestination, v.rec.Destination, v.rec.Kind)
	}
	return nil
}
