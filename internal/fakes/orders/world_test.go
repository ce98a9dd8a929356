package orders_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// send writes once with its own key, in a second of time.
func send(t *testing.T, c connectors.Connector, in intent.WriteIntent, key string) (connectors.Receipt, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	r := connectors.Request{Intent: in, Stamp: "rb-1", IdempotencyKey: key, Attempt: 1}
	if in.Write != intent.Create {
		o := find(t, c, in)
		r.Before = &o
	}
	return c.Write(ctx, r)
}

func find(t *testing.T, c connectors.Connector, in intent.WriteIntent) connectors.Observation {
	t.Helper()
	o, err := c.Read(t.Context(), connectors.Query{Intent: in})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func set(t *testing.T, w *orders.World, faults ...orders.Fault) {
	t.Helper()
	for _, f := range faults {
		if err := w.Set(f); err != nil {
			t.Fatal(err)
		}
	}
}

func code(err error) string {
	var e *connectors.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}

func TestNativeKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orders.Native.Options())
		c := w.Connector()
		one := order(intent.Create, 1)
		first, err := send(t, c, one, "k")
		if err != nil || first.Replay {
			t.Fatalf("first: %+v, %v", first, err)
		}
		again, err := send(t, c, one, "k")
		if want := first; err != nil || !again.Replay || again.Ref != want.Ref || again.Code != "201" {
			t.Errorf("same key: %+v, %v; want the first answer as a replay", again, err)
		}
		if _, err := send(t, c, order(intent.Create, 2), "k"); code(err) != "422" {
			t.Errorf("same key for another request: %v, want 422", err)
		}
		time.Sleep(orders.DefaultWindow)
		if r, err := send(t, c, one, "k"); err != nil || r.Replay || r.Ref == first.Ref {
			t.Errorf("after the window: %+v, %v; want a second order", r, err)
		}
		if s := w.Summary(); s.SideEffectCalls != 2 || s.Duplicates != 1 {
			t.Errorf("summary %+v, want 2 calls with effect and 1 duplicate", s)
		}
	})
}

// TestPhantomBurnsKey: the lie is replayed, and only another key helps.
func TestPhantomBurnsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orders.Native.Options())
		c := w.Connector()
		set(t, w, orders.Fault{Kind: orders.PhantomSuccess, Times: 1})
		for range 3 {
			if _, err := send(t, c, order(intent.Create, 1), "k"); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(w.Records("Order-001")); n != 0 {
			t.Errorf("%d orders under the burnt key, want none", n)
		}
		if _, err := send(t, c, order(intent.Create, 1), "k2"); err != nil {
			t.Fatal(err)
		}
		if n := len(w.Records("Order-001")); n != 1 {
			t.Errorf("%d orders under a new key, want 1", n)
		}
	})
}

func TestKeyInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orders.Native.Options())
		c := w.Connector()
		set(t, w, orders.Fault{Kind: orders.LateCommit, Times: 1, Delay: 5 * time.Second})
		_, err := send(t, c, order(intent.Create, 1), "k")
		if connectors.FateOf(err) != connectors.FateUnknown {
			t.Errorf("late commit: %v, want unknown", err)
		}
		if _, err := send(t, c, order(intent.Create, 1), "k"); code(err) != "409" {
			t.Errorf("while it is worked on: %v, want 409", err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if r, err := send(t, c, order(intent.Create, 1), "k"); err != nil || !r.Replay {
			t.Errorf("after it: %+v, %v; want a replay", r, err)
		}
		if n := len(w.Records("Order-001")); n != 1 {
			t.Errorf("%d orders, want 1", n)
		}
	})
}

// TestKeyOnlyWhereHonoured: elsewhere the header makes net/http send twice.
func TestKeyOnlyWhereHonoured(t *testing.T) {
	for _, class := range orders.Classes() {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, class.Options())
			if _, err := send(t, w.Connector(), order(intent.Create, 1), "k"); err != nil {
				t.Fatal(err)
			}
			want := ""
			if class == orders.Native {
				want = "k"
			}
			if got := w.Calls()[0].IdempotencyKey; got != want {
				t.Errorf("%s: the key on the wire is %q, want %q", class, got, want)
			}
		})
	}
}

