package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxAdmit is how many entries of the outbox one transaction takes in, and how many queues it
	// reads there; maxAdmitRounds is how many such reads a claim makes. The next one continues
	// from there.
	maxAdmit       = 64
	maxAdmitRounds = 4

	// defaultWindow is that of the engine: longer than orchestrators repeat a
	// step, and about as long as destinations remember a key.
	defaultWindow = 24 * time.Hour
)

// Outbox is where callers enqueue writes in transactions of their own. The zero value is valid.
type Outbox struct {
	// Schema is that of the ledger's tables, as in [Options]. Default: the search path of the
	// caller's connection decides.
	Schema string
	// Quiet does not notify workers: they find what was enqueued when they read next. It is for
	// databases without NOTIFY. Default false.
	Quiet bool
	// Keys seal waiting entries, and open the digest key of the ledger: a redact.Vault with the
	// keys of the workers. Default: entries are not sealed, an intent that marks fields as
	// sensitive is refused, and so is every one in a ledger whose digest key is sealed.
	Keys ledger.Keys
}

// Enqueue puts a write into the outbox of the ledger as part of a transaction of the caller: it
// is executed if and only if the transaction commits. A worker of the ledger takes it in from
// there. Get, and an engine that is asked for the same intent, know it from the commit on.
//
// Of two writes about one record the one that was enqueued first runs first; of two concurrent
// transactions, the one whose write a worker sees first. Callers that need the order of commits
// take a lock of their own first: usually they have it, on the row that they change.
//
// It is a SELECT and one INSERT that never wait, neither for other callers nor for workers. It
// fails with [intent.ErrInvalid], which names the field, before it queries the database, with
// [ledger.ErrNoKey], with [ledger.ErrFull], and with [ledger.ErrNotOwned] in a partition that does not
// own the tenant; then nothing was enqueued, and the transaction
// can continue. After other errors, which are the driver's, PostgreSQL accepts nothing more in
// the transaction.
func (o Outbox) Enqueue(ctx context.Context, tx pgx.Tx, w intent.WriteIntent) (ledger.ID, error) {
	return o.enqueue(w, func(query string, args []any, dest ...any) error {
		return tx.QueryRow(ctx, query, args...).Scan(dest...)
	})
}

// EnqueueSQL is [Outbox.Enqueue] for a transaction of package database/sql, with
// any driver for PostgreSQL.
func (o Outbox) EnqueueSQL(ctx context.Context, tx *sql.Tx, w intent.WriteIntent) (ledger.ID, error) {
	return o.enqueue(w, func(query string, args []any, dest ...any) error {
		return tx.QueryRowContext(ctx, query, args...).Scan(dest...)
	})
}

// Enqueue is [Outbox.Enqueue] of the zero Outbox.
func Enqueue(ctx context.Context, tx pgx.Tx, w intent.WriteIntent) (ledger.ID, error) {
	return Outbox{}.Enqueue(ctx, tx, w)
}

// EnqueueSQL is [Outbox.EnqueueSQL] of the zero Outbox.
func EnqueueSQL(ctx context.Context, tx *sql.Tx, w intent.WriteIntent) (ledger.ID, error) {
	return Outbox{}.EnqueueSQL(ctx, tx, w)
}

func (o Outbox) enqueue(w intent.WriteIntent, ask func(query string, args []any, dest ...any) error) (ledger.ID, error) {
	rec, err := ledger.ToEnqueue(w, o.Keys, func() (kept string, err error) {
		err = ask(qualified(o.Schema, fromFiles.Text("digest_key")), nil, &kept)
		return kept, err
	})
	if err != nil {
		return "", err
	}
	name := "enqueue"
	if o.Quiet {
		name = "enqueue_quietly"
	}
	var enqueued int64
	var received string
	query, args := qualified(o.Schema, fromFiles.Text(name)), []any{string(rec.ID), rec.Tenant, rec.KeyDigest, string(rec.Intent)}
	if err := ask(query, args, &enqueued, &received); err != nil {
		return "", fmt.Errorf("enqueue write %s: %w", rec.ID, err)
	}
	switch {
	case enqueued < 0:
		return "", fmt.Errorf("enqueue write %s: %w", rec.ID, &ledger.NotOwnedError{Owned: ledger.Ownership{Tenant: rec.Tenant}})
	case enqueued == 0:
		return "", fmt.Errorf("enqueue write %s: %w", rec.ID, ledger.ErrFull)
	}
	return rec.ID, nil
}

// entry is one row of the outbox with its number.
type entry struct {
	ledger.Entry
	n int64
}

