//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
	"golang.org/x/sync/errgroup"
)

// The size of one cell of the table, the longest that it may take, and when no further one begins.
const (
	ordersOfACell = 600
	longestCell   = 150 * time.Second
	longestRun    = 9 * time.Minute
	killEvery     = 100 // requests that make an order
)

// trouble is what happens in a row of the table.
type trouble struct {
	name   string
	faults []orders.Fault
	kills  bool
}

var troubles = []trouble{
	{name: "lost answers", faults: []orders.Fault{of(orders.LostAnswer, .5, 0)}},
	{name: "late commits", faults: []orders.Fault{of(orders.LateCommit, .5, horizon/2)}},
	{name: "phantom successes", faults: []orders.Fault{of(orders.PhantomSuccess, .3, 0)}},
	{name: "rollbacks", faults: []orders.Fault{of(orders.Rollback, .3, horizon/4)}},
	{name: "kills of the worker", kills: true},
	{name: "mixed", kills: true, faults: []orders.Fault{
		of(orders.LostAnswer, .2, 0), of(orders.LateCommit, .2, horizon/2), of(orders.PhantomSuccess, .1, 0), of(orders.Rollback, .1, horizon/4),
	}},
}

func of(k orders.FaultKind, chance float64, delay time.Duration) orders.Fault {
	return orders.Fault{Kind: k, Ops: []orders.Op{orders.OpCreate}, Chance: chance, Delay: delay}
}

// engineNames are in the order of the table, with what each needs.
var engineNames = []contender{
	{name: "River", store: postgresStore},
	{name: "DBOS", store: postgresStore},
	{name: "Restate", store: postgresStore, needs: restateProgram},
	{name: "Temporal", store: postgresStore, needs: temporalProgram},
}

// end is what is known of an order by its workflow, or by readback.
type end string

const (
	done   end = "done"   // reported as made
	failed end = "failed" // reported as not made
	person end = "person" // waits for a reviewer
	open   end = "open"   // no report, when the time was up
)

// tally is one cell of the table.
type tally struct {
	Duplicates int // orders that were made while the destination had one already, or that no trial has
	Lost       int // orders reported as made that are not there
	Wrong      int // reports that the destination contradicts: made and not there, twice or with other fields; not made and there
	Person     int // orders that wait for a reviewer
	Open       int // orders without a report, or reported as not made, which they are not: the destination refuses none
	Sends      int // requests to make an order
}

// account compares what was reported of each order with what the destination has.
func account(w *orders.World, references []string, reported map[string]end) tally {
	var t tally
	live := map[string]int{} // one that was taken back since was a duplicate too
	for _, reference := range references {
		live[reference] = 0
	}
	for _, e := range w.Effects() {
		switch n, asked := live[e.OrderID]; {
		case e.Op == orders.OpDelete:
			live[e.OrderID]--
		case e.Op == orders.OpCreate:
			if live[e.OrderID]++; n > 0 || !asked {
				t.Duplicates++
			}
		}
	}
	for _, reference := range references {
		there := w.Records(reference)
		switch reported[reference] {
		case done:
			if len(there) == 0 {
				t.Lost++
			}
			o := newOrder(reference)
			if len(there) != 1 || there[0].AmountCents() != cents || there[0].Fields["customer"] != o.Customer || there[0].Fields["description"] != o.Description {
				t.Wrong++
			}
		case failed:
			if len(there) > 0 {
				t.Wrong++
			} else {
				t.Open++
			}
		case person:
			t.Person++
		default:
			t.Open++
		}
	}
	return t
}

// shop serves the orders, and ends the worker's process at every so many requests: before the order is made, or
// after it and before the answer.
type shop struct {
	World *orders.World
	URL   string
	mu    sync.Mutex
	posts int
	calls int
	kill  func() // nil: never
	stop  func() error
}

