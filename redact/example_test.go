package redact_test

import (
	"bytes"
	"fmt"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/redact"
)

// The vault of an engine: engine.Options{Vault: vault}. An intent marks fields as sensitive; the
// ledger gets tokens in their place.
func Example() {
	vault, err := redact.New([]redact.Key{{ID: "2026-1", Secret: bytes.Repeat([]byte{7}, redact.KeySize)}}, redact.Options{})
	if err != nil {
		panic(err)
	}
	w := intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Tool: "update_contact", Destination: "crm", Kind: "contact", Write: intent.Update,
		Key: intent.Fields{"id": "77"}, Expect: intent.Fields{"iban": "DE02120300000000202051"},
		Sensitive: []string{"/iban"},
	}
	scope := vault.Scope(w.Tenant, w.Stamp(), w.Sensitive)
	stored, err := scope.SealIntent(w)
	fmt.Println(bytes.Contains(stored, []byte("DE02")), redact.Sealed(stored), err)

	opened, err := scope.OpenIntent(stored)
	fmt.Println(opened.Expect["iban"], err)
	// Output:
	// false true <nil>
	// DE02120300000000202051 <nil>
}
