package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

// A batch that changes at most one write, which has no neighbours in a queue, is one statement
// and one round trip; any other is a transaction. Both lock its documents in the order of their
// names before they change a write, and create new ones last, so that no two wait for each other.
// If the locks delayed the one statement, its time, with which leases begin, is no longer the
// present one: it then does nothing, and the transaction does the work.

// Commit implements [ledger.Documents]. It fails with [ledger.ErrClock] when it reserves and the
// clock is too far before the newest entry.
func (l *Ledger) Commit(ctx context.Context, f ledger.Batch) (ledger.Committed, error) {
	if err := f.Check(); err != nil {
		return ledger.Committed{}, err
	}
	f, err := l.keeping.Digests.OfBatch(f)
	if err != nil {
		return ledger.Committed{}, err
	}
	if err := gaveUp(ctx); err != nil {
		return ledger.Committed{}, err
	}
	if did, done, err := l.commitAtOnce(ctx, f); done {
		return did, err
	}
	if f.Reserve != nil {
		if err := l.admitQueue(ctx, f.Reserve.Record.KeyDigest); err != nil {
			return ledger.Committed{}, err
		}
	}
	var did ledger.Committed
	err = l.within(ctx, func(t *tx) (err error) {
		did, err = t.file(f)
		return err
	})
	if err != nil {
		for _, a := range f.Append {
			l.memory.forget(a.ID)
		}
		return ledger.Committed{}, err
	}
	return did, nil
}

// committed is the result of a statement with documents: whether it did everything, or else which
// versions it found.
type committed struct {
	stored                       stored
	done                         bool
	have, changed                []int64
	collections, subjects, trace []string
	created, updated             []int64
}

func scanCommitted(rows pgx.Rows) (got committed, err error) {
	var ids []string
	var numbers []int64
	_, err = pgx.CollectOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, r.Scan(append(got.stored.state.dest(), &ids, &numbers, &got.done, &got.have, &got.changed,
			&got.collections, &got.subjects, &got.trace, &got.created, &got.updated)...)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNoVersion
	}
	got.stored.numbers = numbered(ids, numbers)
	return got, err
}

// stale returns an error that names the document of a batch whose version is not the named one.
func (got committed) stale(f ledger.Batch) error { return stale(f, got.have) }

func stale(f ledger.Batch, have []int64) error {
	documents := slices.Concat(f.Documents, f.Unchanged)
	if len(have) != len(documents) {
		return fmt.Errorf("%w: %d documents were read instead of %d", errAgain, len(have), len(documents))
	}
	for i, p := range documents {
		if p.Version != have[i] {
			return fmt.Errorf("%w: document %s %q has version %d, not %d", ledger.ErrStale, p.Kind, p.ID, have[i], p.Version)
		}
	}
	return nil
}

// documents returns those of a batch as they are now.
func (got committed) documents(f ledger.Batch) []ledger.Document {
	var documents []ledger.Document
	now := at(got.stored.state.now)
	for _, p := range f.Documents {
		have := ledger.Document{Version: p.Version}
		next, _ := p.Next(have, now) // of the version that was found
		documents = append(documents, next)
	}
	for i, ord := range got.changed {
		p := &documents[ord-1]
		p.Collection, p.Subject, p.Trace, p.Created = got.collections[i], got.subjects[i], got.trace[i], at(got.created[i])
		p.Updated = at(got.updated[i])
		p.Now = p.Updated
	}
	return documents
}

// documentArgs returns the parameters of a batch that are about documents.
func documentArgs(f ledger.Batch) []any {
	var writes, done []bool
	var tenants, kinds, ids, collections, subjects, traces, states, marks []string
	var dues []*int64 // nil: never
	var versions []int64
	var bodies [][]byte
	for i, p := range slices.Concat(f.Documents, f.Unchanged) {
		written, mark := i < len(f.Documents), ""
		if written {
			mark = commitMark(p)
		} else {
			p = ledger.Document{Tenant: p.Tenant, Kind: p.Kind, ID: p.ID, Version: p.Version}
		}
		writes, done, bodies = append(writes, written), append(done, p.Done), append(bodies, p.Body)
		tenants, kinds, ids = append(tenants, p.Tenant), append(kinds, p.Kind), append(ids, p.ID)
		collections, subjects, traces = append(collections, p.Collection), append(subjects, p.Subject), append(traces, p.Trace)
		marks = append(marks, mark)
		states, dues, versions = append(states, p.State), append(dues, dueOf(p)), append(versions, p.Version)
	}
	return []any{writes, tenants, kinds, ids, collections, subjects, traces, states, dues, done, bodies, versions, marks}
}

