package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

// allFound is how far the writes were gone over when none is left: behind all ids.
const allFound = "~"

// Chronicle implements [ledger.Chronicler]. Switching it on writes a small row
// for each write and each paper that is there, in portions between which others
// change the ledger; each waits for whatever is changing it. Whoever calls it goes
// on where somebody was interrupted, and several may do it at once.
func (l *Ledger) Chronicle(ctx context.Context, on bool) (changed bool, err error) {
	var as, all bool // already; then nobody has to wait
	err = l.read(ctx, l.sql["chronicling"], nil, func(rows pgx.Rows) error {
		_, err := pgx.CollectExactlyOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, r.Scan(&as, &all)
		})
		return err
	})
	if err != nil || as == on && (all || !on) {
		return false, err
	}
	begun := false
	err = driver.InPortions(ctx, func() (bool, error) {
		var more, did bool
		err := l.within(ctx, func(t *tx) (err error) {
			more, did, err = t.switchOver(on, begun)
			return err
		})
		changed, begun = changed || did, true
		return more, err
	})
	return changed && err == nil, err
}

// switchOver is one portion of what is to be done, and says whether there is more,
// and whether it did anything. What was begun, and switched off by somebody else
// meanwhile, is not begun anew.
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
	case !on && is:
		return false, true, errors.Join(t.exec("chronicle_off"), t.exec("chronicle_clear"))
	case !on || begun && !is:
		return false, false, nil
	case !is:
		return true, true, t.exec("chronicle_on", chronicleFrom)
	case write != allFound:
		return true, true, t.exec("chronicle_writes", write, int64(maxFound))
	case !allPapers:
		return true, true, t.exec("chronicle_papers", last.Tenant, last.Kind, last.ID, int64(maxFound), ledger.AuditKind)
	}
	return false, false, nil
}
