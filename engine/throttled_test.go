package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// throttling is a connector whose destination takes no reads for a while, and says so.
type throttling struct {
	connectors.Connector
	mu    sync.Mutex
	open  time.Time // when it takes reads again
	early int       // reads before then
}

func (c *throttling) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	c.mu.Lock()
	left := time.Until(c.open)
	if left > 0 {
		c.early++
	}
	c.mu.Unlock()
	if left > 0 {
		return connectors.Observation{}, &connectors.Error{Fate: connectors.FateThrottled, Code: "429", RetryAfter: left, Err: errors.New("the destination answered 429")}
	}
	return c.Connector.Read(ctx, q)
}

func (c *throttling) throttle(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = time.Now().Add(d)
}

// A read that is answered with a time is not made again before it: not for this write, and where
// there are guards for no other.
func TestReadsHeedRetryAfter(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		class   orders.Class
		guarded bool
		writes  int
		most    int // reads that were too early
	}{
		"after the send":               {"it heeds it", orders.Unique, false, 1, 1},
		"before the send":              {"it heeds it", orders.Plain, false, 1, 1},
		"after the send, with guards":  {"all heed what one was told, but for those under way", orders.Unique, true, 20, 4},
		"before the send, with guards": {"no other write is sent either: it would need a read", orders.Plain, true, 20, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.class.Options(), nil)
				d := b.world.Destination()
				conn := &throttling{Connector: d.Connector}
				d.Connector = conn
				opts := &engine.Options{}
				if c.guarded {
					var reg connectors.Registry
					if err := reg.Register("orders", d); err != nil {
						t.Fatal(err)
					}
					g := guards.New(b.ledger, &reg, nil)
					defer func() { _ = g.Close() }()
					opts.Guards = g
				}
				b.engine = b.engineOn(b.ledger, d, opts)
				defer b.engine.Close()
				conn.throttle(10 * time.Minute)
				var ids []ledger.ID
				for n := range c.writes {
					ids = append(ids, b.enqueue(order(fmt.Sprint("A-", n), intent.Create)))
				}
				b.work(time.Hour)
				for _, id := range ids {
					if rec := b.state(id); rec.Settlement != ledger.Verified || rec.Sends != 1 {
						t.Errorf("%s after %d sends%s", rec.Phase(), rec.Sends, b.life(id))
					}
				}
				if conn.early > c.most {
					t.Errorf("%d reads before the time that it asked for, want at most %d: %s%s", conn.early, c.most, c.reason, b.life(ids[0]))
				}
			})
		})
	}
}

// A workflow that reads back itself is answered when the destination takes reads again.
func TestReadBackHeedsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		d := b.world.Destination()
		conn := &throttling{Connector: d.Connector}
		d.Connector = conn
		b.engine = b.engineOn(b.ledger, d, nil)
		defer b.engine.Close()
		conn.throttle(10 * time.Minute)
		found := b.readBack(order("A-1", intent.Create), engine.ReadBackCase{})
		if found.Verdict != verify.Unavailable || found.After.Before(conn.open) {
			t.Errorf("%s, to be asked again %s before the destination takes reads", found.Verdict, conn.open.Sub(found.After))
		}
	})
}
