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

// A filing that changes one write at the most, which is nobody's neighbour, is
// one statement and one round trip; any other is a transaction. Both lock its
// papers in the order of their names before they touch a write, and make new
// ones when they are done with it, so that no two wait for each other. Where the
// locks of the one statement kept it waiting its time is no longer the present
// one, which leases begin with: it does nothing then, and the transaction does it.

// File implements [ledger.Papers]. It fails with [ledger.ErrClock] when it
// reserves and the clock stands too far before the newest entry.
func (l *Ledger) File(ctx context.Context, f ledger.Filing) (ledger.Filed, error) {
	if err := f.Check(); err != nil {
		return ledger.Filed{}, err
	}
	if err := gaveUp(ctx); err != nil {
		return ledger.Filed{}, err
	}
	if did, done, err := l.fileAtOnce(ctx, f); done {
		return did, err
	}
	if f.Reserve != nil {
		if err := l.admitLine(ctx, f.Reserve.Record.KeyDigest); err != nil {
			return ledger.Filed{}, err
		}
	}
	var did ledger.Filed
	err := l.within(ctx, func(t *tx) (err error) {
		did, err = t.file(f)
		return err
	})
	if err != nil {
		for _, a := range f.Append {
			l.memory.forget(a.ID)
		}
		return ledger.Filed{}, err
	}
	return did, nil
}

// filed is the answer to a statement with papers: whether it did all that it was
// to do, and else which versions it found.
type filed struct {
	stored                   stored
	done                     bool
	have, changed            []int64
	binders, subjects, trace []string
	created, updated         []int64
}

func scanFiled(rows pgx.Rows) (got filed, err error) {
	var ids []string
	var numbers []int64
	_, err = pgx.CollectOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, r.Scan(append(got.stored.state.dest(), &ids, &numbers, &got.done, &got.have, &got.changed,
			&got.binders, &got.subjects, &got.trace, &got.created, &got.updated)...)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNoVersion
	}
	got.stored.numbers = numbered(ids, numbers)
	return got, err
}

// stale says which paper of a filing is not of the version that it names.
func (got filed) stale(f ledger.Filing) error { return stale(f, got.have) }

func stale(f ledger.Filing, have []int64) error {
	papers := slices.Concat(f.Papers, f.Unchanged)
	if len(have) != len(papers) {
		return fmt.Errorf("%w: %d papers were looked at instead of %d", errAgain, len(have), len(papers))
	}
	for i, p := range papers {
		if p.Version != have[i] {
			return fmt.Errorf("%w: paper %s %q has version %d, not %d", ledger.ErrStale, p.Kind, p.ID, have[i], p.Version)
		}
	}
	return nil
}

// papers are those of a filing as they are now.
func (got filed) papers(f ledger.Filing) []ledger.Paper {
	var papers []ledger.Paper
	now := at(got.stored.state.now)
	for _, p := range f.Papers {
		have := ledger.Paper{Version: p.Version}
		next, _ := p.Next(have, now) // of the version that was found
		papers = append(papers, next)
	}
	for i, ord := range got.changed {
		p := &papers[ord-1]
		p.Binder, p.Subject, p.Trace, p.Created = got.binders[i], got.subjects[i], got.trace[i], at(got.created[i])
		p.Updated = at(got.updated[i])
		p.Now = p.Updated
	}
	return papers
}

// paperArgs are the parameters of a filing that are about papers.
func paperArgs(f ledger.Filing) []any {
	var writes, done []bool
	var tenants, kinds, ids, binders, subjects, traces, states, marks []string
	var dues []*int64 // nil: never
	var versions []int64
	var bodies [][]byte
	for i, p := range slices.Concat(f.Papers, f.Unchanged) {
		written, mark := i < len(f.Papers), ""
		if written {
			mark = filedMark(p)
		} else {
			p = ledger.Paper{Tenant: p.Tenant, Kind: p.Kind, ID: p.ID, Version: p.Version}
		}
		writes, done, bodies = append(writes, written), append(done, p.Done), append(bodies, p.Body)
		tenants, kinds, ids = append(tenants, p.Tenant), append(kinds, p.Kind), append(ids, p.ID)
		binders, subjects, traces = append(binders, p.Binder), append(subjects, p.Subject), append(traces, p.Trace)
		marks = append(marks, mark)
		states, dues, versions = append(states, p.State), append(dues, dueOf(p)), append(versions, p.Version)
	}
	return []any{writes, tenants, kinds, ids, binders, subjects, traces, states, dues, done, bodies, versions, marks}
}

// dueOf is the time of a paper as it stands in its column: the first there is, of
// 1970, is not never.
func dueOf(p ledger.Paper) *int64 {
	if p.Due.IsZero() {
		return nil
	}
	ns := nanos(p.Due)
	return &ns
}

