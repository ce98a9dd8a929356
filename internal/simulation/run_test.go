// The seed of math/rand counts here, since runs must be repeatable.
//
//go:debug randseednop=0
package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// epoch is when every bubble begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// send is one call of the destination's write API.
type send struct {
	stamp   string
	worker  int
	begun   time.Time // by the process
	clock   time.Time // the same on the ledger's clock
	reached time.Time // the destination, zero if never
	attempt int
	read    time.Time // when the last read was begun that this process made of the write
	ok      bool      // answered with success
	refused bool      // provably not applied
}

// settlement is the content of a commit that settled a write.
type settlement struct {
	rec ledger.Record
	at  time.Time
}

// run is one seed.
type run struct {
	plan  plan
	world *orders.World
	tills *orders.World   // another destination
	books []ledger.Ledger // the ledger, as each worker has it

	ledgerMu sync.Mutex // held by the worker that calls the ledger

	mu        sync.Mutex
	procs     []*process
	engines   []*engine.Engine
	flows     []workflows
	saga      string // the last report of the saga
	calling   int    // the worker whose clock the ledger has
	final     map[ledger.ID]ledger.Record
	seen      map[ledger.ID]time.Time // when the read was begun on which a verified write rests
	alias     map[ledger.ID]ledger.ID // of identities that the plan could not know
	offset    time.Duration           // of the ledger's clock
	latest    time.Time               // that it showed
	stepped   bool
	ended     bool
	used      map[int]bool // stops that were met
	done      map[int]bool // actions that were done
	cues      map[string]int
	sends     []*send
	settled   []settlement
	answers   map[ledger.ID]time.Time // when the ledger first recorded that a send was answered
	names     map[ledger.ID]string
	acted     []time.Time
	log       []string
	problems  []string
	deathsDue []int
	wg        sync.WaitGroup
}

func (r *run) logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf("%12s ", time.Since(epoch).Truncate(time.Millisecond))+fmt.Sprintf(format, args...))
}

func (r *run) fail(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func (r *run) setCaller(worker int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calling = worker
}

// clock is the ledger's clock, as a call of a worker finds it. It steps, and it is
// that worker's, but as in every driver it never runs backwards.
func (r *run) clock(worker int) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now().Add(r.offset + r.plan.skews[worker]); now.After(r.latest) {
		r.latest = now
	}
	return r.latest
}

func (r *run) nameOf(id ledger.ID) string {
	id = r.known(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if name := r.names[id]; name != "" {
		return name
	}
	return string(id)
}

func (r *run) stopAt(worker int, op string, id ledger.ID, nth int) (how string, stall time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return "", 0
	}
	for i, s := range r.plan.stops {
		if !r.used[i] && s.worker == worker && s.op == op && idOf(r.plan.writes[s.write].intent) == id && nth >= s.nth {
			r.used[i] = true
			return s.how, s.stall
		}
	}
	return "", 0
}

// served is the cue of another actor that acts right after a call was served.
func (r *run) served(op string, id ledger.ID) {
	r.mu.Lock()
	var due []action
	nth := r.cues[op+string(id)]
	r.cues[op+string(id)]++
	for i, a := range r.plan.actions {
		if !r.done[i] && a.write >= 0 && a.op == op && idOf(r.plan.writes[a.write].intent) == id && nth >= a.nth {
			r.done[i] = true
			due = append(due, a)
		}
	}
	r.mu.Unlock()
	for _, a := range due {
		r.act(a)
	}
}

