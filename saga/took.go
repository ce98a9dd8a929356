package saga

import (
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// took is the saga after a move: its document's new content. Write is the write of the step that
// is begun, with the one that will undo it.
func (b body) took(m move, write, undoing ledger.ID, now time.Time) body {
	b = b.copy()
	b.Stuck = false
	s := &b.Steps[m.step]
	switch m.do {
	case hold:
		s.NotBefore = now.Add(s.Grace)
	case begin:
		s.Writes = append(append([]ledger.ID(nil), s.Writes...), write)
		if s.Tries++; m.anew {
			s.Tries = 1
		}
		s.Status, s.Blocked = ledger.InProgress, nil
		if s.Class == intent.Compensable {
			s.UndoID, s.UndoBy = undoing, undoByConnector
			if len(s.Undo) > 0 {
				s.UndoBy = undoByPlan
			}
		}
	case goBack:
		b.Back = &Decision{Reason: clipped(m.reason), At: now, Step: s.Name, Rule: ruleSaga}
	}
	b.says(m.state, m.reason, now)
	return b
}

// refused is the saga when the ledger did not accept the write of a step. It goes back if it
// still can, otherwise to review.
func (b body) refused(step int, why Blocked, now time.Time) body {
	b = b.copy()
	s := &b.Steps[step]
	s.Blocked = &why
	if b.Past {
		b.says(Review, why.why(s.Name), now)
		return b
	}
	return b.took(move{do: goBack, step: step, state: Undoing, reason: why.why(s.Name)}, "", "", now)
}

// says sets the saga's state, and since when.
func (b *body) says(state State, reason string, now time.Time) {
	reason = clipped(reason)
	if b.State != state || b.Reason != reason {
		b.State, b.Reason, b.Since = state, reason, now
	}
}
