package policies_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

// twice is a create that was verified as record b, and of which a strong read
// long after the horizon finds a record a as well.
func twice() policies.Case {
	w := intent.WriteIntent{Tenant: "acme", Workflow: "w", Tool: "t", Destination: "d", Kind: "order", Write: intent.Create,
		Key: intent.Fields{"id": "A-1"}, Expect: intent.Fields{"total": "5"},
		Reversibility: intent.Compensable, OnMismatch: intent.MismatchCompensate}
	c := lost()
	c.Intent, c.Sends, c.Answered, c.Profile.Stamped, c.Invertible = w, 2, true, true, true
	c = read(c, verify.Duplicated, time.Hour)
	record := func(ref string) connectors.Record {
		return connectors.Record{Ref: ref, Stamp: w.Stamp(), Fields: intent.Fields{"id": "A-1", "total": "5"}}
	}
	c.Doubled = &policies.Doubled{Records: []connectors.Record{record("a"), record("b")}, Verified: "b", Removable: true}
	return c
}

func TestSurplus(t *testing.T) {
	doubled := func(change func(*policies.Doubled)) func(*policies.Case) {
		return func(c *policies.Case) { change(c.Doubled) }
	}
	for name, d := range map[string]struct {
		reason string
		change func(*policies.Case)
		want   string // "" for review
	}{
		"ours, twice":           {"all is proven", func(*policies.Case) {}, "a"},
		"the other one first":   {"the order says nothing", doubled(func(d *policies.Doubled) { d.Records[0], d.Records[1] = d.Records[1], d.Records[0] }), "a"},
		"three sends, all over": {"nothing can land after the horizon", func(c *policies.Case) { c.Sends = 3 }, "a"},
		"no recheck":            {"only a verified write is looked at so", func(c *policies.Case) { c.Doubled = nil }, ""},
		"no double":             {"the look found one", func(c *policies.Case) { c.Verdict = verify.Verified }, ""},
		"an upsert":             {"it may have changed another's", func(c *policies.Case) { c.Intent.Write = intent.Upsert }, ""},
		"two declared":          {"which of three is surplus", func(c *policies.Case) { c.Intent.Count = 2 }, ""},
		"pivot":                 {"the caller did not allow it", func(c *policies.Case) { c.Intent.Reversibility = intent.Pivot }, ""},
		"a person is asked for": {"the caller did not allow it", func(c *policies.Case) { c.Intent.OnMismatch = intent.MismatchEscalate }, ""},
		"irreversible":          {"it cannot be taken back", func(c *policies.Case) { c.Profile.Irreversible = []intent.WriteType{intent.Create} }, ""},
		"no stamps":             {"whose is it", func(c *policies.Case) { c.Profile.Stamped = false }, ""},
		"cannot be addressed":   {"the connector is no remover", doubled(func(d *policies.Doubled) { d.Removable = false }), ""},
		"directed":              {"a person is at it", func(c *policies.Case) { c.Directed = policies.DirectCompensate }, ""},
		"conflict":              {"somebody else is involved", func(c *policies.Case) { c.Conflict = true }, ""},
		"weak":                  {"the read may be old", func(c *policies.Case) { c.Firm = false }, ""},
		"one send":              {"who made the second", func(c *policies.Case) { c.Sends = 1 }, ""},
		"one send taken up":     {"who made the second", func(c *policies.Case) { c.Unsent = 1 }, ""},
		"three sends, not over": {"the third may land", func(c *policies.Case) { c.Sends, c.AsOf = 3, horizon-1 }, ""},
		"three records":         {"one of two alone", doubled(func(d *policies.Doubled) { d.Records = append(d.Records, d.Records[0]) }), ""},
		"another write":         {"it may be about either", doubled(func(d *policies.Doubled) { d.Other = "wr_1" }), ""},
		"none known verified":   {"which one stays", doubled(func(d *policies.Doubled) { d.Verified = "" }), ""},
		"verified one gone":     {"the one to stay is not there", doubled(func(d *policies.Doubled) { d.Verified = "c" }), ""},
		"no name":               {"it cannot be addressed", doubled(func(d *policies.Doubled) { d.Records[0].Ref = "" }), ""},
		"one name":              {"they are one record", doubled(func(d *policies.Doubled) { d.Records[0].Ref = "b" }), ""},
		"surplus not ours":      {"another stamp", doubled(func(d *policies.Doubled) { d.Records[0].Stamp = "rb-x" }), ""},
		"verified not ours":     {"another stamp", doubled(func(d *policies.Doubled) { d.Records[1].Stamp = "" }), ""},
		"surplus changed":       {"somebody works on it", doubled(func(d *policies.Doubled) { d.Records[0].Fields["total"] = "6" }), ""},
		"surplus has more":      {"somebody added to it", doubled(func(d *policies.Doubled) { d.Records[0].Fields["note"] = "x" }), ""},
		"verified changed":      {"it is not as declared", doubled(func(d *policies.Doubled) { d.Records[1].Fields["total"] = "6" }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := with(twice(), d.change)
			got, why := policies.Surplus(c)
			if got.Ref != d.want || (why == "") != (d.want != "") {
				t.Errorf("%q, %q; want %q: %s", got.Ref, why, d.want, d.reason)
			}
			asked := append([]policies.Policy{policies.RemoveSurplus()}, policies.Standard()...)
			if said := policies.Decide(c, asked); (said.Kind == policies.Remove) != (d.want != "") {
				t.Errorf("decided %+v: %s", said, d.reason)
			}
			if said := policies.Decide(c, []policies.Policy{saying(policies.Remove)}); (said.Kind == policies.Remove) != (d.want != "") {
				t.Errorf("a policy of somebody's: %+v: %s", said, d.reason)
			}
			if said := policies.Decide(c, policies.Standard()); said.Kind == policies.Remove {
				t.Errorf("removed without being asked for: %+v", said)
			}
		})
	}
	if d := policies.Decide(with(twice(), func(c *policies.Case) { c.Sends = 1 }), []policies.Policy{policies.RemoveSurplus()}); !strings.Contains(d.Reason, "no record is removed") {
		t.Errorf("%q does not say that nothing is removed", d.Reason)
	}
}

// Whatever case comes to be, nobody but a recheck removes anything.
func TestNothingIsSurplusOutsideARecheck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCase(t)
		if d := policies.Decide(c, []policies.Policy{policies.RemoveSurplus(), saying(policies.Remove)}); d.Kind == policies.Remove {
			t.Fatalf("%+v", d)
		}
	})
}
