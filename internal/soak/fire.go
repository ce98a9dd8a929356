//go:build unix

package soak

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
	"github.com/readback-go/readback/saga"
)

// size is how much is done, and how fast things break meanwhile.
type size struct {
	writes   int           // enqueued, by all enqueuers
	changes  int           // of each record
	kill     time.Duration // between two kills
	cut      time.Duration // between two cuts of all connections
	breathe  time.Duration // between two of the acts
	deadline time.Duration // of all
}

// stall is how long nothing may change in the ledger: longer than a restart of the database, every
// lease and every wait of a write.
const stall = time.Minute

// sizeOf is the full size if a flag requests it, otherwise one that takes a minute.
func sizeOf(o Options) size {
	if *full {
		return size{writes: 20_000, changes: 4, kill: time.Second, cut: 5 * time.Second, breathe: 4 * time.Second, deadline: 15 * time.Minute}
	}
	return size{writes: cmp.Or(o.Writes, 600/need.OneIn(3)), changes: 5, kill: cmp.Or(o.Kill, time.Second), cut: 2 * time.Second, breathe: 500 * time.Millisecond, deadline: 4 * time.Minute}
}

// Options are what differs between packages. The zero value is valid.
type Options struct {
	// Writes is how many writes the callers enqueue, without -soak.full. Default 600.
	Writes int
	// Kill is the time between two kills of workers. Default 1 s.
	Kill time.Duration
	// Env are environment variables of the processes. Default none.
	Env []string
	// Acts are what happens once each, besides what happens to the database and to workers. Default
	// nothing.
	Acts []func()
}

// records is how many records each enqueuer has.
func (s size) records() int { return s.writes / s.changes / enqueuers }

const (
	workers   = 4
	enqueuers = 8
	// mostSagas is how many sagas each enqueuer begins at most, one for each of its first records.
	mostSagas = 100
)

// fire is one run: processes, and what happens to them.
type fire struct {
	t                              *testing.T
	size                           size
	options                        Options
	chance                         *rand.Rand
	server                         *pgtest.Server
	dsn                            string
	env                            []string
	log                            string
	workers                        [workers]*process
	working                        [workers]*atomic.Bool // each has begun
	callers                        []*process
	frozen                         int // the worker that is stopped, or -1
	thawed                         <-chan time.Time
	longest                        time.Duration // that a worker was stopped
	stopped                        time.Time
	finished                       int
	undone                         int // transactions that were rolled back on purpose
	kills, cuts, restarts, freezes int
}

// UnderFire is the test TestUnderFire of a package: 4 workers share a ledger, 8 processes enqueue
// into it, each write next to a row of their own, and begin sagas, with a destination that has every
// fault. Workers are killed each second, one is stopped past its lease and continues, the database is
// killed and restarted, connections are cut. Then the test compares the destination's log and the
// callers' table with each other and with the ledger. It fails if a write or a saga is still open that
// waits for no reviewer.
func UnderFire(t *testing.T, o Options) {
	t.Logf("again with -soak.seed=%d; with -soak.full for 20,000 writes", *seed)
	f := kindle(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), f.size.deadline)
	defer cancel()
	began := time.Now()
	f.burn(ctx)
	drained := time.Since(began)
	f.quench()
	// A send in transit may be applied until now: it would be a duplicate.
	pause.For(t.Context(), horizonTime)
	t.Logf("%d writes in %.1f s (%.0f/s), %d kills, %d freezes (longest %.1f s), %d restarts of the database, %d cuts, %d transactions rolled back on purpose",
		f.size.writes, drained.Seconds(), float64(f.size.writes)/drained.Seconds(), f.kills, f.freezes, f.longest.Seconds(), f.restarts, f.cuts, f.undone)
	f.account()
}

// kindle starts everything but the callers.
func kindle(t *testing.T, o Options) *fire {
	t.Helper()
	f := &fire{t: t, size: sizeOf(o), options: o, chance: rand.New(rand.NewPCG(*seed, 2)), frozen: -1}
	// What a killed worker leaves at the server goes only when it is noticed.
	f.server = pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_connections": "300"}})
	name, err := f.server.CreateDatabase()
	f.must(err)
	f.dsn = f.server.DSN(name)
	f.must(f.server.Exec(name, business))
	book, err := postgres.Open(t.Context(), f.dsn, nil)
	f.must(err)
	f.must(book.Close())
	f.log = filepath.Join(t.TempDir(), "effects.log")
	// Fourteen processes share two processors: each is small, so that they spend
	// their time on writes and not on each other.
	f.env = []string{"GOMAXPROCS=1", "GOGC=400", "SOAK_WORLD=fiery", "SOAK_DESTINATIONS=orders", "SOAK_DSN=" + f.dsn + " pool_max_conns=5", "SOAK_LOG=" + f.log, fmt.Sprintf("SOAK_SEED=%d", *seed)}
	f.env = append(f.env, o.Env...)
	f.env = append(f.env, "SOAK_URL="+started(t, "orders", f.env...).next(t))
	t.Cleanup(func() {
		for _, p := range append(f.callers, f.workers[:]...) {
			if p != nil {
				p.kill()
			}
		}
	})
	return f
}