// fileAtOnce does a filing as one statement, if it may and can be done so: when
// it is not done, nothing was applied. What keeps it from being asked the
// transaction will meet as well, and say.
func (l *Ledger) fileAtOnce(ctx context.Context, f ledger.Filing) (did ledger.Filed, done bool, err error) {
	if len(f.Append) > 1 || len(f.Append) == 1 && f.Reserve != nil || len(absent(f)) > 0 {
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
	if !known {
		if now, err = l.time(ctx, conn); err != nil {
			return did, false, nil
		}
	}
	query, args, changed, err := l.atOnce(f, have, now)
	if err != nil {
		return did, false, nil
	}
	var got filed
	asking, end := lingering(ctx)
	defer end()
	err = l.ask(asking, conn, query, args, func(rows pgx.Rows) (err error) {
		got, err = scanFiled(rows)
		return err
	})
	if err = l.broken(l.quicker(err)); err != nil {
		tried := errors.Is(err, errAgain) || unsent(err) || ctx.Err() != nil
		return did, !tried || errors.Is(err, ledger.ErrUnsure), err
	}
	did, done, err = l.filedAtOnce(f, got, changed, now)
	if done && err == nil {
		l.tick(ctx, conn, got.stored.state)
	}
	return did, done, err
}

// toChange is the write that a filing appends to, as far as it is known.
func (l *Ledger) toChange(ctx context.Context, f ledger.Filing) (have row, err error) {
	if len(f.Append) == 0 {
		return row{}, nil
	}
	have, remembered := l.memory.recall(f.Append[0].ID)
	if !remembered {
		have, err = l.find(ctx, f.Append[0].ID)
	}
	if err == nil && ledger.Joins(have.rec, f.Append[0].Events) {
		err = errInLine
	}
	return have, err
}

// filedAtOnce is the end of fileAtOnce: what the answer means.
func (l *Ledger) filedAtOnce(f ledger.Filing, got filed, changed []change, now time.Time) (did ledger.Filed, done bool, err error) {
	s := got.stored.state
	if err := l.usable(s); err != nil {
		return did, true, err
	}
	if err := got.stale(f); err != nil {
		return did, !errors.Is(err, errAgain), err
	}
	if !got.done {
		if len(changed) > 0 && !timely(s, now) {
			l.clock.set(s.now)
		}
		return did, false, nil
	}
	l.clock.heard(s.now)
	l.writer.commits.Add(1)
	did = ledger.Filed{Papers: got.papers(f), Now: at(s.now)}
	for _, c := range changed {
		l.writer.operations.Add(1)
		c.rec.Now = now
		r := row{n: got.stored.numbers[c.rec.ID], rec: c.rec, followed: false}
		l.learn(r)
		l.announce(c)
		if did.Fresh = c.fresh; c.fresh {
			did.Reserved = r.rec
		} else {
			did.Appended = append(did.Appended, r.rec)
		}
	}
	return did, true, nil
}

// atOnce is the one statement of a filing, or an error where there is none.
func (l *Ledger) atOnce(f ledger.Filing, have row, now time.Time) (query string, args []any, changed []change, err error) {
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
		return l.sql["file"], append([]any{l.version}, paperArgs(f)...), nil, nil
	}
	if err != nil {
		return "", nil, nil, err
	}
	changed = []change{c}
	query, args, err = l.filing(paperArgs(f), changed, now, false)
	return query, args, changed, err
}

// lingering is a context for a statement that may commit: a caller that gives
// up waits for its answer a little longer, to hear what became of it.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxAnswer)
	stop := context.AfterFunc(ctx, func() {
		late := time.AfterFunc(patience, cancel)
		context.AfterFunc(asking, func() { late.Stop() })
	})
	return asking, func() { stop(); cancel() }
}

// file is File inside a transaction.
func (t *tx) file(f ledger.Filing) (did ledger.Filed, err error) {
	if err := t.holdPapers(f); err != nil {
		return did, err
	}
	if err := t.lockAll(f.Append); err != nil {
		return did, err
	}
	if err := t.look(); err != nil { // the locks may have kept it waiting
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
	// The papers are not looked at again: one that came to be there meanwhile must
	// not be waited for by whoever holds others that come after it.
	var got filed
	err = t.l.ask(t.ctx, t.pgx, t.l.sql["file known"], append([]any{t.l.version}, paperArgs(f)...), func(rows pgx.Rows) (err error) {
		got, err = scanFiled(rows)
		return err
	})
	if err == nil {
		err = t.l.usable(got.stored.state)
	}
	if err == nil && (!got.done || len(got.changed) != there(f)) {
		err = fmt.Errorf("%w: a paper was not as expected", errAgain)
	}
	did.Papers, did.Now = got.papers(f), at(got.stored.state.now)
	return did, err
}

// latest is a write as this transaction left it.
func (t *tx) latest(rec ledger.Record) ledger.Record {
	for _, r := range slices.Backward(t.stored) {
		if r.rec.ID == rec.ID {
			return r.rec
		}
	}
	return rec
}

// holdPapers locks the papers of a filing, and sees whether they are of the
// versions that it names.
func (t *tx) holdPapers(f ledger.Filing) error {
	var have []int64
	var s state
	args := append([]any{t.l.version}, paperArgs(f)...)
	err := t.l.ask(t.ctx, t.pgx, t.l.sql["papers_lock"], args, func(rows pgx.Rows) error {
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

// there is how many papers a filing changes that are there.
func there(f ledger.Filing) (n int) {
	for _, p := range f.Papers {
		if p.Version > 0 {
			n++
		}
	}
	return n
}

// absent are the papers of which a filing wants that they are not there.
func absent(f ledger.Filing) (papers []ledger.Paper) {
	for _, p := range f.Unchanged {
		if p.Version == 0 {
			papers = append(papers, p)
		}
	}
	return papers
}

// keepOut sees to it that nobody makes papers that must not be there before this
// transaction has ended. It takes their names, and those of the papers that are
// to be made, in one order.
func (t *tx) keepOut(f ledger.Filing) error {
	out := absent(f)
	if len(out) == 0 {
		return nil
	}
	for _, p := range f.Papers {
		if p.Version == 0 {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, byName)
	for _, p := range out {
		for _, statement := range []string{"paper_kept_out", "paper_let_in"} {
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

func byName(a, b ledger.Paper) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}