// act does what another actor does.
func (r *run) act(a action) {
	r.mu.Lock()
	n := 9000 + len(r.acted)
	r.acted = append(r.acted, time.Now())
	r.mu.Unlock()
	there := r.world.Records("S-1")
	fields := intent.Fields{"order_id": "S-1", "amount_cents": number(n), "note": fmt.Sprint("theirs ", n)}
	var err error
	switch {
	case a.kind == "recreate" || len(there) == 0 && a.kind == "edit":
		if len(there) > 0 {
			err = r.world.Remove(there[0].ID)
		}
		if err == nil {
			_, err = r.world.Seed(fields, "")
		}
	case len(there) == 0:
	case a.kind == "edit":
		_, err = r.world.Edit(there[0].ID, intent.Fields{"amount_cents": number(n)})
	case a.kind == "copy":
		_, err = r.world.Seed(there[0].Fields, there[0].Stamp)
	case a.kind == "delete":
		err = r.world.Remove(there[0].ID)
	case a.kind == "rekey":
		err = r.world.Change(there[0].ID, func(o *orders.Order) { o.Fields["order_id"] = fmt.Sprint("moved-", n) })
	case a.kind == "unmark":
		err = r.world.Change(there[0].ID, func(o *orders.Order) {
			o.Stamp = ""
			o.Fields["note"] = fmt.Sprint("theirs ", n)
		})
	}
	r.logf("another actor: %s %v", a.kind, err)
}

func (r *run) died(worker int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deathsDue = append(r.deathsDue, worker)
}

func (r *run) sending(s *send, w intent.WriteIntent) {
	r.mu.Lock()
	r.sends = append(r.sends, s)
	late := !w.Deadline.IsZero() && s.clock.Sub(w.Deadline) > 2*r.plan.ledger+slices.Max(r.plan.skews) && !r.stepped // as late as the ledger's last answer may be
	r.mu.Unlock()
	r.logf("worker %d sends %s", s.worker, r.nameOf(idOf(w)))
	if late {
		r.fail("deadline: %s is sent %v after its deadline", r.nameOf(idOf(w)), s.clock.Sub(w.Deadline))
	}
}

func (r *run) arrived(s *send) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.reached = time.Now()
}

func (r *run) answered(s *send, receipt connectors.Receipt, err error) {
	r.mu.Lock()
	s.ok = err == nil
	if fate := connectors.FateOf(err); err != nil && fate != connectors.FateUnknown && fate != connectors.FateAnswered {
		s.refused = true
	}
	r.mu.Unlock()
	r.logf("  answer to worker %d: %v %v", s.worker, receipt.Ref+receipt.Code, err)
}

func (r *run) committed(p *process, rec ledger.Record, events []ledger.Event) {
	r.mu.Lock()
	if rec.Parent != "" {
		r.names[rec.ID] = "undo of " + r.names[rec.Parent]
	}
	r.mu.Unlock()
	if rec.QueuedBehind != "" && rec.State == ledger.Queued {
		r.logf("  ledger: %s is queued behind %s", r.nameOf(rec.ID), r.nameOf(rec.QueuedBehind))
		return
	}
	for _, e := range events {
		if e.Kind == ledger.EvDeferred {
			continue
		}
		r.logf("  ledger: %s %s %s%s %s %s", r.nameOf(rec.ID), e.Kind, e.Fate, e.Verdict, e.Rule, e.Reason)
		if e.Kind == ledger.EvSent && e.Fate == ledger.FateAnswered {
			r.mu.Lock()
			if r.answers[rec.ID].IsZero() {
				r.answers[rec.ID] = time.Now()
			}
			r.mu.Unlock()
		}
		if e.Kind == ledger.EvSettled {
			r.mu.Lock()
			r.settled = append(r.settled, settlement{rec, time.Now()})
			r.mu.Unlock()
			r.checkSettled(p, rec)
		}
	}
}

