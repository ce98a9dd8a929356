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
	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// spy is a connector that looks at what passes.
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

// watched is a bench whose connector is looked at and whose profile may be
// changed.
func watched(t *testing.T, o simulated.Options, change func(*connectors.Profile)) (*bench, *spy) {
	t.Helper()
	b := newBench(t, o, nil)
	d := b.world.Destination()
	s := &spy{Connector: d.Connector}
	d.Connector = s
	if change != nil {
		p := d.Profiles[simulated.Kind]
		change(&p)
		d.Profiles = map[string]connectors.Profile{simulated.Kind: p}
	}
	var reg connectors.Registry
	if err := reg.Register("orders", d); err != nil {
		t.Fatal(err)
	}
	b.engine = engine.New(b.ledger, &reg, nil)
	t.Cleanup(b.engine.Close)
	return b, s
}

// ops are the operations that reached the destination.
func (b *bench) ops() []simulated.Op {
	var all []simulated.Op
	for _, c := range b.world.Calls() {
		all = append(all, c.Op)
	}
	return all
}

// keys are the idempotency keys of the writes that reached the destination.
func (b *bench) keys() []string {
	var all []string
	for _, c := range b.world.Calls() {
		if c.Op != simulated.OpRead {
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

// What is about to be sent stands in the ledger first, the first time and every
// other.
func TestEverySendIsAnnouncedFirst(t *testing.T) {
	for _, class := range simulated.Classes() {
		t.Run(string(class), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, s := watched(t, class.Options(), nil)
				b.set(simulated.Fault{Vice: simulated.DroppedBefore, Times: 1})
				sends := 0
				s.write = func(r connectors.Request) {
					sends++
					rec := b.state(ledger.IDOf(r.Intent.StructuralKey()))
					if rec.State != ledger.Sending || rec.Sends != r.Attempt {
						t.Errorf("send %d is made while the ledger says %s after %d sends", r.Attempt, rec.Phase(), rec.Sends)
					}
				}
				if out := b.do(order("A-1", intent.Create)); out.Status != engine.StatusVerified || sends != 2 {
					t.Errorf("%+v after %d sends%s", out, sends, b.life(out.ID))
				}
			})
		})
	}
}

// Whatever the answer to a send was, the next thing is a read.
func TestEverySendIsFollowedByARead(t *testing.T) {
	for _, class := range simulated.Classes() {
		for _, vice := range []simulated.Vice{"", simulated.LostAnswer, simulated.DroppedBefore, simulated.BadGateway, simulated.LateCommit, simulated.PhantomSuccess} {
			t.Run(string(class)+"/"+cmp.Or(string(vice), "no vice"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, class.Options(), nil)
					if vice != "" {
						b.set(simulated.Fault{Vice: vice, Times: 2})
					}
					out := b.do(order("A-1", intent.Create))
					ops := b.ops()
					for i, op := range ops {
						if op != simulated.OpRead && (i+1 == len(ops) || ops[i+1] != simulated.OpRead) {
							t.Errorf("call %d is not followed by a read: %v%s", i, ops, b.life(out.ID))
						}
					}
					if n := len(b.world.Records("A-1")); out.Status != engine.StatusVerified || n != 1 {
						t.Errorf("%s with %d records%s", out.Status, n, b.life(out.ID))
					}
				})
			})
		}
	}
}

// A definite no to the second send does not take back the first, whose fate
// nobody knows: here it lands later.
func TestLaterRefusalDoesNotEraseAnUnknownSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, simulated.Unique.Options(), nil)
		b.set(simulated.Fault{Vice: simulated.LateCommit, Delay: 20 * time.Second, Times: 1})
		b.set(simulated.Fault{Vice: simulated.Refused, Skip: 1})
		out := b.do(order("A-1", intent.Create))
		if out.Status != engine.StatusVerified || out.Sends < 2 || len(b.world.Records("A-1")) != 1 {
			t.Errorf("%s after %d sends; the first landed%s", out.Status, out.Sends, b.life(out.ID))
		}
	})
}

// A conflict on the second send says that the first landed, though reads did
// not show it yet.
func TestConflictOnTheSecondSendIsEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, simulated.Unique.Options(), nil)
		b.set(simulated.Fault{Vice: simulated.LostAnswer, Times: 1})
		b.set(simulated.Fault{Vice: simulated.LaggingRead, Delay: time.Minute, Times: 1})
		out := b.do(order("A-1", intent.Create))
		if out.Status != engine.StatusVerified || out.Sends != 2 || len(b.world.Records("A-1")) != 1 {
			t.Errorf("%s after %d sends, want verified after 2%s", out.Status, out.Sends, b.life(out.ID))
		}
	})
}