func TestLag(t *testing.T) {
	cases := map[string]struct {
		lags   []time.Duration
		fault  time.Duration
		after  time.Duration
		want   []int // records seen by reads in a row
		reason string
	}{
		"primary":       {nil, 0, 0, []int{1, 1}, "no replica"},
		"too early":     {[]time.Duration{time.Second}, 0, 999 * time.Millisecond, []int{0}, "the replica is a second behind"},
		"in time":       {[]time.Duration{time.Second}, 0, time.Second, []int{1}, "the replica has come so far"},
		"alternating":   {[]time.Duration{0, time.Second}, 0, 0, []int{0, 1, 0, 1}, "reads use the replicas in rotation"},
		"one old read":  {nil, time.Second, 0, []int{0, 1}, "the fault meets one read"},
		"not so old":    {nil, time.Second, 2 * time.Second, []int{1}, "the write is older than the lag"},
		"lag and older": {[]time.Duration{time.Second}, 3 * time.Second, 2 * time.Second, []int{0, 1}, "the larger lag counts"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				o.Lags = c.lags
				w := newWorld(t, o)
				if _, err := send(t, w.Connector(), order(intent.Create, 1), ""); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.after)
				if c.fault > 0 {
					set(t, w, orders.Fault{Kind: orders.LaggingRead, Times: 1, Delay: c.fault})
				}
				var got []int
				for range c.want {
					got = append(got, len(find(t, w.Connector(), order(intent.Create, 1)).Records))
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("records seen (-want +got):\n%s%s", d, c.reason)
				}
			})
		})
	}
}

// TestLaggingUpdate: a replica shows the old value, not absence.
func TestLaggingUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orders.Lagging.Options())
		c := w.Connector()
		if _, err := send(t, c, order(intent.Create, 1), ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(orders.DefaultLag)
		if _, err := send(t, c, order(intent.Update, 1), ""); err != nil {
			t.Fatal(err)
		}
		note := func() any { return find(t, c, order(intent.Create, 1)).Records[0].Fields["note"] }
		if got := note(); got != order(intent.Create, 1).Expect["note"] {
			t.Errorf("at once: %v, want the old value", got)
		}
		time.Sleep(orders.DefaultLag)
		if got := note(); got != " Changed " {
			t.Errorf("after the lag: %v, want the new value", got)
		}
	})
}

func TestFaultCounting(t *testing.T) {
	cases := map[string]struct {
		fault  orders.Fault
		want   string // one letter for each of six creates: lost or ok
		reason string
	}{
		"all":         {orders.Fault{}, "llllll", "no limit"},
		"one":         {orders.Fault{Times: 1}, "looooo", "the next one"},
		"two":         {orders.Fault{Times: 2}, "lloooo", "the next two"},
		"third":       {orders.Fault{Skip: 2, Times: 1}, "oolooo", "the third"},
		"other write": {orders.Fault{Ops: []orders.Op{orders.OpUpdate}}, "oooooo", "creates are not concerned"},
		"this write":  {orders.Fault{Ops: []orders.Op{orders.OpUpdate, orders.OpCreate}, Times: 1}, "looooo", "creates are concerned"},
		"one order":   {orders.Fault{Key: "Order-004"}, "oooloo", "the fourth order"},
		"never":       {orders.Fault{Chance: 1e-12}, "oooooo", "hardly ever"},
		"always":      {orders.Fault{Chance: 1}, "llllll", "a chance of one"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, orders.Plain.Options())
				c.fault.Kind = orders.LostAnswer
				set(t, w, c.fault)
				got := ""
				for n := range 6 {
					_, err := send(t, w.Connector(), order(intent.Create, n+1), "")
					got += map[bool]string{true: "o", false: "l"}[err == nil]
				}
				if got != c.want {
					t.Errorf("answers %s, want %s: %s", got, c.want, c.reason)
				}
			})
		})
	}
}

// TestChance: the seed decides, and what happens to an order does not hang on
// the order of requests.
func TestChance(t *testing.T) {
	fates := func(seed uint64, numbers []int) map[int]string {
		got := map[int]string{}
		synctest.Test(t, func(t *testing.T) {
			o := orders.Plain.Options()
			o.Seed = seed
			o.Faults = []orders.Fault{{Kind: orders.LostAnswer, Chance: 0.3}}
			w := newWorld(t, o)
			for _, n := range numbers {
				for range 2 {
					_, err := send(t, w.Connector(), order(intent.Create, n), "")
					got[n] += map[bool]string{true: "o", false: "l"}[err == nil]
				}
			}
		})
		return got
	}
	numbers := make([]int, 200)
	for i := range numbers {
		numbers[i] = i
	}
	first := fates(1, numbers)
	slices.Reverse(numbers)
	if d := cmp.Diff(first, fates(1, numbers)); d != "" {
		t.Errorf("one seed, another order of requests (-first +second):\n%s", d)
	}
	if cmp.Equal(first, fates(2, numbers)) {
		t.Error("two seeds gave the same faults")
	}
	lost := 0
	for _, s := range first {
		lost += len(s) - len(slices.DeleteFunc([]byte(s), func(b byte) bool { return b == 'l' }))
	}
	if lost < 80 || lost > 160 {
		t.Errorf("%d of 400 answers lost at a chance of 0.3", lost)
	}
}

