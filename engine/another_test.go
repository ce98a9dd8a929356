package engine_test

import (
	"context"
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

// meddled lets another actor act right after the first send of a write type, before any read.
type meddled struct {
	*orders.Connector
	after    intent.WriteType
	act      func()
	nameless bool // the responses name no record
}

func (m *meddled) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	receipt, err := m.Connector.Write(ctx, r)
	if act := m.act; act != nil && r.Intent.Write == m.after {
		m.act = nil
		act()
	}
	if m.nameless {
		receipt.Ref, receipt.URL = "", ""
	}
	return receipt, err
}

// meddle has another actor act after the first send of a write type.
func (b *bench) meddle(after intent.WriteType, act func()) {
	d := b.world.Destination()
	d.Connector = &meddled{Connector: d.Connector.(*orders.Connector), after: after, act: act}
	b.engine = b.engineOn(b.ledger, d, nil)
}

// Compensation undoes nothing that another actor wrote, whatever the fate of our send and
// whatever the destination stamps and checks.
func TestCompensationUndoesOnlyOurEffect(t *testing.T) {
	stamped := func(o *orders.Options) { o.StampUpdates, o.Versions = true, true }
	versions := func(o *orders.Options) { o.Versions = true }
	unstamped := func(o *orders.Options) { o.Stamps = false }
	theirs := intent.Fields{"amount_cents": jsonNumber(2999), "currency": "CHF"}
	partly := intent.Fields{"currency": "CHF"}
	noted := intent.Fields{"note": "call them"}
	lost := orders.Fault{Kind: orders.DroppedBefore}
	refused := orders.Fault{Kind: orders.Refused}
	malformed := orders.Fault{Kind: orders.Refused, How: "400"}
	phantom := orders.Fault{Kind: orders.PhantomSuccess}
	dropped := orders.Fault{Kind: orders.DroppedField, Field: "currency"}
	altered := orders.Fault{Kind: orders.NormalisedField, Field: "currency", How: "lower"}
	unanswered := orders.Fault{Kind: orders.LostAnswer}
	for name, c := range map[string]struct {
		options func(*orders.Options)
		write   intent.WriteType
		faults  []orders.Fault
		edit    intent.Fields
		want    ledger.Status
	}{
		"lost send":                        {nil, intent.Update, []orders.Fault{lost}, theirs, ledger.StatusReview},
		"lost send, stamps, If-Match":      {stamped, intent.Update, []orders.Fault{lost}, theirs, ledger.StatusReview},
		"lost send, If-Match":              {versions, intent.Update, []orders.Fault{lost}, theirs, ledger.StatusReview},
		"422":                              {nil, intent.Update, []orders.Fault{refused}, theirs, ledger.NotApplied},
		"400":                              {nil, intent.Update, []orders.Fault{malformed}, theirs, ledger.NotApplied},
		"422, stamps, If-Match":            {stamped, intent.Update, []orders.Fault{refused}, theirs, ledger.NotApplied},
		"phantom success":                  {nil, intent.Update, []orders.Fault{phantom}, theirs, ledger.StatusReview},
		"phantom success, stamps":          {stamped, intent.Update, []orders.Fault{phantom}, theirs, ledger.StatusReview},
		"phantom success, If-Match":        {versions, intent.Update, []orders.Fault{phantom}, theirs, ledger.StatusReview},
		"answered, then changed":           {nil, intent.Update, nil, partly, ledger.StatusReview},
		"answered, then changed, stamps":   {stamped, intent.Update, nil, partly, ledger.StatusReview},
		"answered, then added to":          {nil, intent.Update, []orders.Fault{dropped}, noted, ledger.StatusReview},
		"answered":                         {nil, intent.Update, []orders.Fault{dropped}, nil, ledger.Compensated},
		"answered, stamps":                 {stamped, intent.Update, []orders.Fault{dropped}, nil, ledger.Compensated},
		"altered, and no version":          {nil, intent.Update, []orders.Fault{altered}, nil, ledger.StatusReview},
		"altered, the version is ours":     {stamped, intent.Update, []orders.Fault{altered}, nil, ledger.Compensated},
		"answer lost, stamps":              {stamped, intent.Update, []orders.Fault{unanswered, dropped}, nil, ledger.Compensated},
		"answer lost":                      {nil, intent.Update, []orders.Fault{unanswered, dropped}, nil, ledger.StatusReview},
		"create, changed since":            {versions, intent.Create, nil, partly, ledger.StatusReview},
		"create, added to":                 {versions, intent.Create, []orders.Fault{dropped}, noted, ledger.StatusReview},
		"create":                           {versions, intent.Create, []orders.Fault{dropped}, nil, ledger.Compensated},
		"create, no versions":              {nil, intent.Create, []orders.Fault{dropped}, nil, ledger.Compensated},
		"create, no stamps, answer lost":   {unstamped, intent.Create, []orders.Fault{unanswered, dropped}, nil, ledger.StatusReview},
		"create, no stamps":                {unstamped, intent.Create, []orders.Fault{dropped}, nil, ledger.Compensated},
		"delete, refused and then changed": {nil, intent.Delete, []orders.Fault{refused}, theirs, ledger.NotApplied},
		"delete, lost and then changed":    {nil, intent.Delete, []orders.Fault{lost}, theirs, ledger.StatusReview},
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
					f.Ops, f.Times = []orders.Op{orders.Op(c.write)}, 1
					b.set(f)
				}
				before, left := b.fieldsNow(), b.fieldsNow()
				b.meddle(c.write, func() {
					if c.edit != nil {
						b.edit(c.edit)
					}
					left = b.fieldsNow()
				})
				out := b.do(undoable(order("A-1", c.write)))
				b.worked(time.Hour)
				if c.want == ledger.Compensated {
					left = before
				}
				if out.Status != c.want || !cmp.Equal(left, b.fieldsNow()) {
					t.Errorf("%s, want %s; left %v, want %v%s", out.Status, c.want, b.fieldsNow(), left, b.life(out.ID))
				}
			})
		})
	}
}