// A repeat that must be recognised carries the key of the send before it; one
// that would be answered by a lie carries a new one; and no key goes where none
// is honoured.
func TestKeysOfRepeats(t *testing.T) {
	for name, c := range map[string]struct {
		class  simulated.Class
		vice   simulated.Vice
		same   bool
		reason string
	}{
		"unanswered": {simulated.Native, simulated.DroppedBefore, true, "it may come after all, and must meet its key"},
		"lost":       {simulated.Native, simulated.LateCommit, true, "it comes after all, and meets its key"},
		"phantom":    {simulated.Native, simulated.PhantomSuccess, false, "the key is burnt"},
		"no keys":    {simulated.Plain, simulated.DroppedBefore, true, "a key there would make Go's transport send again by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.class.Options(), nil)
				b.set(simulated.Fault{Vice: c.vice, Delay: 20 * time.Second, Times: 1})
				out := b.do(order("A-1", intent.Create))
				time.Sleep(time.Minute)
				keys := b.keys()
				if out.Status != engine.StatusVerified || len(b.world.Records("A-1")) != 1 || len(keys) < 2 {
					t.Fatalf("%s with keys %q%s", out.Status, keys, b.life(out.ID))
				}
				if same := keys[0] == keys[1]; same != c.same || (keys[0] == "") != (c.class == simulated.Plain) {
					t.Errorf("keys %q, the same: %t, want %t: %s", keys, same, c.same, c.reason)
				}
			})
		})
	}
}

// Between the read and the conditional repeat somebody else changes the record:
// nothing of theirs is overwritten.
func TestConditionalRepeatOverwritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := simulated.Plain.Options()
		o.Versions = true
		b, s := watched(t, o, nil)
		there, err := b.world.Seed(intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(5)}, "")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b.set(simulated.Fault{Vice: simulated.DroppedBefore, Times: 1})
		s.write = func(r connectors.Request) {
			if r.Attempt == 2 {
				if _, err := b.world.Edit(there.ID, intent.Fields{"amount_cents": jsonNumber(7)}); err != nil {
					t.Error(err)
				}
			}
		}
		out := b.do(order("A-1", intent.Update))
		now := b.world.Records("A-1")[0]
		if out.Status != engine.StatusReview || out.Sends != 2 || now.AmountCents() != 7 {
			t.Errorf("%s after %d sends, %d cents there; want review, 2, and the 7 of somebody else%s", out.Status, out.Sends, now.AmountCents(), b.life(out.ID))
		}
	})
}

// A wish that was fulfilled before is not sent, and the outcome says so.
func TestVacuousWritesAreNotSent(t *testing.T) {
	for _, write := range []intent.WriteType{intent.Update, intent.Upsert, intent.Delete} {
		t.Run(string(write), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, simulated.Unique.Options(), nil)
				if write != intent.Delete {
					b.seed(asStored("A-1"), "")
				}
				out := b.do(order("A-1", write))
				if writes, _ := b.world.Count(); out.Status != engine.StatusVerified || out.Verdict.String() != "vacuous" || out.Sends != 0 || writes != 0 {
					t.Errorf("%s (%s) after %d sends%s", out.Status, out.Verdict, out.Sends, b.life(out.ID))
				}
			})
		})
	}
}

// A create finds a record under its key: its own from an earlier life of the
// ledger, or somebody else's.
func TestCreateUnderATakenKey(t *testing.T) {
	ours := order("A-1", intent.Create).Stamp()
	for name, c := range map[string]struct {
		stamp  string
		want   engine.Status
		reason string
	}{
		"ours":           {ours, engine.StatusVerified, "it bears our stamp: it was sent before, and this ledger forgot"},
		"somebody's":     {"rb-other", engine.StatusReview, "a conflict, for a person, though it is exactly as wanted"},
		"without a mark": {"", engine.StatusReview, "nobody can say that it is ours"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, simulated.Plain.Options(), nil)
				b.seed(asStored("A-1"), c.stamp)
				out := b.do(order("A-1", intent.Create))
				if writes, _ := b.world.Count(); out.Status != c.want || writes != 0 {
					t.Errorf("%s after %d sends, want %s: %s%s", out.Status, writes, c.want, c.reason, b.life(out.ID))
				}
				if c.want != engine.StatusReview {
					return
				}
				out, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordRetry, By: "ada", Reason: "try"})
				if writes, _ := b.world.Count(); err != nil || out.Status != engine.StatusReview || writes != 0 {
					t.Errorf("a person's retry: %s, %v after %d sends; want review, none%s", out.Status, err, writes, b.life(out.ID))
				}
			})
		})
	}
}

// The budget counts sends that reached the destination, over the whole life.
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
				b := newBench(t, simulated.Native.Options(), &engine.Options{Budget: c.budget})
				b.set(simulated.Fault{Vice: simulated.DroppedBefore})
				out := b.do(order("A-1", intent.Create))
				if writes, _ := b.world.Count(); out.Status != engine.StatusNotApplied || writes != c.want {
					t.Errorf("%s after %d sends, want not applied after %d: %s%s", out.Status, writes, c.want, c.reason, b.life(out.ID))
				}
			})
		})
	}
}

