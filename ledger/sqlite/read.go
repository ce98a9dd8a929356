package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Get implements [ledger.Ledger].
func (l *Ledger) Get(ctx context.Context, tenant string, id ledger.ID) (rec ledger.Record, err error) {
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		r, err := l.get(conn, tenant, id)
		rec = r.rec
		return err
	})
	var waiting *enqueuedError
	if !errors.As(err, &waiting) {
		return rec, err
	}
	if err := l.admitQueue(ctx, waiting.keyDigest); err != nil {
		return ledger.Record{}, err
	}
	return l.Get(ctx, tenant, id)
}

// Precheck implements [ledger.Ledger].
func (l *Ledger) Precheck(ctx context.Context, r ledger.Record) (p ledger.Precheck, err error) {
	if r, err = l.keeping.Digests.OfRecord(r); err != nil {
		return p, err
	}
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		s, err := l.statement(conn, "precheck")
		if err != nil {
			return err
		}
		s.BindText(1, r.Tenant)
		s.BindText(2, string(r.ID))
		bindSome(s, 3, r.KeyDigest)
		return each(l.path, s, func() error {
			p = ledger.Precheck{Recorded: s.ColumnBool(2), Contended: s.ColumnBool(3), Newest: s.ColumnInt64(4)}
			return known(l.path, s.ColumnInt(0), s.ColumnInt(1))
		})
	})
	return p, err
}

// Events implements [ledger.Ledger].
func (l *Ledger) Events(ctx context.Context, tenant string, id ledger.ID) (events []ledger.Event, err error) {
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		r, err := l.get(conn, tenant, id)
		if err != nil {
			return err
		}
		events, err = l.eventsOf(conn, r)
		return err
	})
	var waiting *enqueuedError
	if !errors.As(err, &waiting) {
		return events, err
	}
	if _, err := l.Get(ctx, tenant, id); err != nil {
		return nil, err
	}
	return l.Events(ctx, tenant, id)
}

// List implements [ledger.Ledger].
func (l *Ledger) List(ctx context.Context, f ledger.Filter) (recs []ledger.Record, err error) {
	f, err = f.Checked()
	if err == nil {
		f.KeyDigest, err = l.keeping.Digests.Of(f.KeyDigest)
	}
	if err != nil {
		return nil, err
	}
	err = l.readNow(ctx, func(conn *sqlite.Conn, now time.Time) (err error) {
		recs, err = l.list(conn, f, now)
		return err
	})
	return recs, err
}

// read runs f in one read transaction on a connection of the pool.
func (l *Ledger) read(ctx context.Context, f func(*sqlite.Conn) error) error {
	conn, err := l.readers.Take(ctx)
	if err != nil {
		return cmp.Or(ctx.Err(), unavailable(l.path, err))
	}
	defer l.readers.Put(conn)
	if err := l.writer.files.present(); err != nil { // the connection may have been opened just now
		return unavailable(l.path, err)
	}
	err = explain(l.path, sqlitex.Execute(conn, "BEGIN", nil))
	if err == nil {
		err = f(conn)
	}
	conn.SetInterrupt(nil)
	if !conn.AutocommitEnabled() { // nothing was written, so nothing is lost
		err = errors.Join(err, explain(l.path, sqlitex.Execute(conn, "ROLLBACK", nil)))
	}
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultInterrupt {
		return cmp.Or(ctx.Err(), err)
	}
	return err
}

// readNow is read with the time on the ledger's clock, as of the transaction.
func (l *Ledger) readNow(ctx context.Context, f func(*sqlite.Conn, time.Time) error) error {
	return l.read(ctx, func(conn *sqlite.Conn) error {
		newest, err := l.clock(conn)
		if err != nil {
			return err
		}
		return f(conn, clamp(l.now(), newest))
	})
}

func (l *Ledger) statement(conn *sqlite.Conn, name string) (*sqlite.Stmt, error) {
	s, err := conn.Prepare(statements.Text(name))
	return s, explain(l.path, err)
}

// get reads one write of a tenant. A write of another tenant does not exist.
func (l *Ledger) get(conn *sqlite.Conn, tenant string, id ledger.ID) (r row, err error) {
	s, err := l.statement(conn, "get")
	if err != nil {
		return row{}, err
	}
	s.BindText(1, tenant)
	s.BindText(2, string(id))
	found := false
	err = each(l.path, s, func() error {
		const clock, write = 2, 3
		if err := known(l.path, s.ColumnInt(0), s.ColumnInt(1)); err != nil {
			return err
		}
		if found = !s.ColumnIsNull(write); !found {
			return nil
		}
		r, err = scan(s, write)
		r.rec.Now = clamp(l.now(), s.ColumnInt64(clock))
		return err
	})
	if err == nil && !found {
		err = l.missed(conn, tenant, id)
	}
	return r, err
}

