package rules

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
)

// TestIntentFields: every member of an intent can be asked for, and no other.
func TestIntentFields(t *testing.T) {
	want := map[string]bool{}
	for f := range reflect.TypeFor[intent.WriteIntent]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		want[name] = true
	}
	got := map[string]bool{}
	for _, f := range intentFields() {
		got[f.name] = true
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-members of an intent +fields of rules:\n%s", d)
	}
}

// TestVariablesAreDocumented: the manual lists everything that a rule can ask about.
func TestVariablesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/gate.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Variables() {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/guide/gate.md does not say what `%s` is", name)
		}
	}
}

// TestEvaluationIsInterrupted: an iteration over a list stops at the deadline, and not only at
// its end.
func TestEvaluationIsInterrupted(t *testing.T) {
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	e, faults := compile(env, "step.input.items.all(i, i < 1000)")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	items := make([]any, maxMembers)
	for i := range items {
		items[i] = float64(i)
	}
	items[maxMembers-1] = "the traversal would fail here in another way"
	f := gate.Facts{Input: map[string]any{"items": items}}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.holds(gone, values(&f)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v; want that the time is over", err)
	}
	out, _, err := e.program.ContextEval(gone, values(&f))
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("%v, %v; want that the evaluation was interrupted", out, err)
	}
}

// TestCostsAreNotCounted: a cost that is bounded by its estimate is not counted again, which
// takes longer than the evaluation.
func TestCostsAreNotCounted(t *testing.T) {
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	e, faults := compile(env, "step.input.items.all(i, step.input.items.all(j, i >= 0.0))")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	items := make([]any, maxMembers)
	for i := range items {
		items[i] = float64(i)
	}
	out, details, err := e.program.ContextEval(t.Context(), values(&gate.Facts{Input: map[string]any{"items": items}}))
	if err != nil || out.Value() != true || details.ActualCost() != nil {
		t.Errorf("%v, cost %v, %v; want true, and no cost", out, details.ActualCost(), err)
	}
}
