package engine_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// spy is a connector that observes its calls.
type spy struct {
	connectors.Connector
	write func(connectors.Request) // before each send
	read  func()                   // after each read
}

func (s *spy) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	if s.write != nil {
		s.write(r)
	}
	return s.Connector.Write(ctx, r)
}

func (s *spy) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	obs, err := s.Connector.Read(ctx, q)
	if s.read != nil {
		s.read()
	}
	return obs, err
}

// watched is a bench with a spy connector and a changeable profile.
func watched(t *testing.T, o orders.Options, change func(*connectors.Profile)) (*bench, *spy) {
	t.Helper()
	b := newBench(t, o, nil)
	d := b.world.Destination()
	s := &spy{Connector: d.Connector}
	d.Connector = s
	if change != nil {
		p := d.Profiles[orders.Kind]
		change(&p)
		d.Profiles = map[string]connectors.Profile{orders.Kind: p}
	}
	var reg connectors.Registry
	if err := reg.Register("orders", d); err != nil {
		t.Fatal(err)
	}
	b.engine = engine.New(b.ledger, &reg, nil)
	t.Cleanup(b.engine.Close)
	return b, s
}

// ops returns the operations that reached the destination.
func (b *bench) ops() []orders.Op {
	var all []orders.Op
	for _, c := range b.world.Calls() {
		all = append(all, c.Op)
	}
	return all
}

// keys returns the idempotency keys of the writes that reached the destination.
func (b *bench) keys() []string {
	var all []string
	for _, c := range b.world.Calls() {
		if c.Op != orders.OpRead {
			all = append(all, c.IdempotencyKey)
		}
	}
	return all
}

func (b *bench) seed(fields intent.Fields, stamp string) {
	b.t.Helper()
	if _, err := b.world.Seed(fields, stamp); err != nil {
		b.t.Fatal(err)
	}
}

// Every send is in the ledger before it is made, the first one and every repeat.
func TestEverySendIsAnnouncedFirst(t *testing.T) {
	for _, class := range orders.Classes() {
		t.Run(string(class), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, s := watched(t, class.Options(), nil)
				b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
				sends := 0
				s.write = func(r connectors.Request) {
					sends++
					rec := b.state(ledger.IDOf(r.Intent.StructuralKey()))
					if rec.State != ledger.Sending || rec.Sends != r.Attempt {
						t.Errorf("send %d is made while the ledger says %s after %d sends", r.Attempt, rec.Phase(), rec.Sends)
					}
				}
				if out := b.do(order("A-1", intent.Create)); out.Status != ledger.Verified || sends != 2 {
					t.Errorf("%+v after %d sends%s", out, sends, b.life(out.ID))
				}
			})
		})
	}
}

// Every send is followed by a read, whatever the response was.
func TestEverySendIsFollowedByARead(t *testing.T) {
	for _, class := range orders.Classes() {
		for _, kind := range []orders.FaultKind{"", orders.LostAnswer, orders.DroppedBefore, orders.BadGateway, orders.LateCommit, orders.PhantomSuccess} {
			t.Run(string(class)+"/"+cmp.Or(string(kind), "no fault"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, class.Options(), nil)
					if kind != "" {
						b.set(orders.Fault{Kind: kind, Times: 2})
					}
					out := b.do(order("A-1", intent.Create))
					ops := b.ops()
					for i, op := range ops {
						if op != orders.OpRead && (i+1 == len(ops) || ops[i+1] != orders.OpRead) {
							t.Errorf("call %d is not followed by a read: %v%s", i, ops, b.life(out.ID))
						}
					}
					if n := len(b.world.Records("A-1")); out.Status != ledger.Verified || n != 1 {
						t.Errorf("%s with %d records%s", out.Status, n, b.life(out.ID))
					}
				})
			})
		}
	}
}

// A definite refusal of the second send proves nothing about the first, whose fate is unknown:
// here it arrives later.
func TestLaterRefusalDoesNotEraseAnUnknownSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.set(orders.Fault{Kind: orders.LateCommit, Delay: 20 * time.Second, Times: 1})
		b.set(orders.Fault{Kind: orders.Refused, Skip: 1})
		out := b.do(order("A-1", intent.Create))
		if out.Status != ledger.Verified || out.Sends < 2 || len(b.world.Records("A-1")) != 1 {
			t.Errorf("%s after %d sends; the first landed%s", out.Status, out.Sends, b.life(out.ID))
		}
	})
}

// A conflict on the second send proves that the first was applied, though reads did not show it
// yet.
func TestConflictOnTheSecondSendIsEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
		b.set(orders.Fault{Kind: orders.LaggingRead, Delay: time.Minute, Times: 1})
		out := b.do(order("A-1", intent.Create))
		if out.Status != ledger.Verified || out.Sends != 2 || len(b.world.Records("A-1")) != 1 {
			t.Errorf("%s after %d sends, want verified after 2%s", out.Status, out.Sends, b.life(out.ID))
		}
	})
}

