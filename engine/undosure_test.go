package engine_test

import (
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// A first send that is only slow must not recreate what was undone.
func TestUndoingWaitsForTheHorizon(t *testing.T) {
	closed := order("A-1", intent.Update)
	closed.Expect = intent.Fields{"note": "closed"}
	for name, how := range map[string]*intent.WriteIntent{"by a delete": nil, "by an update": &closed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				b.set(orders.Fault{Kind: orders.LateCommit, Ops: []orders.Op{orders.OpCreate}, Delay: 25 * time.Second, Times: 1})
				done := b.do(compensable(order("A-1", intent.Create)))
				if done.Status != ledger.Verified || done.Sends != 2 {
					t.Fatalf("%+v%s", done, b.life(done.ID))
				}
				out := b.undo(done.ID, engine.Undoing{By: "ada", Reason: "x", Intent: how})
				time.Sleep(time.Hour)
				undo, made := b.state(b.state(done.ID).Child), b.state(done.ID)
				if out.Status != ledger.Compensated || undo.FirstSend.Sub(made.LastSend) < orders.DefaultHorizon || (b.fieldsNow() == nil) != (how == nil) {
					t.Errorf("%s, undone %s after the last send, and there is %v%s", out.Status, undo.FirstSend.Sub(made.LastSend), b.fieldsNow(), b.life(done.ID))
				}
			})
		})
	}
}

// An undo must not restore or remove anything that is not certainly ours. Otherwise a reviewer
// decides, and nothing is sent.
func TestUndoOfWhatIsNotSure(t *testing.T) {
	lagging := func(o *orders.Options) {
		o.Lags, o.Settle = []time.Duration{orders.DefaultLag}, connectors.Within(orders.DefaultLag)
	}
	stated := order("A-1", intent.Update)
	stated.Expect = intent.Fields{"amount_cents": jsonNumber(5), "currency": "EUR"}
	for name, c := range map[string]struct {
		write   intent.WriteType
		options func(*orders.Options)
		fault   orders.FaultKind
		how     *intent.WriteIntent
		want    ledger.Status
		reason  string
	}{
		"weakly read":         {intent.Update, lagging, "", nil, ledger.StatusReview, "others may have changed it just before us"},
		"weakly read, stated": {intent.Update, lagging, "", &stated, ledger.Compensated, "the caller says what is to be there"},
		"a create, lagging":   {intent.Create, lagging, "", nil, ledger.Compensated, "nothing is brought back"},
		"maybe another's":     {intent.Create, func(o *orders.Options) { o.Stamps = false }, orders.LostAnswer, nil, ledger.StatusReview, "no answer showed that we made it"},
		"answered":            {intent.Create, func(o *orders.Options) { o.Stamps = false }, "", nil, ledger.Compensated, "the answer showed that we made it"},
		"no way back":         {intent.Create, nil, "none", nil, ledger.StatusReview, "the connector knows none"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Unique.Options()
				if c.options != nil {
					c.options(&o)
				}
				b := newBench(t, o, nil)
				if c.fault == "none" {
					d := b.world.Destination()
					d.Connector = struct{ connectors.Connector }{d.Connector}
					b.engine = b.engineOn(b.ledger, d, nil)
				} else if c.fault != "" {
					b.set(orders.Fault{Kind: c.fault, Times: 1})
				}
				if c.write != intent.Create {
					b.seed(seeded, "")
				}
				time.Sleep(time.Minute)
				done := b.do(compensable(order("A-1", c.write)))
				if done.Status != ledger.Verified {
					t.Fatalf("%+v%s", done, b.life(done.ID))
				}
				time.Sleep(time.Hour)
				writes, _ := b.world.Count()
				out := b.undo(done.ID, engine.Undoing{By: "ada", Reason: "x", Intent: c.how})
				after, _ := b.world.Count()
				if out.Status != c.want || (after > writes) != (c.want == ledger.Compensated) {
					t.Errorf("%s after %d writes, want %s: %s%s", out.Status, after-writes, c.want, c.reason, b.life(done.ID))
				}
			})
		})
	}
}

