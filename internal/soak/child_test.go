package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/dispatchtest"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/saga"
	"github.com/readback-go/readback/verify"
)

func TestMain(m *testing.M) {
	roles["destination"], roles["worker"], roles["caller"] = destination, worker, caller
	Child(func(ctx context.Context, e *engine.Engine, s *saga.Runner, o engine.WorkOptions) error {
		var wg sync.WaitGroup
		defer wg.Wait()
		if os.Getenv(dispatched) == "" {
			wg.Go(func() { _ = s.Work(ctx) }) // it returns nil
			return e.Work(ctx, &o)
		}
		var writes, sagas dispatchtest.Scheduler
		wg.Go(func() { _ = sagas.Sagas(ctx, s) }) // it returns nil
		return writes.Writes(ctx, e, &o)
	})
	os.Exit(m.Run())
}

// dispatched is an environment variable of workers that hand their work over.
const dispatched = "SOAK_DISPATCH"

// declared is the destination: nothing but strong reads, every second kind of
// fault on the way, and a horizon far above what a busy machine takes to
// handle a request that is on its way already.
func declared() orders.Options {
	o := orders.Plain.Options()
	o.Horizon = connectors.Within(4 * time.Second)
	o.SendTimeout, o.ReadTimeout = time.Second, time.Second
	o.Seed = 7
	o.Faults = []orders.Fault{
		{Kind: orders.LostAnswer, Chance: 0.08},
		{Kind: orders.DroppedBefore, Chance: 0.04},
		{Kind: orders.BadGateway, Chance: 0.04},
		{Kind: orders.PhantomSuccess, Chance: 0.02},
		{Kind: orders.UnreadableRead, Chance: 0.05},
	}
	return o
}

func destination() error {
	return orders.Run(context.Background(), orders.RunOptions{Options: declared(), LogPath: os.Getenv("SOAK_LOG")}, os.Stdout)
}

// loud prints each event before and after it happens, so that the parent can kill at any of these
// moments.
type loud struct {
	connectors.Connector
	out *printer
}

type printer struct{ mu sync.Mutex }

func (l *printer) say(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Println(what) // the parent may be gone
}

func (l loud) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	l.out.say("sending")
	defer l.out.say("sent")
	return l.Connector.Write(ctx, r)
}

func (l loud) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	defer l.out.say("read")
	return l.Connector.Read(ctx, q)
}

func open(out *printer) (*engine.Engine, *sqlite.Ledger, error) {
	book, err := sqlite.Open(context.Background(), os.Getenv("SOAK_LEDGER"), nil)
	if err != nil {
		return nil, nil, err
	}
	c, err := orders.NewConnector(os.Getenv("SOAK_URL"), declared(), nil)
	if err != nil {
		return nil, nil, err
	}
	var reg connectors.Registry
	err = reg.Register("orders", connectors.Destination{Connector: loud{c, out}, Profiles: c.Profiles()})
	return engine.New(book, &reg, &engine.Options{
		Patience: 300 * time.Millisecond, Slack: time.Second,
		Budget:   100, // each kill between announcement and send uses one up
		Policies: append([]policies.Policy{policies.Func(impatient)}, policies.Standard()...),
	}), book, err
}

// impatient sends again as soon as the table allows it. The standard policies
// pause longer with each repeat, which after many kills is minutes.
func impatient(c policies.Case) (policies.Decision, bool) {
	again := c.Sends > 1 && c.Verdict == verify.Absent && policies.SecondSend(c).Allowed
	return policies.Decision{Kind: policies.Retry, Rule: "impatient", Reason: "the table allows it"}, again
}

func orderID(n int) string { return fmt.Sprintf("order-%04d", n) }

func order(n int) intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: tenant, Workflow: "soak", Step: "charge", Tool: "orders.create", Call: n,
		Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Key:    intent.Fields{"order_id": orderID(n)},
		Expect: intent.Fields{"amount_cents": json.Number("1999"), "currency": "USD"},
	}
}

// worker submits all writes, again at every start, and ends when every one of them is settled or
// in review.
func worker() error {
	out := &printer{}
	e, book, err := open(out)
	if err != nil {
		return err
	}
	total, err := strconv.Atoi(os.Getenv("SOAK_WRITES"))
	if err != nil {
		return err
	}
	const parallel = 400 // most of them wait for a lease or a horizon
	var wg sync.WaitGroup
	next := make(chan int)
	failures := make(chan error, total)
	for range parallel {
		wg.Go(func() {
			for n := range next {
				if err := submit(e, out, n); err != nil {
					failures <- err
				}
			}
		})
	}
	settled, err := done(book)
	if err != nil {
		return err
	}
	for n := range total {
		if !settled[idOf(n)] {
			next <- n
		}
	}
	close(next)
	wg.Wait()
	close(failures)
	var all []error
	for err := range failures {
		all = append(all, err)
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	out.say("finished")
	e.Close()
	return book.Close()
}

// done lists the writes that need nothing more: to submit thousands of them
// again at each start would test the replay of outcomes and nothing else.
func done(book ledger.Ledger) (map[ledger.ID]bool, error) {
	const page = 1000
	all := map[ledger.ID]bool{}
	f := ledger.Filter{Tenant: tenant, States: []ledger.State{ledger.Settled, ledger.Review}, Limit: page}
	for {
		recs, err := book.List(context.Background(), f)
		if err != nil {
			return nil, err
		}
		for _, rec := range recs {
			all[rec.ID] = true
		}
		if len(recs) < page {
			return all, nil
		}
		f.Before = recs[page-1].ID
	}
}

func idOf(n int) ledger.ID { return ledger.IDOf(order(n).StructuralKey()) }

func submit(e *engine.Engine, out *printer, n int) error {
	_, err := e.Do(context.Background(), order(n))
	if err == nil {
		out.say("done")
	}
	return err
}

// caller submits one intent from many goroutines and prints the outcomes.
func caller() error {
	e, book, err := open(&printer{})
	if err != nil {
		return err
	}
	w := order(1)
	if amount := os.Getenv("SOAK_AMOUNT"); amount != "" {
		w.Expect["amount_cents"] = json.Number(amount)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var report struct {
		Outcomes []engine.Outcome
		Errors   []string
	}
	for range 64 {
		wg.Go(func() {
			out, err := e.Do(context.Background(), w)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				report.Errors = append(report.Errors, err.Error())
				return
			}
			report.Outcomes = append(report.Outcomes, out)
		})
	}
	wg.Wait()
	text, err := json.Marshal(report)
	if err != nil {
		return err
	}
	fmt.Println("report", string(text))
	e.Close()
	return book.Close()
}

// child is a process of this test binary in a role.
type child struct {
	cmd    *exec.Cmd
	stdout *bufio.Scanner
}

func start(t *testing.T, as string, env ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), role+"="+as), env...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended already, or must end now
		_ = cmd.Wait()
	})
	scanner := bufio.NewScanner(pipe)
	scanner.Buffer(nil, 4<<20)
	return &child{cmd: cmd, stdout: scanner}
}

// line is the next line of the child; false when it has ended.
func (c *child) line() (string, bool) {
	if !c.stdout.Scan() {
		return "", false
	}
	return c.stdout.Text(), true
}

// kill ends the child as the kernel would, and reaps it.
func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait() // the error is the kill
}

// end waits for a child that ends by itself.
func (c *child) end(t *testing.T) {
	t.Helper()
	if err := c.cmd.Wait(); err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("child: %v", err)
	}
}
