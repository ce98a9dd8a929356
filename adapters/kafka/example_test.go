package kafka_test

import (
	"context"
	"encoding/json"

	"github.com/twmb/franz-go/pkg/kgo"

	readback "github.com/readback-go/readback/adapters/kafka"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// Invoice is the value of a record.
type Invoice struct {
	Reference   string `json:"reference" readback:"key"`
	AmountCents int    `json:"amount_cents"`
}

// Records become writes. A program without Consume had a loop with PollFetches here.
func Example() {
	var book ledger.Ledger
	var eng *engine.Engine
	ctx := engine.As(context.Background(), engine.Principal{Name: "billing", Role: engine.RoleAgent})

	client, err := kgo.NewClient(kgo.SeedBrokers("kafka.example:9092"), kgo.ConsumerGroup("charges"), kgo.ConsumeTopics("billing"),
		kgo.DisableAutoCommit(), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	go func() { _ = eng.Work(ctx, nil) }()                                             // in any process with this ledger
	go func() { _ = readback.Results(ctx, client, book, "billing-results", "acme") }() // or a webhook
	err = readback.Consume(ctx, client, eng, readback.Options{
		DeadLetters: "billing-dead",
		Intent: func(r *kgo.Record) (intent.WriteIntent, error) {
			var i Invoice
			if err := json.Unmarshal(r.Value, &i); err != nil {
				return intent.WriteIntent{}, err
			}
			return intent.From(intent.WriteIntent{
				Tenant: "acme", Workflow: i.Reference, Tool: "charge", Destination: "payments", Kind: "charge", Write: intent.Create,
			}, i)
		},
	})
	_ = err
}