// born starts a lifetime of a worker.
func (r *run) born(t *testing.T, worker, life int) {
	d := r.world.Destination()
	p := &process{Ledger: r.books[worker], Connector: d.Connector, run: r, worker: worker, life: life,
		calls: map[string]int{}, reads: map[string]time.Time{}}
	d.Connector = p
	profile := d.Profiles[orders.Kind]
	if r.plan.class.irreversible {
		profile.Irreversible = []intent.WriteType{intent.Create}
		profile.Undo = slices.DeleteFunc(slices.Clone(profile.Undo), func(t intent.WriteType) bool { return t == intent.Create })
		d.Profiles = map[string]connectors.Profile{orders.Kind: profile}
	}
	var reg connectors.Registry
	if err := reg.Register("orders", d); err != nil {
		t.Fatal(err)
	}
	if err := reg.Register("tills", r.tills.Destination()); err != nil {
		t.Fatal(err)
	}
	if r.plan.slow {
		other, err := orders.New(orders.Options{SendTimeout: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if err := reg.Register("slow", other.Destination()); err != nil {
			t.Fatal(err)
		}
	}
	e := engine.New(p, &reg, &engine.Options{Owner: fmt.Sprintf("worker %d.%d", worker, life), Recheck: 3 * time.Minute})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.procs[worker], r.engines[worker], r.flows[worker] = p, e, r.newWorkflows(p, e)
}

func (r *run) engine(worker int) *engine.Engine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engines[worker]
}

// revive starts what died anew.
func (r *run) revive(t *testing.T) {
	r.mu.Lock()
	due := r.deathsDue
	r.deathsDue = nil
	r.mu.Unlock()
	for _, worker := range due {
		r.wg.Go(r.engine(worker).Close)
		synctest.Wait() // the calls that it ends are answered before the next process starts: one seed, one order
		r.born(t, worker, r.procs[worker].life+1)
		r.logf("worker %d starts again", worker)
	}
}

func (r *run) after(d time.Duration, do func()) {
	r.wg.Go(func() {
		time.Sleep(time.Until(epoch.Add(time.Minute + d)))
		do()
	})
}

func (r *run) submit(w write, worker int) {
	switch {
	case w.saga:
		r.carry(w, worker, 20*time.Minute)
		return
	case len(w.gate) > 0:
		r.caller(w, worker)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	if w.queue {
		_, err := r.engine(worker).Enqueue(ctx, w.intent)
		r.logf("%s is queued at worker %d: %v", r.nameOf(idOf(w.intent)), worker, err)
		return
	}
	out, err := r.engine(worker).Do(ctx, w.intent)
	r.logf("%s is answered at worker %d: %s: %s %v", r.nameOf(idOf(w.intent)), worker, out.Status, out.Text, err)
}

// simulate runs a plan.
func simulate(t *testing.T, p plan) *run {
	r := &run{plan: p, used: map[int]bool{}, done: map[int]bool{}, cues: map[string]int{},
		names: map[ledger.ID]string{}, answers: map[ledger.ID]time.Time{},
		final: map[ledger.ID]ledger.Record{}, seen: map[ledger.ID]time.Time{}, alias: map[ledger.ID]ledger.ID{}, procs: make([]*process, p.workers), engines: make([]*engine.Engine, p.workers), flows: make([]workflows, p.workers)}
	rand.Seed(int64(p.seed)) //nolint:staticcheck // backoff draws from the global source, and no other can make a seed one run
	synctest.Test(t, func(t *testing.T) {
		world, err := orders.New(p.options)
		if err != nil {
			t.Fatal(err)
		}
		r.world = world
		if r.tills, err = tills(slices.ContainsFunc(p.writes, func(w write) bool { return w.refused })); err != nil {
			t.Fatal(err)
		}
		defer r.open(t)()
		for i, w := range p.writes {
			r.names[idOf(w.intent)] = fmt.Sprintf("write %d (%s %v)", i, w.intent.Write, w.intent.Expect)
		}
		for n := range p.workers {
			r.born(t, n, 0)
		}
		if p.there {
			if _, err := world.Seed(intent.Fields{"order_id": "S-1", "amount_cents": number(5), "note": "before"}, ""); err != nil {
				t.Fatal(err)
			}
		}
		r.play(t)
		r.checkEnd()
	})
	return r
}

// open opens the ledger for each worker, and returns what closes it.
func (r *run) open(t *testing.T) (shut func()) {
	if !r.plan.disk {
		m := ledger.NewMemory()
		m.SetClock(func() time.Time { return r.clock(r.called()) })
		r.books = slices.Repeat([]ledger.Ledger{m}, r.plan.workers)
		return func() {}
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	for worker := range r.plan.workers {
		l, err := sqlite.Open(context.Background(), path, &sqlite.Options{Now: func() time.Time { return r.clock(worker) }})
		if err != nil {
			t.Fatal(err)
		}
		r.books = append(r.books, l)
	}
	return func() {
		for _, b := range r.books {
			if err := b.(*sqlite.Ledger).Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// called is the worker whose call of the ledger was the last.
func (r *run) called() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calling
}

func (r *run) play(t *testing.T) {
	p := r.plan
	for _, w := range p.writes {
		r.after(w.at, func() { r.submit(w, w.worker) })
		if w.crowded {
			r.after(w.at+time.Millisecond, func() { r.submit(w, (w.worker+1)%p.workers) })
		}
		if w.undo > 0 {
			r.after(w.at+w.undo, func() {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
				defer cancel()
				out, err := r.engine(w.worker).Undo(ctx, "acme", idOf(w.intent), engine.Undoing{By: "ada", Reason: "a change of mind"})
				r.logf("undo of %s: %s %v", r.nameOf(idOf(w.intent)), out.Status, err)
			})
		}
	}
	for _, f := range p.faults {
		r.after(f.at, func() {
			r.logf("fault: %s %s", f.Kind, f.How)
			if err := r.world.Set(f.Fault); err != nil {
				t.Error(err)
			}
		})
	}
	for _, a := range p.actions {
		if a.write < 0 {
			r.after(a.at, func() { r.act(a) })
		}
	}
	for _, s := range p.steps {
		r.after(s.at, func() {
			r.logf("the ledger's clock steps by %v", s.by)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.offset += s.by
			r.stepped = true
		})
	}
	time.Sleep(time.Minute)
	last := p.writes[len(p.writes)-1].at
	r.work(t, last+time.Minute, 4*time.Second)
	r.world.Clear()
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.work(t, 25*time.Minute, 30*time.Second)
	r.work(t, 3*time.Hour, 10*time.Minute)
	r.work(t, 30*time.Hour, 2*time.Hour)
	r.wg.Wait()
	for _, e := range r.engines {
		e.Close()
	}
}

// work lets every worker claim due work, again and again.
func (r *run) work(t *testing.T, lasts, every time.Duration) {
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		r.revive(t)
		for n := range r.plan.workers {
			e := r.engine(n)
			r.wg.Go(func() {
				time.Sleep(time.Duration(n)*17*time.Millisecond + 1)
				_, _ = e.Resume(context.Background()) // the caller repeats it
			})
		}
		for _, w := range r.plan.writes {
			if w.saga && time.Since(epoch.Add(time.Minute)) > w.at { // its caller submits again
				r.wg.Go(func() { r.carry(w, w.worker, 10*time.Second) })
			}
		}
		time.Sleep(every)
	}
}

// trace is everything that happened, as text.
func (r *run) trace() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, class %q, %d workers, ledger calls up to %v, network calls up to %v\n",
		r.plan.seed, r.plan.class.name, r.plan.workers, 2*r.plan.ledger, 2*r.plan.network)
	for _, w := range r.plan.writes {
		fmt.Fprintf(&b, "  write %s of worker %d at %v: %s %v %s undo %v\n", w.intent.Step, w.worker, w.at, w.intent.Write, w.intent.Expect, w.intent.OnMismatch, w.undo)
	}
	for _, l := range r.log {
		b.WriteString(l + "\n")
	}
	for _, e := range r.world.Effects() {
		fields := func(o *orders.Order) string {
			if o == nil {
				return "-"
			}
			text, _ := json.Marshal([]any{o.Fields["amount_cents"], o.Fields["note"], o.Fields["order_id"], o.Stamp})
			return string(text)
		}
		fmt.Fprintf(&b, "%12s destination: %s of %s by %s %s: %s to %s %v\n", e.At.Sub(epoch).Truncate(time.Millisecond), e.Op, e.ID, e.By, r.author(e), fields(e.Before), fields(e.After), e.Faults)
	}
	return b.String()
}
