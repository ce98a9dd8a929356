// Package once makes a write once, for programs that want one function: a card is not charged
// twice, whatever is lost, repeated or killed.
//
// [Do] takes two closures instead of a connector: Send makes the write, Find reads it back. The
// engine of readback does the rest on a ledger that the caller opens:
//
//	store := ledger.NewMemory()                         // for tests
//	store, err := sqlite.Open(ctx, "once.db", nil)      // one machine
//	store, err := postgres.Open(ctx, dsn, nil)          // many machines
//	store, err := postgres.Open(ctx, "", &postgres.Options{Pool: pool})
//	store, err := sqlite.OpenDB(ctx, db, nil)           // a *sql.DB, also postgres.OpenDB
//
// # A process that dies
//
// Call Do again with the same key: it continues. If something may have been sent, it reads with Find,
// and sends only if it is certain that nothing was applied and nothing will be. Nothing continues by
// itself, since there is no worker: whatever repeats the caller (a queue, a job, a user) repeats Do.
// A process on another machine, or on another system than Linux, first waits for the lease of the dead
// one, for up to a minute.
//
// Time counts only as far as one process has counted it. Where Send has failed and Find finds nothing,
// that process calls Do for Settle and Horizon together, and at least for a minute, before anything is
// concluded. Calls of processes that all end sooner leave the write in progress for a day, and then in
// review.
//
// # A write that needs a reviewer
//
// Where no read shows for certain what happened, the status is review. Every Do reads once more when
// that is due; otherwise it stays so until a reviewer has examined the destination and called
// [Decide]. `readback review` with the same ledger lists such writes, of the tenant "default", and can
// accept or abandon them.
//
// The package makes no updates, deletions or undos, and does not split one effect into several:
// package engine with a connector does, and package saga has several writes done or undone.
package once

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// ErrNotVerified is wrapped by the error of a write that has an outcome other than done. The
// outcome is returned with it, and its Status says what is known.
var ErrNotVerified = errors.New("not verified")

// Write is one write. Key, Expect, Send and Find are required.
type Write struct {
	// Key names the business operation, such as "charge:INV-7721": any text, from the program's own
	// records. Another spelling, as a model may choose it, is another write. One key is one write,
	// for all programs that share the store or write to the same destination, and for as long as
	// the store has it: a write that ended as not applied is made again under another key
	// ("charge:INV-7721:2"). Programs that use one key have the same Send and Find, since any of
	// them may continue the write.
	Key string
	// Expect is the record that must exist afterwards, a struct or a map. Every field that it
	// has as JSON is compared exactly with the record found; `json:",omitempty"` and
	// `readback:"-"` leave one out, and `readback:"payload"` is not compared (see [intent.From]). A
	// time is compared as its text, so give it in UTC and in the destination's precision.
	//
	// Expect and the name of its type are the content of the key: the same key with another
	// content is refused with [ledger.ErrDigestMismatch]. Send cannot be compared, so Expect
	// should have everything that matters of it. The store keeps it in the clear, as it does what
	// Find returns and the texts of errors: none of them should have a secret.
	Expect any
	// Send makes the write, with one request that it does not repeat. It writes the stamp, 35
	// characters of a-z, 2-7 and "-", where the record keeps it (metadata, a reference), and may
	// use it as an idempotency key. The stamp follows from the key alone, so that Find finds the
	// record even for a store that was lost, and for another program with the same key.
	//
	// An error means that nothing is known, so that Find decides, unless it is of
	// [connectors.Refused], [connectors.Conflict], [connectors.Throttled],
	// [connectors.LoginRefused] or [connectors.NotSent]: those say that it was not applied, and
	// the last three that it may be sent again. httpsend.Classify makes them of an HTTP status.
	// The context has the values of Do's, and ends after 30 s; a Send that ignores its end may act
	// after a repeat.
	Send func(ctx context.Context, stamp string) error
	// Find returns every record of the operation, each one time, also of other actors: those with
	// the stamp, and where the destination can be asked so, those with its business key. No record
	// and no error mean that none was there. It is also called before the first Send, so that an existing
	// record is not made a second time. The context ends after 10 s.
	Find func(ctx context.Context, stamp string) ([]Record, error)

	// Settle is how long Find may not show what was written: connectors.Within(0) where it shows
	// all at once. Horizon is how long a request may still take effect after Send has failed.
	// Both are promises about the destination. Without both, the absence of a record proves
	// nothing: a write whose request was lost waits for a reviewer, and is not repeated. Default
	// undeclared.
	Settle, Horizon connectors.Bound

	failed *atomic.Pointer[error] // the last error of Send or Find in a call of Do
}

