package policies_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/policies"
)

func TestExplain(t *testing.T) {
	every := []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}
	minute := connectors.Within(time.Minute)
	strong := []connectors.ReadPath{{Path: "list", By: "key", Strength: connectors.Strong}}
	for name, c := range map[string]struct {
		profile connectors.Profile
		want    policies.Guarantee
		says    string
		reason  string
	}{
		"nothing declared": {connectors.Profile{},
			policies.Guarantee{Row: policies.RowNone}, "a reviewer decides", "the zero value is the cautious one"},
		"no horizon": {connectors.Profile{Settle: minute, Reads: strong},
			policies.Guarantee{Row: policies.RowNone}, "(horizon)", "it may land for ever"},
		"(settle)": {connectors.Profile{Horizon: minute},
			policies.Guarantee{Row: policies.RowNone}, "(settle)", "a weak read then never shows absence"},
		"strong by its own id alone": {connectors.Profile{Horizon: minute, Reads: []connectors.ReadPath{{Path: "get", By: "ref", Strength: connectors.Strong}}},
			policies.Guarantee{Row: policies.RowNone}, "(settle)", "who lost the answer has no id to ask by"},
		"settle and horizon": {connectors.Profile{Settle: minute, Horizon: minute},
			policies.Guarantee{Row: policies.RowAbsence, Repeats: true, After: 2 * time.Minute, MayDouble: true}, "after 2m0s", "what is applied at the horizon is seen the settle time later"},
		"strong look-up and horizon": {connectors.Profile{Horizon: minute, Reads: strong},
			policies.Guarantee{Row: policies.RowAbsence, Repeats: true, After: time.Minute, MayDouble: true}, "after 1m0s", "no lag to wait for"},
		"irreversible": {connectors.Profile{Settle: minute, Horizon: minute, Reads: strong, Irreversible: every},
			policies.Guarantee{Row: policies.RowNone}, "irreversible", "its absence proves nothing"},
		"irreversible, and shows what is unused": {connectors.Profile{Settle: minute, Horizon: minute, Irreversible: every, ShowsUnused: every},
			policies.Guarantee{Row: policies.RowAbsence, Repeats: true, After: 2 * time.Minute, MayDouble: true}, "still unused", "a draft that is still one was not sent"},
		"never to be repeated": {connectors.Profile{Unique: every, Settle: minute, Horizon: minute, Reads: strong, NeverRepeat: every},
			policies.Guarantee{Row: policies.RowNone}, "never to be repeated", "whatever makes a repeat harmless"},
		"irreversible, and unique": {connectors.Profile{Irreversible: every, Unique: every},
			policies.Guarantee{Row: policies.RowUnique, Repeats: true}, "meets the one record", "the destination refuses the second"},
		"native": {connectors.Profile{NativeWindow: map[intent.WriteType]time.Duration{intent.Create: time.Hour, intent.Update: time.Hour, intent.Upsert: time.Hour, intent.Delete: time.Hour}},
			policies.Guarantee{Row: policies.RowNativeKey, Repeats: true}, "same key", "at once"},
		"a window too short to be met": {connectors.Profile{NativeWindow: map[intent.WriteType]time.Duration{intent.Create: time.Second, intent.Update: time.Second, intent.Upsert: time.Second, intent.Delete: time.Second}},
			policies.Guarantee{Row: policies.RowNone}, "a reviewer decides", "the repeat could land after it"},
		"unique": {connectors.Profile{Unique: every},
			policies.Guarantee{Row: policies.RowUnique, Repeats: true}, "meets the one record", "at once"},
		"conditional": {connectors.Profile{Conditional: every},
			policies.Guarantee{Row: policies.RowConditional, Repeats: true}, "condition", "at once"},
	} {
		for _, w := range every {
			t.Run(name+"/"+string(w), func(t *testing.T) {
				got := policies.Explain(c.profile, w)
				want := c.want
				want.Write = w
				if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(policies.Guarantee{}, "Text")); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.reason, diff)
				}
				if !strings.Contains(got.Text, c.says) || !strings.Contains(got.Text, string(w)) {
					t.Errorf("%q; want the write type and %q", got.Text, c.says)
				}
			})
		}
	}
}

// A declaration for one write type says nothing about another.
func TestExplainIsByWriteType(t *testing.T) {
	p := connectors.Profile{Unique: []intent.WriteType{intent.Upsert}, NativeWindow: map[intent.WriteType]time.Duration{intent.Create: time.Hour}}
	for w, row := range map[intent.WriteType]string{intent.Create: policies.RowNativeKey, intent.Upsert: policies.RowUnique, intent.Update: policies.RowNone} {
		if got := policies.Explain(p, w); got.Row != row {
			t.Errorf("%s: %q, want %q", w, got.Row, row)
		}
	}
}
