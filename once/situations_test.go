//go:build unix

package once_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/killtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/once"
	"github.com/readback-go/readback/readbacktest"
)

// The tests are the situations of docs/guide/your-200-lines.md, by their numbers. The destination's
// own list of effects is the oracle.

// payment is what the destination must have.
type payment struct {
	Amount   int    `json:"amount_cents"`
	Currency string `json:"currency"`
}

var price = payment{1999, "EUR"}

// pay creates an order through a connector, which here is no more than an HTTP client.
func pay(c connectors.Connector, id string) once.Write {
	order := killtest.Order(id)
	order.Expect = intent.Fields{"amount_cents": price.Amount, "currency": price.Currency}
	return once.Write{
		Key:    "pay:" + id,
		Expect: price,
		Send: func(ctx context.Context, stamp string) error {
			_, err := c.Write(ctx, connectors.Request{Intent: order, Stamp: stamp})
			return err
		},
		Find: func(ctx context.Context, stamp string) (found []once.Record, err error) {
			seen, err := c.Read(ctx, connectors.Query{Intent: order, Stamp: stamp})
			for _, r := range seen.Records {
				found = append(found, once.Record{Ref: r.Ref, Stamp: r.Stamp, Fields: r.Fields})
			}
			return found, err
		},
		Settle: connectors.Within(0), Horizon: connectors.Within(30 * time.Second),
	}
}

// world is a destination of the class Plain: it deduplicates nothing.
func world(t *testing.T, faults ...orders.Fault) *orders.World {
	t.Helper()
	o := orders.Plain.Options()
	o.Faults = faults
	w, err := orders.New(o)
	killtest.Must(t, err)
	return w
}

// lagging is a destination whose reads come from a replica.
func lagging(t *testing.T, lag time.Duration, faults ...orders.Fault) *orders.World {
	t.Helper()
	o := orders.Lagging.Options()
	o.Lags, o.Faults = []time.Duration{lag}, faults
	w, err := orders.New(o)
	killtest.Must(t, err)
	return w
}

// do is Do, which must end in a status, with an error unless that is done.
func do(t *testing.T, store ledger.Ledger, w once.Write, want ledger.Status) engine.Outcome {
	t.Helper()
	out, err := once.Do(t.Context(), store, w)
	if out.Status != want || (err == nil) != (want.Group() == ledger.Done) || err != nil && !errors.Is(err, once.ErrNotVerified) {
		t.Errorf("%s, %v; want %s", out.Status, err, want)
	}
	return out
}

// effects fails the test unless so many records were made under an order id.
func effects(t *testing.T, w *orders.World, id string, want int) {
	t.Helper()
	made := 0
	for _, e := range w.Effects() {
		if e.OrderID == id && e.Applied() && e.Op == orders.OpCreate {
			made++
		}
	}
	if made != want {
		t.Errorf("%d orders %s were made, want %d", made, id, want)
	}
}

// stores runs a test with each kind of store. open opens the same one again, as another process would.
func stores(t *testing.T, test func(t *testing.T, open func() ledger.Ledger)) {
	t.Run("memory", func(t *testing.T) {
		store := ledger.NewMemory()
		test(t, func() ledger.Ledger { return store })
	})
	t.Run("sqlite", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "once.db")
		test(t, func() ledger.Ledger {
			l, err := sqlite.Open(context.Background(), file, nil)
			killtest.Must(t, err)
			t.Cleanup(func() { killtest.Must(t, l.Close()) })
			return l
		})
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := killtest.Database(t, killtest.Postgres(t))
		test(t, func() ledger.Ledger {
			pool, err := pgxpool.New(context.Background(), dsn)
			killtest.Must(t, err)
			l, err := postgres.Open(context.Background(), "", &postgres.Options{Pool: pool})
			killtest.Must(t, err)
			t.Cleanup(func() { killtest.Must(t, l.Close()); pool.Close() })
			return l
		})
	})
}

