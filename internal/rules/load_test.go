package rules_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/rules"
)

// one is a file with one rule.
func one(when string) string {
	return "version: 1\nrules:\n  - id: a\n    when: " + when + "\n    decision: block\n    reason: r\n"
}

func problems(t *testing.T, text string) []string {
	t.Helper()
	_, _, err := rules.Parse("f", []byte(text))
	if err == nil {
		return nil
	}
	var invalid *rules.InvalidError
	if !errors.As(err, &invalid) || !errors.Is(err, rules.ErrInvalid) {
		t.Fatalf("error %v is no InvalidError", err)
	}
	var all []string
	for _, p := range invalid.Problems {
		all = append(all, p.String())
	}
	return all
}

func TestBadFiles(t *testing.T) {
	tests := map[string]struct {
		reason string
		text   string
		want   []string
	}{
		"empty":        {"a file that says nothing allows everything", "", []string{": is empty; want version: 1, and rules"}},
		"no rules":     {"nor does one that only seems to say something", "version: 1\n", []string{": rules: is missing or empty; want at least one rule, or no file of rules at all"}},
		"version":      {"a later version may mean something else", strings.Replace(one("'true'"), "1", "2", 1), []string{": version: is 2; want version: 1"}},
		"unknown word": {"a misspelt decision must not be overlooked", strings.Replace(one("step.cost > 1"), "decision", "decisiom", 1), []string{":5: rules[0].decisiom: is not known; did you mean decision?"}},
		"all at once": {"one run shows all of them", "version: 1\nrules:\n  - id: a b\n    when: step.gate_cnt > 3\n    decision: deny\n    risk_level: huge\n", []string{
			":3: rules[0].id: is \"a b\"; want a name for the rule, such as transfer-once: up to 100 letters, digits and . _ : / -",
			":3: rules[0].reason: is missing; want the reason, in words for the recipient of the decision",
			":4: rules[0].when: column 15: undefined field 'gate_cnt'",
			":5: rules[0].decision: is \"deny\"; want one of allow, block, require_approval",
			":6: rules[0].risk_level: is \"huge\"; want one of low, medium, high, critical"}},
		"no when": {"a rule for nothing", "version: 1\nrules:\n  - id: a\n    decision: block\n    reason: r\n", []string{":3: rules[0].when: has 0 bytes; want a condition in CEL, such as step.gate_count > 3, of at most 8192"}},
		"one id twice": {"matches are recorded by it", one("step.cost > 1") + "  - id: a\n    when: step.cost > 2\n    decision: block\n    reason: r\n",
			[]string{":7: rules[1].id: is \"a\", as that of line 3; want another one: matches are recorded by it"}},
		"two misspelt": {"each with its place", one("step.tol == 'a' || workflow.nme == 'b'"), []string{":4: rules[0].when: column 15: undefined field 'tol'", ":4: rules[0].when: column 38: undefined field 'nme'"}},
		"wrong type":   {"text is no number", one("step.gate_count > '3'"), []string{":4: rules[0].when: column 27: found no matching overload for '_>_' applied to '(int, string)'"}},
		"no condition": {"a number decides nothing", one("step.gate_count"), []string{":4: rules[0].when: column 11: is of type int; want a condition, which is true or false"}},
		"syntax":       {"where it broke off", one("step.gate_count >"), []string{":4: rules[0].when: column 27: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"}},
		"in a block":   {"its own line and column", one("|\n      step.cost > 1 &&\n        step.tol == 'a'"), []string{":6: rules[0].when: column 13: undefined field 'tol'"}},
		"folded":       {"its own line and column, although the lines become one", one(">-\n      step.cost > 1 &&\n      step.tol == 'a'"), []string{":6: rules[0].when: column 11: undefined field 'tol'"}},
		"over lines":   {"likewise without a sign", one("step.cost > 1 &&\n      step.tol == 'a'"), []string{":5: rules[0].when: column 11: undefined field 'tol'"}},
		"in quotes":    {"they count", one(`"step.tol == 'a'"`), []string{":4: rules[0].when: column 16: undefined field 'tol'"}},
		"escaped":      {"then the line is all that is known", one(`"step.tol == \"a\""`), []string{":4: rules[0].when: undefined field 'tol'"}},
		"not ASCII":    {"columns are characters", one("step.tool == 'é' && step.tol == ''"), []string{":4: rules[0].when: column 35: undefined field 'tol'"}},
		"a value made": {"of a type that is read-only", one("|\n      WriteIntent{kind: 'x'} == intent"), []string{":5: rules[0].when: column 7: makes a value with { }; want a condition about those that there are"}},
		"bad pattern":  {"it would never have an answer", one("step.tool.matches('(')"), []string{":4: rules[0].when: column 29: invalid matches argument"}},
		"costs too much": {"three nested loops", one("step.input.all(k, step.input.all(m, step.input.all(n, k+m != n)))"),
			[]string{":4: rules[0].when: column 11: may cost 19668006006003 to evaluate, over lists of 1000 and texts of 65536 bytes; want at most 10000000: ask for less at once"}},
		"pattern from outside": {"the caller must not choose the cost", one("step.input.a.matches(step.name)"),
			[]string{":4: rules[0].when: column 11: matches a text with a pattern that is not written in the rule; want the pattern as a text in quotes: the caller must not choose the cost"}},
		"pattern put together": {"likewise, called as a function", one("matches(step.input.a, 'a' + step.name)"),
			[]string{":4: rules[0].when: column 11: matches a text with a pattern that is not written in the rule; want the pattern as a text in quotes: the caller must not choose the cost"}},
		"pattern with many states": {"fourteen letters, and nine hundred states at every letter of the text", one("|\n      [1, 2, 3].all(i, step.input.t.matches('((a{0,30}){0,30})b'))"),
			[]string{":5: rules[0].when: column 7: may cost 37259522 to evaluate, over lists of 1000 and texts of 65536 bytes; want at most 10000000: ask for less at once"}},
		"the same as a function": {"likewise", one("|\n      [1, 2, 3].all(i, matches(step.input.t, '((a{0,30}){0,30})b'))"),
			[]string{":5: rules[0].when: column 7: may cost 37259522 to evaluate, over lists of 1000 and texts of 65536 bytes; want at most 10000000: ask for less at once"}},
		"two texts matched": {"what is put together is as long as both", one("(step.input.t + step.input.t).matches('(a{0,30}){0,20}b')"),
			[]string{":4: rules[0].when: column 11: may cost 16568519 to evaluate, over lists of 1000 and texts of 65536 bytes; want at most 10000000: ask for less at once"}},
		"pattern with few states": {"such patterns are common", one("step.input.t.matches('^INV-[0-9]{4,6}$') && step.tool.matches('^(wire|ach)_.*')"), nil},
		"too long":                {"it was generated", one("step.tool == '" + strings.Repeat("x", 9000) + "'"), []string{":4: rules[0].when: has 9015 bytes; want a condition in CEL, such as step.gate_count > 3, of at most 8192"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, problems(t, tt.text)); d != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, d)
			}
		})
	}
}