// dueOf returns the time of a document as stored in its column: the earliest valid time, in 1970,
// is not "never".
func dueOf(p ledger.Document) *int64 {
	if p.Due.IsZero() {
		return nil
	}
	ns := nanos(p.Due)
	return &ns
}

// commitAtOnce does a batch as one statement, if that is allowed and possible; otherwise nothing
// was applied. The transaction meets and returns the errors that it skips.
func (l *Ledger) commitAtOnce(ctx context.Context, f ledger.Batch) (did ledger.Committed, done bool, err error) {
	if l.dialect.unsure || len(f.Append) > 1 || len(f.Append) == 1 && f.Reserve != nil || len(absent(f)) > 0 {
		return did, false, nil
	}
	have, err := l.toChange(ctx, f) // before it has a connection: it may need one
	if err != nil {
		return did, false, nil
	}
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return did, false, nil
	}
	defer conn.Release()
	now, known := l.clock.guess()
	if !known || l.dialect.skew > 0 {
		if now, err = l.time(ctx, conn); err != nil {
			return did, false, nil
		}
	}
	query, args, changed, err := l.atOnce(f, have, now)
	if err != nil {
		return did, false, nil
	}
	var got committed
	asking, end := lingering(ctx)
	defer end()
	err = l.ask(asking, conn, query, args, func(rows pgx.Rows) (err error) {
		got, err = scanCommitted(rows)
		return err
	})
	if err = l.broken(l.quicker(err)); err != nil {
		tried := errors.Is(err, errAgain) || unsent(err) || ctx.Err() != nil
		return did, !tried || errors.Is(err, ledger.ErrUnsure), err
	}
	did, done, err = l.committedAtOnce(f, got, changed, now)
	if done && err == nil {
		l.tick(ctx, conn, got.stored.state)
	}
	return did, done, err
}

// toChange returns the write that a batch appends to, as far as it is known.
func (l *Ledger) toChange(ctx context.Context, f ledger.Batch) (have row, err error) {
	if len(f.Append) == 0 {
		return row{}, nil
	}
	have, remembered := l.memory.recall(f.Append[0].ID)
	if !remembered {
		have, err = l.find(ctx, f.Append[0].ID)
	}
	if err == nil && ledger.Joins(have.rec, f.Append[0].Events) {
		err = errInQueue
	}
	return have, err
}

// committedAtOnce is the end of commitAtOnce: it interprets the result.
func (l *Ledger) committedAtOnce(f ledger.Batch, got committed, changed []change, now time.Time) (did ledger.Committed, done bool, err error) {
	s := got.stored.state
	if err := l.usable(s); err != nil {
		return did, true, err
	}
	if err := got.stale(f); err != nil {
		return did, !errors.Is(err, errAgain), err
	}
	if !got.done {
		if len(changed) > 0 && !timely(s, now) {
			l.clock.refused()
		}
		return did, false, nil
	}
	l.clock.observe(s.now)
	l.writer.commits.Add(1)
	did = ledger.Committed{Documents: got.documents(f), Now: at(s.now)}
	for _, c := range changed {
		l.writer.operations.Add(1)
		c.rec.Now = now
		r := row{n: got.stored.numbers[c.rec.ID], rec: c.rec, followed: false}
		l.learn(r)
		l.keepRun(r.n, c)
		l.announce(c)
		if did.Fresh = c.fresh; c.fresh {
			did.Reserved = r.rec
		} else {
			did.Appended = append(did.Appended, r.rec)
		}
	}
	return did, true, nil
}

// atOnce returns the one statement of a batch, or an error where there is none.
func (l *Ledger) atOnce(f ledger.Batch, have row, now time.Time) (query string, args []any, changed []change, err error) {
	var c change
	switch {
	case f.Reserve != nil:
		var rec ledger.Record
		var events []ledger.Event
		rec, events, err = ledger.Begin(*f.Reserve, "", now)
		c = made(rec, events, f.Reserve.Precheck)
	case len(f.Append) == 1:
		c, err = advance(have, f.Append[0].Fence, f.Append[0].Events, now)
	default:
		return l.sql.Text("commit"), append([]any{l.version}, documentArgs(f)...), nil, nil
	}
	if err != nil {
		return "", nil, nil, err
	}
	changed = []change{c}
	query, args, err = l.batch(documentArgs(f), changed, now, false)
	return query, args, changed, err
}