func (f *fire) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// start starts, or starts again, one worker.
func (f *fire) start(i int) {
	f.t.Helper()
	p, err := launch("pool worker", f.env...)
	f.must(err)
	began := new(atomic.Bool)
	f.workers[i], f.working[i] = p, began
	go func() {
		for line := range p.output {
			if line == "working" {
				began.Store(true)
			}
		}
	}()
}

// burn lets everything happen until everything is done.
func (f *fire) burn(ctx context.Context) {
	f.t.Helper()
	out := make(chan string, enqueuers)
	for n := range enqueuers {
		p, err := launch("enqueuer", append(f.env, fmt.Sprintf("SOAK_NUMBER=%d", n), fmt.Sprintf("SOAK_CHANGES=%d", f.size.changes),
			fmt.Sprintf("SOAK_RECORDS=%d", f.size.records()))...)
		f.must(err)
		f.callers = append(f.callers, p)
		go func() {
			for line := range p.output {
				out <- line
			}
		}()
	}
	for i := range workers {
		f.start(i)
	}
	kill, cut, act, check := time.NewTicker(f.size.kill), time.NewTicker(f.size.cut), time.NewTimer(f.size.breathe), time.NewTicker(250*time.Millisecond)
	defer kill.Stop()
	defer cut.Stop()
	defer act.Stop()
	defer check.Stop()
	acts := f.acts()
	progress := time.NewTicker(5 * time.Second)
	defer progress.Stop()
	moved, last := time.Now(), int64(0)
	for {
		select {
		case <-ctx.Done():
			f.t.Fatalf("not done after %v: %s", f.size.deadline, f.state())
		case <-progress.C:
			if now := f.steps(ctx); now != last {
				moved, last = time.Now(), now
			} else if time.Since(moved) > stall {
				f.t.Fatalf("nothing has changed for %v: %s", stall, f.state())
			}
		case line := <-out:
			if f.hear(line); f.finished == enqueuers {
				// A process concludes from the horizon what it has counted itself, and the
				// workers take a waiting record one after another, a horizon apart: from here
				// on each lives until it has taken the same record twice.
				kill.Reset(max((workers+1)*horizonTime/workers, workers*f.size.kill))
			}
		case <-kill.C:
			f.kill()
		case <-cut.C:
			f.cut()
		case <-f.thawed:
			f.thaw()
			act.Reset(f.size.breathe)
		case <-act.C:
			if len(acts) == 0 {
				break
			}
			acts[0]()
			if acts = acts[1:]; f.frozen < 0 {
				act.Reset(f.size.breathe)
			}
			if len(acts) == 0 {
				f.release()
			}
		case <-check.C:
			if f.finished == enqueuers && f.drained(ctx) {
				return
			}
		}
	}
}

// acts are what happens once each, in this order.
func (f *fire) acts() []func() {
	all := append([]func(){f.restart, f.freeze, f.crash}, f.options.Acts...)
	if *full {
		all = append(all, f.freeze, f.freeze)
	}
	return all
}

// hear counts the lines of the enqueuers.
func (f *fire) hear(line string) {
	undone := 0
	if _, err := fmt.Sscanf(line, "enqueued %d", &undone); err == nil {
		f.finished++
		f.undone += undone
	}
}

// release lets the enqueuers enqueue what they kept back: enough has happened.
func (f *fire) release() {
	f.t.Helper()
	for _, p := range f.callers {
		f.must(p.send("the rest"))
	}
}

// kill ends a worker that is not stopped, and starts it again. One that has not
// even begun is spared: on a busy machine nothing would ever be done.
func (f *fire) kill() {
	f.t.Helper()
	i := f.chance.IntN(workers)
	if f.finished == enqueuers {
		i = f.kills % workers
	}
	if i == f.frozen {
		i = (i + 1) % workers
	}
	if !f.working[i].Load() {
		return
	}
	f.workers[i].kill()
	f.kills++
	f.start(i)
}