func openShop(o orders.Options, wait time.Duration) (*shop, error) {
	world, err := orders.New(o)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &shop{World: world, URL: "http://" + listener.Addr().String()}
	inner := orders.Handler(world)
	served := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before, after := s.arrives(r)
		before()
		if wait > 0 {
			<-time.After(wait)
		}
		defer after() // without a response too
		inner.ServeHTTP(&held{w, after}, r)
	})}
	go func() { _ = served.Serve(listener) }() // it ends with Close
	s.stop = served.Close
	return s, nil
}

// held ends the worker before its answer is sent.
type held struct {
	http.ResponseWriter
	before func()
}

func (h *held) WriteHeader(status int) { h.before(); h.ResponseWriter.WriteHeader(status) }

func (h *held) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (s *shop) arrives(r *http.Request) (before, after func()) {
	nothing := func() {}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if r.Method != http.MethodPost {
		return nothing, nothing
	}
	s.posts++
	switch {
	case s.kill == nil || s.posts%killEvery != 0 || s.posts > 6*killEvery:
		return nothing, nothing
	case s.posts/killEvery%2 == 0:
		return s.kill, nothing
	}
	return nothing, sync.OnceFunc(s.kill)
}

// workers runs the process of a trial, and starts another one when it is killed.
type workers struct {
	mu       sync.Mutex
	process  *os.Process
	ended    bool
	starts   int
	reported map[string]end
	over     chan error
}

func startWorkers(t trial, log io.Writer) (*workers, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &workers{reported: map[string]end{}, over: make(chan error, 1)}
	go func() {
		for {
			cmd := exec.Command(program)
			cmd.Env = append(os.Environ(), trialOf+"="+string(text))
			cmd.Stderr = log
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			out, err := cmd.StdoutPipe()
			started := false
			if err == nil {
				started, err = w.start(cmd)
			}
			if !started {
				w.over <- err
				return
			}
			for lines := bufio.NewScanner(out); lines.Scan(); {
				w.reports(lines.Bytes())
			}
			err = cmd.Wait()
			w.mu.Lock()
			ended := w.ended
			w.mu.Unlock()
			if killed := new(exec.ExitError); ended {
				w.over <- nil
				return
			} else if !errors.As(err, &killed) || killed.ExitCode() != -1 {
				w.over <- fmt.Errorf("the worker of %s ended by itself: %w", t.Engine, err)
				return
			}
		}
	}()
	return w, nil
}

func (w *workers) start(cmd *exec.Cmd) (started bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false, nil
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	w.process = cmd.Process
	w.starts++
	return true, nil
}

func (w *workers) reports(line []byte) {
	var r report
	if json.Unmarshal(line, &r) != nil {
		return // the process died within the line
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reported[r.Order] = done; r.Error != "" {
		w.reported[r.Order] = failed
	}
}

func (w *workers) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process != nil {
		_ = w.process.Kill() // it may have ended
	}
}

// stop ends the process for good.
func (w *workers) stop() error {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.kill()
	return <-w.over
}

func (w *workers) snapshot() map[string]end {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.reported)
}

// servers are what the engines of the table run on.
type servers struct {
	m              *machine
	temporal       string
	ingress, admin string
	stops          []func() error
}

