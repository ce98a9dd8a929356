package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

// recovered returns the event that a write was found announced. Its send may still be in
// progress, unless the process that announced it is known to have ended.
func (t *task) recovered() ledger.Event {
	ev := ledger.Event{Kind: ledger.EvRecovered, Rule: "recovery", NeedsRecheck: true, SendFor: t.e.leaseFor(t.rec),
		Reason: "recovered while announced, with no worker on it: it may have been sent, or may yet be by a process that was stopped"}
	events, err := t.e.ledger.Events(t.lifetime.hard, t.rec.Tenant, t.rec.ID)
	if err != nil { // then nothing is known of that process
		return ev
	}
	for _, announced := range slices.Backward(events) {
		if announced.Kind == ledger.EvAnnounced {
			if ev.SendFor = announced.SendFor; gone(announced.By) != "" {
				ev.SendFor = 0
			}
			break
		}
	}
	return ev
}

// releaseLease releases the lease on a write that is queued behind another one.
func (t *task) releaseLease() error {
	if t.rec.Owner == "" {
		return nil
	}
	return t.commit(ledger.Event{Kind: ledger.EvDeferred, Rule: "line",
		Reason: fmt.Sprintf("write %s of the same business key comes first", t.rec.QueuedBehind)})
}

// handBack puts a write back for others.
var handBack = ledger.Event{Kind: ledger.EvDeferred, Rule: "closing", Reason: "the worker is closing"}

// handle continues a record that a call made at the given time claimed.
func (e *Engine) handle(rec ledger.Record, claimed time.Time, l lifetime) error {
	if rec.Delegated {
		return nil // its caller has it; the lease expires
	}
	l, s := e.startSpan(l, &rec, stageOf(rec))
	defer s.end()
	return s.done(e.handleIn(rec, claimed, l))
}

// handleIn is handle within a span.
func (e *Engine) handleIn(rec ledger.Record, claimed time.Time, l lifetime) error {
	if lapsed(rec) {
		if read, err := e.readHeld(rec, claimed, l); read || err != nil {
			return err
		}
		return e.lapse(rec, claimed, l)
	}
	t, err := e.newTask(rec, claimed, l)
	if err != nil {
		return e.unworkable(rec, err)
	}
	defer t.unsent()
	if l.ending.Err() != nil {
		return t.giveBack()
	}
	switch rec.State {
	case ledger.Settled:
		return t.recheck()
	case ledger.Review:
		return t.readAgain()
	}
	return t.run()
}

// giveBack returns a claimed record on which no work was begun. If the record was announced,
// giveBack records that it may have been sent.
func (t *task) giveBack() error {
	switch t.rec.State {
	case ledger.Held:
		return nil // its lease expires
	case ledger.Sending:
		return t.commit(t.recovered(), handBack)
	}
	return t.commit(handBack)
}

// unworkable is the rule by which a record is put back that the process cannot work on.
const unworkable = "unworkable"

// unworkable puts back a record that this process cannot work on, for example because its
// destination is not registered here, and records why.
func (e *Engine) unworkable(rec ledger.Record, why error) error {
	failure := &Error{ID: rec.ID, Known: KnownNothing, Err: why}
	t := &task{e: e, lifetime: e.lifetime()}
	t.adopt(rec, time.Now())
	var events []ledger.Event
	switch rec.State {
	case ledger.Held:
		return failure // its lease expires
	case ledger.Sending:
		events = append(events, t.recovered())
	}
	events = append(events, ledger.Event{Kind: ledger.EvDeferred, Rule: unworkable, Reason: why.Error(),
		In: min(max(rec.Now.Sub(rec.Created)/2, unworkableFirst), unworkableMost)})
	if err := t.commit(events...); err != nil {
		return err
	}
	return failure
}

// WorkOptions configures a worker. The zero value is valid.
type WorkOptions struct {
	// Parallel is how many writes are worked on at once. Default 64.
	Parallel int
	// Idle is the pause after nothing was due, unless the ledger reports work sooner. Default
	// 250 ms.
	Idle time.Duration
	// Grace is how long the sends and reads in progress may still take when the worker ends.
	// Default 30 s.
	Grace time.Duration
	// Retention defines what this worker prunes, in small steps; its Limit bounds one step.
	// Default: nothing.
	Retention ledger.Prune
	// MaxOutbox is how many entries may wait in the outbox before the ledger reports it as
	// full. Default 100,000.
	MaxOutbox int
	// Dispatch hands a due write over to another scheduler, such as a workflow engine, which
	// calls [Engine.WorkOn] for it in any process, then and whenever the write needs work again.
	// One that is not taken up within 30 s, whether or not Dispatch failed, is handed over
	// again, so that a scheduler may lose or repeat any of it. Default: this worker works on
	// what is due.
	Dispatch func(ctx context.Context, rec ledger.Record) error
}