func TestLostResponse(t *testing.T) {
	stores(t, func(t *testing.T, open func() ledger.Ledger) {
		w, store := world(t, orders.Fault{Kind: orders.LostAnswer}), open()
		if out := do(t, store, pay(w.Connector(), "A-1"), ledger.Verified); out.Sends != 1 || out.Ref == "" {
			t.Errorf("%d sends of record %q; want 1 of one that is named", out.Sends, out.Ref)
		}
		effects(t, w, "A-1", 1)
	})
}

// A request that never arrived is not lost: it is sent again once it cannot arrive any more.
func TestLostRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, store := world(t, orders.Fault{Kind: orders.DroppedBefore, Times: 1}), ledger.NewMemory()
		if out := do(t, store, pay(w.Connector(), "A-1"), ledger.Verified); out.Sends != 2 {
			t.Errorf("%d sends, want 2", out.Sends)
		}
		effects(t, w, "A-1", 1)
	})
}

// Calls that are shorter than the horizon count together.
func TestLostRequestOfShortCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, store := world(t, orders.Fault{Kind: orders.DroppedBefore, Times: 1}), ledger.NewMemory()
		write, status := pay(w.Connector(), "A-1"), ledger.InProgress
		for began := time.Now(); status == ledger.InProgress; {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			out, err := once.Do(ctx, store, write)
			cancel()
			if status = out.Status; status == ledger.Verified && err != nil || time.Since(began) > 2*time.Minute {
				t.Fatalf("%s, %v after %v", status, err, time.Since(began))
			}
			time.Sleep(5 * time.Second)
		}
		if status != ledger.Verified {
			t.Errorf("%s, want verified", status)
		}
		effects(t, w, "A-1", 1)
	})
}

// Where nothing is declared about the destination, it is not: a reviewer decides.
func TestLostRequestAtAnUnknownDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, undeclare := range map[string]func(*once.Write){
			"settle":  func(w *once.Write) { w.Settle = connectors.Bound{} },
			"horizon": func(w *once.Write) { w.Horizon = connectors.Bound{} },
		} {
			w, store := world(t, orders.Fault{Kind: orders.DroppedBefore, Times: 1}), ledger.NewMemory()
			write := pay(w.Connector(), "A-1")
			undeclare(&write)
			if out := do(t, store, write, ledger.StatusReview); out.Sends != 1 {
				t.Errorf("%s: %d sends, want 1", name, out.Sends)
			}
			effects(t, w, "A-1", 0)
		}
	})
}

func TestRepeatedCall(t *testing.T) {
	stores(t, func(t *testing.T, open func() ledger.Ledger) {
		w := world(t)
		write := pay(w.Connector(), "A-1")
		do(t, open(), write, ledger.Verified)
		if out := do(t, open(), write, ledger.Verified); !out.Replayed || out.Sends != 1 {
			t.Errorf("the repeat was not recognised: %+v", out)
		}
		other := write
		other.Expect = payment{2999, "EUR"}
		_, err := once.Do(t.Context(), open(), other)
		var differs *ledger.DigestMismatchError
		if !errors.As(err, &differs) || !strings.Contains(err.Error(), differs.Received) || !strings.Contains(err.Error(), differs.Recorded) {
			t.Errorf("another content under the same key: %v; want a refusal with both digests", err)
		}
		effects(t, w, "A-1", 1)
	})
}

// The process dies at each point of a call, and another one makes the same call.
func TestKilledProcess(t *testing.T) {
	for name, where := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "once.db") },
		"postgres": func(t *testing.T) string { return killtest.Database(t, killtest.Postgres(t)) },
	} {
		for _, p := range killtest.Points() {
			t.Run(name+"/"+string(p), func(t *testing.T) {
				t.Parallel()
				stage, at := killtest.New(t), where(t)
				stage.KillAt(t, p, func(w *killtest.Worker) { w.Kill(t) }, storeOf+"="+at)
				store, end, err := openAt(at)
				killtest.Must(t, err)
				defer end()
				out := do(t, store, pay(stage.World.Connector(), "A-1"), ledger.Verified)
				if out.Replayed != (p != killtest.BeforeDo) || out.Sends != 1 {
					t.Errorf("replayed %t with %d sends", out.Replayed, out.Sends)
				}
				effects(t, stage.World, "A-1", 1)
			})
		}
	}
}

