package main

import (
	"context"
	_ "embed" // for the declaration
	"fmt"
	"net/http"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

//go:embed payments.yaml
var declaration []byte

// wrapped is the same loop through readback: it declares the charge, and the engine sends it
// once, reads it back, and returns the verified outcome. The ledger outlives the loop.
func wrapped(ctx context.Context, by http.RoundTripper, base string, c Charge, book ledger.Ledger) (engine.Outcome, error) {
	api, err := rest.Load(declaration, "payments.yaml")
	if err != nil {
		return engine.Outcome{}, err
	}
	payments, err := rest.New(api, rest.Options{BaseURL: base, Transport: by})
	if err != nil {
		return engine.Outcome{}, err
	}
	var reg connectors.Registry
	if err := reg.Register("payments", connectors.Destination{Connector: payments, Profiles: payments.Profiles()}); err != nil {
		return engine.Outcome{}, err
	}
	eng := engine.New(book, &reg, nil)
	defer eng.Close()

	w, err := intent.From(intent.WriteIntent{
		Tenant: "acme", Workflow: "pay-" + c.Invoice, Step: "charge", Tool: "charge_card",
		Destination: "payments", Kind: "charge", Write: intent.Create,
	}, c)
	if err != nil {
		return engine.Outcome{}, err
	}
	out, err := eng.Do(ctx, w)
	if err == nil && out.Status == ledger.InProgress {
		err = fmt.Errorf("no outcome yet: %s", out.Text) // submit again for the outcome
	}
	return out, err
}