// A repeat that must be recognised has the key of the send before it. One that would get a
// replayed false response has a new key. No key is sent where none is supported.
func TestKeysOfRepeats(t *testing.T) {
	for name, c := range map[string]struct {
		class  orders.Class
		fault  orders.FaultKind
		same   bool
		reason string
	}{
		"unanswered": {orders.Native, orders.DroppedBefore, true, "it may come after all, and must meet its key"},
		"lost":       {orders.Native, orders.LateCommit, true, "it comes after all, and meets its key"},
		"phantom":    {orders.Native, orders.PhantomSuccess, false, "the key is burnt"},
		"no keys":    {orders.Plain, orders.DroppedBefore, true, "a key there would make Go's transport send again by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.class.Options(), nil)
				b.set(orders.Fault{Kind: c.fault, Delay: 20 * time.Second, Times: 1})
				out := b.do(order("A-1", intent.Create))
				time.Sleep(time.Minute)
				keys := b.keys()
				if out.Status != ledger.Verified || len(b.world.Records("A-1")) != 1 || len(keys) < 2 {
					t.Fatalf("%s with keys %q%s", out.Status, keys, b.life(out.ID))
				}
				if same := keys[0] == keys[1]; same != c.same || (keys[0] == "") != (c.class == orders.Plain) {
					t.Errorf("keys %q, the same: %t, want %t: %s", keys, same, c.same, c.reason)
				}
			})
		})
	}
}

// Between the read and the conditional repeat another actor changes the record: that change is
// not overwritten.
func TestConditionalRepeatOverwritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.Versions = true
		b, s := watched(t, o, nil)
		there, err := b.world.Seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5)}, "")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		s.write = func(r connectors.Request) {
			if r.Attempt == 2 {
				if _, err := b.world.Edit(there.ID, intent.Fields{"amount_cents": jsonNumber(7)}); err != nil {
					t.Error(err)
				}
			}
		}
		out := b.do(order("A-1", intent.Update))
		now := b.world.Records("A-1")[0]
		if out.Status != ledger.StatusReview || out.Sends != 2 || now.AmountCents() != 7 {
			t.Errorf("%s after %d sends, %d cents there; want review, 2, and the 7 of another actor%s", out.Status, out.Sends, now.AmountCents(), b.life(out.ID))
		}
	})
}

// A write whose state already exists is not sent, and the outcome says so.
func TestVacuousWritesAreNotSent(t *testing.T) {
	for _, write := range []intent.WriteType{intent.Update, intent.Upsert, intent.Delete} {
		t.Run(string(write), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				if write != intent.Delete {
					b.seed(asStored("A-1"), "")
				}
				out := b.do(order("A-1", write))
				if writes, _ := b.world.Count(); out.Status != ledger.Verified || out.Verdict.String() != "vacuous" || out.Sends != 0 || writes != 0 {
					t.Errorf("%s (%s) after %d sends%s", out.Status, out.Verdict, out.Sends, b.life(out.ID))
				}
			})
		})
	}
}

// A create meets a record under its key: its own from an earlier lifetime of the ledger, or
// another actor's.
func TestCreateUnderATakenKey(t *testing.T) {
	ours := order("A-1", intent.Create).Stamp()
	for name, c := range map[string]struct {
		stamp  string
		want   ledger.Status
		reason string
	}{
		"ours":            {ours, ledger.Verified, "it has our stamp: it was sent before, and this ledger forgot"},
		"another write's": {"rb-other", ledger.StatusReview, "a conflict, for a reviewer, though it is exactly as wanted"},
		"without a mark":  {"", ledger.StatusReview, "nothing shows that it is ours"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				b.seed(asStored("A-1"), c.stamp)
				out := b.do(order("A-1", intent.Create))
				if writes, _ := b.world.Count(); out.Status != c.want || writes != 0 {
					t.Errorf("%s after %d sends, want %s: %s%s", out.Status, writes, c.want, c.reason, b.life(out.ID))
				}
				if c.want != ledger.StatusReview {
					return
				}
				out, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordRetry, By: "ada", Reason: "try"})
				if writes, _ := b.world.Count(); err != nil || out.Status != ledger.StatusReview || writes != 0 {
					t.Errorf("a reviewer's retry: %s, %v after %d sends; want review, none%s", out.Status, err, writes, b.life(out.ID))
				}
			})
		})
	}
}

// The budget counts sends that reached the destination, over the whole lifetime.
func TestBudgetOfSends(t *testing.T) {
	for name, c := range map[string]struct {
		budget, want int
		reason       string
	}{
		"default": {0, 4, "four by default"},
		"two":     {2, 2, "as configured"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Native.Options(), &engine.Options{Budget: c.budget})
				b.set(orders.Fault{Kind: orders.DroppedBefore})
				out := b.do(order("A-1", intent.Create))
				if writes, _ := b.world.Count(); out.Status != ledger.NotApplied || writes != c.want {
					t.Errorf("%s after %d sends, want not applied after %d: %s%s", out.Status, writes, c.want, c.reason, b.life(out.ID))
				}
			})
		})
	}
}

