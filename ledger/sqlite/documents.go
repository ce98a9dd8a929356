package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

// Commit implements [ledger.Documents] in one transaction, which it shares with others as all
// calls do. With a reservation it fails with [ledger.ErrClock] when the clock is too far before
// the newest entry.
func (l *Ledger) Commit(ctx context.Context, f ledger.Batch) (ledger.Committed, error) {
	if err := f.Check(); err != nil {
		return ledger.Committed{}, err
	}
	f, err := l.keeping.Digests.OfBatch(f)
	if err != nil {
		return ledger.Committed{}, err
	}
	var did ledger.Committed // read only when it is done
	queue := func(t *tx) (string, error) {
		if f.Reserve == nil {
			return "", nil
		}
		return t.enqueued(f.Reserve.Record.KeyDigest)
	}
	err = l.inOrder(ctx, queue, func(t *tx) error {
		run := func() (err error) {
			did, err = t.file(f)
			return err
		}
		writes := len(f.Append)
		if f.Reserve != nil {
			writes++
		}
		if writes < 2 { // documents and one write are checked before anything is changed
			return run()
		}
		return t.whole(run)
	})
	if err != nil {
		return ledger.Committed{}, err
	}
	return did, nil
}

// whole rolls back what run changed when it fails, so that it can be refused like an operation
// that has changed nothing.
func (t *tx) whole(run func() error) error {
	wrote, wakes, publishes, runs := t.wrote, t.wakes, t.publishes, len(t.runs)
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
	t.wrote, t.wakes, t.publishes, t.runs = wrote, wakes, publishes, t.runs[:runs]
	return err
}

func (t *tx) file(f ledger.Batch) (did ledger.Committed, err error) {
	now := t.stamp()
	did.Now = now
	for _, p := range f.Unchanged {
		if _, _, err := t.nextDocument(p, now); err != nil {
			return did, err
		}
	}
	numbers := make([]int64, 0, len(f.Documents))
	for _, p := range f.Documents {
		n, next, err := t.nextDocument(p, now)
		if err != nil {
			return did, err
		}
		numbers, did.Documents = append(numbers, n), append(did.Documents, next)
	}
	if f.Reserve != nil {
		rec, fresh, err := t.reserve(*f.Reserve)
		if err != nil {
			return did, err
		}
		did.Reserved, did.Fresh = *rec, fresh
	}
	for _, a := range f.Append {
		rec, err := t.append(a.ID, a.Fence, a.Events)
		if err != nil {
			return did, err
		}
		did.Appended = append(did.Appended, *rec)
	}
	if err := t.latest(&did); err != nil {
		return did, err
	}
	for i, p := range did.Documents {
		if err := t.putDocument(numbers[i], p); err != nil {
			return did, err
		}
		if err := t.insertMark(p.CommitMark()); err != nil {
			return did, err
		}
	}
	return did, nil
}

