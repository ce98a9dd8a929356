package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// restoreNote is the note of the last restore.
const restoreNote = "restore"

// Restore says that history is missing between two moments: the ledger is as it was at Since, from a
// backup or from a standby that lagged behind, and workers used a newer one until Until. They may
// have sent writes that this ledger has as not sent, or does not have at all. The zero value is no
// restore.
type Restore struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// By and Reason are the operator's.
	By     string `json:"by"`
	Reason string `json:"reason"`
	// Ended is when an operator stated that no caller repeats what it first asked for in the missing
	// time. Zero: some may.
	Ended       time.Time `json:"ended,omitzero"`
	EndedBy     string    `json:"ended_by,omitempty"`
	EndedReason string    `json:"ended_reason,omitempty"`
	// Before is the restore that had ended when this one was recorded. A write that was open in both
	// missing times, and was not read in between, may have been sent in either.
	Before *Restore `json:"before,omitempty"`
}

// Open reports whether a write that is new to the ledger may be one of the missing time.
func (s Restore) Open() bool { return !s.Until.IsZero() && s.Ended.IsZero() }

// Covers reports whether sends of a write may be missing from its record, which does not say so yet
// ([EvRestored]): it was open in the missing time, or was recorded since by a caller who may have
// asked for it then. A record without Created is about to be reserved.
func (s Restore) Covers(r Record) bool {
	switch {
	case s.Until.IsZero() || !r.Restored.Before(s.Until):
		return false
	case r.Created.IsZero():
		return s.Open()
	}
	return s.Open() || r.Created.Before(s.Ended)
}

// LostFrom returns since when sends of a write that the restore covers may be missing.
func (s Restore) LostFrom(r Record) time.Time {
	from := s.Since
	for b := s.Before; b != nil; b = b.Before {
		if b.Covers(r) && b.Since.Before(from) {
			from = b.Since
		}
	}
	return from
}

// Restored returns the last restore that was recorded, and the time on the ledger's clock. It fails if
// that cannot be read: then no first send is safe.
func Restored(ctx context.Context, d Documents) (s Restore, now time.Time, err error) {
	s, _, now, err = restored(ctx, d)
	return s, now, err
}

func restored(ctx context.Context, d Documents) (s Restore, n Note, now time.Time, err error) {
	found, now, err := d.Notes(ctx, restoreNote)
	if err != nil {
		return s, n, now, err
	}
	n = Note{Name: restoreNote}
	for _, each := range found {
		if each.Name == restoreNote {
			n = each
		}
	}
	if len(n.Value) == 0 {
		return s, n, now, nil
	}
	if err := json.Unmarshal(n.Value, &s); err != nil {
		return s, n, now, fmt.Errorf("%w: the note of the last restore: %w", ErrCorrupt, err)
	}
	return s, n, now, nil
}

// RecordRestore records that history since a moment is missing, until now on the ledger's clock.
// What a restore before it says stays true. Processes that use the ledger
// notice it within a second.
func RecordRestore(ctx context.Context, d Documents, since time.Time, by, reason string) (Restore, error) {
	return changeRestore(ctx, d, by, reason, func(s Restore, now time.Time) (Restore, error) {
		if !since.Before(now) {
			return s, fmt.Errorf("history is missing since %s, and the ledger's clock shows %s; want a time before that", since.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
		}
		before := s.Before
		switch {
		case s.Open() && s.Since.Before(since):
			since = s.Since
		case !s.Ended.IsZero():
			before = &s
		}
		return Restore{Since: since, Until: now, By: by, Reason: reason, Before: before}, nil
	})
}

// EndRestore records that no caller repeats any more what it first asked for in the missing time. The
// restore then concerns only writes recorded before.
func EndRestore(ctx context.Context, d Documents, by, reason string) (Restore, error) {
	return changeRestore(ctx, d, by, reason, func(s Restore, now time.Time) (Restore, error) {
		if !s.Open() {
			return s, errors.New("no restore is recorded, or it was ended before")
		}
		s.Ended, s.EndedBy, s.EndedReason = now, by, reason
		return s, nil
	})
}

func changeRestore(ctx context.Context, d Documents, by, reason string, change func(Restore, time.Time) (Restore, error)) (Restore, error) {
	if strings.TrimSpace(by) == "" || strings.TrimSpace(reason) == "" {
		return Restore{}, errors.New("a restore is recorded with the operator's name and a reason")
	}
	s, n, now, err := restored(ctx, d)
	if err == nil {
		s, err = change(s, now)
	}
	if err != nil {
		return Restore{}, err
	}
	if n.Value, err = json.Marshal(s); err == nil {
		_, err = d.SetNote(ctx, n)
	}
	return s, err
}
