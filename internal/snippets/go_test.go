package snippets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// Order is declared by its tags.
type Order struct {
	ID          string `json:"order_id" readback:"key"`
	AmountCents int    `json:"amount_cents"`
	Currency    string `json:"currency"`
}

func Example() {
	shop, err := orders.New(orders.Plain.Options())
	if err != nil {
		panic(err)
	}
	var reg connectors.Registry
	if err := errors.Join(reg.Register("orders", shop.Destination()), shop.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1})); err != nil {
		panic(err)
	}
	fmt.Println(charge(context.Background(), ledger.NewMemory(), &reg), len(shop.Records("A-1")))
	// Output: verified <nil> 1
}

// charge is the example of the page, in a function that can fail.
func charge(ctx context.Context, book ledger.Ledger, reg *connectors.Registry) error {
	eng := engine.New(book, reg, nil)
	defer eng.Close()
	w, err := intent.From(intent.WriteIntent{
		Tenant: "acme", Workflow: "invoice-run-7", Step: "charge", Tool: "charge_card",
		Destination: "orders", Kind: "order", Write: intent.Create,
	}, Order{ID: "A-1", AmountCents: 1999, Currency: "EUR"})
	if err != nil {
		return err
	}
	out, err := eng.Do(ctx, w)

	fmt.Print(out.Status, " ")
	return err
}

// What the page shows is what Example runs.
func TestGo(t *testing.T) {
	text, err := os.ReadFile("go_test.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := "\t" + strings.ReplaceAll(strings.TrimSpace(block(t, "go")), "\n", "\n\t")
	if !strings.Contains(string(text), shown) {
		t.Errorf("the example has not what the page shows:\n%s", shown)
	}
}