func TestDeepExpressionIsRefused(t *testing.T) {
	got := problems(t, one(strings.Repeat("(", 1000)+"true"+strings.Repeat(")", 1000)))
	if len(got) != 1 || !strings.Contains(got[0], "recursion limit") {
		t.Errorf("a thousand brackets: %q", got)
	}
}

func TestTooManyRules(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\nrules:\n")
	for i := range 1001 {
		fmt.Fprintf(&b, "  - {id: r%d, when: step.cost > %d, decision: block, reason: r}\n", i, i)
	}
	if d := cmp.Diff([]string{":1003: rules: has 1001 rules; want at most 1000"}, problems(t, b.String())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if _, _, err := rules.Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(path, []byte(one("step.gate_count > 3")), 0o600); err != nil {
		t.Fatal(err)
	}
	s, warnings, err := rules.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || warnings[0].Path != path || warnings[0].Line != 3 {
		t.Errorf("warnings %v; want one of line 3 in %s", warnings, path)
	}
	want := []rules.Rule{{ID: "a", Line: 3, Decision: "block", When: "step.gate_count > 3", Reason: "r"}}
	if d := cmp.Diff(want, s.Rules()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// FuzzParse: any file of rules gives either a set or an error.
func FuzzParse(f *testing.F) {
	for _, when := range []string{"true", "step.gate_count > 3", "step.input.a.exists(x, x.b == intent.kind)", "1/0 > 2", "step.tool == 'x' ? 1 > 2 : has(intent.key.a)"} {
		f.Add(one(when))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, _, err := rules.Parse("f", []byte(text))
		if (s == nil) == (err == nil) {
			t.Errorf("set %v and error %v", s, err)
		}
	})
}