// Record is one record that Find found.
type Record struct {
	// Ref is the destination's own id of it. Default none.
	Ref string
	// Stamp is the stamp that the record has, as it was read. It is never copied from the argument
	// of Find: only a record with the stamp is this write's own. Default none.
	Stamp string
	// Fields are its fields, a struct or a map. Fields that Expect does not have are ignored.
	Fields any
}

// Do makes the write, or continues it, or returns the outcome that it has. The error is nil only
// if the write is done: verified by a read, or accepted by a reviewer. With [ErrNotVerified], which
// comes with the last error of Send or Find in this call, the outcome says what is known:
//
//   - not_applied: it does not exist, and will not.
//   - review: it is not known; see [Decide].
//   - in_progress: ctx has ended first. Do it again.
//
// With any other error there is no outcome, and the same call can be repeated; it is then as with
// [engine.Engine.Do]. An outcome with RecheckUntil is confirmed by a Do after that time: a late
// request may have made a second record.
//
// Do returns when ctx has ended. Only a store that does not answer delays that, by up to half a minute.
// A Send or Find in progress then runs to its own end, and the next Do continues. Give ctx a deadline: a
// destination that takes no request is tried for hours.
func Do(ctx context.Context, store ledger.Ledger, w Write) (engine.Outcome, error) {
	e, in, err := w.open(ctx, store)
	if err != nil {
		return engine.Outcome{}, err
	}
	defer func() { go e.Close() }() // it waits for calls in progress
	out, err := e.Do(ctx, in)
	if err == nil && (out.Status == ledger.StatusReview || !out.RecheckUntil.IsZero()) {
		out, err = again(ctx, e, in.Tenant, out) // there is no worker that reads it again
	}
	return out, w.result(store, out, err)
}

// Decide carries out a reviewer's decision about a write in review. The reviewer has examined the
// destination:
//
//   - engine.WordAccept: it is as it should be. Do then returns no error.
//   - engine.WordAbandon: it is given up. Do then returns an error for ever.
//   - engine.WordRetry: it is sent again, where that is harmless by Settle and Horizon, or with
//     Force because the reviewer vouches that nothing is there. The destination is read first.
//
// The decision is about the write with this content; one with another is refused. Otherwise it is
// as with [engine.Engine.Resolve]. The result is as that of [Do].
func Decide(ctx context.Context, store ledger.Ledger, w Write, d engine.Decision) (engine.Outcome, error) {
	e, in, err := w.open(ctx, store)
	if err != nil {
		return engine.Outcome{}, err
	}
	defer func() { go e.Close() }()
	rec, err := ledger.NewRecord(in)
	if err != nil {
		return engine.Outcome{}, err
	}
	d.Digest = rec.Digest
	out, err := e.Resolve(ctx, rec.Tenant, rec.ID, d)
	return out, w.result(store, out, err)
}

// again reads a write in review, or one that needs a recheck, if such a read is due and ctx has not
// ended.
func again(ctx context.Context, e *engine.Engine, tenant string, out engine.Outcome) (engine.Outcome, error) {
	if _, _, err := e.WorkOn(ctx, tenant, out.ID); err != nil && ctx.Err() == nil {
		return engine.Outcome{}, err
	}
	return e.Wait(ctx, tenant, out.ID, out.Replayed)
}

// result is nil for a write that is done.
func (w Write) result(store ledger.Ledger, out engine.Outcome, err error) error {
	if p := (place{store, w.Key}); out.Status != ledger.InProgress && p.counts() {
		clocks.Delete(p)
	}
	switch {
	case err != nil:
		return fmt.Errorf("once %.100q: %w", w.Key, err)
	case out.Status.Group() == ledger.Done:
		return nil
	}
	err = fmt.Errorf("once %.100q: %w: %s: %s", w.Key, ErrNotVerified, out.Status, out.Text)
	if failed := w.failed.Load(); failed != nil {
		err = fmt.Errorf("%w (%w)", err, *failed)
	}
	return err
}

// The names of all writes of this package. The tenant is that of the command without a
// configuration.
const (
	tenant      = "default"
	destination = "once"
	tool        = "once"
	keyField    = "once.key"
)

// open returns an engine that knows this write alone, and its intent. Each call has its own, since
// closures are of a call.
func (w *Write) open(ctx context.Context, store ledger.Ledger) (*engine.Engine, intent.WriteIntent, error) {
	in, err := w.intent()
	w.failed = new(atomic.Pointer[error])
	if store == nil {
		err = errors.New("once: there is no store")
	}
	if err := cmp.Or(err, ctx.Err()); err != nil {
		return nil, in, err
	}
	var reg connectors.Registry
	err = reg.Register(destination, connectors.Destination{Connector: closures{*w, in.Workflow, ctx}, Profiles: map[string]connectors.Profile{
		in.Kind: {Stamped: true, Settle: w.Settle, Horizon: w.Horizon}}})
	if err != nil {
		return nil, in, err
	}
	// Nothing is bounded, since each engine would first count all open writes of the store.
	return engine.New(apart{store}, &reg, &engine.Options{Clock: place{store, w.Key}.clock(),
		MaxQueued: math.MaxInt, MaxQueuedBytes: math.MaxInt64}), in, nil
}