func (o *WorkOptions) filled() WorkOptions {
	var f WorkOptions
	if o != nil {
		f = *o
	}
	if f.Parallel <= 0 {
		f.Parallel = defaultWorkers
	}
	if f.Idle <= 0 {
		f.Idle = workIdle
	}
	if f.Grace <= 0 {
		f.Grace = workGrace
	}
	if f.MaxOutbox <= 0 {
		f.MaxOutbox = defaultOutbox
	}
	return f
}

// Work continues everything due in the ledger (queued writes, writes that a dead process left,
// long waits, needed rechecks) until ctx ends. Then work that was not begun is handed back at
// once. Sends and reads in progress have their grace and are then cut off, and what is known
// about them is recorded. Work then returns nil. It continues after ledger failures. opts may
// be nil.
//
// No destination gets more than its share: it may take another slot only while it holds fewer
// than are free, so that a slow destination leaves slots for others.
func (e *Engine) Work(ctx context.Context, opts *WorkOptions) error {
	w := &worker{e: e, o: opts.filled(), busy: make(map[string]int), freed: make(chan struct{}, 1)}
	ending, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(e.ctx, end)()
	hard, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	w.lifetime = lifetime{ending: ending, hard: hard}
	defer context.AfterFunc(ending, func() { time.AfterFunc(w.o.Grace, cut) })()
	w.woken = e.ledger.Woken(ending)
	w.wg.Go(func() { w.maintain(ending) })
	w.wg.Go(func() { w.logFailure(ending, waitForLeases, w.inheritFirst(ending)) })
	e.workers.Add(1)
	failing := backoff.NewExponentialBackOff(backoff.WithInitialInterval(workIdle),
		backoff.WithMaxInterval(workFailed), backoff.WithMaxElapsedTime(0))
	for ending.Err() == nil {
		limit, most := w.capacity()
		if limit == 0 {
			w.await(0, true)
			continue
		}
		n, err := w.claim(limit, most)
		switch {
		case err != nil && ending.Err() == nil:
			e.opts.Logger.Error("the ledger cannot be worked on", "error", err)
			e.observe(Activity{Kind: ActivityFailed, Err: err})
			pause.For(ending, failing.NextBackOff())
			continue
		case n == 0:
			w.await(jittered(w.o.Idle), w.crowded(most))
		}
		failing.Reset()
	}
	e.workers.Add(-1)
	w.wg.Wait()
	return nil
}

// worker is one run of [Engine.Work].
type worker struct {
	e        *Engine
	o        WorkOptions
	lifetime lifetime
	woken    <-chan struct{}
	freed    chan struct{} // gets a value when a slot becomes free
	wg       sync.WaitGroup

	mu   sync.Mutex
	used int
	busy map[string]int // slots taken, by destination
}

// capacity returns how many more writes may be claimed now, and how many of them of each
// destination.
func (w *worker) capacity() (limit int, most map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit, most = w.o.Parallel-w.used, make(map[string]int)
	for _, name := range w.e.reg.Names() {
		most[name] = share(limit, w.busy[name])
	}
	for name, held := range w.busy {
		most[name] = share(limit, held)
	}
	return limit, most
}

// share returns how many slots a destination may take one after another, each only while it
// holds fewer than are free.
func share(free, held int) int { return max(free-held+1, 0) / 2 }

// crowded reports whether some destination may take nothing until a slot is free.
func (w *worker) crowded(most map[string]int) bool {
	for _, n := range most {
		if n == 0 {
			return true
		}
	}
	return false
}

// await waits until there may be work: for d (0: for ever), until the ledger reports work, or
// until a slot becomes free where that counts.
func (w *worker) await(d time.Duration, slots bool) {
	var timeout <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		timeout = timer.C
	}
	freed := w.freed
	if !slots {
		freed = nil
	}
	woken := w.woken
	if d == 0 {
		woken = nil // there is no slot for it
	}
	select {
	case <-timeout:
	case <-freed:
	case _, open := <-woken:
		if !open {
			w.woken = nil
		}
	case <-w.lifetime.ending.Done():
	}
}

