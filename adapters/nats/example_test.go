package nats_test

import (
	"context"
	"encoding/json"

	"github.com/nats-io/nats.go/jetstream"

	readback "github.com/readback-go/readback/adapters/nats"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// Invoice is the body of a message.
type Invoice struct {
	Reference   string `json:"reference" readback:"key"`
	AmountCents int    `json:"amount_cents"`
}

// Messages become writes. A program without Consume had consumer.Consume here.
func Example() {
	var js jetstream.JetStream
	var book ledger.Ledger
	var eng *engine.Engine
	ctx := engine.As(context.Background(), engine.Principal{Name: "billing", Role: engine.RoleAgent})

	consumer, err := js.CreateOrUpdateConsumer(ctx, "BILLING", jetstream.ConsumerConfig{
		Durable: "charges", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1})
	if err != nil {
		panic(err)
	}
	go func() { _ = eng.Work(ctx, nil) }()                                                 // in any process with this ledger
	go func() { _ = readback.Results(ctx, js, book, "billing-results.charges", "acme") }() // or a webhook
	err = readback.Consume(ctx, js, consumer, eng, readback.Options{
		DeadLetters: "billing-dead.charges",
		Intent: func(m jetstream.Msg) (intent.WriteIntent, error) {
			var i Invoice
			if err := json.Unmarshal(m.Data(), &i); err != nil {
				return intent.WriteIntent{}, err
			}
			return intent.From(intent.WriteIntent{
				Tenant: "acme", Tool: "charge", Destination: "payments", Kind: "charge", Write: intent.Create,
			}, i)
		},
	})
	_ = err
}
