package dbos_test

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	readback "github.com/readback-go/readback/adapters/dbos"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// invoice is the input of the workflow. Its number names the charge, in a fork of the workflow too.
type invoice struct {
	Number      string `json:"number"`
	AmountCents int    `json:"amount_cents"`
}

func chargeOf(i invoice) (intent.WriteIntent, error) {
	return intent.From(intent.WriteIntent{
		Tenant: "acme", IdempotencyKey: "charge:" + i.Number,
		Destination: "payments", Kind: "charge", Write: intent.Create,
	}, struct {
		Reference   string `json:"reference" readback:"key"`
		AmountCents int    `json:"amount_cents"`
	}{i.Number, i.AmountCents})
}

// A workflow with one write, and what it does with the outcome.
func ExampleWrite() {
	var eng *engine.Engine
	workflow := func(ctx dbos.Context, i invoice) (string, error) {
		w, err := chargeOf(i)
		if err != nil {
			return "", err
		}
		out, err := readback.Write(ctx, eng, "charge", w)
		if err != nil {
			return out.Text, err // why the customer was not charged
		}
		return out.Ref, nil
	}
	_ = workflow
}

// An invoice is stored, its workflow is enqueued and its charge is enqueued, or nothing of it is. DBOS
// and the ledger share a database.
func ExampleNamed() {
	var pool *pgxpool.Pool
	var client dbos.Client
	ctx, i := context.Background(), invoice{Number: "INV-7721", AmountCents: 1999}
	_ = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO invoices (number) VALUES ($1)", i.Number); err != nil {
			return err
		}
		w, err := chargeOf(i)
		if err != nil {
			return err
		}
		if _, err := postgres.Enqueue(ctx, tx, readback.Named(i.Number, "charge", w)); err != nil {
			return err
		}
		_, err = dbos.Enqueue[string](client, "invoices", "invoice", i, dbos.WithEnqueueWorkflowID(i.Number), dbos.WithEnqueueTransaction(tx))
		return err
	})
}

// A step of the workflow stores the invoice and enqueues its charge in one transaction. Write, with
// the same step and intent, waits for the outcome.
func ExampleEnqueueIn() {
	var source *dbos.DataSource // the database of the ledger
	workflow := func(ctx dbos.Context, i invoice) (ledger.ID, error) {
		return dbos.RunAsTransaction(ctx, source, func(ctx context.Context, tx dbos.Tx) (ledger.ID, error) {
			if _, err := tx.Exec(ctx, "INSERT INTO invoices (number) VALUES ($1)", i.Number); err != nil {
				return "", err
			}
			w, err := chargeOf(i)
			if err != nil {
				return "", err
			}
			return readback.EnqueueIn(ctx, tx, postgres.Outbox{}, "charge", w)
		}, dbos.WithStepName("store"))
	}
	_ = workflow
}

// A webhook of readback resumes the workflow as soon as a reviewer has decided. Verify its signature
// first: docs/reference/http.md.
func ExampleWake() {
	var client dbos.Client
	http.HandleFunc("POST /readback", func(w http.ResponseWriter, r *http.Request) {
		var message struct {
			Data struct {
				Write    ledger.ID `json:"write"`
				Workflow string    `json:"workflow"`
			} `json:"data"`
		}
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		err := readback.Wake(client, message.Data.Workflow, message.Data.Write, r.Header.Get("webhook-id"))
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable) // readback delivers it again
		}
	})
}
