package mcpgate

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/sealed"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// TestTheServersWordsAreLoggedWithoutArguments: a server repeats its arguments, and
// before an intent is made it is not known which of them are sensitive.
func TestTheServersWordsAreLoggedWithoutArguments(t *testing.T) {
	v, err := redact.New([]redact.Key{{ID: "k", Secret: []byte("a key of 32 bytes for the tests!")}}, redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := &Gateway{service: service.New(service.Parts{Redaction: sealed.New(ledger.NewMemory(), v, nil)})}
	args := intent.Fields{"a/b": "Ada Lovelace", "at": map[string]any{"iban": "DE02120300000000202051"}, "n": json.Number("190919")}
	got := g.redacted(intent.WriteIntent{Tenant: "acme", Destination: "shop"}, args, errors.New(`no record of "ada lovelace" at DE02120300000000202051, 190919`))
	for _, sensitive := range []string{"ovelace", "DE02", "190919"} {
		if strings.Contains(got, sensitive) || !strings.HasPrefix(got, "no record of") {
			t.Errorf("%q contains %q", got, sensitive)
		}
	}
}
