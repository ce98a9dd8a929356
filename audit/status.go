package audit

import (
	"context"
	"errors"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

// Status is the sealing status that the ledger itself records. An actor that can write to the
// ledger can forge it.
type Status struct {
	// Unsealed counts unsealed runs of events and marks, up to the requested limit; More reports
	// that there are more. Unread are those of them that are unreadable.
	Unsealed, Unread int
	More             bool
	// Oldest is when the oldest of these events happened, on the ledger's clock; zero if none has
	// a time.
	Oldest time.Time
	// Chained reports whether the tenant has a chain.
	Chained bool
	// Sealer is when a working sealer last reported, on the ledger's clock, to some ten seconds;
	// zero if none ever did. A single call of Seal does not report.
	Sealer time.Time
	// Head is the tenant's newest signed head, zero if there is none or if BadHead says why it is
	// unreadable. Key is the ID of the key that it names. The signature is not checked.
	Head    Head
	Key     string
	BadHead error
}

// StatusOf reads the sealing status of a ledger, with at most limit (from 1 to 999) of the
// unsealed runs, and of one tenant's chain. It changes nothing.
func StatusOf(ctx context.Context, l ledger.Ledger, tenant string, limit int) (s Status, err error) {
	runs, err := l.Unsealed(ctx, 0, limit+1)
	if err != nil {
		return s, err
	}
	if s.More = len(runs) > limit; s.More {
		runs = runs[:limit]
	}
	s.behind(runs)
	notes, _, err := l.Notes(ctx, noteActive)
	if err != nil {
		return s, err
	}
	for _, n := range notes {
		if n.Name == noteActive {
			s.Sealer = n.At
		}
	}
	_, err = l.Document(ctx, tenant, ledger.AuditKind, tipID)
	if s.Chained = err == nil; err != nil && !errors.Is(err, ledger.ErrNoDocument) {
		return s, err
	}
	return s, s.newest(ctx, l, tenant)
}

func (s *Status) behind(runs []ledger.Run) {
	s.Unsealed = len(runs)
	for _, r := range runs {
		at := time.Time{}
		switch {
		case r.Unread != nil:
			s.Unread++
		case r.Mark != nil:
			at = r.Mark.At
		case len(r.Events) > 0:
			at = r.Events[0].At
		}
		if !at.IsZero() && (s.Oldest.IsZero() || at.Before(s.Oldest)) {
			s.Oldest = at
		}
	}
}

func (s *Status) newest(ctx context.Context, l ledger.Ledger, tenant string) error {
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
