package readbacktest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/readbacktest"
)

// t replaces the t of a test. It prints the first line of each failure.
var t = printing{}

type printing struct{ testing.TB }

func (printing) Helper()                  {}
func (printing) Name() string             { return "TestAgent" }
func (printing) Context() context.Context { return context.Background() }
func (printing) Logf(string, ...any)      {}
func (printing) Cleanup(func())           {}
func (printing) Errorf(format string, args ...any) {
	first, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n")
	fmt.Println(first)
}

// pay is the code under test: it asks for a charge, and again if it gets no confirmation.
func pay(client *http.Client, invoice string) error {
	for range 3 {
		body := strings.NewReader(fmt.Sprintf(`{"invoice": %q, "cents": 1999}`, invoice))
		answer, err := client.Post("http://bank.example/charges", "application/json", body)
		if err != nil {
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusCreated {
			return nil
		}
	}
	return errors.New("no charge was confirmed")
}

// The smallest test: the first write loses its answer, and the effects are
// counted at the target.
func Example() {
	bank := &bank{} // an http.Handler
	proxy := readbacktest.NewProxy(t, bank, readbacktest.Options{
		Script: []readbacktest.Fault{{Kind: readbacktest.LostAnswer, Nth: 1}},
	})
	fmt.Println("pay says:", pay(proxy.Client(), "INV-7721"))
	readbacktest.Effects(t, bank.Charges, "INV-7721", proxy).Exactly(1)
	// Output:
	// pay says: <nil>
	// 2 effects under "INV-7721", want exactly 1
}

// By seed: each request may meet a fault, and one seed always gives the same run.
func ExampleNewProxy() {
	bank := &bank{}
	proxy := readbacktest.NewProxy(t, bank, readbacktest.Options{Seed: 3, Kinds: []readbacktest.Kind{readbacktest.LostAnswer, readbacktest.Unavailable}})
	for n := range 20 {
		_ = pay(proxy.Client(), fmt.Sprint("INV-", n))
	}
	met := map[readbacktest.Kind]int{}
	for _, c := range proxy.Calls() {
		met[c.Fault]++
	}
	fmt.Println("answers lost:", met[readbacktest.LostAnswer], "unavailable:", met[readbacktest.Unavailable])
	proxy.ExpectEffects(t, nil, 20)
	// Output:
	// answers lost: 3 unavailable: 1
	// 23 effects reached the target, want exactly 20
}

// A loop is killed at each of its points, and started again.
func ExampleReplay() {
	plan := readbacktest.Plan{Kinds: []readbacktest.Kind{readbacktest.None}} // kills only
	readbacktest.Replay(t, plan, func(s *readbacktest.Story) {
		bank := &bank{} // a world for each story
		proxy := s.Proxy(bank, readbacktest.Options{})
		_ = s.Run(func(_ context.Context, run *readbacktest.Run) error {
			if err := pay(run.Client(proxy), "INV-7721"); err != nil {
				return err
			}
			run.Point("charge noted")
			return nil
		})
		readbacktest.Effects(s, bank.Charges, "INV-7721").Exactly(1)
	})
	// Output:
	// life 1 killed at point 2, "after POST /charges": 2 effects under "INV-7721", want exactly 1
	// life 1 killed at point 3, "charge noted": 2 effects under "INV-7721", want exactly 1
	// life 1 killed at point 4, "the end, before anybody notes it": 2 effects under "INV-7721", want exactly 1
}

// The same faults before a connector.
func ExampleAround() {
	shop, _ := orders.New(orders.Plain.Options())
	link := readbacktest.Around(t, shop.Destination().Connector, readbacktest.Options{
		Script: []readbacktest.Fault{{Kind: readbacktest.PhantomSuccess, Nth: 1}},
	})
	w := intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Tool: "charge", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": "INV-7721"}, Expect: intent.Fields{"currency": "USD"},
	}
	_, err := link.Connector().Write(context.Background(), connectors.Request{Intent: w, Stamp: w.Stamp(), Attempt: 1})
	fmt.Println("the connector says", connectors.FateOf(err))
	link.ExpectEffects(t, nil, 1)
	// Output:
	// the connector says answered
	// 0 effects reached the target, want exactly 1
}