// claim takes due records and begins to work on them concurrently: a slow one delays no other.
func (w *worker) claim(limit int, most map[string]int) (int, error) {
	// Not cut off with the worker: its leases must be known, to be handed back.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.lifetime.ending), ledgerTimeout)
	defer cancel()
	c := w.e.claim(limit)
	c.Most = most
	if w.o.Dispatch != nil {
		c.Owner, c.LeaseFor, c.Leases = ledger.Dispatched, dispatchedFor, nil
	}
	if w.e.opts.Guards != nil {
		c.Paused = w.e.opts.Guards.Paused()
	}
	claimed, asked, err := w.e.lent(ctx, c)
	for _, rec := range claimed {
		w.work(rec, asked)
	}
	return len(claimed), err
}

// work begins to work on a record that was claimed when asked.
func (w *worker) work(rec ledger.Record, asked time.Time) {
	w.take(rec.Destination, 1)
	w.wg.Go(func() {
		defer w.take(rec.Destination, -1)
		if rec.Owner == ledger.Dispatched {
			w.dispatch(rec)
			return
		}
		w.e.one(rec, asked, w.lifetime)
	})
}

// dispatch hands a write over to the other scheduler.
func (w *worker) dispatch(rec ledger.Record) {
	ctx, cancel := context.WithTimeout(w.lifetime.ending, ledgerTimeout)
	defer cancel()
	if err := guarded(rec.ID, func() error { return w.o.Dispatch(ctx, rec) }); err != nil && w.lifetime.ending.Err() == nil {
		w.e.log(rec).Warn("a due write could not be handed over; it is tried again within 30 s", "error", err)
		w.e.observe(Activity{Kind: ActivityFailed, Record: rec, Err: err})
	}
}

// take counts slots that are taken or given back.
func (w *worker) take(destination string, n int) {
	w.mu.Lock()
	w.used += n
	w.busy[destination] += n
	if w.busy[destination] == 0 {
		delete(w.busy, destination)
	}
	w.mu.Unlock()
	if n < 0 {
		select {
		case w.freed <- struct{}{}:
		default: // it is already notified
		}
	}
}

// WorkOn continues one write as [Engine.Work] does, if it is due and no other worker has it. It is
// for a scheduler that gets due writes from [WorkOptions.Dispatch]. It returns in how long the
// write needs work again; again is false if it does not before another actor or another write
// changes it, and then it is dispatched again. A call too many, too early or too late does no harm.
// After an error the call should be repeated after a pause, here or elsewhere. If ctx ends, what
// was begun is put back, and the recording of a send is not cut off.
func (e *Engine) WorkOn(ctx context.Context, tenant string, id ledger.ID) (in time.Duration, again bool, err error) {
	rec, err := e.ledger.Get(ctx, tenant, id)
	if err != nil {
		return 0, false, notKnown(err)
	}
	f, began, err := e.proceed(rec)
	if err != nil {
		return 0, false, err
	}
	if !e.attend(ctx, f) {
		return 0, false, ctx.Err()
	}
	if began {
		e.failed(rec, f.err)
	}
	if rec, err = e.ledger.Get(ctx, tenant, id); err != nil {
		return 0, false, notKnown(err)
	}
	if in, again = needsWork(rec); again && in <= 0 && f.failed() {
		err = f.err
	}
	return in, again, err
}

// notKnown returns the error, unless it says that the write was pruned.
func notKnown(err error) error {
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	return err
}

// needsWork returns in how long any worker may take a write, and false if its time is open.
func needsWork(rec ledger.Record) (in time.Duration, known bool) {
	if gone(rec.Owner) != "" {
		rec.LeaseUntil = time.Time{}
	}
	at := rec.Due
	if rec.LeaseUntil.After(at) {
		at = rec.LeaseUntil
	}
	if rec.Due.IsZero() || !rec.Claimable(at, false) {
		return 0, false
	}
	return max(at.Sub(rec.Now), 0), true
}

