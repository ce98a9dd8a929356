package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

// allFound is how far the writes were gone over when none is left: behind all ids.
const allFound = "~"

// Chronicle implements [ledger.Chronicler]. Switching it on writes a small row
// for each write and each paper that is there, in portions between which others
// change the ledger; each waits for whatever is changing it. Whoever calls it goes
// on where somebody was interrupted, and several may do it at once. What is left
// when it is switched off is forgotten in portions as well.
func (l *Ledger) Chronicle(ctx context.Context, on bool) (changed bool, err error) {
	var as, all, left bool
	err = l.read(ctx, l.sql["chronicling"], nil, func(rows pgx.Rows) error {
		_, err := pgx.CollectExactlyOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, r.Scan(&as, &all, &left)
		})
		return err
	})
	if err != nil || as == on && (on && all || !on && !left) { // already; then nobody has to wait
		return false, err
	}
	err = driver.InPortions(ctx, func() (bool, error) {
		var more, did bool
		err := l.within(ctx, func(t *tx) (err error) {
			more, did, err = t.switchOver(on, changed)
			return err
		})
		changed = changed || did
		return more, err
	})
	return changed && err == nil, err
}

// switchOver is one portion of what is to be done, and says whether there is more,
// and whether it changed what is remembered. What was begun, and switched off by
// somebody else meanwhile, is not begun anew.
func (t *tx) switchOver(on, begun bool) (more, did bool, err error) {
	if err := t.exec("chronicle_lock"); err != nil {
		return false, false, err
	}
	var is, allPapers bool
	var write string
	var last ledger.Paper
	row := t.pgx.QueryRow(t.ctx, t.l.sql["chronicled"], t.l.args()...)
	if err := row.Scan(&is, &write, &allPapers, &last.Tenant, &last.Kind, &last.ID); err != nil {
		return false, false, err
	}
	switch {
	case !is && on && begun:
		return false, false, nil
	case !is:
		if more, err = t.clearSome(); more || err != nil || !on {
			return more, false, err
		}
		return true, true, t.exec("chronicle_on", chronicleFrom)
	case !on:
		return true, true, t.exec("chronicle_off")
	case write != allFound:
		return true, true, t.exec("chronicle_writes", write, int64(maxFound))
	case !allPapers:
		return true, true, t.exec("chronicle_papers", last.Tenant, last.Kind, last.ID, int64(maxFound), ledger.AuditKind)
	}
	return false, false, nil
}

// clearSome forgets some of what was not sealed, and says whether there is more.
func (t *tx) clearSome() (more bool, err error) {
	did, err := t.pgx.Exec(t.ctx, t.l.sql["chronicle_clear"], t.l.args(int64(maxCleared))...)
	return did.RowsAffected() == maxCleared, err
}