// lingering returns a context for a statement that may commit: for a caller that gives up it
// waits a little longer, to learn the result.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxAnswer)
	stop := context.AfterFunc(ctx, func() {
		late := time.AfterFunc(patience, cancel)
		context.AfterFunc(asking, func() { late.Stop() })
	})
	return asking, func() { stop(); cancel() }
}

// file is Commit inside a transaction.
func (t *tx) file(f ledger.Batch) (did ledger.Committed, err error) {
	if err := t.holdDocuments(f); err != nil {
		return did, err
	}
	if err := t.lockAll(f.Append); err != nil {
		return did, err
	}
	if f.Reserve != nil {
		if did.Reserved, did.Fresh, err = t.reserve(*f.Reserve); err != nil {
			return did, err
		}
	}
	for _, a := range f.Append {
		rec, err := t.appendTo(a.ID, a.Fence, a.Events)
		if err != nil {
			return did, err
		}
		did.Appended = append(did.Appended, rec)
	}
	for i, rec := range did.Appended {
		did.Appended[i] = t.latest(rec)
	}
	did.Reserved = t.latest(did.Reserved)
	if err := t.keepOut(f); err != nil {
		return did, err
	}
	// The documents are not read again: waiting for one that was created meanwhile could deadlock
	// with a transaction that holds later ones.
	var got committed
	err = t.l.ask(t.ctx, t.pgx, t.l.sql.Text("commit known"), append([]any{t.l.version}, documentArgs(f)...), func(rows pgx.Rows) (err error) {
		got, err = scanCommitted(rows)
		return err
	})
	if err == nil {
		err = t.l.usable(got.stored.state)
	}
	if err == nil && (!got.done || len(got.changed) != there(f)) {
		err = cmp.Or(t.refusesDocuments(f), fmt.Errorf("%w: a document was not as expected", errAgain))
	}
	did.Documents, did.Now = got.documents(f), at(got.stored.state.now)
	return did, err
}

// latest returns a write as this transaction left it.
func (t *tx) latest(rec ledger.Record) ledger.Record {
	for _, r := range slices.Backward(t.stored) {
		if r.rec.ID == rec.ID {
			return r.rec
		}
	}
	return rec
}

// holdDocuments locks the documents of a batch, and checks that they have the versions that it
// names.
func (t *tx) holdDocuments(f ledger.Batch) error {
	var have []int64
	var s state
	args := append([]any{t.l.version}, documentArgs(f)...)
	err := t.l.ask(t.ctx, t.pgx, t.l.sql.Text("lock_documents"), args, func(rows pgx.Rows) error {
		_, err := pgx.CollectOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, r.Scan(append(s.dest(), &have)...)
		})
		return err
	})
	if err == nil {
		err = stale(f, have)
	}
	return err
}

// there counts the existing documents that a batch changes.
func there(f ledger.Batch) (n int) {
	for _, p := range f.Documents {
		if p.Version > 0 {
			n++
		}
	}
	return n
}

// absent returns the documents that must not exist for a batch.
func absent(f ledger.Batch) (documents []ledger.Document) {
	for _, p := range f.Unchanged {
		if p.Version == 0 {
			documents = append(documents, p)
		}
	}
	return documents
}

// keepOut prevents other transactions from creating documents that must not exist before this one
// has ended. It takes their names, and those of the documents that are to be created, in one
// order.
func (t *tx) keepOut(f ledger.Batch) error {
	out := absent(f)
	if len(out) == 0 {
		return nil
	}
	for _, p := range f.Documents {
		if p.Version == 0 {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, byName)
	for _, p := range out {
		for _, statement := range []string{"take_name", "free_name"} {
			if err := t.exec(statement, p.Tenant, p.Kind, p.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// lockAll locks writes in one order.
func (t *tx) lockAll(appends []ledger.Appending) error {
	if len(appends) < 2 {
		return nil
	}
	var ids []string
	for _, a := range appends {
		ids = append(ids, string(a.ID))
	}
	return t.exec("lock_all", ids)
}

func byName(a, b ledger.Document) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}
