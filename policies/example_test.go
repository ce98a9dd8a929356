package policies_test

import (
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

// Put your own policy before the standard ones. It decides only its own cases: here, payments
// are never repeated at night, when no operator can react to faults.
func Example() {
	night := true
	noPaymentsAtNight := policies.Func(func(c policies.Case) (policies.Decision, bool) {
		if c.Intent.Kind != "payment" || c.Verdict != verify.Absent || !night {
			return policies.Decision{}, false // not mine
		}
		return policies.Decision{Kind: policies.Wait, After: 8 * time.Hour, Rule: "no payments at night",
			Reason: "repeated in the morning, when an operator can react"}, true
	})
	asked := append([]policies.Policy{noPaymentsAtNight}, policies.Standard()...)

	// A payment whose response was lost, and that a read does not show. The destination
	// deduplicates by our key, so a repeat would be harmless.
	c := policies.Case{
		Intent: intent.WriteIntent{Kind: "payment", Write: intent.Create},
		Profile: connectors.Profile{
			Settle:       connectors.Within(0),
			Horizon:      connectors.Within(time.Minute),
			NativeWindow: map[intent.WriteType]time.Duration{intent.Create: 24 * time.Hour},
		},
		Judgement: verify.Judgement{Verdict: verify.Absent, Conclusive: true},
		Sends:     1, Unknown: true, Budget: policies.DefaultBudget,
	}
	for _, night = range []bool{true, false} {
		d := policies.Decide(c, asked)
		fmt.Printf("night %t: %s, by %q\n", night, d.Kind, d.Rule)
	}

	// No policy can accept an effect that was not observed.
	hopeful := policies.Func(func(policies.Case) (policies.Decision, bool) {
		return policies.Decision{Kind: policies.Accept, Rule: "hope"}, true
	})
	d := policies.Decide(c, []policies.Policy{hopeful})
	fmt.Printf("hope: %s, %s\n", d.Kind, d.Reason)
	// Output:
	// night true: wait, by "no payments at night"
	// night false: retry, by "retry"
	// hope: escalate, accepted by a policy without having been seen
}