// refusedEntry means that an entry can never be taken in.
type refusedEntry struct {
	n   int64
	err error
}

func (e *refusedEntry) Error() string { return e.err.Error() }
func (e *refusedEntry) Unwrap() error { return e.err }

// admitDue moves outbox entries into the ledger, the head of each queue, and reports whether it
// moved anything. Queues alternate. An error of one queue does not delay the others.
func (l *Ledger) admitDue(ctx context.Context) (moved bool, err error) {
	for range maxAdmitRounds {
		l.fairness.mu.Lock()
		after := l.fairness.queue
		l.fairness.mu.Unlock()
		found, taken, failed := l.admitHeads(ctx, after)
		moved, err = moved || taken > 0, cmp.Or(err, failed)
		full, last := len(found) == maxAdmit, ""
		if full { // otherwise that was the end: start again from the first queue
			last = found[maxAdmit-1].KeyDigest
		}
		l.fairness.mu.Lock()
		l.fairness.queue = last
		l.fairness.mu.Unlock()
		if full && taken > 0 {
			continue
		}
		if full || after == "" || len(found) == 0 && failed != nil {
			break
		}
	}
	if moved {
		l.ring() // there may be more
	}
	return moved, err
}

// admitHeads moves the heads of some queues: those without obstacles in one step, the others one
// by one. A locked queue delays neither the others nor the claim.
func (l *Ledger) admitHeads(ctx context.Context, after string) (found []entry, taken int, err error) {
	var left []entry
	err = l.begun(ctx, beginBriefly, func(t *tx) (err error) {
		left = nil
		if found, err = t.entries("queue_heads", after, maxAdmit); err != nil || len(found) == 0 {
			return err
		}
		left, err = t.admitFree(found)
		return err
	})
	var pg *pgconn.PgError
	switch {
	case len(found) > 0 && errors.As(err, &pg) && !isFatal(pg): // one of them differs from the others
		left = found
	case locked(err): // where locks cannot be skipped
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	}
	taken, err = len(found)-len(left), nil
	for _, e := range left {
		moved, failed := l.admitOne(ctx, e.n)
		if moved && failed == nil {
			taken++
		}
		if err = cmp.Or(err, failed); gaveUp(ctx) != nil || lost(failed) && !errors.Is(failed, errAgain) {
			break
		}
	}
	return found, taken, err
}

// admitFree makes writes of those entries that nothing blocks, and returns the others.
func (t *tx) admitFree(found []entry) (left []entry, err error) {
	t.present()
	var free []change
	of := make(map[ledger.ID]entry)
	for _, e := range found {
		res, err := t.l.keeping.Reservation(e.Entry, t.l.window)
		if _, twice := of[e.ID]; err != nil || twice || res.Record.IdempotencyKey != "" {
			left = append(left, e)
			continue
		}
		rec, events, err := ledger.Begin(res, "", t.now)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errPlain, err)
		}
		of[e.ID] = e
		free = append(free, made(rec, events, nil))
	}
	if len(free) == 0 {
		return left, nil
	}
	got, err := t.storeAll(free)
	if err != nil {
		return nil, err
	}
	var taken []int64
	for _, c := range free {
		if n, stored := got[c.rec.ID]; stored {
			c.rec.Now = t.now
			t.stored, t.done = append(t.stored, row{n: n, rec: c.rec}), append(t.done, c)
			taken = append(taken, of[c.rec.ID].n)
			continue
		}
		left = append(left, of[c.rec.ID])
	}
	return left, t.exec("delete_entries", taken)
}

// storeAll stores new writes, unless something blocks them.
func (t *tx) storeAll(free []change) (map[ledger.ID]int64, error) {
	query, args, err := t.l.statement(free, t.now, true)
	if err != nil {
		return nil, err
	}
	var got stored
	err = t.l.ask(t.ctx, t.pgx, query, args, func(rows pgx.Rows) (err error) {
		got, err = scanStored(rows)
		return err
	})
	if err == nil {
		err = t.l.usable(got.state)
	}
	if err == nil {
		err = t.l.trusted(got.state)
	}
	return got.numbers, err
}

// admitOne moves one entry, if it is the head of its queue and no other process is moving it.
func (l *Ledger) admitOne(ctx context.Context, n int64) (moved bool, err error) {
	err = l.begun(ctx, beginBriefly, func(t *tx) error {
		found, err := t.entries("queue_head", n)
		moved = len(found) > 0
		if err != nil {
			return err
		}
		_, err = t.admit(found)
		return err
	})
	if errors.Is(err, ledger.ErrVersion) || errors.Is(err, ledger.ErrNoKey) || errors.Is(err, ledger.ErrNotOwned) || locked(err) { // for a newer program, for one with the key, for another partition, or for later
		return false, nil
	}
	return moved, l.refuse(ctx, err)
}