func TestFaultsThatCannotBe(t *testing.T) {
	cases := map[string]struct {
		fault  orders.Fault
		class  orders.Class
		reason string
	}{
		"unknown":         {orders.Fault{Kind: "greed"}, orders.Plain, "no such vice"},
		"none":            {orders.Fault{}, orders.Plain, "a fault is required"},
		"second of one":   {orders.Fault{Kind: orders.DuplicateByOthers}, orders.Unique, "order_id is unique"},
		"reading a write": {orders.Fault{Kind: orders.LaggingRead, Ops: []orders.Op{orders.OpCreate}}, orders.Plain, "a write is no read"},
		"writing a read":  {orders.Fault{Kind: orders.LostAnswer, Ops: []orders.Op{orders.OpRead}}, orders.Plain, "a read has no effect"},
		"likely":          {orders.Fault{Kind: orders.LostAnswer, Chance: 1.5}, orders.Plain, "more than certain"},
		"form":            {orders.Fault{Kind: orders.UnreadableRead, How: "poem"}, orders.Plain, "no such form"},
		"status":          {orders.Fault{Kind: orders.Refused, How: "600"}, orders.Plain, "no refusal"},
		"key":             {orders.Fault{Kind: orders.DroppedField, Field: "order_id"}, orders.Plain, "an order keeps its key"},
		"negative":        {orders.Fault{Kind: orders.LostAnswer, Times: -1}, orders.Plain, "times are counted from 0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := newWorld(t, c.class.Options()).Set(c.fault); !errors.Is(err, orders.ErrFault) {
				t.Errorf("%+v: %v, want ErrFault: %s", c.fault, err, c.reason)
			}
		})
	}
}

func TestParseFault(t *testing.T) {
	want := orders.Fault{
		Kind: orders.LateCommit, Ops: []orders.Op{orders.OpCreate, orders.OpDelete}, Key: "A-1",
		Skip: 1, Times: 2, Chance: 0.5, Delay: 3 * time.Second,
	}
	got, err := orders.ParseFault(" late-commit,op=create,op=delete,key=A-1,skip=1,times=2,chance=0.5,delay=3s\n")
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for _, v := range orders.FaultKinds() {
		if f, err := orders.ParseFault(string(v)); err != nil || f.Kind != v {
			t.Errorf("%s: %+v, %v", v, f, err)
		}
	}
	for _, bad := range []string{"", "greed", "lost-answer,times=x", "lost-answer,often=1", "lost-answer,delay=3", "lost-answer,times=-1"} {
		if f, err := orders.ParseFault(bad); !errors.Is(err, orders.ErrFault) {
			t.Errorf("%q: %+v, %v; want ErrFault", bad, f, err)
		}
	}
}

func TestSummarize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orders.Plain.Options())
		c := w.Connector()
		for n, v := range []orders.FaultKind{orders.LostAnswer, orders.DuplicateByOthers, orders.PhantomSuccess, orders.DroppedBefore, orders.Refused} {
			set(t, w, orders.Fault{Kind: v, Times: 1})
			_, _ = send(t, c, order(intent.Create, n+1), "") // the faults decide
		}
		if _, err := w.Seed(intent.Fields{"order_id": "theirs", "amount_cents": json.Number("5")}, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := send(t, c, order(intent.Update, 1), ""); err != nil {
			t.Fatal(err)
		}
		want := orders.Summary{
			SideEffectCalls: 3, // two creates and the update
			BalanceCents:    2000 + 2*1002 + 5,
			Orders:          4,
			Duplicates:      1,
			Lost:            []string{"Order-003", "Order-004", "Order-005"},
		}
		got := w.Summary("Order-001", "Order-002", "Order-003", "Order-004", "Order-005")
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("summary (-want +got):\n%s", d)
		}
	})
}

