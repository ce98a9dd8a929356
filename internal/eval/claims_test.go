package eval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

// declared is a write of workflow wf.
func declared(w intent.WriteType, id string, call int) intent.WriteIntent {
	in := intent.WriteIntent{Tenant: "t", Workflow: "wf", Tool: "x", Call: call, Destination: "orders", Kind: "order", Key: intent.Fields{"order_id": id}, Write: w}
	if w != intent.Delete {
		in.Expect = intent.Fields{"amount_cents": json.Number("100")}
	}
	return in
}

// exportLine is a write as `readback list --json` prints it.
func exportLine(t *testing.T, in intent.WriteIntent, state, settlement string, at int) string {
	t.Helper()
	r, err := ledger.NewRecord(in)
	if err != nil {
		t.Fatal(err)
	}
	r.State, r.Settlement, r.Created = ledger.State(state), ledger.Status(settlement), time.Date(2000, 1, 1, 0, at, 0, 0, time.UTC)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const workflowChecks = head + `workflow: {name: wf, writes: writes.json}
checks: {exactly: true, expected: true, verified: true, undeclared: [{destination: orders, kind: order}]}
`

// claimed is one write of an export, what is claimed of it, and what is there.
type claimed struct {
	write             intent.WriteType
	state, settlement string
}

// claimsCase is what was claimed of one order, and what is there.
type claimsCase struct {
	options              orders.Options
	claims               []claimed
	world                func(*stage)
	want                 string
	silent, over, aborts int
	reason               string
}

func claimsCases() map[string]claimsCase {
	plain := orders.Plain.Options()
	hopeless := plain
	hopeless.Horizon = connectors.Bound{}
	unique, native := orders.Unique.Options(), orders.Native.Options()
	unique.Horizon, native.Horizon = connectors.Bound{}, connectors.Bound{} // absence alone shows nothing
	create := declared(intent.Create, "A-1", 0).Stamp()
	mine := func(s *stage) { s.there("A-1", 100, create) }
	nothing := func(*stage) {}
	return map[string]claimsCase{
		"verified and there": {plain, []claimed{{intent.Create, "settled", "verified"}}, mine,
			"exactly pass, expected pass, verified pass, undeclared pass", 0, 0, 0, "as it should be"},
		"verified and gone": {plain, []claimed{{intent.Create, "settled", "verified"}}, nothing,
			"exactly fail, expected fail, verified fail, undeclared pass", 1, 0, 0, "it is not true any more"},
		"verified and another": {plain, []claimed{{intent.Create, "settled", "verified"}}, func(s *stage) { s.there("A-1", 99, create) },
			"exactly pass, expected fail, verified fail, undeclared pass", 1, 0, 0, "another amount"},
		"verified, another actor's": {plain, []claimed{{intent.Create, "settled", "verified"}}, func(s *stage) { s.there("A-1", 100, "") },
			"exactly fail, expected pass, verified fail, undeclared pass", 1, 0, 0, "it has no stamp of ours"},
		"not applied and there": {plain, []claimed{{intent.Create, "settled", "not_applied"}}, mine,
			"exactly fail, expected not-checked, verified fail, undeclared pass", 1, 0, 0, "it was applied: the next one doubles it"},
		"not applied, harmless again": {plain, []claimed{{intent.Create, "settled", "not_applied"}}, nothing,
			"exactly pass, expected not-checked, verified pass, undeclared pass", 0, 0, 1, "strong reads and a horizon: it could have been sent again"},
		"not applied, unique key": {unique, []claimed{{intent.Create, "settled", "not_applied"}}, nothing,
			"exactly pass, expected not-checked, verified pass, undeclared pass", 0, 0, 1, "a repeat meets the same record"},
		"not applied, native key": {native, []claimed{{intent.Create, "settled", "not_applied"}}, nothing,
			"exactly pass, expected not-checked, verified pass, undeclared pass", 0, 0, 1, "the destination recognises a repeat"},
		"not applied, no horizon": {hopeless, []claimed{{intent.Create, "settled", "not_applied"}}, nothing,
			"exactly pass, expected not-checked, verified pass, undeclared pass", 0, 0, 0, "nothing shows that it cannot land any more"},
		"review and exact": {plain, []claimed{{intent.Create, "review", ""}}, mine,
			"exactly pass, expected not-checked, verified not-checked, undeclared pass", 0, 1, 0, "a read would have settled it"},
		"held and exact": {plain, []claimed{{intent.Create, "held", ""}}, mine,
			"exactly pass, expected not-checked, verified not-checked, undeclared pass", 0, 1, 0, "it waits although it is there"},
		"review and nothing": {plain, []claimed{{intent.Create, "review", ""}}, nothing,
			"exactly pass, expected not-checked, verified not-checked, undeclared pass", 0, 0, 0, "that is for a reviewer"},
		"review and another": {plain, []claimed{{intent.Create, "review", ""}}, func(s *stage) { s.there("A-1", 99, create) },
			"exactly pass, expected not-checked, verified not-checked, undeclared pass", 0, 0, 0, "that is for a reviewer"},
		"review and duplicated": {plain, []claimed{{intent.Create, "review", ""}}, func(s *stage) { mine(s); mine(s) },
			"exactly fail, expected not-checked, verified not-checked, undeclared pass", 0, 0, 0, "more than was declared"},
		"created, then deleted": {plain, []claimed{{intent.Create, "settled", "verified"}, {intent.Delete, "settled", "verified"}}, nothing,
			"exactly pass, expected not-checked, verified pass, undeclared pass", 0, 0, 0, "the later write is what counts"},
		"created, then deleted, and there": {plain, []claimed{{intent.Create, "settled", "verified"}, {intent.Delete, "settled", "verified"}}, mine,
			"exactly fail, expected not-checked, verified fail, undeclared pass", 2, 0, 0, "the delete is not true"},
		"compensated and gone": {plain, []claimed{{intent.Create, "settled", "compensated"}}, nothing,
			"exactly pass, expected not-checked, verified pass, undeclared pass", 0, 0, 0, "undone"},
		"compensated and there": {plain, []claimed{{intent.Create, "settled", "compensated"}}, mine,
			"exactly fail, expected not-checked, verified fail, undeclared pass", 1, 0, 0, "it was not undone"},
		"denied and there": {plain, []claimed{{intent.Create, "settled", "denied"}}, mine,
			"exactly fail, expected not-checked, verified fail, undeclared pass", 1, 0, 0, "it was sent though a reviewer refused it"},
		"sent and not declared": {plain, []claimed{{intent.Create, "settled", "verified"}}, func(s *stage) {
			mine(s)
			s.there("B-2", 1, declared(intent.Create, "B-2", 9).Stamp())
		}, "exactly pass, expected pass, verified pass, undeclared fail", 0, 0, 0, "a stamp of ours that no declared write has"},
	}
}

func TestClaims(t *testing.T) {
	for name, c := range claimsCases() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, c.options)
				c.world(s)
				var lines []string
				for i, one := range c.claims {
					lines = append(lines, exportLine(t, declared(one.write, "A-1", i), one.state, one.settlement, i))
				}
				// Newest first, as the list of writes is.
				s.write("writes.json", `{"writes":[`+strings.Join(reversed(lines), ",")+"]}")
				r := s.eval(workflowChecks)
				cl := r.Claims
				if cl == nil {
					t.Fatalf("no claims were weighed: %s", r.Text())
				}
				got := fmt.Sprint(results(r), cl.SilentWrong.Cases, cl.OverHalting.Cases, cl.FalseAborts.Cases)
				if want := fmt.Sprint(c.want, c.silent, c.over, c.aborts); got != want {
					t.Errorf("%s\nwant %s: %s\n%s", got, want, c.reason, r.Text())
				}
			})
		})
	}
}