// After a send of unknown fate an irreversible write goes to a reviewer, however
// long its absence lasts.
func TestIrreversibleWritesAreNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := watched(t, simulated.Plain.Options(), func(p *connectors.Profile) { p.Irreversible = []intent.WriteType{intent.Create} })
		b.set(simulated.Fault{Vice: simulated.DroppedBefore, Times: 1})
		out := b.do(order("A-1", intent.Create))
		b.work(24 * time.Hour)
		if got := b.state(out.ID); got.State != ledger.Review || got.Sends != 1 {
			t.Errorf("%s after %d sends, want review after one%s", got.Phase(), got.Sends, b.life(out.ID))
		}
	})
}

// A refund whose request or answer is lost is repeated under the provider's key,
// which is what makes the repeat safe.
func TestIrreversibleWritesAreRepeatedUnderANativeKey(t *testing.T) {
	for vice, sends := range map[simulated.Vice]int{simulated.DroppedBefore: 2, simulated.LostAnswer: 1} {
		t.Run(string(vice), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := watched(t, simulated.Native.Options(), func(p *connectors.Profile) { p.Irreversible = []intent.WriteType{intent.Create} })
				b.set(simulated.Fault{Vice: vice, Times: 1})
				out := b.do(order("A-1", intent.Create))
				if got := b.state(out.ID); out.Status != engine.StatusVerified || got.Sends != sends || len(b.world.Records("A-1")) != 1 {
					t.Errorf("%s after %d sends, want verified after %d%s", got.Phase(), got.Sends, sends, b.life(out.ID))
				}
			})
		})
	}
}

// Where reads may lag for nobody knows how long, one read that does not show a
// lost write is enough for a repeat under a native key.
func TestANativeKeyIsRepeatedAfterOneRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := simulated.Native.Options()
		o.Lags, o.Settle = []time.Duration{time.Millisecond}, connectors.Bound{}
		b, _ := watched(t, o, func(*connectors.Profile) {})
		b.set(simulated.Fault{Vice: simulated.DroppedBefore, Times: 1})
		out := b.do(order("A-1", intent.Create))
		ops := b.ops()
		want := []simulated.Op{simulated.OpRead, simulated.OpCreate, simulated.OpRead, simulated.OpCreate}
		if out.Status != engine.StatusVerified || out.Sends != 2 || !slices.Equal(ops[:4], want) {
			t.Errorf("%s after %d sends: %v, want one read before the first send and one between the two%s", out.Status, out.Sends, ops, b.life(out.ID))
		}
	})
}

// A send lands at the very end of the horizon, and reads lag, or take long: the
// read that shows nothing does not show that moment.
func TestLastMomentOfTheHorizon(t *testing.T) {
	for name, c := range map[string]struct {
		class  simulated.Class
		slow   time.Duration
		reason string
	}{
		"reads lag":       {simulated.Lagging, 0, "a replica that is behind does not show it when the horizon has passed"},
		"reads take long": {simulated.Plain, 40 * time.Second, "a read begun before it landed ends after the horizon"},
	} {
		for _, early := range []time.Duration{10 * time.Millisecond, time.Second, 3 * time.Second} {
			t.Run(name+"/"+early.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b, s := watched(t, c.class.Options(), func(p *connectors.Profile) { p.ReadTimeout = time.Minute })
					b.set(simulated.Fault{Vice: simulated.LateCommit, Delay: simulated.DefaultHorizon - early, Times: 1})
					s.read = func() { time.Sleep(c.slow) }
					out := b.do(order("A-1", intent.Create))
					time.Sleep(time.Minute)
					if n := len(b.world.Records("A-1")); out.Status != engine.StatusVerified || out.Sends != 1 || n != 1 {
						t.Errorf("%s after %d sends, %d records: %s%s", out.Status, out.Sends, n, c.reason, b.life(out.ID))
					}
				})
			})
		}
	}
}

// A worker dies between announcement and send, or after it: whoever takes over
// reads and does not send, and only what a read shows decides.
func TestTakenOverWriteIsReadFirst(t *testing.T) {
	for name, sent := range map[string]bool{"died before the send": false, "died after the send": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, s := watched(t, simulated.Native.Options(), nil)
				w := order("A-1", intent.Create)
				stop := make(chan struct{})
				defer close(stop)
				var once sync.Once
				s.write = func(r connectors.Request) {
					once.Do(func() {
						if sent {
							_, _ = s.Connector.Write(t.Context(), r) // its answer dies with the process
						}
						<-stop
					})
				}
				go func() { _, _ = b.engine.Do(context.Background(), w) }() // stands still for ever
				time.Sleep(10 * time.Minute)
				before := len(b.ops())
				next := b.newEngine(nil)
				out, err := next.Do(t.Context(), w)
				after := b.ops()[before:]
				if err != nil || out.Status != engine.StatusVerified || len(b.world.Records("A-1")) != 1 {
					t.Errorf("%+v, %v%s", out, err, b.life(out.ID))
				}
				if len(after) == 0 || after[0] != simulated.OpRead || slices.Contains(after, simulated.OpCreate) == sent {
					t.Errorf("the next worker did %v", after)
				}
			})
		})
	}
}
