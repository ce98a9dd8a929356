package verify_test

import (
	"encoding/json"
	"testing"

	"github.com/readback-go/readback/verify"
)

func TestVerdictText(t *testing.T) {
	words := map[string]bool{}
	for _, v := range verify.Verdicts() {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var back verify.Verdict = 200
		if err := json.Unmarshal(text, &back); err != nil || back != v {
			t.Errorf("%s came back as %s, %v", text, back, err)
		}
		if verify.ParseVerdict(v.String()) != v {
			t.Errorf("%s is parsed as %s", v, verify.ParseVerdict(v.String()))
		}
		words[v.String()] = true
	}
	for _, word := range []string{"verified", "absent", "mismatched", "duplicated", "collateral", "vacuous", "stale", "unavailable", "indeterminate"} {
		if !words[word] {
			t.Errorf("no verdict is called %q", word)
		}
	}
	if len(words) != 9 {
		t.Errorf("%d words for 9 verdicts", len(words))
	}
}

func TestForgottenVerdictProvesNothing(t *testing.T) {
	var zero verify.Judgement
	if zero.Verdict != verify.Indeterminate || zero.Verdict.String() != "indeterminate" || zero.Conclusive || zero.Effect() {
		t.Errorf("the zero judgement is %+v", zero)
	}
	if got := verify.Verdict(99); got.String() != "indeterminate" {
		t.Errorf("an unknown verdict reads %q", got)
	}
	for _, word := range []string{"", "Verified", "ok", "success"} {
		if got := verify.ParseVerdict(word); got != verify.Indeterminate {
			t.Errorf("%q is parsed as %s", word, got)
		}
		var v verify.Verdict
		if err := v.UnmarshalText([]byte(word)); err == nil || v != verify.Indeterminate {
			t.Errorf("%q is read as %s without an error", word, v)
		}
	}
}
