package sqlite

import (
	"context"
	_ "embed"
	"time"

	"github.com/readback-go/readback/ledger"
)

//go:embed sql/old_changes.sql
var sqlOldChanges string

//go:embed sql/forget_changes.sql
var sqlForgetChanges string

// pruneChanges forgets changes that are too old to be followed, in short
// transactions.
func (l *Ledger) pruneChanges(ctx context.Context) (forgotten int, err error) {
	for ended := false; !ended && forgotten < ledger.MaxChangesPruned; {
		gone := 0 // read only when it is done
		err := l.writer.do(ctx, func(t *tx) (err error) {
			gone, err = t.forgetChanges(min(maxChanges, ledger.MaxChangesPruned-forgotten))
			return err
		})
		if err != nil {
			return forgotten, err
		}
		forgotten, ended = forgotten+gone, gone < maxChanges
	}
	return forgotten, nil
}

// forgetChanges forgets the oldest changes, so many at the most, up to the first
// that may still be wanted. One that lies ahead of the clock comes from before it
// was set right, and must not keep all behind it for ever.
func (t *tx) forgetChanges(most int) (gone int, err error) {
	now, err := t.trust()
	if err != nil {
		return 0, err
	}
	last, wanted := int64(0), false
	t.oldChanges.BindInt64(1, int64(most))
	err = each(t.path, t.oldChanges, func() error {
		at := time.Unix(0, t.oldChanges.ColumnInt64(1))
		if wanted = wanted || now.Sub(at) < ledger.ChangesKept && !at.After(now); !wanted {
			last = t.oldChanges.ColumnInt64(0)
			gone++
		}
		return nil
	})
	if err != nil || gone == 0 {
		return 0, err
	}
	t.wrote = true
	return gone, t.onRow(t.forgetChange, last)
}
