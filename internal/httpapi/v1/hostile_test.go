package v1

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// One name in two tenants, or under two tools, is two writes, and neither reveals
// anything to the other's caller.
func TestOneKeyOfTwoCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Lagging.Options(), nil)
		ours := into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1", unnamed)), "Idempotency-Key: k-1").want(202))
		theirs := into[engine.Outcome](b.ask(outsider, "POST", "/v1/writes", asJSON(order("A-2", unnamed)), "Idempotency-Key: k-1").want(202))
		other := order("A-3", unnamed, func(w *intent.WriteIntent) { w.Tool = "refund" })
		tool := into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", asJSON(other), "Idempotency-Key: k-1").want(202))
		if ours.ID == theirs.ID || ours.ID == tool.ID || ours.Replayed || theirs.Replayed || tool.Replayed {
			t.Errorf("%+v, %+v, %+v", ours, theirs, tool)
		}
		if p := b.ask(outsider, "POST", "/v1/writes", asJSON(order("A-2", unnamed)), "Idempotency-Key: k-1").problem(inFlight); p.ID != theirs.ID {
			t.Errorf("a repeat of theirs speaks of %s", p.ID)
		}
	})
}

// However a body arranges its members, no other tenant results, and no number loses a
// digit on the way. A body with too many members is not decoded.
func TestTooManyMembersAreNotDecoded(t *testing.T) {
	var b strings.Builder
	for i := range 80_000 {
		fmt.Fprintf(&b, `"m%d":1,`, i)
	}
	body := "{" + strings.TrimSuffix(b.String(), ",") + "}"
	if _, err := decodeIntent([]byte(body), "acme", ""); err == nil || !strings.Contains(err.Error(), "has more than 64 members") {
		t.Errorf("%.200v", err)
	}
	plan := strings.TrimSuffix(body[:strings.Index(body, `"m5000"`)], ",") + "}"
	took := testing.AllocsPerRun(1, func() {
		if _, err := decodePlan([]byte(plan), "acme"); err == nil {
			t.Error("a plan was decoded from it")
		}
	})
	if took > 1000 { // a map of its members takes some for each
		t.Errorf("a plan took %.0f allocations", took)
	}
}

func TestMembersThatAreNotWhatTheySeem(t *testing.T) {
	plain := asJSON(order("A-1", unnamed))
	for name, c := range map[string]struct {
		body   string
		kind   *kind
		reason string
	}{
		"a tenant in escapes":      {strings.Replace(plain, `{`, `{"\u0074enant":"umbrella",`, 1), otherTenant, "it is the same name"},
		"two tenants":              {strings.Replace(plain, `{`, `{"tenant":"acme","tenant":"umbrella",`, 1), invalidIntent, "which one is meant is unknown"},
		"two tenants, one escaped": {strings.Replace(plain, `{`, `{"tenant":"acme","\u0074enant":"umbrella",`, 1), invalidIntent, "which one is meant is unknown"},
		"a tenant in capitals":     {strings.Replace(plain, `{`, `{"Tenant":"umbrella",`, 1), invalidIntent, "it is another name"},
		"no tenant":                {strings.Replace(plain, `{`, `{"tenant":null,`, 1), invalidIntent, "null is not left out"},
		"a step of nothing":        {strings.Replace(plain, `{`, `{"step":null,`, 1), invalidIntent, "null is not left out"},
		"a mark before it":         {"\ufeff" + plain, invalidIntent, "it is no JSON"},
		"a workflow in full width": {strings.Replace(plain, `{`, `{"workflow":"ｈttp","step":"k-1",`, 1), invalidIntent, "it is read as http"},
		"a number that is cut":     {strings.Replace(plain, `"A-1"`, `9007199254740993`, 1), invalidIntent, "what holds it would hold another"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, orders.Native.Options(), nil)
			a := b.ask(agent, "POST", "/v1/writes", c.body, "Idempotency-Key: k-1")
			a.problem(c.kind)
			if n := len(b.world.Effects()); n != 0 {
				t.Errorf("%d effects: %s", n, c.reason)
			}
		})
	}
}

// A decision that was made about one review is not one about the next.
func TestLateDecisionIsNotAboutTheNextReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		out := b.inReview("A-1")
		seen := into[Account](b.ask(reviewer, "GET", writePath(out.ID, "/record"), "").want(200)).Write
		b.ask(reviewer, "POST", writePath(out.ID, "/decision"), `{"word":"retry","force":true,"reason":"I checked: it is not there"}`, "Prefer: wait=60").want(200)
		now := into[Account](b.ask(reviewer, "GET", writePath(out.ID, "/record"), "").want(200)).Write
		if now.Status != ledger.StatusReview || now.Seq == seen.Seq {
			t.Fatalf("after another send it is %s, event %d", now.Status, now.Seq)
		}
		late := fmt.Sprintf(`{"word":"abandon","reason":"it is not worth it","digest":%q,"seq":%d}`, seen.Digest, seen.Seq)
		b.ask("reviewer:ben@acme", "POST", writePath(out.ID, "/decision"), late).problem(changed)
		if after := into[engine.Outcome](b.ask(reviewer, "GET", writePath(out.ID, ""), "")); after.Status != ledger.StatusReview {
			t.Errorf("it is %s", after.Status)
		}
	})
}