// After a send of unknown fate an irreversible write goes to a reviewer, however long its
// absence lasts.
func TestIrreversibleWritesAreNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := watched(t, orders.Plain.Options(), func(p *connectors.Profile) { p.Irreversible = []intent.WriteType{intent.Create} })
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		out := b.do(order("A-1", intent.Create))
		b.work(24 * time.Hour)
		if got := b.state(out.ID); got.State != ledger.Review || got.Sends != 1 {
			t.Errorf("%s after %d sends, want review after one%s", got.Phase(), got.Sends, b.life(out.ID))
		}
	})
}

// A refund whose request or response is lost is repeated under the provider's key, which makes
// the repeat safe.
func TestIrreversibleWritesAreRepeatedUnderANativeKey(t *testing.T) {
	for kind, sends := range map[orders.FaultKind]int{orders.DroppedBefore: 2, orders.LostAnswer: 1} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := watched(t, orders.Native.Options(), func(p *connectors.Profile) { p.Irreversible = []intent.WriteType{intent.Create} })
				b.set(orders.Fault{Kind: kind, Times: 1})
				out := b.do(order("A-1", intent.Create))
				if got := b.state(out.ID); out.Status != ledger.Verified || got.Sends != sends || len(b.world.Records("A-1")) != 1 {
					t.Errorf("%s after %d sends, want verified after %d%s", got.Phase(), got.Sends, sends, b.life(out.ID))
				}
			})
		})
	}
}

// Where reads may lag for an unknown time, one read that does not show a lost write is enough
// for a repeat under a native key.
func TestANativeKeyIsRepeatedAfterOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Native.Options()
		o.Lags, o.Settle = []time.Duration{time.Millisecond}, connectors.Bound{}
		b, _ := watched(t, o, func(*connectors.Profile) {})
		b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		out := b.do(order("A-1", intent.Create))
		ops := b.ops()
		want := []orders.Op{orders.OpRead, orders.OpCreate, orders.OpRead, orders.OpCreate}
		if out.Status != ledger.Verified || out.Sends != 2 || !slices.Equal(ops[:4], want) {
			t.Errorf("%s after %d sends: %v, want one read before the first send and one between the two%s", out.Status, out.Sends, ops, b.life(out.ID))
		}
	})
}

// A send arrives at the very end of the horizon, and reads lag, or take long: a read that shows
// nothing does not cover that moment.
func TestLastMomentOfTheHorizon(t *testing.T) {
	for name, c := range map[string]struct {
		class  orders.Class
		slow   time.Duration
		reason string
	}{
		"reads lag":       {orders.Lagging, 0, "a replica that is behind does not show it when the horizon has passed"},
		"reads take long": {orders.Plain, 40 * time.Second, "a read begun before it landed ends after the horizon"},
	} {
		for _, early := range []time.Duration{10 * time.Millisecond, time.Second, 3 * time.Second} {
			t.Run(name+"/"+early.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b, s := watched(t, c.class.Options(), func(p *connectors.Profile) { p.ReadTimeout = time.Minute })
					b.set(orders.Fault{Kind: orders.LateCommit, Delay: orders.DefaultHorizon - early, Times: 1})
					s.read = func() { time.Sleep(c.slow) }
					out := b.do(order("A-1", intent.Create))
					time.Sleep(time.Minute)
					if n := len(b.world.Records("A-1")); out.Status != ledger.Verified || out.Sends != 1 || n != 1 {
						t.Errorf("%s after %d sends, %d records: %s%s", out.Status, out.Sends, n, c.reason, b.life(out.ID))
					}
				})
			})
		}
	}
}

// A worker dies between announcement and send, or after it: the worker that takes over reads
// and does not send, and only a read decides.
func TestTakenOverWriteIsReadFirst(t *testing.T) {
	for name, sent := range map[string]bool{"died before the send": false, "died after the send": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, s := watched(t, orders.Native.Options(), nil)
				w := order("A-1", intent.Create)
				stop := make(chan struct{})
				defer close(stop)
				var once sync.Once
				s.write = func(r connectors.Request) {
					once.Do(func() {
						if sent {
							_, _ = s.Connector.Write(t.Context(), r) // its response dies with the process
						}
						<-stop
					})
				}
				go func() { _, _ = b.engine.Do(context.Background(), w) }() // it stalls for ever
				time.Sleep(10 * time.Minute)
				before := len(b.ops())
				next := b.newEngine(nil)
				out, err := next.Do(t.Context(), w)
				after := b.ops()[before:]
				if err != nil || out.Status != ledger.Verified || len(b.world.Records("A-1")) != 1 {
					t.Errorf("%+v, %v%s", out, err, b.life(out.ID))
				}
				if len(after) == 0 || after[0] != orders.OpRead || slices.Contains(after, orders.OpCreate) == sent {
					t.Errorf("the next worker did %v", after)
				}
			})
		})
	}
}