// However old a write is, it ends when its undo does.
func TestUndoingOfAnOldWriteApprovedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		day := 24 * time.Hour
		b := newBench(t, orders.Plain.Options(), &engine.Options{Risks: []policies.RiskRule{{Writes: []intent.WriteType{intent.Delete}, Within: 30 * day}}})
		done := b.do(compensable(order("A-1", intent.Create)))
		time.Sleep(20 * day)
		out := b.undo(done.ID, unwanted)
		if out.Status != ledger.StatusReview || b.state(out.Undoing).State != ledger.Held {
			t.Fatalf("%+v%s", out, b.life(done.ID))
		}
		b.worked(6 * day)
		if _, err := b.engine.Resolve(t.Context(), "acme", out.Undoing, approves("ada")); err != nil {
			t.Fatal(err)
		}
		b.worked(2 * day)
		events, err := b.ledger.Events(t.Context(), "acme", done.ID)
		if got := b.state(done.ID); err != nil || got.Settlement != ledger.Compensated || len(events) > 200 {
			t.Errorf("%s after %d events, %v%s", got.Phase(), len(events), err, b.life(done.ID))
		}
	})
}

func TestWhoMayUndo(t *testing.T) {
	for name, c := range map[string]struct {
		who    engine.Principal
		by     string
		err    error
		reason string
	}{
		"within the process": {engine.Principal{}, "saga wf-1", nil, "its callers may do everything"},
		"a reviewer":         {engine.Principal{Name: "ada", Role: engine.RoleOperator}, "ada", nil, "they may decide"},
		"in another's name":  {engine.Principal{Name: "bob", Role: engine.RoleOperator}, "ada", engine.ErrForbidden, "the credentials count"},
		"the agent itself":   {engine.Principal{Name: "crm-agent", Role: engine.RoleAgent}, "crm-agent", nil, "it asked for the write"},
		"another agent":      {engine.Principal{Name: "other", Role: engine.RoleAgent}, "other", engine.ErrForbidden, "it did not"},
		"an unknown agent":   {engine.Principal{Role: engine.RoleAgent}, "crm-agent", engine.ErrForbidden, "it is unknown that it did"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				done, err := b.engine.Do(as(t.Context(), "crm-agent", engine.RoleAgent), compensable(order("A-1", intent.Create)))
				if err != nil {
					t.Fatal(err)
				}
				out, err := b.engine.Undo(engine.As(t.Context(), c.who), "acme", done.ID, engine.Undoing{By: c.by, Reason: "x"})
				if !errors.Is(err, c.err) || c.err == nil && err != nil || (b.fieldsNow() == nil) != (c.err == nil) {
					t.Errorf("%+v, %v, want %v: %s", out, err, c.err, c.reason)
				}
			})
		})
	}
}

// again recreates the one record as another actor's.
func (b *bench) again() {
	fields := maps.Clone(b.world.Records("A-1")[0].Fields)
	b.remove("A-1")
	b.seed(fields, "")
}

// sinceCase is a write, another actor's later change of its record, and how it is to be undone.
type sinceCase struct {
	write   intent.WriteType
	options func(*orders.Options)
	then    func(*bench)
	how     *intent.WriteIntent
	want    ledger.Status
	reason  string
}

func sinceCases() map[string]sinceCase {
	lagging := func(o *orders.Options) {
		o.Lags, o.Settle = []time.Duration{orders.DefaultLag}, connectors.Within(orders.DefaultLag)
	}
	unsettled := func(o *orders.Options) {
		o.Lags, o.Settle = []time.Duration{orders.DefaultLag}, connectors.Bound{}
	}
	set := func(name string, value any) func(*bench) {
		return func(b *bench) { b.edit(intent.Fields{name: value}) }
	}
	stated := order("A-1", intent.Delete)
	back := order("A-1", intent.Update)
	back.Expect = intent.Fields{"amount_cents": jsonNumber(5), "currency": "EUR", "note": "theirs"}
	return map[string]sinceCase{
		"an upsert that made it":          {intent.Upsert, nil, nil, nil, ledger.Compensated, "it is deleted"},
		"an upsert that made it, changed": {intent.Upsert, nil, set("currency", "CHF"), nil, ledger.StatusReview, "their change would be lost"},
		"made anew":                       {intent.Create, nil, (*bench).again, nil, ledger.StatusReview, "it looks like ours, and is theirs"},
		"made anew, stated":               {intent.Create, nil, (*bench).again, &stated, ledger.StatusReview, "likewise"},
		"made anew, an update":            {intent.Update, nil, (*bench).again, nil, ledger.StatusReview, "likewise"},
		"what we did not set":             {intent.Create, nil, set("status", "paid"), nil, ledger.StatusReview, "it goes with the record"},
		"what we did not set, stated":     {intent.Create, nil, set("status", "paid"), &stated, ledger.StatusReview, "likewise"},
		"added to, stated":                {intent.Create, nil, set("note", "call them"), &stated, ledger.StatusReview, "likewise"},
		"as we left it, stated":           {intent.Create, nil, nil, &stated, ledger.Compensated, "all of it is ours"},
		"just before, reads lag":          {intent.Create, lagging, set("currency", "CHF"), nil, ledger.StatusReview, "the read is older than their change"},
		"just before, reads lag, stated":  {intent.Create, lagging, set("currency", "CHF"), &stated, ledger.StatusReview, "likewise"},
		"nothing, reads lag":              {intent.Create, lagging, nil, nil, ledger.Compensated, "it is waited for what others may have done"},
		"reads lag for ever":              {intent.Create, unsettled, nil, nil, ledger.StatusReview, "it is unknown what others have done"},
		"what we took away":               {intent.Update, nil, nil, nil, ledger.Compensated, "it is brought back"},
		"what we took away, set":          {intent.Update, nil, set("note", "new"), nil, ledger.StatusReview, "it would be overwritten"},
		"what we took away, set, stated":  {intent.Update, nil, set("note", "new"), &back, ledger.StatusReview, "likewise"},
		"changed and changed back": {intent.Update, nil, func(b *bench) {
			set("currency", "CHF")(b)
			set("currency", "USD")(b)
		}, nil, ledger.Compensated, "it is as we left it"},
	}
}

