package snippets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/once"
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

func Example_once() {
	shop, err := orders.New(orders.Plain.Options())
	if err != nil {
		panic(err)
	}
	if err := shop.Set(orders.Fault{Kind: orders.LostAnswer, Times: 1}); err != nil {
		panic(err)
	}
	fmt.Println(placeOrder(context.Background(), ledger.NewMemory(), shop.Connector()), len(shop.Records("A-1")))
	// Output: <nil> 1
}

// placeOrder has the example of the page with package once. The connector is its HTTP client.
func placeOrder(ctx context.Context, book ledger.Ledger, shop *orders.Connector) error {
	order := Order{ID: "A-1", AmountCents: 1999, Currency: "EUR"}
	w := intent.WriteIntent{Kind: orders.Kind, Write: intent.Create, Key: intent.Fields{"order_id": order.ID},
		Expect: intent.Fields{"amount_cents": order.AmountCents, "currency": order.Currency}}
	send := func(ctx context.Context, stamp string) error {
		_, err := shop.Write(ctx, connectors.Request{Intent: w, Stamp: stamp})
		return err
	}
	find := func(ctx context.Context, stamp string) (found []once.Record, err error) {
		seen, err := shop.Read(ctx, connectors.Query{Intent: w, Stamp: stamp})
		for _, r := range seen.Records {
			found = append(found, once.Record{Ref: r.Ref, Stamp: r.Stamp, Fields: r.Fields})
		}
		return found, err
	}

	_, err := once.Do(ctx, book, once.Write{
		Key: "order:A-1", Expect: order, Send: send, Find: find,
		Settle: connectors.Within(0), Horizon: connectors.Within(30 * time.Second),
	})
	return err
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
	for _, name := range []string{"go", "go-once"} {
		shown := "\t" + strings.ReplaceAll(strings.TrimSpace(block(t, name)), "\n", "\n\t")
		if !strings.Contains(string(text), shown) {
			t.Errorf("no example has what the page shows:\n%s", shown)
		}
	}
}
