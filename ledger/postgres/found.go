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
// change the ledger; each waits for whatever is changing it, and is tried again where
// that takes long: nobody else is to wait for as long. Whoever calls it goes on where
// somebody was interrupted, and several may do it at once. What is left when it is
// switched off is forgotten in portions as well.
func (l *Ledger) Chronicle(ctx context.Context, on bool) (changed bool, err error) {
	as, all, left, err := l.chronicling(ctx)
	if err != nil || as == on && (on && all || !on && !left) { // already; then nobody has to wait
		return false, err
	}
	begun := false
	err = driver.InPortions(ctx, func() (bool, error) {
		more, did, err := l.portion(ctx, on, begun)
		if locked(err) { // whoever keeps it stands still, or is a person
			pause(ctx, lockPause)
			return true, nil
		}
		changed, begun = changed || did, begun || did || !on
		return more, err
	})
	return changed && err == nil, err
}

var _ ledger.PortionedChronicler = (*Ledger)(nil)

// Finding implements [ledger.PortionedChronicler].
func (l *Ledger) Finding(ctx context.Context) (bool, error) {
	on, all, _, err := l.chronicling(ctx)
	return on && !all, err
}

// chronicling is whether what is not sealed is remembered, whether all that was there
// is found, and whether anything of that is left.
func (l *Ledger) chronicling(ctx context.Context) (on, all, left bool, err error) {
	err = l.read(ctx, l.sql["chronicling"], nil, func(rows pgx.Rows) error {
		_, err := pgx.CollectExactlyOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, r.Scan(&on, &all, &left)
		})
		return err
	})
	return on, all, left, err
}

// portion is one portion of what is to be done, in a transaction of its own. It ends
// where a lock is not to be had soon: everybody waits behind this one meanwhile.
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

// switchOver is one portion of what is to be done, and says whether there is more,
// and whether it changed what is remembered. What was begun, and switched back by
// somebody else meanwhile, is not begun anew: that one came later.
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
	case is != on && begun:
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