// latest updates the writes in the result of a batch: a later part may have changed what an
// earlier one did.
func (t *tx) latest(did *ledger.Committed) error {
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

// nextDocument returns the new version of a document, and the number of the existing one, 0 for
// none.
func (t *tx) nextDocument(p ledger.Document, now time.Time) (n int64, next ledger.Document, err error) {
	var have ledger.Document
	bindDocumentName(t.document, 1, p.Tenant, p.Kind, p.ID)
	err = each(t.path, t.document, func() error {
		n, have = scanDocument(t.document, now)
		return nil
	})
	if err != nil {
		return 0, p, err
	}
	next, err = p.Next(have, now)
	return n, next, err
}

// putDocument writes a document over the one of a number, or as a new one.
func (t *tx) putDocument(n int64, p ledger.Document) error {
	t.wrote = true
	s := t.updateDocument
	if n == 0 {
		s = t.insertDocument
		bindDocumentName(s, 8, p.Tenant, p.Kind, p.ID)
		for i, text := range []string{p.Collection, p.Subject, p.Trace} {
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
	return exec(t.path, s)
}

func bindDocumentName(s *sqlite.Stmt, from int, tenant, kind, id string) {
	s.BindText(from, tenant)
	s.BindText(from+1, kind)
	s.BindText(from+2, id)
}

// scanDocument reads the columns of a document, in the order in which every query lists them.
func scanDocument(s *sqlite.Stmt, now time.Time) (n int64, p ledger.Document) {
	return s.ColumnInt64(0), ledger.Document{
		Tenant: s.ColumnText(1), Kind: s.ColumnText(2), ID: s.ColumnText(3),
		Collection: s.ColumnText(4), Subject: s.ColumnText(5), Trace: s.ColumnText(6), Created: moment(s, 7),
		State: s.ColumnText(8), Due: moment(s, 9), Done: s.ColumnBool(10), Version: s.ColumnInt64(11),
		Updated: moment(s, 12), Body: text(s, 13), Now: now,
	}
}

// Document implements [ledger.Documents].
func (l *Ledger) Document(ctx context.Context, tenant, kind, id string) (p ledger.Document, err error) {
	err = l.readNow(ctx, func(conn *sqlite.Conn, now time.Time) error {
		s, err := l.statement(conn, "document")
		if err != nil {
			return err
		}
		missing := fmt.Errorf("%w: %s %q", ledger.ErrNoDocument, kind, id)
		bindDocumentName(s, 1, tenant, kind, id)
		err = each(l.path, s, func() error {
			missing = nil
			_, p = scanDocument(s, now)
			return nil
		})
		return cmp.Or(err, missing)
	})
	return p, err
}

// FindDocuments implements [ledger.Documents]. The count reads everything that is selected, in an
// index.
func (l *Ledger) FindDocuments(ctx context.Context, q ledger.DocumentQuery) (found []ledger.Document, total int, err error) {
	if q, err = q.Checked(); err != nil {
		return nil, 0, err
	}
	err = l.readNow(ctx, func(conn *sqlite.Conn, now time.Time) error {
		numbers, all, err := l.selected(conn, q)
		if err != nil {
			return err
		}
		total = all
		found, err = l.numberedDocuments(conn, numbers, now)
		return err
	})
	return found, total, err
}

// selected returns the numbers of the documents on a page, and how many there are in all, by the
// most selective index.
func (l *Ledger) selected(conn *sqlite.Conn, q ledger.DocumentQuery) (page []int64, total int, err error) {
	query, by := "documents_of_kind", ""
	switch {
	case q.Collection != "":
		query, by = "documents_in_collection", q.Collection
	case q.Trace != "":
		query, by = "documents_of_trace", q.Trace
	case q.Subject != "":
		query, by = "documents_of_subject", q.Subject
	case len(q.States) > 0:
		return l.inStates(conn, q)
	}
	return l.numbers(conn, query, by, q)
}

// inStates merges the newest of each state.
func (l *Ledger) inStates(conn *sqlite.Conn, q ledger.DocumentQuery) (page []int64, total int, err error) {
	one := q
	one.Offset, one.Limit = 0, q.Offset+q.Limit
	for _, state := range slices.Compact(slices.Sorted(slices.Values(q.States))) {
		numbers, all, err := l.numbers(conn, "documents_in_state", state, one)
		if err != nil {
			return nil, 0, err
		}
		page, total = append(page, numbers...), total+all
	}
	slices.Sort(page)
	slices.Reverse(page)
	return page[min(q.Offset, len(page)):min(q.Offset+q.Limit, len(page))], total, nil
}

// numbers runs a query for a page, and counts its results without the page's bounds.
func (l *Ledger) numbers(conn *sqlite.Conn, query, by string, q ledger.DocumentQuery) (page []int64, total int, err error) {
	states, err := json.Marshal(append([]string{}, q.States...))
	if err != nil {
		return nil, 0, err
	}
	run := func(query string, limit, offset int, take func(int64)) error {
		s, err := l.statement(conn, query)
		if err != nil {
			return err
		}
		for i, text := range []string{q.Tenant, q.Kind, by, q.Subject, q.Trace, string(states)} {
			s.BindText(1+i, text)
		}
		s.BindInt64(7, int64(limit))
		s.BindInt64(8, int64(offset))
		return each(l.path, s, func() error { take(s.ColumnInt64(0)); return nil })
	}
	if err := run("count_"+query, -1, 0, func(n int64) { total = int(n) }); err != nil || total <= q.Offset {
		return nil, total, err
	}
	err = run(query, q.Limit, q.Offset, func(n int64) { page = append(page, n) })
	return page, total, err
}

func (l *Ledger) numberedDocuments(conn *sqlite.Conn, numbers []int64, now time.Time) (found []ledger.Document, err error) {
	s, err := l.statement(conn, "numbered_document")
	if err != nil {
		return nil, err
	}
	for _, n := range numbers {
		s.BindInt64(1, n)
		err := each(l.path, s, func() error {
			_, p := scanDocument(s, now)
			found = append(found, p)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// DueDocuments implements [ledger.Documents].
func (l *Ledger) DueDocuments(ctx context.Context, kind string, limit int) (due []ledger.Document, now time.Time, err error) {
	err = l.readNow(ctx, func(conn *sqlite.Conn, at time.Time) error {
		now = at
		s, err := l.statement(conn, "due_documents")
		if err != nil {
			return err
		}
		s.BindText(1, kind)
		bindTime(s, 2, now)
		s.BindInt64(3, int64(ledger.DueLimit(limit)))
		return each(l.path, s, func() error {
			_, p := scanDocument(s, now)
			due = append(due, p)
			return nil
		})
	})
	return due, now, err
}