func startServers(m *machine, present []contender) (*servers, error) {
	s := &servers{m: m}
	for _, c := range present {
		var stop func() error
		var err error
		switch c.needs {
		case temporalProgram:
			s.temporal, stop, err = startTemporal(m)
		case restateProgram:
			s.ingress, s.admin, stop, err = startRestate(m)
		default:
			continue
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.stops = append(s.stops, stop)
	}
	return s, nil
}

func (s *servers) Close() error {
	var errs []error
	for _, stop := range s.stops {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}

// trial completes a trial with what it runs on: empty databases and a free port.
func (s *servers) trial(t trial) (trial, func() error, error) {
	var drops []func() error
	drop := func() error {
		var errs []error
		for _, d := range drops {
			errs = append(errs, d())
		}
		return errors.Join(errs...)
	}
	for _, dsn := range []*string{&t.Database, &t.Ledger} {
		at, d, err := s.m.database()
		if err != nil {
			return t, nil, errors.Join(err, drop())
		}
		*dsn, drops = at, append(drops, d)
	}
	switch t.Engine {
	case "Temporal":
		t.Address = s.temporal
	case "Restate":
		ports, err := freePorts(1)
		if err != nil {
			return t, nil, errors.Join(err, drop())
		}
		t.Address, t.Admin, t.Service = s.ingress, s.admin, fmt.Sprintf("127.0.0.1:%d", ports[0])
	}
	return t, drop, nil
}

// cell runs the orders of one cell of the table.
func (s *servers) cell(ctx context.Context, name string, with bool, n int, x trouble, seed uint64) (result tally, err error) {
	o := declared(false)
	o.Seed, o.Faults = seed, x.faults
	place, err := openShop(o, 0)
	if err != nil {
		return tally{}, err
	}
	defer func() { err = errors.Join(err, place.stop()) }()
	t, drop, err := s.trial(trial{Engine: name, With: with, Destination: place.URL, Orders: n,
		Batch: fmt.Sprintf("%s-%v-%d", strings.ToLower(name), with, seed)})
	if err != nil {
		return tally{}, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	log, err := os.OpenFile(filepath.Join(s.m.dir, "worker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return tally{}, err
	}
	defer log.Close()
	ends := func(reported map[string]end) (map[string]end, bool, error) { return reported, len(reported) == n, nil }
	if with {
		l, err := postgres.Open(ctx, t.Ledger, nil)
		if err != nil {
			return tally{}, err
		}
		defer l.Close()
		ends = func(reported map[string]end) (map[string]end, bool, error) { return known(ctx, l, reported, n) }
	}
	w, err := startWorkers(t, log)
	if err != nil {
		return tally{}, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if x.kills {
		place.mu.Lock()
		place.kill = w.kill
		place.mu.Unlock()
	}
	limit, cancel := context.WithTimeout(ctx, longestCell)
	defer cancel()
	var reported map[string]end
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for over := false; !over && limit.Err() == nil; {
		select {
		case <-limit.Done():
		case <-ticker.C:
		case err := <-w.over:
			w.over <- nil
			return tally{}, err
		}
		if reported, over, err = ends(w.snapshot()); err != nil {
			return tally{}, err
		}
	}
	select { // what is still to be applied or to disappear does so
	case <-time.After(horizon):
	case <-ctx.Done():
		return tally{}, context.Cause(ctx)
	}
	references := make([]string, n)
	for i := range references {
		references[i] = reference(i)
	}
	result = account(place.World, references, reported)
	place.mu.Lock()
	result.Sends = place.posts
	place.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if x.kills && result.Sends >= killEvery && w.starts < 2 {
		err = errors.New("the worker was not killed")
	}
	return result, err
}

// known is what was reported of the orders, but for those of which readback's ledger knows that they wait for a
// reviewer, and whether all is settled: every other workflow has ended, and no recheck is due soon.
func known(ctx context.Context, l *postgres.Ledger, reported map[string]end, n int) (map[string]end, bool, error) {
	all, over := maps.Clone(reported), true // a workflow that failed before it asked for its write has no record
	search := ledger.Search{Tenant: tenant, Destination: "orders", Limit: 200}
	for {
		found, err := l.Find(ctx, search)
		if err != nil {
			return nil, false, err
		}
		for _, r := range found.Records {
			reference := r.IdempotencyKey
			if r.Status().Group() == ledger.NeedsReview {
				all[reference] = person
			}
			// The last recheck, for processes that were suspended for a day, is not waited for.
			over = over && (all[reference] == person || all[reference] != "" && r.State == ledger.Settled && (r.Due.IsZero() || time.Until(r.Due) > longestCell))
		}
		if search.After = found.Next; search.After == "" {
			return all, over && len(all) == n, nil
		}
	}
}

// pace is one setting of the rates: how long each call of the destination takes, and how many callers wait for a
// workflow each.
type pace struct {
	latency time.Duration
	callers int
}

// paces are a destination that takes its time, and one that takes none, so that the machine is the limit.
var paces = []pace{{50 * time.Millisecond, 16}, {0, 64}}

// rates are workflows a second of one engine, alone and with readback, in the turns of one run.
type rates struct{ alone, with []float64 }

// throughput has an engine alone and with readback take turns, in this process. Each makes an order and reads it
// once.
func (s *servers) throughput(ctx context.Context, name string, p pace, rounds int, each time.Duration) (rates, error) {
	var r rates
	for round := range 2 * rounds {
		with := round%4 == 1 || round%4 == 2 // alone, with, with, alone
		rate, err := s.turn(ctx, name, with, round, p, each)
		if err != nil {
			return r, fmt.Errorf("%s, with readback: %v: %w", name, with, err)
		}
		if with {
			r.with = append(r.with, rate)
		} else {
			r.alone = append(r.alone, rate)
		}
	}
	return r, nil
}

func (s *servers) turn(ctx context.Context, name string, with bool, round int, p pace, each time.Duration) (rate float64, err error) {
	place, err := openShop(declared(true), p.latency)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, place.stop()) }()
	t, drop, err := s.trial(trial{Engine: name, With: with, Reads: true, Destination: place.URL,
		Batch: fmt.Sprintf("%s-%d-turn-%d", strings.ToLower(name), p.callers, round)})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	if err := s.m.pg.Exec("postgres", "CHECKPOINT"); err != nil {
		return 0, err
	}
	q, err := openTrial(ctx, t, s.m.log)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	if _, err := writeWith(ctx, q, t.Batch+"-warm", p.callers, 0); err != nil {
		return 0, err
	}
	began := time.Now()
	writes, err := writeWith(ctx, q, t.Batch, p.callers, each)
	rate = float64(writes) / time.Since(began).Seconds()
	place.mu.Lock()
	defer place.mu.Unlock()
	if err == nil && place.calls != 2*(p.callers+writes) {
		err = fmt.Errorf("%d workflows made %d calls of the destination, want two each", p.callers+writes, place.calls)
	}
	return rate, err
}

// enginesTable is the document: the faults, then the rates.
type enginesTable struct {
	n      int
	names  []string
	cells  map[string]map[string][2]tally // by engine and trouble; alone, with readback
	rates  map[string]map[pace]rates      // by engine
	before string                         // the load average
}

func (e enginesTable) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d orders in each cell. Alone / with readback:\n\n", e.n)
	b.WriteString("| engine | faults | duplicates | lost | wrong, unnoticed | needs a reviewer | unfinished | requests |\n|---|---|---|---|---|---|---|---|\n")
	for _, name := range e.names {
		for _, x := range troubles {
			c, ok := e.cells[name][x.name]
			if !ok {
				continue
			}
			a, w := c[0], c[1]
			fmt.Fprintf(&b, "| %s | %s | %d / %d | %d / %d | %d / %d | %d / %d | %d / %d | %d / %d |\n", name, x.name,
				a.Duplicates, w.Duplicates, a.Lost, w.Lost, a.Wrong, w.Wrong, a.Person, w.Person, a.Open, w.Open, a.Sends, w.Sends)
		}
	}
	fmt.Fprintf(&b, "\nWorkflows a second, median (lowest to highest); each makes one order and reads it once. Load average before: %s.\n\n", e.before)
	b.WriteString("| engine | each call takes | callers | alone | with readback | fewer |\n|---|---|---|---|---|---|\n")
	for _, name := range e.names {
		for _, p := range paces {
			r, ok := e.rates[name][p]
			if !ok {
				continue
			}
			a, aLow, aHigh := spread(r.alone)
			w, wLow, wHigh := spread(r.with)
			fmt.Fprintf(&b, "| %s | %d ms | %d | %s (%s to %s) | %s (%s to %s) | %.0f %% |\n", name, p.latency.Milliseconds(), p.callers,
				rate(a), rate(aLow), rate(aHigh), rate(w), rate(wLow), rate(wHigh), math.Round(100*(1-w/a)))
		}
	}
	return b.String()
}

// The marks of the table in its page.
const (
	tableBegins = "<!-- rendered by make bench-engines: do not edit below -->\n"
	tableEnds   = "<!-- end -->\n"
)

// insert replaces the table of a page.
func insert(page []byte, table string) ([]byte, error) {
	head, rest, begins := bytes.Cut(page, []byte(tableBegins))
	_, tail, ends := bytes.Cut(rest, []byte(tableEnds))
	if !begins || !ends {
		return nil, fmt.Errorf("the page has no %q and %q", tableBegins, tableEnds)
	}
	return slices.Concat(head, []byte(tableBegins+"\n"+table+"\n"+tableEnds), tail), nil
}

// faults runs the cells: the engines at once, and each alone and with readback at once, since most of the time
// is waiting. A cell that fails is left out.
func (s *servers) faults(ctx context.Context, w io.Writer, present []contender, n int, end time.Time, cells map[string]map[string][2]tally) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for i, c := range present {
		all.Go(func() {
			for j, x := range troubles {
				began := time.Now()
				if began.After(end) {
					fmt.Fprintf(w, "%s, %s is left out: the run has taken %s.\n", c.name, x.name, longestRun)
					continue
				}
				var pair [2]tally
				both, ctx := errgroup.WithContext(ctx)
				for k, with := range []bool{false, true} {
					both.Go(func() (err error) { pair[k], err = s.cell(ctx, c.name, with, n, x, uint64(100*i+j+1)); return err })
				}
				err := both.Wait()
				mu.Lock()
				if err != nil {
					errs = append(errs, fmt.Errorf("%s, %s: %w", c.name, x.name, err))
				} else {
					cells[c.name][x.name] = pair
				}
				mu.Unlock()
				fmt.Fprintf(w, "%s, %s: alone %+v, with readback %+v, in %s\n", c.name, x.name, pair[0], pair[1], time.Since(began).Round(100*time.Millisecond))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// runEngines measures the table, prints it, and writes it into a page, if one is named. What fails is left out, and
// is the error.
func runEngines(ctx context.Context, w io.Writer, o options, only, page string) (err error) {
	m, err := newMachine(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	all, err := chosen(engineNames, only)
	if err != nil {
		return err
	}
	present := m.present(w, all)
	s, err := startServers(m, present)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	e := enginesTable{n: o.orders, cells: map[string]map[string][2]tally{}, rates: map[string]map[pace]rates{}, before: loadAverage()}
	end := time.Now().Add(longestRun)
	for _, c := range present {
		e.names = append(e.names, c.name)
		e.cells[c.name], e.rates[c.name] = map[string][2]tally{}, map[pace]rates{}
		if o.rounds == 0 {
			continue
		}
		for _, p := range paces {
			r, failed := s.throughput(ctx, c.name, p, o.rounds, o.each)
			if failed != nil {
				err = errors.Join(err, failed)
				continue
			}
			e.rates[c.name][p] = r
			fmt.Fprintf(w, "%s, workflows a second of %d callers, %s each call: alone %.1f, with readback %.1f\n", c.name, p.callers, p.latency, r.alone, r.with)
		}
	}
	err = errors.Join(err, s.faults(ctx, w, present, o.orders, end, e.cells))
	fmt.Fprintf(w, "\n%s", e)
	if page == "" || ctx.Err() != nil {
		return err
	}
	text, unwritten := os.ReadFile(page)
	if unwritten == nil {
		text, unwritten = insert(text, e.String())
	}
	if unwritten == nil {
		unwritten = os.WriteFile(page, text, 0o644)
	}
	return errors.Join(err, unwritten)
}
