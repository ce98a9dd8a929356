package readbacktest_test

import (
	"strings"
	"testing"
	"testing/synctest"

	rt "github.com/readback-go/readback/readbacktest"
)

// TestFailureSaysAll: which requests, when, in what order, under which fault, and how to repeat
// it.
func TestFailureSaysAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bank{}
		p := rt.NewProxy(t, b, rt.Options{Seed: 11, Key: invoiceOf, Script: []rt.Fault{{Kind: rt.LateCommit, Nth: 1}}})
		post(t.Context(), p.Client(), "http://bank.example", invoice)
		post(t.Context(), p.Client(), "http://bank.example", invoice)
		for name, assert := range map[string]func(testing.TB){
			"Exactly":       func(tb testing.TB) { rt.Effects(tb, b.Charges, invoice, p).Exactly(1) },
			"AtMost":        func(tb testing.TB) { rt.Effects(tb, p.Landed, invoice, p).AtMost(1) },
			"ExpectEffects": func(tb testing.TB) { p.ExpectEffects(tb, func(c rt.Call) bool { return c.Key == invoice }, 1) },
		} {
			says := failures(t, assert)
			for _, want := range []string{
				"2 effects",
				`#1 +0s write POST /charges "INV-7721" [late-commit]: no. 2 there at +1s, answered 201; the client saw a dead connection`,
				`#2 +1s write POST /charges "INV-7721": no. 1 there at +1s, answered 201; the client saw 201`,
				"seed 11; to repeat: READBACKTEST_SEED=11 go test -run '^TestFailureSaysAll$'",
			} {
				if !strings.Contains(says, want) {
					t.Errorf("%s: the failure does not say %q:\n%s", name, want, says)
				}
			}
		}
		if says := failures(t, func(tb testing.TB) {
			rt.Effects(tb, b.Charges, invoice, p).Exactly(2)
			rt.Effects(tb, b.Charges, invoice, p).AtMost(2)
			p.ExpectEffects(tb, func(c rt.Call) bool { return c.Key == "another" }, 0)
		}); says != "" {
			t.Errorf("what holds fails: %s", says)
		}
	})
}

// TestUnmet: a fault that never happened is reported, since the test has shown nothing then.
func TestUnmet(t *testing.T) {
	logs := strings.Join(outcome(t, func(tb testing.TB) {
		p := rt.NewProxy(tb, &bank{}, rt.Options{Script: []rt.Fault{{Kind: rt.LostAnswer, Nth: 3}, {Kind: rt.LaggingRead}, {Kind: rt.Throttled, Nth: 1}, {Kind: rt.BadGateway, Nth: 1}}})
		post(t.Context(), p.Client(), "http://bank.example", invoice)
	}).logs, "\n")
	for says, want := range map[string]bool{"lost-answer on write 3 never happened": true, "lagging-read on each read never happened": true, "throttled on write 1": false, "bad-gateway on write 1 never happened": true} {
		if strings.Contains(logs, says) != want {
			t.Errorf("whether it says %q: want %t:\n%s", says, want, logs)
		}
	}
}

// TestNothingBehind: a proxy needs a target.
func TestNothingBehind(t *testing.T) {
	for name, do := range map[string]func(testing.TB){
		"no target":    func(tb testing.TB) { rt.NewProxy(tb, nil, rt.Options{}) },
		"no connector": func(tb testing.TB) { rt.Around(tb, nil, rt.Options{}) },
	} {
		if says := failures(t, do); !strings.Contains(says, name) {
			t.Errorf("%s: it says %q", name, says)
		}
	}
}

// TestImpossible: an invalid request fails the test that makes it, and the message names the
// valid ones.
func TestImpossible(t *testing.T) {
	for name, c := range map[string]struct {
		options rt.Options
		says    string
	}{
		"unknown fault":      {rt.Options{Script: []rt.Fault{{Kind: "hiccup"}}}, `"hiccup"; want one of`},
		"no fault":           {rt.Options{Script: []rt.Fault{{}}}, `""; want one of`},
		"unknown by seed":    {rt.Options{Kinds: []rt.Kind{"hiccup"}}, `"hiccup"; want one of`},
		"negative nth":       {rt.Options{Script: []rt.Fault{{Kind: rt.LostAnswer, Nth: -1}}}, "want 1 for the first"},
		"negative delay":     {rt.Options{Script: []rt.Fault{{Kind: rt.LateCommit, Delay: -1}}}, "want none or more"},
		"duplicated read":    {rt.Options{Script: []rt.Fault{{Kind: rt.Duplicate, Ops: []rt.Op{rt.Read}}}}, "happens to writes only"},
		"chance above one":   {rt.Options{Chance: 1.5}, "want a number in (0, 1]"},
		"chance below zero":  {rt.Options{Chance: -0.1}, "want a number in (0, 1]"},
		"good, for contrast": {rt.Options{Chance: 1, Kinds: rt.Kinds(), Script: []rt.Fault{{Kind: rt.LaggingRead}}}, ""},
	} {
		says := failures(t, func(tb testing.TB) { rt.NewProxy(tb, &bank{}, c.options) })
		if (c.says == "") != (says == "") || !strings.Contains(says, c.says) {
			t.Errorf("%s: it says %q, want %q", name, says, c.says)
		}
	}
}
