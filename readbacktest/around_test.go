package readbacktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	rt "github.com/readback-go/readback/readbacktest"
)

// shop is a destination behind a link.
func shop(t *testing.T, faults ...rt.Fault) (*orders.World, *rt.Link, connectors.Connector) {
	t.Helper()
	w, err := orders.New(orders.Plain.Options())
	if err != nil {
		t.Fatal(err)
	}
	l := rt.Around(t, w.Destination().Connector, rt.Options{Script: faults})
	return w, l, l.Connector()
}

func order() connectors.Request {
	w := intent.WriteIntent{
		Tenant: "acme", Workflow: "run-1", Tool: "charge", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": invoice}, Expect: intent.Fields{"currency": "USD"},
	}
	return connectors.Request{Intent: w, Stamp: w.Stamp(), Attempt: 1}
}

// TestAround: what a connector returns under each fault, and what the shop has.
func TestAround(t *testing.T) {
	cases := map[rt.Kind]struct {
		fate    connectors.Fate
		records int
		reason  string
	}{
		rt.None:           {connectors.FateAnswered, 1, "nothing happens"},
		rt.LostAnswer:     {connectors.FateUnknown, 1, "unknown"},
		rt.DroppedBefore:  {connectors.FateUnknown, 0, "unknown"},
		rt.LateCommit:     {connectors.FateUnknown, 1, "it lands when the client is gone"},
		rt.PhantomSuccess: {connectors.FateAnswered, 0, "it says so"},
		rt.Duplicate:      {connectors.FateAnswered, 2, "the shop does not distinguish copies"},
		rt.CutBody:        {connectors.FateAnswered, 1, "a 2xx whose body is cut is a yes"},
		rt.BadGateway:     {connectors.FateUnknown, 1, "a 5xx says nothing"},
		rt.Unavailable:    {connectors.FateUnknown, 0, "a 5xx says nothing"},
		rt.Throttled:      {connectors.FateThrottled, 0, "a 429 says not now"},
		rt.ThrottledAfter: {connectors.FateThrottled, 1, "a lie"},
	}
	for _, v := range append(rt.WriteKinds(), rt.None, rt.ThrottledAfter) {
		t.Run("fault "+string(v), func(t *testing.T) {
			c, known := cases[v]
			if !known {
				t.Fatal("no case for this fault")
			}
			synctest.Test(t, func(t *testing.T) {
				var faults []rt.Fault
				if v != rt.None {
					faults = append(faults, rt.Fault{Kind: v, Nth: 1})
				}
				w, l, conn := shop(t, faults...)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := conn.Write(ctx, order())
				if got := connectors.FateOf(err); got != c.fate {
					t.Errorf("the connector says %q (%v), want %q: %s", got, err, c.fate, c.reason)
				}
				records := func(key string) int { return len(w.Records(key)) }
				rt.Effects(t, records, invoice, l).Exactly(c.records)
				l.ExpectEffects(t, nil, c.records)
			})
		})
	}
}

// TestAroundLag: a read of an old state is weak, whatever the connector would have called it; a
// write records its own query.
func TestAroundLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, conn := shop(t, rt.Fault{Kind: rt.LaggingRead, Nth: 1})
		r := order()
		if _, err := conn.Write(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		for n, want := range []struct {
			records  int
			strength connectors.Strength
		}{{0, connectors.Weak}, {1, connectors.Strong}} {
			o, err := conn.Read(t.Context(), connectors.Query{Intent: r.Intent, Stamp: r.Stamp})
			if err != nil || len(o.Records) != want.records || o.Strength != want.strength {
				t.Errorf("read %d: %d records, %q, %v; want %d, %q\n%s", n+1, len(o.Records), o.Strength, err, want.records, want.strength, l)
			}
		}
	})
}

// The optional capabilities of a connector, one by one.
type (
	plain   struct{ connectors.Connector }
	prepare struct{}
	invert  struct{}
)

func (prepare) Prepare(context.Context, connectors.Request) ([]byte, error) {
	return []byte("once"), nil
}

func (invert) Invert(w intent.WriteIntent, _ *connectors.Observation, _ connectors.Observation) (intent.WriteIntent, error) {
	return w, nil
}

// TestPowers: a connector with a link has the same capabilities as without.
func TestPowers(t *testing.T) {
	has := func(c connectors.Connector) (p [2]bool) {
		_, p[0] = c.(connectors.Preparer)
		_, p[1] = c.(connectors.Inverter)
		return p
	}
	for _, c := range []connectors.Connector{
		plain{},
		struct {
			plain
			prepare
		}{},
		struct {
			plain
			invert
		}{},
		struct {
			plain
			prepare
			invert
		}{},
	} {
		linked := rt.Around(t, c, rt.Options{}).Connector()
		if has(linked) != has(c) {
			t.Errorf("prepares, inverts: %v, and %v behind a link", has(c), has(linked))
		}
		checks, ok := linked.(connectors.Checker)
		if !ok || checks.Check(order().Intent) != nil {
			t.Error("a connector that checks nothing refuses behind a link")
		}
	}
	_, _, conn := shop(t)
	if checks, ok := conn.(connectors.Checker); !ok || checks.Check(intent.WriteIntent{}) == nil {
		t.Error("the simulated destination checks, and behind a link it does not")
	}
}

// TestBulk: a bulk read is made one by one, with a fault for each.
func TestBulk(t *testing.T) {
	_, l, conn := shop(t, rt.Fault{Kind: rt.Unavailable, Nth: 2, Ops: []rt.Op{rt.Read}})
	r := order()
	q := connectors.Query{Intent: r.Intent, Stamp: r.Stamp}
	if _, err := conn.Write(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	bulk, ok := conn.(connectors.BulkReader)
	if !ok {
		t.Fatal("it does not read in bulk")
	}
	answers, err := bulk.ReadMany(t.Context(), []connectors.Query{q, q, q})
	if err != nil || len(answers) != 3 {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	for i, a := range answers {
		if failed := i == 1; (a.Err != nil) != failed || !failed && len(a.Observation.Records) != 1 {
			t.Errorf("answer %d: %d records, %v\n%s", i+1, len(a.Observation.Records), a.Err, l)
		}
	}
}
