package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// decisionCase is a write in some state, and who can decide about it.
type decisionCase struct {
	destination orders.Options
	opts        *engine.Options
	begin       func(b *bench) ledger.ID
	elsewhere   bool // asked of a process that does not know the destination
}

// boundless is a destination that declares nothing about late arrivals.
func boundless() orders.Options {
	o := orders.Plain.Options()
	o.Horizon = connectors.Bound{}
	return o
}

func lost(b *bench) ledger.ID {
	b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
	return b.do(order("A-1", intent.Create)).ID
}

func differs(b *bench) ledger.ID {
	b.set(orders.Fault{Kind: orders.DroppedField, Field: "currency", Times: 1})
	return b.do(order("A-1", intent.Create)).ID
}

func askedFor(b *bench) ledger.ID { return b.asked(order("A-1", intent.Create)).ID }

func halfApproved(b *bench) ledger.ID {
	id := askedFor(b)
	if _, err := b.engine.Resolve(b.t.Context(), "acme", id, approves("ada")); err != nil {
		b.t.Fatal(err)
	}
	return id
}

func late(b *bench) ledger.ID {
	id := askedFor(b)
	time.Sleep(25 * time.Hour)
	return id
}

func undoingOpen(b *bench) ledger.ID {
	b.set(orders.Fault{Kind: orders.DroppedField, Ops: []orders.Op{orders.OpCreate}, Field: "currency", Times: 1})
	b.engine = b.newEngine(gated)
	return b.do(undoable(order("A-1", intent.Create))).ID
}

// decisionCases are the states in which a reviewer could decide something.
func decisionCases() map[string]decisionCase {
	plain, two := orders.Plain.Options(), held(policies.RiskRule{Approvers: 2})
	return map[string]decisionCase{
		"held":                          {destination: plain, opts: held(), begin: askedFor},
		"held for two":                  {destination: plain, opts: two, begin: askedFor},
		"held, one of two approved":     {destination: plain, opts: two, begin: halfApproved},
		"held, too late":                {destination: plain, opts: held(), begin: late},
		"held, destination unknown":     {destination: plain, opts: held(), begin: askedFor, elsewhere: true},
		"review, it is unknown":         {destination: boundless(), begin: lost},
		"review, it differs":            {destination: plain, begin: differs},
		"review, its undoing is open":   {destination: plain, begin: undoingOpen},
		"review, destination unknown":   {destination: boundless(), begin: lost, elsewhere: true},
		"review, what a step did":       {destination: plain, begin: func(b *bench) ledger.ID { return b.delegated(ledger.Event{Kind: ledger.EvDelegated}, escalated).ID }},
		"held, what a step does":        {destination: plain, begin: func(b *bench) ledger.ID { return b.delegated(ledger.Event{Kind: ledger.EvHeld}).ID }},
		"held, and asked by a reviewer": {destination: plain, opts: held(), begin: func(b *bench) ledger.ID { return b.askedBy("ada") }},
	}
}

var escalated = ledger.Event{Kind: ledger.EvEscalated, Reason: "unclear"}

func (b *bench) askedBy(name string) ledger.ID {
	b.t.Helper()
	out, err := b.engine.Do(as(b.t.Context(), name, engine.RoleOperator), order("A-1", intent.Create))
	if err != nil {
		b.t.Fatal(err)
	}
	return out.ID
}

// begun brings a write into its state, and returns it with its engine.
func (s decisionCase) begun(t *testing.T) (*engine.Engine, ledger.ID) {
	t.Helper()
	b := newBench(t, s.destination, s.opts)
	id := s.begin(b)
	e := b.engine
	if !s.elsewhere {
		return e, id
	}
	e = engine.New(b.ledger, &connectors.Registry{}, s.opts)
	t.Cleanup(e.Close)
	return e, id
}

func principals() map[string]engine.Principal {
	return map[string]engine.Principal{
		"agent":      {Name: "crm-agent", Role: engine.RoleAgent},
		"reviewer":   {Name: "ada", Role: engine.RoleReviewer},
		"operator":   {Name: "bob", Role: engine.RoleOperator},
		"auditor":    {Name: "eve", Role: engine.RoleAuditor},
		"no name":    {Role: engine.RoleReviewer},
		"in process": {},
	}
}

// Resolve does what the choices show.
func TestChoicesAreWhatResolveSays(t *testing.T) {
	for name, s := range decisionCases() {
		for role, who := range principals() {
			for _, word := range engine.Words() {
				t.Run(name+"/"+role+"/"+string(word), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { s.compare(t, who, word) })
				})
			}
		}
	}
}