func (l *Ledger) eventsOf(conn *sqlite.Conn, r row) ([]ledger.Event, error) {
	s, err := l.statement(conn, "events")
	if err != nil {
		return nil, err
	}
	var events []ledger.Event
	s.BindInt64(1, r.n)
	err = each(l.path, s, func() error {
		e, err := scanEvent(s, 0)
		if err != nil {
			return fmt.Errorf("write %s: %w", r.rec.ID, err)
		}
		events = append(events, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return driver.Complete(r.rec, events)
}

func (l *Ledger) list(conn *sqlite.Conn, f ledger.Filter, now time.Time) ([]ledger.Record, error) {
	before := int64(math.MaxInt64)
	if f.Before != "" {
		r, err := l.get(conn, f.Tenant, f.Before)
		if err != nil && (r.n == 0 || !ofOneRow(err)) { // what came before it is known all the same
			return nil, err
		}
		before = r.n
	}
	if len(f.States) == 0 {
		f.States = driver.States
	}
	f.States = slices.Compact(slices.Sorted(slices.Values(f.States)))
	page := ledger.NewPage(f)
	for want := page.Want(); want > 0; want = page.Want() {
		rows, err := l.listed(conn, f, before, want)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			before, r.rec.Now = r.n, now
			page.Add(r.rec, r.unread)
		}
		if len(rows) < want {
			break
		}
	}
	return page.Result()
}

// listed returns the next rows of a listing, up to a limit.
func (l *Ledger) listed(conn *sqlite.Conn, f ledger.Filter, before int64, most int) ([]row, error) {
	if f.KeyDigest != "" {
		return l.listAbout(conn, f, before, most)
	}
	return l.listStates(conn, f, before, most)
}

// listStates merges the newest of each state. It merges their numbers, so that no more rows are
// read than are listed.
func (l *Ledger) listStates(conn *sqlite.Conn, f ledger.Filter, before int64, most int) (rows []row, err error) {
	var numbers []int64
	for _, state := range f.States {
		s, err := l.statement(conn, "search_state")
		if err != nil {
			return nil, err
		}
		s.BindText(1, f.Tenant)
		s.BindText(2, string(state))
		s.BindInt64(3, before)
		s.BindInt64(4, int64(most))
		if err := each(l.path, s, func() error { numbers = append(numbers, s.ColumnInt64(0)); return nil }); err != nil {
			return nil, err
		}
	}
	slices.Sort(numbers)
	slices.Reverse(numbers)
	s, err := l.statement(conn, "numbered")
	for _, n := range numbers[:min(len(numbers), most)] {
		if err != nil {
			return nil, err
		}
		s.BindInt64(1, n)
		rows, err = l.more(rows, s)
	}
	return rows, err
}

// listAbout returns the writes about one record.
func (l *Ledger) listAbout(conn *sqlite.Conn, f ledger.Filter, before int64, most int) ([]row, error) {
	s, err := l.statement(conn, "of_record")
	if err != nil {
		return nil, err
	}
	names := ","
	for _, state := range f.States {
		names += string(state) + ","
	}
	s.BindText(1, f.KeyDigest)
	s.BindText(2, f.Tenant)
	s.BindInt64(3, before)
	s.BindText(4, names)
	s.BindInt64(5, int64(most))
	return l.more(nil, s)
}

// more adds the rows of a statement. An unreadable row does not affect others.
func (l *Ledger) more(rows []row, s *sqlite.Stmt) ([]row, error) {
	err := each(l.path, s, func() error {
		r, err := scan(s, 0)
		if err != nil && ofOneRow(err) {
			r.unread, err = err, nil
		}
		rows = append(rows, r)
		return err
	})
	return rows, err
}

// clock checks the version and returns the newest time in the ledger.
func (l *Ledger) clock(conn *sqlite.Conn) (newest int64, err error) {
	s, err := l.statement(conn, "meta")
	if err != nil {
		return 0, err
	}
	err = each(l.path, s, func() error {
		newest = s.ColumnInt64(2)
		return known(l.path, s.ColumnInt(0), s.ColumnInt(1))
	})
	return newest, err
}