// freeze stops a worker for longer than its leases last.
func (f *fire) freeze() {
	f.t.Helper()
	f.frozen = f.chance.IntN(workers)
	f.must(f.workers[f.frozen].signal(syscall.SIGSTOP))
	f.stopped, f.thawed = time.Now(), time.After(freezeFor)
	f.freezes++
}

func (f *fire) thaw() {
	f.t.Helper()
	f.must(f.workers[f.frozen].signal(syscall.SIGCONT))
	f.longest = max(f.longest, time.Since(f.stopped))
	f.frozen, f.thawed = -1, nil
}

func (f *fire) restart() {
	f.t.Helper()
	f.must(f.server.Restart())
	f.restarts++
}

// crash is a restart without a farewell.
func (f *fire) crash() {
	f.t.Helper()
	f.must(f.server.Kill())
	f.must(f.server.Recover())
	f.restarts++
}

// cut ends every connection to the database.
func (f *fire) cut() {
	f.t.Helper()
	f.must(f.server.Exec("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"))
	f.cuts++
}

// drained reports whether nothing is left that can be done without a reviewer.
func (f *fire) drained(ctx context.Context) bool {
	book, err := postgres.Open(ctx, f.dsn, nil)
	if err != nil {
		return false
	}
	defer func() { _ = book.Close() }() // a restart may have closed it
	stats, err := book.QueueStats(ctx)
	if err != nil || stats.Outbox > 0 {
		return false
	}
	for _, q := range stats.Queues {
		if q.State != "review" && q.State != "settled" && q.Count > q.Waiting {
			return false
		}
	}
	open, err := saga.New(book, nil, nil).Count(ctx, tenant, saga.Running, saga.Undoing)
	return err == nil && open == 0
}

// steps counts the events of all writes; 0 while the database cannot be asked.
func (f *fire) steps(ctx context.Context) (n int64) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, f.dsn)
	if err != nil {
		return 0
	}
	defer func() { _ = conn.Close(ctx) }() // a restart may have closed it
	if err := conn.QueryRow(ctx, "SELECT coalesce(sum(seq), 0)::bigint FROM ledger_writes").Scan(&n); err != nil {
		return 0
	}
	return n
}

// state is what is open, for a run that did not come to its end.
func (f *fire) state() string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	book, err := postgres.Open(ctx, f.dsn, nil)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = book.Close() }() // a restart may have closed it
	stats, err := book.QueueStats(ctx)
	text := fmt.Sprintf("%d of %d enqueuers finished; outbox %d, refused %v, damaged %v, error %v", f.finished, enqueuers, stats.Outbox, stats.Refused, stats.Damaged, err)
	for _, q := range stats.Queues {
		text += fmt.Sprintf("\n  %s: %d, due %d, leased %d, orphaned %d, behind %d", q.State, q.Count, q.Due, q.Leased, q.Orphaned, q.Waiting)
	}
	open, err := book.List(ctx, ledger.Filter{Tenant: tenant, States: []ledger.State{ledger.Queued, ledger.Sending, ledger.Checking}})
	if err != nil {
		return text + err.Error()
	}
	for _, rec := range open {
		if rec.QueuedBehind == "" {
			text += fmt.Sprintf("\n%s %d: %s%s", rec.Step, rec.Call, rec.Phase(), life(book, rec))
		}
	}
	sagas, err := saga.New(book, nil, nil).List(ctx, tenant, 1000, saga.Running, saga.Undoing)
	for _, s := range sagas {
		text += fmt.Sprintf("\nsaga %s: %s (%s), due %s", s.ID, s.State, s.Reason, s.Next)
	}
	if err != nil {
		text += err.Error()
	}
	return text
}

// quench ends the workers in order: what they have in hand they finish or hand
// back.
func (f *fire) quench() {
	f.t.Helper()
	if f.frozen >= 0 {
		f.thaw()
	}
	for _, p := range append(f.callers, f.workers[:]...) {
		if err := p.in.Close(); err != nil {
			f.t.Error(err)
		}
	}
	for _, p := range append(f.callers, f.workers[:]...) {
		select {
		case <-p.gone:
		case <-time.After(patience):
			f.t.Errorf("a process did not end within %v of being asked to", patience)
		}
	}
}

// committed lists the rows of the callers' own table.
func (f *fire) committed() map[string][]int {
	f.t.Helper()
	conn, err := pgx.Connect(f.t.Context(), f.dsn)
	f.must(err)
	defer func() { f.must(conn.Close(f.t.Context())) }()
	rows, err := conn.Query(f.t.Context(), "SELECT record, n FROM business ORDER BY record, n")
	f.must(err)
	all := map[string][]int{}
	var record string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&record, &n}, func() error {
		all[record] = append(all[record], n)
		return nil
	})
	f.must(err)
	return all
}
