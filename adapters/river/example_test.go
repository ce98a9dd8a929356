package river_test

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	readback "github.com/readback-go/readback/adapters/river"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// ChargeArgs are the arguments of a job. Invoice names the operation, however often the job is
// tried or inserted.
type ChargeArgs struct {
	Invoice     string `json:"invoice"`
	AmountCents int    `json:"amount_cents"`
}

// Kind implements [river.JobArgs].
func (ChargeArgs) Kind() string { return "charge" }

// ChargeWorker is what the program had.
type ChargeWorker struct {
	river.WorkerDefaults[ChargeArgs]
}

// Work implements [river.Worker].
func (ChargeWorker) Work(context.Context, *river.Job[ChargeArgs]) error { return nil }

// intentOf declares the write of a job.
func intentOf(a ChargeArgs) (intent.WriteIntent, error) {
	return intent.From(intent.WriteIntent{
		Tenant: "acme", Workflow: a.Invoice, IdempotencyKey: "charge:" + a.Invoice,
		Destination: "payments", Kind: "charge", Write: intent.Create,
	}, struct {
		Reference   string `json:"reference" readback:"key"`
		AmountCents int    `json:"amount_cents"`
	}{a.Invoice, a.AmountCents})
}

// Existing jobs change by the line with NewMiddleware.
func ExampleMiddleware() {
	var pool *pgxpool.Pool
	var eng *engine.Engine
	config := &river.Config{Workers: river.NewWorkers(), Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}}}
	river.AddWorker(config.Workers, ChargeWorker{})
	config.Middleware = append(config.Middleware, readback.NewMiddleware(eng, readback.Intent[ChargeArgs](intentOf).Jobs()))
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	_, _ = client, err
}

// An order is stored, its job is inserted and its charge is enqueued, or nothing of it is.
func ExampleInserter() {
	var pool *pgxpool.Pool
	var client *river.Client[pgx.Tx]
	jobs := readback.Inserter[ChargeArgs]{Client: client, Intent: intentOf}
	ctx := context.Background()
	_ = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO invoices (id) VALUES ($1)", "INV-7721"); err != nil {
			return err
		}
		_, err := jobs.InsertTx(ctx, tx, ChargeArgs{Invoice: "INV-7721", AmountCents: 1999}, nil)
		return err
	})
}

// A webhook of readback makes the job run as soon as a reviewer has decided. Verify its signature
// first: docs/reference/http.md.
func ExampleWake() {
	var client *river.Client[pgx.Tx]
	http.HandleFunc("POST /readback", func(w http.ResponseWriter, r *http.Request) {
		var message struct {
			Data struct {
				Write ledger.ID `json:"write"`
			} `json:"data"`
		}
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if err := readback.Wake(r.Context(), client, message.Data.Write); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable) // readback delivers it again
		}
	})
}