// An answered create that is absent is never sent again, whether the response named the record
// or not.
func TestAnAnswerWithoutAnID(t *testing.T) {
	for name, options := range map[string]func(*orders.Options){
		"plain":      func(*orders.Options) {},
		"unique key": func(o *orders.Options) { o.Unique = true },
		"native key": func(o *orders.Options) { o.Window = orders.DefaultWindow },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				options(&o)
				o.Rollback = connectors.Bound{}
				b := newBench(t, o, nil)
				d := b.world.Destination()
				d.Connector = &meddled{Connector: d.Connector.(*orders.Connector), after: intent.Create, nameless: true, act: func() { b.remove("A-1") }}
				b.engine = b.engineOn(b.ledger, d, nil)
				out := b.do(order("A-1", intent.Create))
				b.worked(time.Hour)
				if got := b.state(out.ID); out.Status != ledger.StatusReview || got.Sends != 1 || !strings.Contains(got.Reason, "the destination accepted a send") {
					t.Errorf("%s after %d sends: %s%s", out.Status, got.Sends, got.Reason, b.life(out.ID))
				}
			})
		})
	}
}

// An answered update that another actor sets back to exactly the earlier state is not sent
// again over that.
func TestAnAnsweredUpdateThatIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.Rollback = connectors.Bound{}
		b := newBench(t, o, nil)
		b.seed(seeded, "")
		time.Sleep(time.Minute)
		before := b.fieldsNow()
		b.meddle(intent.Update, func() { b.edit(before) })
		out := b.do(order("A-1", intent.Update))
		b.worked(time.Hour)
		if got := b.state(out.ID); out.Status != ledger.StatusReview || got.Sends != 1 || !strings.Contains(got.Reason, "set it back") || !cmp.Equal(before, b.fieldsNow()) {
			t.Errorf("%s after %d sends: %s; left %v%s", out.Status, got.Sends, got.Reason, b.fieldsNow(), b.life(out.ID))
		}
	})
}

// The record that the response to our create named is never taken for absent. It is found by
// its id when another actor has removed our stamp and key from it. When it is gone a reviewer
// decides, unless the destination reverts effects.
func TestTheRecordThatTheAnswerNamed(t *testing.T) {
	undeclared := func(o *orders.Options) { o.Rollback = connectors.Bound{} }
	remove := func(b *bench) { b.remove("A-1") }
	for name, c := range map[string]struct {
		options func(*orders.Options)
		fault   orders.FaultKind
		act     func(*bench)
		want    ledger.Status
		creates int
	}{
		"its stamp and key are gone": {nil, "", func(b *bench) { b.disguise("A-1", "Z-9") }, ledger.StatusReview, 1},
		"its stamp is gone":          {nil, "", func(b *bench) { b.disguise("A-1", "A-1") }, ledger.Verified, 1},
		"removed":                    {undeclared, "", remove, ledger.StatusReview, 1},
		"removed, native key":        {func(o *orders.Options) { undeclared(o); o.Window = orders.DefaultWindow }, "", remove, ledger.StatusReview, 1},
		"removed, unique key":        {func(o *orders.Options) { undeclared(o); o.Unique = true }, "", remove, ledger.StatusReview, 1},
		"phantom success":            {undeclared, orders.PhantomSuccess, nil, ledger.StatusReview, 0},
		"phantom success, declared":  {nil, orders.PhantomSuccess, nil, ledger.Verified, 1},
		"rolled back, declared":      {nil, orders.Rollback, nil, ledger.Verified, 2},
		"rolled back":                {undeclared, orders.Rollback, nil, ledger.StatusReview, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				if c.options != nil {
					c.options(&o)
				}
				b := newBench(t, o, nil)
				if c.fault != "" {
					b.set(orders.Fault{Kind: c.fault, Ops: []orders.Op{orders.OpCreate}, Times: 1})
				}
				if c.act != nil {
					b.meddle(intent.Create, func() { c.act(b) })
				}
				out := b.do(order("A-1", intent.Create))
				b.worked(time.Hour)
				creates := 0
				for _, e := range b.effects() {
					if e.Op == orders.OpCreate {
						creates++
					}
				}
				if got := b.state(out.ID); out.Status != c.want || creates != c.creates {
					t.Errorf("%s after %d creates, want %s after %d%s", out.Status, creates, c.want, c.creates, b.life(out.ID))
				} else if c.act != nil && c.want == ledger.StatusReview && c.options != nil && !strings.Contains(got.Reason, `named record "ord_`) {
					t.Errorf("the reason does not say with which record it was answered: %s", got.Reason)
				}
			})
		})
	}
}