// admitQueue moves the outbox entries of one queue.
func (l *Ledger) admitQueue(ctx context.Context, keyDigest string) error {
	if keyDigest == "" {
		return nil
	}
	for {
		more := false
		err := l.within(ctx, func(t *tx) error {
			found, err := t.entries("entries_of", keyDigest, maxAdmit)
			if err != nil {
				return err
			}
			all, err := t.admit(found)
			more = !all || len(found) == maxAdmit
			return err
		})
		if errors.As(err, new(*refusedEntry)) {
			if err := l.refuse(ctx, err); err != nil {
				return err
			}
			continue
		}
		if err != nil || !more {
			return err
		}
	}
}

// admitID moves the outbox entries up to one write that was not found, and reports whether to
// read again. Otherwise the error is the reason.
func (l *Ledger) admitID(ctx context.Context, tenant string, id ledger.ID, notFound error) (bool, error) {
	for range maxTries {
		keyDigest, refused, owner := "", "", ""
		err := l.read(ctx, l.sql.Text("entry"), []any{string(id)}, func(rows pgx.Rows) error {
			keyDigest, refused, owner = "", "", ""
			for rows.Next() {
				if err := rows.Scan(&keyDigest, &refused, &owner); err != nil {
					return err
				}
			}
			return rows.Err()
		})
		switch {
		case err != nil:
			return false, err
		case owner == "": // it may have been moved between the two reads
			return true, nil
		case owner != tenant:
			return false, notFound
		case refused != "":
			return false, &ledger.RefusedError{ID: id, Reason: refused}
		}
		if err := l.admitQueue(ctx, keyDigest); err != nil {
			return false, err
		}
	}
	return false, notFound
}

// entries returns rows of the outbox that this transaction has locked.
func (t *tx) entries(statement string, args ...any) (found []entry, err error) {
	err = t.l.ask(t.ctx, t.pgx, t.l.sql.Text(statement), args, func(rows pgx.Rows) error {
		for rows.Next() {
			var e entry
			var id, body string
			if err := rows.Scan(&e.n, &id, &e.Tenant, &e.KeyDigest, &body); err != nil {
				return err
			}
			e.ID, e.Intent = ledger.ID(id), []byte(body)
			found = append(found, e)
		}
		return rows.Err()
	})
	return found, err
}

// admit makes writes of entries, in their order: queued, without a lease. An entry that can never
// be taken in ends the transaction. It stops before one whose key is not available, and reports
// that this was not all; if that is the first it fails with [ledger.ErrNoKey].
func (t *tx) admit(found []entry) (all bool, err error) {
	var taken []int64
	for _, e := range found {
		res, err := t.l.keeping.Reservation(e.Entry, t.l.window)
		if err == nil {
			_, _, err = t.reserve(res)
		}
		if errors.Is(err, ledger.ErrNoKey) && len(taken) > 0 {
			break
		}
		if final(err) {
			return false, &refusedEntry{e.n, err}
		}
		if err != nil {
			return false, err
		}
		taken = append(taken, e.n)
	}
	if len(taken) > 0 {
		err = t.exec("delete_entries", taken)
	}
	return len(taken) == len(found), err
}

// final reports whether the fault is in the entry, or the row that it is about, and not in the
// database.
func final(err error) bool {
	return ledger.OutboxRefusal(err) != "" && !errors.As(err, new(*pgconn.PgError)) && !errors.Is(err, ledger.ErrVersion)
}

// refuse keeps an entry that can never be taken in, with the reason. It is a transaction of its
// own: the one that met the entry has already changed other rows.
func (l *Ledger) refuse(ctx context.Context, err error) error {
	var refused *refusedEntry
	if !errors.As(err, &refused) {
		return err
	}
	return l.within(ctx, func(t *tx) error { return t.exec("refuse_entry", refused.n, plain(ledger.OutboxRefusal(refused.err))) })
}

// plain returns text that the database can hold.
func plain(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\ufffd")
}

// windowOf returns how long after it was settled an idempotency key blocks enqueued writes.
func windowOf(o *Options) time.Duration {
	switch {
	case o.Window < 0:
		return 0
	case o.Window == 0:
		return defaultWindow
	}
	return o.Window
}