// storeOf is the environment variable with the store of the process that dies.
const storeOf = "READBACK_ONCE_STORE"

func openAt(where string) (store ledger.Ledger, end func(), err error) {
	if filepath.IsAbs(where) {
		l, err := sqlite.Open(context.Background(), where, nil)
		return l, func() { _ = l.Close() }, err
	}
	l, err := postgres.Open(context.Background(), where, nil)
	return l, func() { _ = l.Close() }, err
}

func TestMain(m *testing.M) { killtest.Main(m, work) }

// work is the process that dies.
func work(stage killtest.Inside) error {
	store, _, err := openAt(os.Getenv(storeOf))
	if err != nil {
		return err
	}
	reg, err := stage.Registry()
	if err != nil {
		return err
	}
	c, _, err := reg.Lookup("orders", orders.Kind)
	if err != nil {
		return err
	}
	stage.Reached(killtest.BeforeDo)
	_, err = once.Do(context.Background(), store, pay(c, "A-1"))
	stage.Reached(killtest.Settled)
	return err
}

func TestLaggingReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, settle := range map[string]connectors.Bound{"declared": connectors.Within(45 * time.Second), "undeclared": {}} {
			w, store := lagging(t, 40*time.Second, orders.Fault{Kind: orders.LostAnswer}), ledger.NewMemory()
			write := pay(w.Connector(), "A-1")
			write.Settle = settle
			if out := do(t, store, write, ledger.Verified); out.Sends != 1 {
				t.Errorf("%s: %d sends, want 1", name, out.Sends)
			}
			effects(t, w, "A-1", 1)
		}
	})
}

// A replica that lags for longer than anything is waited for: the write goes to review, and the next
// call finds it.
func TestReplicaThatLagsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, store := lagging(t, 10*time.Minute, orders.Fault{Kind: orders.LostAnswer}), ledger.NewMemory()
		write := pay(w.Connector(), "A-1")
		write.Settle = connectors.Bound{}
		do(t, store, write, ledger.StatusReview)
		do(t, store, write, ledger.StatusReview)
		time.Sleep(time.Hour)
		if out := do(t, store, write, ledger.Verified); out.Sends != 1 {
			t.Errorf("%d sends, want 1", out.Sends)
		}
		effects(t, w, "A-1", 1)
	})
}

func TestSuccessForSomethingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, fault := range map[string]orders.Fault{
			"a field is not stored":  {Kind: orders.DroppedField, Field: "currency"},
			"a field is changed":     {Kind: orders.NormalisedField, Field: "currency", How: "lower"},
			"the type is changed":    {Kind: orders.NormalisedField, Field: "amount_cents", How: "string"},
			"nothing is stored":      {Kind: orders.PhantomSuccess},
			"it is stored, and gone": {Kind: orders.Rollback},
			"it is stored twice":     {Kind: orders.DuplicateByOthers},
		} {
			w, store := world(t, fault), ledger.NewMemory()
			if out := do(t, store, pay(w.Connector(), "A-1"), ledger.StatusReview); out.Sends != 1 {
				t.Errorf("%s: %d sends, want 1", name, out.Sends)
			}
		}
	})
}

func TestManyWorkersAtOnce(t *testing.T) {
	stores(t, func(t *testing.T, open func() ledger.Ledger) {
		w := world(t, orders.Fault{Kind: orders.LostAnswer, Times: 1})
		var all, read sync.WaitGroup
		read.Add(3 * 4)
		for range 3 {
			store := open()
			for range 4 {
				write := pay(w.Connector(), "A-1")
				find, first := write.Find, sync.OnceFunc(func() { read.Done(); read.Wait() })
				write.Find = func(ctx context.Context, stamp string) ([]once.Record, error) {
					found, err := find(ctx, stamp)
					first() // all have found nothing before one of them sends
					return found, err
				}
				all.Go(func() { do(t, store, write, ledger.Verified) })
			}
		}
		all.Wait()
		effects(t, w, "A-1", 1)
		if writes, _ := w.Count(); writes != 1 {
			t.Errorf("%d sends, want 1", writes)
		}
	})
}

