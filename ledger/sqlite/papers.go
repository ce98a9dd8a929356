package sqlite

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

//go:embed sql/paper.sql
var sqlPaper string

//go:embed sql/insert_paper.sql
var sqlInsertPaper string

//go:embed sql/update_paper.sql
var sqlUpdatePaper string

var _ ledger.Papers = (*Ledger)(nil)

// File implements [ledger.Papers] in one transaction, which it shares with
// others as all calls do. With a reservation it fails with [ledger.ErrClock]
// when the clock stands too far before the newest entry.
func (l *Ledger) File(ctx context.Context, f ledger.Filing) (ledger.Filed, error) {
	if err := f.Check(); err != nil {
		return ledger.Filed{}, err
	}
	var did ledger.Filed // read only when it is done
	line := func(t *tx) (string, error) {
		if f.Reserve == nil {
			return "", nil
		}
		return t.enqueued(f.Reserve.Record.KeyDigest)
	}
	err := l.inOrder(ctx, line, func(t *tx) error {
		run := func() (err error) {
			did, err = t.file(f)
			return err
		}
		writes := len(f.Append)
		if f.Reserve != nil {
			writes++
		}
		if writes < 2 { // papers and one write are looked at before anything is changed
			return run()
		}
		return t.whole(run)
	})
	if err != nil {
		return ledger.Filed{}, err
	}
	return did, nil
}

// whole takes back what run changed when it fails, so that it can be refused
// like an operation that has changed nothing.
func (t *tx) whole(run func() error) error {
	wrote, wakes, tells := t.wrote, t.wakes, t.tells
	if err := exec(t.path, t.savepoint); err != nil {
		return err
	}
	err := run()
	if err == nil {
		return exec(t.path, t.release)
	}
	if t.conn.AutocommitEnabled() { // SQLite has rolled back everything
		return err
	}
	clear(t.remembered)
	if undone := errors.Join(exec(t.path, t.rollbackTo), exec(t.path, t.release)); undone != nil {
		return errors.Join(err, undone)
	}
	t.wrote, t.wakes, t.tells = wrote, wakes, tells
	return err
}

func (t *tx) file(f ledger.Filing) (did ledger.Filed, err error) {
	now := t.stamp()
	did.Now = now
	for _, p := range f.Unchanged {
		if _, _, err := t.nextPaper(p, now); err != nil {
			return did, err
		}
	}
	numbers := make([]int64, 0, len(f.Papers))
	for _, p := range f.Papers {
		n, next, err := t.nextPaper(p, now)
		if err != nil {
			return did, err
		}
		numbers, did.Papers = append(numbers, n), append(did.Papers, next)
	}
	if f.Reserve != nil {
		if did.Reserved, did.Fresh, err = t.reserve(*f.Reserve); err != nil {
			return did, err
		}
	}
	for _, a := range f.Append {
		rec, err := t.append(a.ID, a.Fence, a.Events)
		if err != nil {
			return did, err
		}
		did.Appended = append(did.Appended, rec)
	}
	if err := t.latest(&did); err != nil {
		return did, err
	}
	for i, p := range did.Papers {
		n, err := t.putPaper(numbers[i], p)
		if err != nil {
			return did, err
		}
		if err := t.leaveFiled(n, p); err != nil {
			return did, err
		}
	}
	return did, nil
}

// latest makes the writes of a filing what they are after all of its parts: a later
// one may have changed what an earlier one did.
func (t *tx) latest(did *ledger.Filed) error {
	recs := []*ledger.Record{&did.Reserved}
	for i := range did.Appended {
		recs = append(recs, &did.Appended[i])
	}
	if len(did.Appended) == 0 || len(did.Appended) == 1 && did.Reserved.ID == "" {
		return nil
	}
	now := t.stamp()
	for _, rec := range recs {
		r, found, err := t.write(rec.ID)
		if err != nil {
			return err
		}
		if found {
			*rec, rec.Now = r.rec, now
		}
	}
	return nil
}

// nextPaper is a paper as it is to stand, and the number of the one that is
// there, 0 for none.
func (t *tx) nextPaper(p ledger.Paper, now time.Time) (n int64, next ledger.Paper, err error) {
	var have ledger.Paper
	bindPaperName(t.paper, 1, p.Tenant, p.Kind, p.ID)
	err = each(t.path, t.paper, func() error {
		n, have = scanPaper(t.paper, now)
		return nil
	})
	if err != nil {
		return 0, p, err
	}
	next, err = p.Next(have, now)
	return n, next, err
}

// putPaper writes a paper over the one of a number, or as a new one.
func (t *tx) putPaper(n int64, p ledger.Paper) (int64, error) {
	t.wrote = true
	s := t.updatePaper
	if n == 0 {
		s = t.insertPaper
		bindPaperName(s, 8, p.Tenant, p.Kind, p.ID)
		for i, text := range []string{p.Binder, p.Subject, p.Trace} {
			s.BindText(11+i, text)
		}
		bindTime(s, 14, p.Created)
	} else {
		s.BindInt64(1, n)
	}
	s.BindText(2, p.State)
	if p.Due.IsZero() {
		s.BindNull(3)
	} else {
		bindTime(s, 3, p.Due)
	}
	s.BindBool(4, p.Done)
	s.BindInt64(5, p.Version)
	bindTime(s, 6, p.Updated)
	s.BindText(7, string(p.Body))
	if err := exec(t.path, s); err != nil || n != 0 {
		return n, err
	}
	return t.conn.LastInsertRowID(), nil
}

func bindPaperName(s *sqlite.Stmt, from int, tenant, kind, id string) {
	s.BindText(from, tenant)
	s.BindText(from+1, kind)
	s.BindText(from+2, id)
}

// scanPaper reads the columns of a paper, in the order in which every query
// lists them.
func scanPaper(s *sqlite.Stmt, now time.Time) (n int64, p ledger.Paper) {
	return s.ColumnInt64(0), ledger.Paper{
		Tenant: s.ColumnText(1), Kind: s.ColumnText(2), ID: s.ColumnText(3),
		Binder: s.ColumnText(4), Subject: s.ColumnText(5), Trace: s.ColumnText(6), Created: moment(s, 7),
		State: s.ColumnText(8), Due: moment(s, 9), Done: s.ColumnBool(10), Version: s.ColumnInt64(11),
		Updated: moment(s, 12), Body: text(s, 13), Now: now,
	}
}

// Paper implements [ledger.Papers].
func (l *Ledger) Paper(ctx context.Context, tenant, kind, id string) (p ledger.Paper, err error) {
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		newest, err := l.clock(conn)
		if err != nil {
			return err
		}
		s, err := l.statement(conn, sqlPaper)
		if err != nil {
			return err
		}
		missing := fmt.Errorf("%w: %s %q", ledger.ErrNoPaper, kind, id)
		bindPaperName(s, 1, tenant, kind, id)
		err = each(l.path, s, func() error {
			missing = nil
			_, p = scanPaper(s, clamp(l.now(), newest))
			return nil
		})
		return cmp.Or(err, missing)
	})
	return p, err
}