func (s decisionCase) compare(t *testing.T, who engine.Principal, word engine.Word) {
	t.Helper()
	e, id := s.begun(t)
	choices, err := e.Choices(engine.As(t.Context(), who), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	var shown engine.Choice
	for _, c := range choices {
		if c.Word == word {
			shown = c
		}
	}
	by := who.Name
	if who.Role == "" {
		by = "ann"
	}
	ctx, cancel := context.WithTimeout(engine.As(t.Context(), who), time.Second)
	defer cancel()
	out, err := e.Resolve(ctx, "acme", id, engine.Decision{Word: word, By: by, Reason: "x"})
	switch {
	case shown.Word == "", shown.Effect == "":
		t.Errorf("nothing is shown: %+v", choices)
	case shown.Allowed != (err == nil), shown.Allowed == (shown.Why != ""):
		t.Errorf("shown %+v, and Resolve says %v, %v", shown, err, out.Status)
	case err != nil && !strings.Contains(err.Error(), strings.SplitN(shown.Why, ":", 2)[0]):
		t.Errorf("shown why %q, and Resolve says %v", shown.Why, err)
	}
}

// A write that waits for no reviewer has no choices.
func TestNothingToChoose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		settled, queued := b.do(order("A-1", intent.Create)).ID, b.enqueue(order("A-2", intent.Create))
		for state, id := range map[ledger.State]ledger.ID{ledger.Settled: settled, ledger.Queued: queued} {
			got, err := b.engine.Choices(as(t.Context(), "ada", engine.RoleOperator), "acme", id)
			if got != nil || err != nil || b.state(id).State != state {
				t.Errorf("%s: %+v, %v", b.state(id).Phase(), got, err)
			}
		}
	})
}

// Only the engine knows the rule by which a held write continues to wait.
func TestChoicesOfOverdueWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), held(policies.RiskRule{OnTimeout: policies.OnTimeoutEscalate}))
		b.engine.SetRisks([]policies.RiskRule{{OnTimeout: policies.OnTimeoutEscalate}})
		id := late(b)
		got, err := b.engine.Choices(as(t.Context(), "ada", engine.RoleReviewer), "acme", id)
		if err != nil || !got[0].Allowed {
			t.Errorf("%+v, %v", got, err)
		}
		if out, err := b.engine.Resolve(t.Context(), "acme", id, approves("ada")); err != nil || out.Status != ledger.Verified {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// The description of another send matches the second-send table.
func TestChoicesNameTheRisk(t *testing.T) {
	native := boundless()
	native.Window = 48 * time.Hour
	exact := orders.Plain.Options()
	for name, c := range map[string]struct {
		o      orders.Options
		begin  func(b *bench) ledger.ID
		word   engine.Word
		force  bool
		effect string
		danger string
		reason string
	}{
		"retry, unknown fate":   {boundless(), lost, engine.WordRetry, true, "without that nothing is sent", "a second send could duplicate, because the destination does not deduplicate by our key and the fate of an earlier send is unknown", "only a reviewer can vouch"},
		"retry, it differs":     {exact, differs, engine.WordRetry, false, "Nothing is sent, also on your word", "", "it is there"},
		"retry, harmless":       {native, escalatedInWindow, engine.WordRetry, false, "which is safe: the destination recognises the repeat", "", "the destination makes one of two"},
		"compensate, it may be": {exact, wrongButCompensable, engine.WordCompensate, false, "Then the record that it made is deleted", "", "the intent says so and the read shows it"},
		"compensate, not asked": {exact, differs, engine.WordCompensate, false, "the caller did not allow that it is undone", "", "it was not allowed"},
		"abandon, unknown fate": {boundless(), lost, engine.WordAbandon, false, "stays unknown", "may do so yet", "it is not read again"},
		"accept, it differs":    {exact, differs, engine.WordAccept, false, "on your responsibility", "what differs stays as it is", "it is as it is"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, c.o, nil)
				id := c.begin(b)
				got, err := b.engine.Choices(as(t.Context(), "ada", engine.RoleReviewer), "acme", id)
				if err != nil {
					t.Fatal(err)
				}
				for _, each := range got {
					if each.Word != c.word {
						continue
					}
					if each.Force != c.force || !strings.Contains(each.Effect, c.effect) || !strings.Contains(each.Danger, c.danger) || c.danger == "" && each.Danger != "" && c.word == engine.WordRetry {
						t.Errorf("%+v, want force %v, %q and %q: %s%s", each, c.force, c.effect, c.danger, c.reason, b.life(id))
					}
				}
			})
		})
	}
}

// escalatedInWindow is a write in review although the destination still knows its key, and no
// policy decided otherwise.
func escalatedInWindow(b *bench) ledger.ID {
	b.engine = b.newEngine(&engine.Options{Policies: []policies.Policy{policies.Func(func(policies.Case) (policies.Decision, bool) { return policies.Decision{}, false })}})
	b.set(orders.Fault{Kind: orders.DroppedBefore, Times: 1})
	return b.do(order("A-1", intent.Create)).ID
}

func wrongButCompensable(b *bench) ledger.ID {
	b.set(orders.Fault{Kind: orders.DroppedField, Field: "currency", Times: 1})
	w := order("A-1", intent.Create)
	w.Reversibility = intent.Compensable
	return b.do(w).ID
}

// The choice describes what an approval sends, and how many more approvals it needs.
func TestChoicesShowWhatIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(b *bench) ledger.ID
		want  string
	}{
		"two more": {askedFor, "nothing is sent before 1 more of 2 different reviewers approve. Then it is sent to"},
		"the last": {halfApproved, `It is sent to "orders" once ({"order_id":"A-1"}), after any earlier write of the same record, and then read back`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), held(policies.RiskRule{Approvers: 2}))
				got, err := b.engine.Choices(as(t.Context(), "bob", engine.RoleReviewer), "acme", c.begin(b))
				if err != nil || !strings.Contains(fmt.Sprint(got[0].Effect), c.want) {
					t.Errorf("%+v, %v: want %q", got, err, c.want)
				}
			})
		})
	}
}