// apart is a store whose outbox is for other engines: this package's know none of their destinations,
// nor what is sensitive there.
type apart struct{ ledger.Ledger }

// KeepByDefault implements [ledger.Ledger].
func (apart) KeepByDefault(func(ledger.Record) (ledger.Record, error)) {}

// clocks are those of the writes in progress. Without them calls that are shorter than the horizon
// would each count it from their own beginning.
var clocks sync.Map

// place identifies a write in this process.
type place struct {
	store ledger.Ledger
	key   string
}

// counts reports whether the place can be a key of a map: a wrapper of a ledger may be no pointer.
func (p place) counts() bool { return reflect.ValueOf(p.store).Comparable() }

func (p place) clock() *engine.Clock {
	if !p.counts() {
		return nil
	}
	c, _ := clocks.LoadOrStore(p, new(engine.Clock))
	return c.(*engine.Clock)
}

// intent names the write by its key alone. The business key is that name again, so that keys of
// any length and alphabet are allowed.
func (w Write) intent() (intent.WriteIntent, error) {
	name := engine.WorkflowName("once", w.Key)
	in := intent.WriteIntent{Tenant: tenant, Workflow: name, Tool: tool, Destination: destination,
		Write: intent.Create, Key: intent.Fields{keyField: name}}
	if w.Key == "" || w.Expect == nil || w.Send == nil || w.Find == nil {
		return in, fmt.Errorf("%w: a once.Write needs Key, Expect, Send and Find", intent.ErrInvalid)
	}
	in.Kind = kind(w.Expect)
	if isStruct(w.Expect) {
		return intent.From(in, w.Expect) // tags of its fields count
	}
	var err error
	in.Expect, err = fields("expect", w.Expect)
	return in, err
}

// kind is the name of the type of a value.
func kind(v any) string {
	name, _, _ := strings.Cut(typeOf(v).Name(), "[")
	if name == "" {
		return "record"
	}
	return url.PathEscape(name)
}

func typeOf(v any) reflect.Type {
	t := reflect.TypeOf(v)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func isStruct(v any) bool { return typeOf(v).Kind() == reflect.Struct }

// fields returns a struct or map as JSON has it. Errors name it.
func fields(name string, v any) (intent.Fields, error) {
	plain, err := intent.Normalize(intent.Fields{name: v})
	if err != nil {
		return nil, err
	}
	members, ok := plain[name].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: /%s is made from a Go %T; want a struct or a map", intent.ErrInvalid, name, v)
	}
	return members, nil
}

// closures are the destination of one write.
type closures struct {
	of     Write
	key    string
	caller context.Context // its values are those of the closures' contexts
}

var _ connectors.Connector = closures{}

// Write implements [connectors.Connector].
func (c closures) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	return connectors.Receipt{}, c.finished("Send", func() error { return c.of.Send(valued{ctx, c.caller}, r.Stamp) })
}

// Read implements [connectors.Connector].
func (c closures) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	seen := connectors.Observation{At: time.Now()}
	var found []Record
	err := c.finished("Find", func() (err error) {
		found, err = c.of.Find(valued{ctx, c.caller}, q.Stamp)
		return err
	})
	if err != nil {
		return seen, err
	}
	for _, r := range found {
		members, err := fields("fields", r.Fields)
		if err != nil {
			return seen, err
		}
		members[keyField] = c.key // Find was asked for it
		seen.Records = append(seen.Records, connectors.Record{Ref: r.Ref, Stamp: r.Stamp, Fields: members})
	}
	return seen, nil
}

// valued is a context with the values of another one as well.
type valued struct {
	context.Context
	more context.Context
}

// Value implements [context.Context].
func (v valued) Value(key any) any {
	if value := v.Context.Value(key); value != nil {
		return value
	}
	return v.more.Value(key)
}

// finished calls a closure in a goroutine of its own, since it may end that (t.FailNow): the engine's
// must not end.
func (c closures) finished(name string, call func() error) error {
	ended := make(chan error, 1)
	go func() {
		err := errors.New("the function ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the function panicked: %.256v", p)
			}
			ended <- err
		}()
		err = call()
	}()
	err := <-ended
	if err != nil {
		failed := fmt.Errorf("%s: %w", name, err)
		c.of.failed.Store(&failed)
	}
	return err
}