// TestRollback: every kind of effect can be taken back, and versions continue.
func TestRollback(t *testing.T) {
	for _, write := range []intent.WriteType{intent.Create, intent.Update, intent.Delete} {
		t.Run(string(write), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				o.Versions = true
				w := newWorld(t, o)
				c := w.Connector()
				if write != intent.Create {
					if _, err := send(t, c, order(intent.Create, 1), ""); err != nil {
						t.Fatal(err)
					}
				}
				before := w.Records("Order-001")
				set(t, w, orders.Fault{Kind: orders.Rollback, Times: 1, Delay: time.Minute})
				r, err := send(t, c, order(write, 1), "")
				if err != nil {
					t.Fatal(err)
				}
				during := w.Records("Order-001")
				if cmp.Equal(before, during) {
					t.Errorf("nothing happened at first")
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				after := w.Records("Order-001")
				if len(before) == 1 && len(after) == 1 {
					if fmt.Sprint(after[0].Version) == r.Version || after[0].Version <= before[0].Version {
						t.Errorf("version %d was seen before", after[0].Version)
					}
					after[0].Version = before[0].Version
				}
				if d := cmp.Diff(before, after); d != "" {
					t.Errorf("after the rollback (-before +after):\n%s", d)
				}
			})
		})
	}
}

func TestDestinationRefuses(t *testing.T) {
	cases := map[string]struct {
		class  orders.Class
		change func(*intent.WriteIntent)
		code   string
		reason string
	}{
		"negative amount": {orders.Plain, func(w *intent.WriteIntent) { w.Expect["amount_cents"] = json.Number("-1") }, "422", "amounts are not negative"},
		"broken amount":   {orders.Plain, func(w *intent.WriteIntent) { w.Expect["amount_cents"] = json.Number("1.5") }, "422", "cents are whole"},
		"amount in words": {orders.Plain, func(w *intent.WriteIntent) { w.Expect["amount_cents"] = "12" }, "422", "a string is no number"},
		"twice":           {orders.Unique, func(w *intent.WriteIntent) { w.Key["order_id"] = "there" }, "409", "order_id is unique"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, c.class.Options())
				if _, err := w.Seed(intent.Fields{"order_id": "there"}, ""); err != nil {
					t.Fatal(err)
				}
				in := order(intent.Create, 1)
				c.change(&in)
				if _, err := send(t, w.Connector(), in, ""); code(err) != c.code {
					t.Errorf("%v, want %s: %s", err, c.code, c.reason)
				}
				if n := len(w.Effects()); n != 1 {
					t.Errorf("%d effects, want the seed alone", n)
				}
			})
		})
	}
}

// TestRefusedForms: the status of a refusal can be chosen.
func TestRefusedForms(t *testing.T) {
	for _, how := range orders.Forms[orders.Refused] {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, orders.Plain.Options())
			set(t, w, orders.Fault{Kind: orders.Refused, How: how})
			want := map[bool]connectors.Fate{true: connectors.FateLogin, false: connectors.FateRefused}[how == "401"]
			if _, err := send(t, w.Connector(), order(intent.Create, 1), ""); code(err) != how || connectors.FateOf(err) != want {
				t.Errorf("%s: %v", how, err)
			}
		})
	}
}

// TestUnreachableReads: faults that can concern reads do so only if set to.
func TestUnreachableReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, orders.Plain.Options())
		c := w.Connector()
		set(t, w, orders.Fault{Kind: orders.Unreachable, Times: 1})
		find(t, c, order(intent.Create, 1)) // passes
		if _, err := send(t, c, order(intent.Create, 1), ""); connectors.FateOf(err) != connectors.FateNotSent {
			t.Errorf("write: %v, want not sent", err)
		}
		for _, v := range []orders.FaultKind{orders.Unreachable, orders.Throttled} {
			set(t, w, orders.Fault{Kind: v, Times: 1, Ops: []orders.Op{orders.OpRead}})
			if o, err := c.Read(t.Context(), connectors.Query{Intent: order(intent.Create, 1)}); err == nil {
				t.Errorf("%s: %d records, want an error", v, len(o.Records))
			}
		}
		if err := c.Probe(t.Context()); err != nil {
			t.Errorf("probe: %v", err)
		}
		set(t, w, orders.Fault{Kind: orders.Unreachable, Ops: []orders.Op{orders.OpRead}})
		if err := c.Probe(t.Context()); err == nil {
			t.Error("probe of what cannot be reached: no error")
		}
	})
}

func TestNewConnectorWantsAnAddress(t *testing.T) {
	for _, base := range []string{"", "127.0.0.1:80", "ftp://x", "http://", "http://%zz"} {
		if _, err := orders.NewConnector(base, orders.Options{}, http.DefaultTransport); err == nil {
			t.Errorf("%q: no error", base)
		}
	}
}