func reversed(lines []string) []string {
	var all []string
	for i := len(lines) - 1; i >= 0; i-- {
		all = append(all, lines[i])
	}
	return all
}

// TestUpdatesAreLaidOver: a later update changes what must be there, and one of unknown result
// leaves its fields out.
func TestUpdatesAreLaidOver(t *testing.T) {
	for name, c := range map[string]struct {
		state, settlement string
		amount            int
		want              string
		reason            string
	}{
		"verified, and as it says":  {"settled", "verified", 200, "exactly pass, expected pass, verified pass, undeclared pass", "the update counts"},
		"verified, and as before":   {"settled", "verified", 100, "exactly pass, expected fail, verified fail, undeclared pass", "it was not changed"},
		"not applied, and before":   {"settled", "not_applied", 100, "exactly pass, expected pass, verified not-checked, undeclared pass", "a record does not show whose change it has"},
		"in review, either is good": {"review", "", 100, "exactly pass, expected not-checked, verified pass, undeclared pass", "it is unknown which it is"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, orders.Plain.Options())
				create, update := declared(intent.Create, "A-1", 0), declared(intent.Update, "A-1", 1)
				update.Expect = intent.Fields{"amount_cents": json.Number("200")}
				s.there("A-1", c.amount, create.Stamp())
				s.write("writes.json", exportLine(t, create, "settled", "verified", 0)+"\n"+exportLine(t, update, c.state, c.settlement, 1))
				if r := s.eval(workflowChecks); results(r) != c.want {
					t.Errorf("%s, want %s: %s\n%s", results(r), c.want, c.reason, r.Text())
				}
			})
		})
	}
}

