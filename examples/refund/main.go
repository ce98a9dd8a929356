// Refund gives 29.99 back through Stripe. Stripe's answer is lost, the process of the agent dies, and
// another workflow, which knows nothing of the first, asks for the same refund. There is one refund.
// Then the agent asks for more than is left, and Stripe refuses in its own words.
//
// It needs no account: a fake of Stripe runs in this process. With one, leave Transport out and give
// the secret key of a sandbox.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// Refund is the record as this program knows it. Reference is its own name of the refund.
type Refund struct {
	PaymentIntent string `json:"payment_intent" readback:"key"`
	Reference     string `json:"reference" readback:"key"`
	Amount        int    `json:"amount"` // in cents
	Reason        string `json:"reason"`
}

// firstProcess is set in the environment of the process that dies: where Stripe is, and the ledger.
const firstProcess = "REFUND_FIRST"

func main() {
	ctx, s := context.Background(), stripe()
	err := error(nil)
	if at, path, first := strings.Cut(os.Getenv(firstProcess), " "); first {
		err = die(ctx, at, path)
	} else {
		err = run(ctx, s)
	}
	if err != nil {
		slog.Error("refund", "error", err)
		os.Exit(1)
	}
}

// stripe is the fake, with a payment of 50.00.
func stripe() *fakerest.Stripe {
	s := fakerest.NewStripe(fakerest.StripeOptions{})
	s.Seed(fakerest.StripePaymentIntents, fakerest.Object{"id": "pi_7721", "amount": fakerest.Number(5000), "amount_received": fakerest.Number(5000),
		"currency": "usd", "status": "succeeded", "latest_charge": "ch_7721"})
	return s
}

// back is what the customer gets back.
var back = Refund{PaymentIntent: "pi_7721", Reference: "return-4711", Amount: 2999, Reason: "requested_by_customer"}

// worker is one process: an engine on the ledger's file.
func worker(ctx context.Context, at, path string, transport http.RoundTripper) (*engine.Engine, func(), error) {
	book, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		return nil, nil, err
	}
	api, err := rest.ShippedDeclaration("stripe")
	if err != nil {
		return nil, nil, err
	}
	key := func(context.Context) (string, error) { return "sk_test_readback", nil }
	dest, err := rest.New(api, rest.Options{BaseURL: at, Secrets: map[string]func(context.Context) (string, error){"key": key}, Transport: transport})
	if err != nil {
		return nil, nil, err
	}
	var reg connectors.Registry
	if err := reg.Register("stripe", connectors.Destination{Connector: dest, Profiles: dest.Profiles()}); err != nil {
		return nil, nil, err
	}
	e := engine.New(book, &reg, nil)
	return e, func() { e.Close(); _ = book.Close() }, nil
}

// refund is the write of a workflow. The idempotency key names the business operation for all of them.
func refund(workflow string, r Refund) (intent.WriteIntent, error) {
	return intent.From(intent.WriteIntent{
		Tenant: "acme", Workflow: workflow, Step: "refund", Tool: "refund_payment", Destination: "stripe", Kind: "refund",
		Write: intent.Create, IdempotencyKey: "refund:" + r.Reference,
	}, r)
}

func run(ctx context.Context, s *fakerest.Stripe) error {
	dir, err := os.MkdirTemp("", "refund")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "ledger.db")
	server := httptest.NewServer(s)
	defer server.Close()

	// The first process dies when Stripe has made the refund; its answer is lost.
	self, err := os.Executable()
	if err != nil {
		return err
	}
	first := exec.CommandContext(ctx, self)
	first.Env = append(os.Environ(), firstProcess+"="+server.URL+" "+path)
	fmt.Println("the first workflow:", first.Run())

	// Another process, another workflow, the same refund.
	e, end, err := worker(ctx, server.URL, path, nil)
	if err != nil {
		return err
	}
	defer end()
	w, err := refund("run-2", back)
	if err != nil {
		return err
	}
	_, err = e.Do(ctx, w)
	if !errors.Is(err, ledger.ErrBlocked) {
		return fmt.Errorf("the second workflow may refund: %w", err)
	}
	fmt.Println("the second workflow:", err)
	out, err := e.AwaitPrior(ctx, err) // what came of it
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s\n", out.Status, out.Text)
	if out.Status != ledger.Verified {
		return errors.New("the refund is not verified")
	}

	// More than is left.
	if w, err = refund("run-3", Refund{PaymentIntent: "pi_7721", Reference: "return-4712", Amount: 4000, Reason: "requested_by_customer"}); err != nil {
		return err
	}
	if out, err = e.Do(ctx, w); err != nil {
		return err
	}
	if out.Refusal == nil {
		return fmt.Errorf("the refund of more than is left is %s: %s", out.Status, out.Text)
	}
	fmt.Printf("%s: %s\nStripe said: %s\n", out.Status, out.Text, out.Refusal.Message)
	fmt.Printf("Stripe has %d refund\n", len(s.Now(fakerest.StripeRefunds)))
	return nil
}

// die is the life of the first process.
func die(ctx context.Context, at, path string) error {
	e, end, err := worker(ctx, at, path, dying{httpsend.NewTransport(nil, nil)})
	if err != nil {
		return err
	}
	defer end()
	w, err := refund("run-1", back)
	if err == nil {
		_, err = e.Do(ctx, w)
	}
	return errors.Join(errors.New("it should be dead"), err)
}

// dying ends the process before it sees the answer of a write.
type dying struct{ http.RoundTripper }

func (d dying) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := d.RoundTripper.RoundTrip(r)
	if r.Method == http.MethodPost {
		os.Exit(137)
	}
	return answer, err
}
