package policies_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/policies"
)

func TestReadLater(t *testing.T) {
	batch := policies.Verification{Mode: policies.Batch, Within: time.Minute}
	of := func(change func(*policies.Verification)) []policies.Verification {
		v := batch
		change(&v)
		return []policies.Verification{v}
	}
	w := intent.WriteIntent{Tenant: "acme", Workflow: "wf", Step: "s", Tool: "t", Destination: "orders", Kind: "order", Write: intent.Create}
	with := func(change func(*intent.WriteIntent)) intent.WriteIntent {
		changed := w
		change(&changed)
		return changed
	}
	cannot := connectors.Profile{Irreversible: []intent.WriteType{intent.Create}}
	for name, c := range map[string]struct {
		rules  []policies.Verification
		w      intent.WriteIntent
		p      connectors.Profile
		within time.Duration
		later  bool
		reason string
	}{
		"no rule":            {nil, w, connectors.Profile{}, 0, false, "always is the default"},
		"batch":              {[]policies.Verification{batch}, w, connectors.Profile{}, time.Minute, true, "as configured"},
		"always":             {of(func(v *policies.Verification) { v.Mode = policies.Always }), w, connectors.Profile{}, time.Minute, false, "as configured"},
		"an unknown mode":    {of(func(v *policies.Verification) { v.Mode = "never" }), w, connectors.Profile{}, time.Minute, false, "the careful way is the default"},
		"no time":            {of(func(v *policies.Verification) { v.Within = 0 }), w, connectors.Profile{}, time.Hour, true, "an hour by default"},
		"destination":        {of(func(v *policies.Verification) { v.Destination = "orders" }), w, connectors.Profile{}, time.Minute, true, "it fits"},
		"other destination":  {of(func(v *policies.Verification) { v.Destination = "crm" }), w, connectors.Profile{}, 0, false, "no rule fits"},
		"other kind":         {of(func(v *policies.Verification) { v.Kind = "invoice" }), w, connectors.Profile{}, 0, false, "no rule fits"},
		"risk, by default":   {of(func(v *policies.Verification) { v.Risk = intent.RiskAuto }), w, connectors.Profile{}, time.Minute, true, "auto is what says nothing"},
		"other risk":         {of(func(v *policies.Verification) { v.Risk = intent.RiskLog }), w, connectors.Profile{}, 0, false, "no rule fits"},
		"first that fits":    {[]policies.Verification{{Kind: "order"}, batch}, w, connectors.Profile{}, time.Hour, false, "always comes first"},
		"first that doesn't": {[]policies.Verification{{Kind: "invoice"}, batch}, w, connectors.Profile{}, time.Minute, true, "the second fits"},
		"approved":           {[]policies.Verification{batch}, with(func(w *intent.WriteIntent) { w.Risk = intent.RiskApprove }), connectors.Profile{}, 0, false, "a reviewer had to approve it"},
		"irreversible":       {[]policies.Verification{batch}, w, cannot, 0, false, "it cannot be taken back"},
		"an undoing":         {[]policies.Verification{batch}, with(func(w *intent.WriteIntent) { w.Compensates = "wr_1" }), connectors.Profile{}, 0, false, "what it undoes waits for it"},
		"to be sent again":   {[]policies.Verification{batch}, with(func(w *intent.WriteIntent) { w.OnMismatch = intent.MismatchRetry }), connectors.Profile{}, 0, false, "it would write over what others did meanwhile"},
		"to be undone":       {[]policies.Verification{batch}, with(func(w *intent.WriteIntent) { w.OnMismatch = intent.MismatchCompensate }), connectors.Profile{}, 0, false, "it would undo what others did meanwhile"},
		"to be checked":      {[]policies.Verification{batch}, with(func(w *intent.WriteIntent) { w.OnMismatch = intent.MismatchEscalate }), connectors.Profile{}, time.Minute, true, "a reviewer looks before anything is done"},
		"no part":            {of(func(v *policies.Verification) { v.Mode = policies.Sample }), w, connectors.Profile{}, time.Minute, true, "none is read at once"},
		"the whole":          {of(func(v *policies.Verification) { v.Mode, v.Part = policies.Sample, 1 }), w, connectors.Profile{}, time.Minute, false, "all are"},
		"not a number":       {of(func(v *policies.Verification) { v.Mode, v.Part = policies.Sample, math.NaN() }), w, connectors.Profile{}, time.Minute, true, "no key is below it"},
	} {
		t.Run(name, func(t *testing.T) {
			within, later := policies.ReadLater(c.rules, c.w, c.p)
			if within != c.within || later != c.later {
				t.Errorf("%s, %t; want %s, %t: %s", within, later, c.within, c.later, c.reason)
			}
		})
	}
}

// A sample has about the requested size, and is the same for every caller.
func TestSampleIsOfTheSizeAskedFor(t *testing.T) {
	for _, part := range []float64{0.01, 0.25, 0.9} {
		rules := []policies.Verification{{Mode: policies.Sample, Part: part}}
		const writes = 20_000
		atOnce := 0
		for n := range writes {
			w := intent.WriteIntent{Tenant: "acme", Workflow: "wf", Step: fmt.Sprint(n), Tool: "t", Write: intent.Create}
			_, later := policies.ReadLater(rules, w, connectors.Profile{})
			if _, again := policies.ReadLater(rules, w, connectors.Profile{}); again != later {
				t.Fatalf("write %d: %t, then %t", n, later, again)
			}
			if !later {
				atOnce++
			}
		}
		if got := float64(atOnce) / writes; math.Abs(got-part) > 0.02 {
			t.Errorf("%.3f are read at once, want %.2f", got, part)
		}
	}
}