// A worker is suspended inside of its send, for longer than its lease. Another one finds nothing at the
// destination, and does not send.
func TestSuspendedWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, store := world(t), ledger.NewMemory()
		write := pay(w.Connector(), "A-1")
		write.Horizon = connectors.Bound{}
		slow := write
		slow.Send = func(_ context.Context, stamp string) error { // the context is ignored
			time.Sleep(20 * time.Minute)
			return write.Send(context.Background(), stamp)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if out, err := once.Do(ctx, store, slow); out.Status != ledger.InProgress || !errors.Is(err, once.ErrNotVerified) {
			t.Errorf("%s, %v; want in progress at the end of the context", out.Status, err)
		}
		do(t, store, write, ledger.StatusReview)
		effects(t, w, "A-1", 0)
		time.Sleep(time.Hour)
		do(t, store, write, ledger.Verified)
		effects(t, w, "A-1", 1)
	})
}

func TestFirstRequestArrivesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, store := world(t, orders.Fault{Kind: orders.LateCommit, Delay: 20 * time.Second, Times: 1}), ledger.NewMemory()
		if out := do(t, store, pay(w.Connector(), "A-1"), ledger.Verified); out.Sends != 1 {
			t.Errorf("%d sends, want 1", out.Sends)
		}
		time.Sleep(time.Hour)
		effects(t, w, "A-1", 1)
	})
}

// A request that arrives later than the declared horizon makes a second record, which no client can
// prevent. The outcome announces the recheck, and the call after it reports the duplicate.
func TestFirstRequestArrivesAfterTheHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, store := world(t, orders.Fault{Kind: orders.LateCommit, Delay: 2 * time.Minute, Times: 1}), ledger.NewMemory()
		write := pay(w.Connector(), "A-1")
		out := do(t, store, write, ledger.Verified)
		if out.RecheckUntil.IsZero() {
			t.Error("the outcome announces no recheck")
		}
		time.Sleep(time.Until(out.RecheckUntil))
		effects(t, w, "A-1", 2)
		do(t, store, write, ledger.StatusReview)
	})
}

func TestOtherActors(t *testing.T) {
	fields := intent.Fields{"order_id": "A-1", "amount_cents": json.Number("1999"), "currency": "EUR"}
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			change func(t *testing.T, w *orders.World, write *once.Write)
			sends  int
		}{
			"a colleague made the record before": {func(t *testing.T, w *orders.World, _ *once.Write) {
				_, err := w.Seed(fields, "")
				killtest.Must(t, err)
			}, 0},
			"another program's write has the key": {func(t *testing.T, w *orders.World, _ *once.Write) {
				_, err := w.Seed(fields, "rb-other")
				killtest.Must(t, err)
			}, 0},
			"a colleague makes it before the send": {func(t *testing.T, w *orders.World, write *once.Write) {
				send := write.Send
				write.Send = func(ctx context.Context, stamp string) error {
					_, err := w.Seed(fields, "")
					return errors.Join(err, send(ctx, stamp))
				}
			}, 1},
			"a colleague makes it, and the request is lost": {func(t *testing.T, w *orders.World, write *once.Write) {
				write.Send = func(context.Context, string) error {
					_, err := w.Seed(fields, "")
					return errors.Join(err, errors.New("the connection was reset"))
				}
			}, 1},
			"a colleague changes it": {func(t *testing.T, w *orders.World, write *once.Write) {
				send := write.Send
				write.Send = func(ctx context.Context, stamp string) error {
					err := send(ctx, stamp)
					_, edit := w.Edit(w.Records("A-1")[0].ID, intent.Fields{"amount_cents": json.Number("999")})
					return errors.Join(err, edit)
				}
			}, 1},
		} {
			w, store := world(t), ledger.NewMemory()
			write := pay(w.Connector(), "A-1")
			c.change(t, w, &write)
			if out := do(t, store, write, ledger.StatusReview); out.Sends != c.sends {
				t.Errorf("%s: %d sends, want %d", name, out.Sends, c.sends)
			}
		}
	})
}