// Resume works on everything that is due now, until nothing is due, and returns how many times
// it took a write up.
func (e *Engine) Resume(ctx context.Context) (int, error) {
	total := 0
	for ctx.Err() == nil {
		n, err := e.round(ctx, defaultWorkers)
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
	return total, ctx.Err()
}

// round claims due records and works on them, and returns when all of them are done or put
// back.
func (e *Engine) round(ctx context.Context, limit int) (int, error) {
	c := e.claim(limit)
	if e.opts.Guards != nil {
		c.Paused = e.opts.Guards.Paused()
	}
	claimed, asked, err := e.lent(ctx, c)
	if err != nil {
		return 0, err
	}
	var wg sync.WaitGroup
	for _, rec := range claimed {
		wg.Go(func() { e.one(rec, asked, e.lifetime()) })
	}
	wg.Wait()
	return len(claimed), nil
}

// one works on a claimed record. If this process works on the write already, that work comes
// first: it has an older fence and will notice. The claim is ours, so no other worker would
// continue the write before its lease has ended.
func (e *Engine) one(rec ledger.Record, claimed time.Time, l lifetime) {
	f, began, err := e.startOrJoin(rec.ID, rec.Digest, true)
	for err == nil && !began {
		<-f.done
		f, began, err = e.startOrJoin(rec.ID, rec.Digest, true)
	}
	if err != nil {
		return
	}
	err = guarded(rec.ID, func() error { return e.handle(rec, claimed, l) })
	e.finish(rec.ID, f, err)
	e.failed(rec, err)
}

// failed logs failed work on a write.
func (e *Engine) failed(rec ledger.Record, err error) {
	if err == nil || errors.Is(err, ledger.ErrFenced) || errors.Is(err, ErrClosed) {
		return
	}
	e.log(rec).Warn("a write was put back", "error", e.text(rec, err.Error()))
	e.observe(Activity{Kind: ActivityFailed, Record: rec, Err: err})
}

// claim returns a claim of any work. A lease suits the destination of its record: the
// second-send table requires a send to be made within it. Writes to other destinations are only
// put back.
func (e *Engine) claim(limit int) ledger.Claim {
	c := ledger.Claim{Owner: e.opts.Owner, LeaseFor: e.opts.Patience + e.opts.Slack, Leases: make(map[string]time.Duration), Limit: limit}
	for _, p := range e.reg.Profiles() {
		c.Leases[p.Destination] = max(c.Leases[p.Destination], e.lease(p))
	}
	return c
}

// lent returns the records that the ledger leased for a claim, and when it was asked: the
// leases may have begun as early as that.
func (e *Engine) lent(ctx context.Context, c ledger.Claim) (recs []ledger.Record, asked time.Time, err error) {
	asked = time.Now()
	recs, err = e.ledger.Claim(ctx, c)
	if len(recs) > 0 {
		e.clock.record(recs[0].Now, asked)
	}
	return recs, asked, err
}

// jittered varies a pause by up to a fifth, so that workers do not all ask at once.
func jittered(d time.Duration) time.Duration {
	return d - d/5 + rand.N(2*d/5+1)
}

// The housekeeping notes record when a worker last did the work that one worker does for all.
const (
	noteQueueStats = "housekeeping/survey"
	noteEnded      = "housekeeping/ended" // and the machine
	notePrune      = "housekeeping/prune"
)

// maintain does the work that no caller requests. It watches for a full outbox, for writes of
// ended processes of this machine, and for writes settled long ago. One worker at a time does
// it for all workers of a ledger or of a machine. Failed work is retried in the next iteration.
func (w *worker) maintain(ctx context.Context) {
	every := max(maintainEvery, w.o.Idle)
	for pause.For(ctx, jittered(every)) {
		w.stats(ctx, every)
		if w.o.Retention.Keep > 0 {
			if mine, _ := w.due(ctx, notePrune, max(pruneEvery, every)); mine {
				w.logFailure(ctx, "nothing more was pruned", w.prune(ctx))
			}
		}
	}
}

// stats does the work that needs a count of all writes: one worker does it for the ledger, and
// one of each machine where that worker does not run.
func (w *worker) stats(ctx context.Context, every time.Duration) {
	mine, of := w.due(ctx, noteQueueStats, every)
	here := mine
	if !mine && processes() != "" && !strings.HasSuffix(of, processes()) {
		here, _ = w.due(ctx, noteEnded+processes(), every)
	}
	if !here {
		return
	}
	s, err := w.e.ledger.QueueStats(ctx)
	if err != nil {
		w.logFailure(ctx, "the writes were not counted", err)
		return
	}
	if mine {
		w.logFailure(ctx, "the outbox could not be counted", w.watchOutbox(ctx, s))
	}
	w.logFailure(ctx, waitForLeases, w.inherit(ctx, s, 1))
}

func (w *worker) logFailure(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		w.e.opts.Logger.Warn(what, "error", err)
	}
}

