package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

const (
	// lockPause is how long switching sealing on or off pauses after it did not get a lock: a
	// VACUUM takes minutes.
	lockPause = time.Second

	// maxBackfilled is how many writes or documents one transaction backfills, during which no other
	// caller can change the ledger: less than a tenth of a second where each must be read from a
	// slow disk. maxCleared is how many small adjacent rows one transaction deletes when
	// recording was switched off.
	maxBackfilled = 500
	maxCleared    = 10_000
)

// allBackfilled is the backfill position when no write is left: after all ids.
const allBackfilled = "~"

// SetRecording implements [ledger.Feed]. Switching it on writes a small row for each existing
// write and document, in portions between which others change the ledger. Each portion waits for
// all running changes, and is retried where that takes long, so that no other caller waits for
// long. A call continues where an interrupted one ended, and several may run at once. What is
// left when it is switched off is deleted in portions as well.
func (l *Ledger) SetRecording(ctx context.Context, on bool) (changed bool, err error) {
	as, all, left, err := l.recording(ctx)
	if err != nil || as == on && (on && all || !on && !left) { // already done; then no caller has to wait
		return false, err
	}
	begun := false
	err = driver.InPortions(ctx, func() (bool, error) {
		more, did, err := l.portion(ctx, on, begun)
		if locked(err) { // the lock holder is stuck, or is an operator's session
			pause(ctx, lockPause)
			return true, nil
		}
		changed, begun = changed || did, begun || did || !on
		return more, err
	})
	return changed && err == nil, err
}

// Finding implements [ledger.Feed].
func (l *Ledger) Finding(ctx context.Context) (bool, error) {
	on, all, _, err := l.recording(ctx)
	return on && !all, err
}

// recording reports whether unsealed events are recorded, whether the backfill is complete, and
// whether any unsealed rows are left.
func (l *Ledger) recording(ctx context.Context) (on, all, left bool, err error) {
	err = l.read(ctx, l.sql.Text("sealing"), nil, func(rows pgx.Rows) error {
		_, err := pgx.CollectExactlyOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, r.Scan(&on, &all, &left)
		})
		return err
	})
	return on, all, left, err
}

// portion is one portion of the work, in a transaction of its own. It ends if a lock is not
// available soon: all other callers wait for this one meanwhile.
func (l *Ledger) portion(ctx context.Context, on, begun bool) (more, did bool, err error) {
	err = l.begun(ctx, beginBriefly, func(t *tx) (err error) {
		more, did, err = t.switchOver(on, begun)
		return err
	})
	if err != nil {
		return false, false, err
	}
	return more, did, nil
}

// switchOver does one portion of the work, and reports whether there is more, and whether it
// changed what is recorded. If it was begun, and another caller switched back meanwhile, it is
// not begun anew: the other call was later.
func (t *tx) switchOver(on, begun bool) (more, did bool, err error) {
	if err := t.exec("lock_unsealed"); err != nil {
		return false, false, err
	}
	var is, allDocuments bool
	var write string
	var last ledger.Document
	row := t.pgx.QueryRow(t.ctx, t.l.sql.Text("sealing_locked"), t.l.args()...)
	if err := row.Scan(&is, &write, &allDocuments, &last.Tenant, &last.Kind, &last.ID); err != nil {
		return false, false, err
	}
	switch {
	case is != on && begun:
		return false, false, nil
	case !is:
		if more, err = t.clearSome(); more || err != nil || !on {
			return more, false, err
		}
		return true, true, t.exec("sealing_on")
	case !on:
		return true, true, t.exec("sealing_off")
	case write != allBackfilled:
		return true, true, t.exec("backfill_writes", write, int64(maxBackfilled))
	case !allDocuments:
		return true, true, t.exec("backfill_documents", last.Tenant, last.Kind, last.ID, int64(maxBackfilled), ledger.AuditKind)
	}
	return false, false, nil
}

// clearSome deletes some unsealed rows, and reports whether there are more.
func (t *tx) clearSome() (more bool, err error) {
	did, err := t.pgx.Exec(t.ctx, t.l.sql.Text("clear_unsealed"), t.l.args(int64(maxCleared))...)
	return did.RowsAffected() == maxCleared, err
}
