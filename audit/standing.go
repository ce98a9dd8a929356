package audit

import (
	"context"
	"errors"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

// Standing is how far a ledger is sealed, as the ledger itself says: nothing in it
// is to be believed of somebody who can write to the ledger.
type Standing struct {
	// Unsealed counts runs of events and marks that nobody has sealed, at most as
	// many as were asked for; More says that there are more, or that part of what was
	// there when it was switched on is not found yet. Unread are those of them
	// that cannot be read.
	Unsealed, Unread int
	More             bool
	// Oldest is when the oldest of these events happened, on the ledger's clock; zero
	// where none of them says when, as what was found when chaining was switched on.
	Oldest time.Time
	// Chained says that the tenant has a chain.
	Chained bool
	// Sealer is when a sealer at work said last that it is, on the ledger's clock, to
	// some ten seconds; zero when none ever did. Who seals once says nothing.
	Sealer time.Time
	// Head is the tenant's newest signed head, zero where there is none or where
	// BadHead says why it cannot be read. Key is the id of the key that it names. The
	// signature is not checked.
	Head    Head
	Key     string
	BadHead error
}

// StandingOf looks how far a ledger is sealed, with at most limit (from 1 to 999)
// of the runs that are not, and at the chain of one tenant. It changes nothing. It
// fails with [ErrCannot], and with what the ledger says.
func StandingOf(ctx context.Context, l ledger.Ledger, tenant string, limit int) (s Standing, err error) {
	st, err := storeOf(l)
	if err != nil {
		return s, err
	}
	runs, err := st.Unsealed(ctx, 0, limit+1)
	if err != nil {
		return s, err
	}
	if s.More = len(runs) > limit; s.More {
		runs = runs[:limit]
	}
	s.behind(runs)
	finding, err := st.finding(ctx)
	if err != nil {
		return s, err
	}
	s.More = s.More || finding
	notes, _, err := st.notes.Notes(ctx, noteTurn)
	if err != nil {
		return s, err
	}
	for _, n := range notes {
		if n.Name == noteTurn {
			s.Sealer = n.At
		}
	}
	_, err = st.Paper(ctx, tenant, ledger.AuditKind, tipID)
	if s.Chained = err == nil; err != nil && !errors.Is(err, ledger.ErrNoPaper) {
		return s, err
	}
	return s, s.newest(ctx, l, tenant)
}

func (s *Standing) behind(runs []ledger.Run) {
	s.Unsealed = len(runs)
	for _, r := range runs {
		at := time.Time{}
		switch {
		case r.Unread != nil:
			s.Unread++
		case r.Mark != nil:
			at = r.Mark.At
		case len(r.Events) > 0 && !r.Found:
			at = r.Events[0].At
		}
		if !at.IsZero() && (s.Oldest.IsZero() || at.Before(s.Oldest)) {
			s.Oldest = at
		}
	}
}

func (s *Standing) newest(ctx context.Context, l ledger.Ledger, tenant string) error {
	e, err := NewestHead(ctx, l, tenant)
	switch {
	case errors.Is(err, ErrNoHead):
		return nil
	case err == nil:
		if s.Head, s.BadHead = ReadHead(e); s.BadHead == nil && len(e.Signatures) > 0 {
			s.Key = e.Signatures[0].KeyID
		}
		return nil
	case errors.Is(err, signing.ErrEnvelope):
		s.BadHead = err
		return nil
	}
	return err
}
