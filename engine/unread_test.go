package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// torn is a ledger some of whose rows cannot be read, or whose listings fail.
type torn struct {
	ledger.Ledger
	rows  []ledger.ID
	lists error
}

func (l *torn) List(ctx context.Context, f ledger.Filter) ([]ledger.Record, error) {
	if l.lists != nil {
		return nil, l.lists
	}
	recs, err := l.Ledger.List(ctx, f)
	var left ledger.UnreadError
	recs = slices.DeleteFunc(recs, func(r ledger.Record) bool {
		if !slices.Contains(l.rows, r.ID) {
			return false
		}
		left.Writes = append(left.Writes, ledger.Unread{ID: r.ID, Err: fmt.Errorf("%w: write %s", ledger.ErrCorrupt, r.ID)})
		return true
	})
	if err == nil && len(left.Writes) > 0 {
		return recs, &left
	}
	return recs, err
}

func (l *torn) Find(ctx context.Context, s ledger.Search) (ledger.SearchResult, error) {
	if l.lists != nil {
		return ledger.SearchResult{}, l.lists
	}
	found, err := l.Ledger.Find(ctx, s)
	found.Records = slices.DeleteFunc(found.Records, func(r ledger.Record) bool {
		if slices.Contains(l.rows, r.ID) {
			found.Unread = append(found.Unread, ledger.Unread{ID: r.ID, Err: ledger.ErrCorrupt})
		}
		return slices.Contains(l.rows, r.ID)
	})
	return found, err
}

// A later write that explains a recheck's result is searched among the readable rows. Without
// one, a damaged row does not suppress the alarm.
func TestRecheckBesideDamagedRows(t *testing.T) {
	for name, c := range map[string]struct {
		then   func(b *bench) // and that row is damaged
		damage bool
		lists  error
		review bool
		reason string
	}{
		"we removed it":                    {func(b *bench) { b.do(wish("A-1", 1, intent.Delete)) }, false, nil, false, "our delete was verified"},
		"we removed it, which is damaged":  {func(b *bench) { b.do(wish("A-1", 1, intent.Delete)) }, true, nil, true, "better a needless alarm than none"},
		"another actor removed it":         {func(b *bench) { b.remove("A-1") }, false, nil, true, "the damaged row is another record's"},
		"the ledger cannot be listed now":  {func(b *bench) { b.do(wish("A-1", 1, intent.Delete)) }, false, ledger.ErrUnavailable, false, "it is searched for again"},
		"it is there, whatever is damaged": {func(*bench) {}, false, nil, false, "nothing is to be explained"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				o.Recheck = connectors.Within(time.Hour)
				b := newBench(t, o, nil)
				l := &torn{Ledger: b.ledger}
				b.engine = b.engineOn(l, b.world.Destination(), nil)
				out, other := b.do(order("A-1", intent.Create)), b.do(order("A-9", intent.Create))
				if out.Status != ledger.Verified || other.Status != ledger.Verified {
					t.Fatalf("%+v, %+v", out, other)
				}
				time.Sleep(time.Minute)
				c.then(b)
				l.rows, l.lists = []ledger.ID{other.ID}, c.lists
				if c.damage {
					w := wish("A-1", 1, intent.Delete)
					l.rows = append(l.rows, ledger.IDOf(w.StructuralKey()))
				}
				b.work(3 * time.Hour)
				if got := b.state(out.ID); (got.State == ledger.Review) != c.review || got.Sends != 1 {
					t.Errorf("%s, sent %d times: %s%s", got.Phase(), got.Sends, c.reason, b.life(out.ID))
				}
			})
		})
	}
}
