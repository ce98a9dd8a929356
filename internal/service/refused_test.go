package service

import (
	"errors"
	"strings"
	"testing"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/sealed"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// TestRefusalsContainNoValues: the faults of an intent are reported without its sensitive values,
// as a sentence and as a list of problems.
func TestRefusalsContainNoValues(t *testing.T) {
	v, err := redact.New([]redact.Key{{ID: "k", Secret: []byte("a key of 32 bytes for the tests!")}}, redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := New(Parts{Redaction: sealed.New(ledger.NewMemory(), v, nil)})
	w := intent.WriteIntent{Expect: intent.Fields{"owner": "Lovelace"}, Sensitive: []string{"/owner"}}
	given := &intent.InvalidError{Problems: []intent.Problem{{Path: "/expect/owner", Problem: `is "Lovelace"`, Want: "the name in the key"}}}
	got := o.cleaned(Who{Tenant: "acme"}, given, w)
	invalid, ok := errors.AsType[*intent.InvalidError](got)
	if !ok || !errors.Is(got, intent.ErrInvalid) {
		t.Fatalf("%v is not about an intent any more", got)
	}
	if text := got.Error() + invalid.Problems[0].Problem; strings.Contains(text, "Lovelace") || !strings.Contains(text, redact.ShownPrefix) {
		t.Errorf("the refusal contains a value: %s", text)
	}
	if given.Problems[0].Problem != `is "Lovelace"` {
		t.Error("another caller's error was changed")
	}
}