// Three writes, of which the second cannot be read after its send. Repeated from the beginning, each is made once.
func TestHalfOfSeveralWrites(t *testing.T) {
	stores(t, func(t *testing.T, open func() ledger.Ledger) {
		w, ids := world(t, orders.Fault{Kind: orders.LostAnswer}), []string{"A-1", "A-2", "A-3"}
		all := func(horizon time.Duration, sent func() error) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for _, id := range ids {
				write := pay(w.Connector(), id)
				write.Horizon = connectors.Within(horizon)
				send := write.Send
				write.Send = func(ctx context.Context, stamp string) error {
					err := send(ctx, stamp)
					if id == "A-2" {
						err = errors.Join(err, sent())
						time.AfterFunc(10*horizon, cancel) // the caller ends; the horizon has, while the second cannot be read
					}
					return err
				}
				if _, err := once.Do(ctx, open(), write); err != nil {
					return err
				}
			}
			return nil
		}
		err := all(30*time.Millisecond, func() error { return w.Set(orders.Fault{Kind: orders.UnreadableRead, Key: "A-2"}) })
		if err == nil {
			t.Error("the second cannot be read, and there is no error")
		}
		effects(t, w, "A-3", 0)
		w.Clear()
		killtest.Must(t, all(6*time.Second, func() error { return errors.New("it is sent again") }))
		if sum := w.Summary(ids...); sum.Duplicates != 0 || len(sum.Lost) != 0 {
			t.Errorf("%+v; want each once", sum)
		}
	})
}

// Every fault at every request, and a kill at every point, of two writes: each is made once, and no
// success is reported of anything else.
func TestEveryFaultAndKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readbacktest.Replay(t, readbacktest.Plan{}, func(s *readbacktest.Story) {
			w, store, ids := world(t), ledger.NewMemory(), []string{"A-1", "A-2"}
			proxy := s.Proxy(orders.Handler(w), readbacktest.Options{})
			err := s.Run(func(ctx context.Context, run *readbacktest.Run) error {
				c, err := orders.NewConnector("http://orders.example", orders.Plain.Options(), run.Transport(proxy.Transport()))
				for _, id := range ids {
					if err == nil {
						_, err = once.Do(ctx, mortal{store, run}, pay(c, id))
					}
				}
				return err
			})
			kind, _ := s.Fault()
			sum := w.Summary(ids...)
			switch {
			case kind == readbacktest.Duplicate && sum.Duplicates == 1 && err != nil: // the network's, reported
			case kind == readbacktest.PhantomSuccess && sum.Duplicates == 0 && err != nil: // nothing is stored, reported
			case err != nil || sum.Duplicates != 0 || len(sum.Lost) != 0:
				s.Errorf("%+v, %v", sum, err)
			}
		})
	})
}

// mortal is the store as a process uses it: a killed one writes nothing.
type mortal struct {
	ledger.Ledger
	run *readbacktest.Run
}

// Reserve implements [ledger.Ledger].
func (m mortal) Reserve(ctx context.Context, r ledger.Reservation) (rec ledger.Record, fresh bool, err error) {
	err = m.run.Do("reserve", func() (err error) {
		rec, fresh, err = m.Ledger.Reserve(ctx, r)
		return err
	})
	return rec, fresh, err
}

// Append implements [ledger.Ledger].
func (m mortal) Append(ctx context.Context, id ledger.ID, fence int64, events ...ledger.Event) (rec ledger.Record, err error) {
	err = m.run.Do("append", func() (err error) {
		rec, err = m.Ledger.Append(ctx, id, fence, events...)
		return err
	})
	return rec, err
}
