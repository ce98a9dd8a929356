package engine_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// A repair updates our own record with the values that the destination did not store, and with
// nothing else. It replaces nothing that another actor wrote.
func TestRepair(t *testing.T) {
	versions := func(o *orders.Options) { o.Versions = true }
	unstamped := func(o *orders.Options) { o.Stamps = false }
	on := func(op orders.Op, f orders.Fault) orders.Fault {
		f.Ops, f.Times = []orders.Op{op}, 1
		return f
	}
	create, update := orders.OpCreate, orders.OpUpdate
	dropped := orders.Fault{Kind: orders.DroppedField, Field: "currency"}
	altered := orders.Fault{Kind: orders.NormalisedField, Field: "currency", How: "lower"}
	unanswered, lost := orders.Fault{Kind: orders.LostAnswer}, orders.Fault{Kind: orders.DroppedBefore}
	late := orders.Fault{Kind: orders.LateCommit, Delay: 20 * time.Second}
	refused := orders.Fault{Kind: orders.Refused}
	noted, theirs := intent.Fields{"note": "call them"}, intent.Fields{"currency": "CHF"}
	for name, c := range map[string]struct {
		options func(*orders.Options)
		write   intent.WriteType
		faults  []orders.Fault
		after   intent.Fields // another actor, right after the first send
		before  intent.Fields // another actor, right before the repair
		want    ledger.Status
		sends   int
	}{
		"a create lost a field":                {nil, intent.Create, []orders.Fault{on(create, dropped)}, nil, nil, ledger.Verified, 2},
		"its answer is lost":                   {nil, intent.Create, []orders.Fault{on(create, unanswered), on(create, dropped)}, nil, nil, ledger.Verified, 2},
		"its answer is lost, no stamps":        {unstamped, intent.Create, []orders.Fault{on(create, unanswered), on(create, dropped)}, nil, nil, ledger.StatusReview, 1},
		"an update lost a field":               {nil, intent.Update, []orders.Fault{on(update, dropped)}, nil, nil, ledger.Verified, 2},
		"altered, no version":                  {nil, intent.Create, []orders.Fault{on(create, altered)}, nil, nil, ledger.StatusReview, 1},
		"altered, the version is ours":         {versions, intent.Create, []orders.Fault{on(create, altered)}, nil, nil, ledger.Verified, 2},
		"changed since":                        {nil, intent.Create, []orders.Fault{on(create, dropped)}, theirs, nil, ledger.StatusReview, 1},
		"added to since":                       {versions, intent.Create, []orders.Fault{on(create, dropped)}, noted, nil, ledger.StatusReview, 1},
		"changed right before the repair":      {versions, intent.Create, []orders.Fault{on(create, dropped)}, nil, theirs, ledger.StatusReview, 2},
		"the repair loses it too":              {nil, intent.Create, []orders.Fault{on(create, dropped), on(update, dropped)}, nil, nil, ledger.StatusReview, 2},
		"the repair is refused":                {nil, intent.Create, []orders.Fault{on(create, dropped), on(update, refused)}, nil, nil, ledger.StatusReview, 2},
		"the answer to the repair is lost":     {nil, intent.Create, []orders.Fault{on(create, dropped), on(update, unanswered)}, nil, nil, ledger.Verified, 2},
		"the repair is lost":                   {nil, intent.Create, []orders.Fault{on(create, dropped), on(update, lost)}, nil, nil, ledger.Verified, 3},
		"the repair comes late":                {nil, intent.Create, []orders.Fault{on(create, dropped), on(update, late)}, nil, nil, ledger.Verified, 2},
		"the repair is lost, changed by then":  {nil, intent.Create, []orders.Fault{on(create, dropped), on(update, lost)}, nil, theirs, ledger.StatusReview, 2},
		"the repair is lost, added to by then": {nil, intent.Create, []orders.Fault{on(create, dropped), on(update, lost)}, nil, noted, ledger.Verified, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				if c.options != nil {
					c.options(&o)
				}
				b := newBench(t, o, nil)
				if c.write != intent.Create {
					b.seed(seeded, "")
				}
				time.Sleep(time.Minute)
				for _, f := range c.faults {
					b.set(f)
				}
				want := intent.Fields{}
				if c.after != nil {
					b.meddle(c.write, func() { b.edit(c.after); want = b.fieldsNow() })
				}
				d, sends := b.world.Destination(), 0
				if c.after == nil {
					d.Connector = &spy{Connector: d.Connector, write: func(r connectors.Request) {
						if sends++; sends == 2 {
							if r.Intent.Write != intent.Update || len(r.Intent.Expect) != 1 || r.Intent.Expect["currency"] != "USD" {
								t.Errorf("the repair is a %s of %v, want an update of what was not stored alone", r.Intent.Write, r.Intent.Expect)
							}
							if c.before != nil {
								b.edit(c.before)
								want = b.fieldsNow()
							}
						}
					}}
					b.engine = b.engineOn(b.ledger, d, nil)
				}
				w := order("A-1", c.write)
				w.OnMismatch = intent.MismatchRepair
				b.do(w)
				b.worked(time.Hour)
				out := b.do(w) // the outcome now
				if c.want == ledger.Verified {
					want = b.fieldsNow()
					maps.Copy(want, w.Expect)
				}
				if out.Status != c.want || out.Sends != c.sends || len(want) > 0 && !cmp.Equal(b.fieldsNow(), want) {
					t.Errorf("%s after %d sends, want %s after %d; left %v, want %v%s", out.Status, out.Sends, c.want, c.sends, b.fieldsNow(), want, b.life(out.ID))
				}
			})
		})
	}
}

// A repair is an update: a destination without updates can never serve it.
func TestRepairNeedsUpdates(t *testing.T) {
	b, _ := watched(t, orders.Plain.Options(), func(p *connectors.Profile) { p.Writes = []intent.WriteType{intent.Create} })
	w := order("A-1", intent.Create)
	w.OnMismatch = intent.MismatchRepair
	_, err := b.engine.Do(t.Context(), w)
	if err == nil || !strings.Contains(err.Error(), "/on_mismatch is repair, which is an update") || !strings.Contains(err.Error(), "has no update") {
		t.Errorf("%v", err)
	}
}