// due reports whether this worker does the iteration: no other worker did it lately. of is the
// owner of the previous iteration.
func (w *worker) due(ctx context.Context, name string, every time.Duration) (mine bool, of string) {
	last, now, err := w.note(ctx, name)
	of = string(last.Value)
	if err != nil || last.Version != 0 && now.Sub(last.At) < every*4/5 {
		return false, of
	}
	last.Value = []byte(w.e.opts.Owner)
	_, err = w.e.ledger.SetNote(ctx, last)
	return err == nil, of // ErrStale: another worker was quicker
}

// note returns one note, with version 0 when there is none.
func (w *worker) note(ctx context.Context, name string) (ledger.Note, time.Time, error) {
	found, now, err := w.e.ledger.Notes(ctx, name)
	for _, n := range found {
		if n.Name == name {
			return n, now, err
		}
	}
	return ledger.Note{Name: name}, now, err
}

// watchOutbox marks the outbox as full when it exceeds its bound, and clears the mark when it
// has fallen well below.
func (w *worker) watchOutbox(ctx context.Context, s ledger.QueueStats) error {
	note, _, err := w.note(ctx, ledger.FullNote)
	if err != nil {
		return err
	}
	full := note.Version != 0
	switch {
	case !full && s.Outbox > w.o.MaxOutbox:
		if note.Value, err = json.Marshal(map[string]int{"waiting": s.Outbox, "most": w.o.MaxOutbox}); err != nil {
			return err
		}
	case full && s.Outbox < w.o.MaxOutbox*outboxEmptied/100:
		note.Value = nil
	default:
		return nil
	}
	_, err = w.e.ledger.SetNote(ctx, note)
	return err
}

// prune deletes settled writes in small steps, with pauses between them.
func (w *worker) prune(ctx context.Context) error {
	p := w.o.Retention
	if p.Limit <= 0 {
		p.Limit = pruneStep
	}
	p.Remember = max(p.Remember, p.Keep)
	for {
		done, err := w.e.ledger.Prune(ctx, p)
		if err != nil || done.Compacted+done.Forgotten < p.Limit {
			return err
		}
		if !pause.For(ctx, jittered(prunePause)) {
			return nil
		}
	}
}

const waitForLeases = "writes of an ended process wait for their leases to end"

// inheritFirst is [worker.inherit] when a worker begins.
func (w *worker) inheritFirst(ctx context.Context) error {
	if processes() == "" {
		return nil
	}
	s, err := w.e.ledger.QueueStats(ctx)
	if err != nil {
		return err
	}
	return w.inherit(ctx, s, math.MaxInt)
}

// inherit takes over at once the writes of an ended process of this machine: a predecessor of
// this process, or one that ran beside it. It can send nothing any more, so waiting for its
// leases gains nothing. For each tenant and state it lists the newest pages, up to the given
// number, until it has found all leased writes.
func (w *worker) inherit(ctx context.Context, stats ledger.QueueStats, pages int) error {
	if processes() == "" {
		return nil
	}
	type held struct {
		tenant string
		state  ledger.State
	}
	leased, all := make(map[held]int), 0
	for _, q := range stats.Queues {
		if q.State != ledger.Settled && q.Leased > 0 {
			leased[held{q.Tenant, q.State}] += q.Leased
			all += q.Leased
		}
	}
	if all <= w.inHand() {
		return nil // they are this worker's own
	}
	for h, left := range leased {
		f := ledger.Filter{Tenant: h.tenant, States: []ledger.State{h.state}, Limit: inheritAtOnce}
		for page := 0; left > 0 && page < pages; page++ {
			recs, err := w.e.ledger.List(ctx, f)
			if err != nil {
				return err
			}
			for _, rec := range recs {
				if !rec.InHand(rec.Now) {
					continue
				}
				left--
				if err := w.succeed(ctx, rec); err != nil {
					return err
				}
			}
			if len(recs) < inheritAtOnce {
				break
			}
			f.Before = recs[len(recs)-1].ID
		}
	}
	return nil
}

// succeed takes over a leased write if its owner's process is gone.
func (w *worker) succeed(ctx context.Context, rec ledger.Record) error {
	c := ledger.Claim{Owner: w.e.opts.Owner, LeaseFor: w.e.leaseFor(rec), Tenant: rec.Tenant, ID: rec.ID, Gone: gone(rec.Owner)}
	if c.Gone == "" {
		return nil
	}
	claimed, asked, err := w.e.lent(ctx, c)
	for _, rec := range claimed {
		w.work(rec, asked)
	}
	return err
}

// inHand returns how many writes this worker works on.
func (w *worker) inHand() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.used
}