// Another actor's later change of the record is not undone with the write, by any undo, however
// far the reads lag.
func TestUndoingLosesNothingOfOthers(t *testing.T) {
	for name, c := range sinceCases() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				if c.options != nil {
					c.options(&o)
				}
				b := newBench(t, o, nil)
				if c.write == intent.Update {
					b.seed(seeded, "")
				}
				time.Sleep(time.Minute)
				was := b.fieldsNow()
				w := compensable(order("A-1", c.write))
				if c.write == intent.Update {
					w.Absent = []string{"/note"}
				}
				done := b.do(w)
				if done.Status != ledger.Verified {
					t.Fatalf("%+v%s", done, b.life(done.ID))
				}
				time.Sleep(time.Hour)
				if c.then != nil {
					c.then(b)
				}
				writes, _ := b.world.Count()
				out := b.undo(done.ID, engine.Undoing{By: "ada", Reason: "x", Intent: c.how})
				after, _ := b.world.Count()
				undone := c.want == ledger.Compensated
				if out.Status != c.want || (after > writes) != undone || undone != cmp.Equal(was, b.fieldsNow()) {
					t.Errorf("%s after %d writes, left %v; want %s: %s%s%s", out.Status, after-writes, b.fieldsNow(), c.want, c.reason, b.life(done.ID), b.life(out.Undoing))
				}
			})
		})
	}
}

// A record that another write of ours changed, and another actor changed back, is not deleted:
// it belongs to that write by now.
func TestUndoingDeletesNothingThatAnotherWriteLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Plain.Options()
		o.StampUpdates = true
		b := newBench(t, o, nil)
		done := b.do(compensable(order("A-1", intent.Create)))
		for n, currency := range []string{"CHF", "USD"} {
			w := call(order("A-1", intent.Update), n+1)
			w.Expect = intent.Fields{"amount_cents": jsonNumber(1999), "currency": currency}
			if out := b.do(w); out.Status != ledger.Verified {
				t.Fatalf("%+v", out)
			}
		}
		if out := b.undo(done.ID, unwanted); out.Status != ledger.StatusReview || b.fieldsNow() == nil {
			t.Errorf("%s, left %v%s", out.Status, b.fieldsNow(), b.life(out.Undoing))
		}
	})
}

// If the destination itself checks the send against the pre-state, the read need not be
// certain.
func TestUndoingThatTheDestinationGuards(t *testing.T) {
	for name, changed := range map[string]bool{"as we left it": false, "changed since": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				o.Versions = true
				o.Lags, o.Settle = []time.Duration{orders.DefaultLag}, connectors.Bound{}
				b := newBench(t, o, nil)
				time.Sleep(time.Minute)
				done := b.do(compensable(order("A-1", intent.Create)))
				time.Sleep(time.Hour)
				if changed {
					b.edit(intent.Fields{"currency": "CHF"})
				}
				out := b.undo(done.ID, unwanted)
				if child := b.state(out.Undoing); child.Sends == 0 || (b.fieldsNow() != nil) != changed {
					t.Errorf("%s after %d sends, left %v%s", out.Status, child.Sends, b.fieldsNow(), b.life(child.ID))
				}
			})
		})
	}
}