// TestClaimsBesideARun: outcomes are joined by record or by id, and one about
// nothing that was declared is wrong.
func TestClaimsBesideARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		in := declared(intent.Create, "A-1", 0)
		s.there("A-1", 100, in.Stamp())
		body, err := in.Encode()
		if err != nil {
			t.Fatal(err)
		}
		s.write("writes.json", string(body)) // a bare intent claims nothing
		s.write("outcomes.jsonl", `{"id":"`+string(ledger.IDOf(in.StructuralKey()))+`","status":"verified"}
{"id":"wr_unknown","status":"verified"}
{"destination":"orders","kind":"order","key":{"order_id":"Z"},"status":"review"}
`)
		r := s.eval(workflowChecks + "outcomes: outcomes.jsonl\n")
		if got := results(r); got != "exactly pass, expected pass, verified not-checked, undeclared fail" || r.Claims.Judged != 1 {
			t.Errorf("%s, %d judged\n%s", got, r.Claims.Judged, r.Text())
		}
		says(t, r, "wr_unknown (outcomes.jsonl:2)", `orders/order {"order_id":"Z"} (outcomes.jsonl:3)`)
	})
}

// TestOneOperationUnderTwoKeys: an idempotency key has the effects of one write.
func TestOneOperationUnderTwoKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		var lines []string
		for i, id := range []string{"A-1", "A-2"} {
			in := declared(intent.Create, id, i)
			in.IdempotencyKey = "wire:7"
			s.there(id, 100, in.Stamp())
			lines = append(lines, exportLine(t, in, "settled", "verified", i))
		}
		s.write("writes.json", strings.Join(lines, "\n"))
		r := s.eval(workflowChecks)
		if got := results(r); !strings.HasPrefix(got, "exactly fail") {
			t.Errorf("%s\n%s", got, r.Text())
		}
		says(t, r, "idempotency key t/x/wire:7: 2 records under 2 keys, at most 1 declared")
	})
}

// TestEveryStatusIsKnown: every status of the engine is a known claim.
func TestEveryStatusIsKnown(t *testing.T) {
	for _, status := range []ledger.Status{ledger.Verified, ledger.NotApplied, ledger.Compensated, ledger.Accepted, ledger.Abandoned,
		ledger.StatusReview, ledger.StatusHeld, ledger.InProgress, ledger.Unverified, ledger.Denied, ledger.Expired, ledger.StatusDelegated, ledger.Reported} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, orders.Plain.Options())
			s.write("outcomes.jsonl", `{"destination":"orders","kind":"order","key":{"order_id":"A-1"},"status":"`+string(status)+`"}`)
			want := map[ledger.Status]eval.Verdict{ledger.Verified: eval.VerdictWrong, ledger.NotApplied: eval.VerdictPassed,
				ledger.Compensated: eval.VerdictPassed, ledger.Denied: eval.VerdictPassed, ledger.Expired: eval.VerdictPassed}[status]
			if r := s.eval(two + "outcomes: outcomes.jsonl\nchecks: {verified: true}\n"); r.Verdict() != want {
				t.Errorf("of nothing %s is claimed: %q, want %q\n%s", status, r.Verdict(), want, r.Text())
			}
		})
	}
}

// TestMaskedFields: a value that an export masks is not compared, and reported as such.
func TestMaskedFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, orders.Plain.Options())
		in := declared(intent.Create, "A-1", 0)
		in.Expect["note"] = "redacted:0123456789abcdef"
		s.there("A-1", 100, in.Stamp())
		s.write("writes.json", exportLine(t, in, "settled", "verified", 0))
		r := s.eval(workflowChecks)
		if r.Verdict() != eval.VerdictPassed {
			t.Errorf("%s\n%s", results(r), r.Text())
		}
		says(t, r, "1 fields are not shown in the export and were not compared")
	})
}