// disguise has another actor remove our stamp from the one record, and change its business key.
func (b *bench) disguise(id, as string) {
	b.t.Helper()
	err := b.world.Change(b.world.Records(id)[0].ID, func(o *orders.Order) {
		o.Stamp, o.Fields["order_id"] = "", as
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// A record that an earlier write of the same ledger made is not another actor's: a second
// create of it goes to no reviewer, from any workflow.
func TestARecordOfAnEarlierWrite(t *testing.T) {
	for name, c := range map[string]struct {
		class  orders.Class
		fault  orders.FaultKind
		differ bool
		theirs bool // another actor made it
		undone bool // its maker was to be undone, which a reviewer decides about
		want   ledger.Status
	}{
		"as declared":                  {orders.Plain, "", false, false, false, ledger.Verified},
		"another value":                {orders.Plain, "", true, false, false, ledger.NotApplied},
		"refused under the unique key": {orders.Unique, "", true, false, false, ledger.NotApplied},
		"the refusal lost on its way":  {orders.Unique, orders.LostAnswer, true, false, false, ledger.NotApplied},
		"in review":                    {orders.Plain, "", false, false, true, ledger.NotApplied},
		"in review, unique":            {orders.Unique, orders.LostAnswer, false, false, true, ledger.NotApplied},
		"settled as not applied":       {orders.Plain, orders.Refused, false, false, false, ledger.StatusReview},
		"another actor's":              {orders.Plain, "", false, true, false, ledger.StatusReview},
		"another actor's, unique":      {orders.Unique, orders.LostAnswer, false, true, false, ledger.StatusReview},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.class.Options(), nil)
				switch {
				case c.theirs:
					b.seed(seeded, "rb-theirs")
				case c.fault == orders.Refused: // and there all the same
					b.set(orders.Fault{Kind: c.fault, Ops: []orders.Op{orders.OpCreate}, Times: 1})
					w := order("A-1", intent.Create)
					if out := b.do(w); out.Status != ledger.NotApplied {
						t.Fatalf("%+v%s", out, b.life(out.ID))
					}
					b.seed(seeded, w.Stamp())
				default:
					first := b.do(compensable(order("A-1", intent.Create)))
					if c.undone {
						b.edit(intent.Fields{"note": "call them"})
						if out := b.undo(first.ID, unwanted); out.Status != ledger.StatusReview {
							t.Fatalf("%+v%s", out, b.life(first.ID))
						}
					}
				}
				time.Sleep(time.Minute)
				if c.fault == orders.LostAnswer {
					b.set(orders.Fault{Kind: c.fault, Ops: []orders.Op{orders.OpCreate}, Times: 1})
				}
				second := order("A-1", intent.Create)
				second.Workflow = "another"
				if c.differ {
					second.Expect = intent.Fields{"amount_cents": jsonNumber(5), "currency": "EUR"}
				}
				out := b.do(second)
				if made := len(b.world.Records("A-1")); out.Status != c.want || made != 1 {
					t.Errorf("%s, want %s, and %d records are there: %s%s", out.Status, c.want, made, out.Text, b.life(out.ID))
				}
			})
		})
	}
}

// Rollback is declared. The answered create cannot be read for two days since the login is
// refused. Its record was used, and removed by another actor on purpose. The operator renews
// the credentials and starts a new process, which counts from its own start: it considers
// itself in time, and would make the record again.
func TestRollbackIsReadInTimeByTheLedgersClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		d := b.world.Destination()
		conn := &expired{Connector: d.Connector}
		d.Connector = &flip{expired: conn}
		b.engine = b.engineOn(b.ledger, d, nil)
		id := b.enqueue(order("A-1", intent.Create))
		b.work(time.Minute)
		b.work(48 * time.Hour)
		if rec := b.state(id); rec.State != ledger.Checking || !rec.Answered {
			t.Fatalf("setup: %s%s", rec.Phase(), b.life(id))
		}
		b.remove("A-1")
		b.engine.Close()
		b.engine = b.newEngine(nil) // with other credentials
		b.work(10 * time.Minute)
		creates := 0
		for _, e := range b.effects() {
			if e.Op == orders.OpCreate {
				creates++
			}
		}
		if rec := b.state(id); creates != 1 || rec.State != ledger.Review {
			t.Errorf("%d creates, %s; want 1 and a review%s", creates, rec.Phase(), b.life(id))
		}
	})
}

// flip refuses the login of reads once something was sent.
type flip struct{ *expired }

func (f *flip) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	receipt, err := f.expired.Write(ctx, r)
	f.reads.Store(true)
	return receipt, err
}
