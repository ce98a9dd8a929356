package postgres_test

import (
	"context"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// After an erasure no row of any table names the data subject, not even one that no read of the
// ledger returns.
func TestNoRowHoldsWhatWasErased(t *testing.T) {
	const person = "ada@example.com"
	d := fresh(t)
	l := d.open(nil)
	ctx := t.Context()
	rec, err := ledger.NewRecord(intent.WriteIntent{
		Tenant: "a", Workflow: "welcome " + person, Step: "step " + person, Tool: "t", Destination: "crm", Kind: "contact", Write: intent.Create,
		Key: intent.Fields{"email": person}, Expect: intent.Fields{"name": person}, IdempotencyKey: "op " + person, CorrelationID: "case " + person,
	})
	must(t, err)
	rec, _, err = l.Reserve(ctx, ledger.Reservation{Record: rec, Owner: "one", LeaseFor: time.Hour, Events: []ledger.Event{{Kind: ledger.EvAnnounced}}})
	must(t, err)
	_, err = l.Append(ctx, rec.ID, rec.Fence,
		ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Ref: person, Answer: []byte(person)},
		ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(`{"name":"` + person + `"}`)},
		ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, Reason: person})
	must(t, err)
	_, err = l.Commit(ctx, ledger.Batch{Documents: []ledger.Document{
		{Tenant: "a", Kind: ledger.SagaKind, ID: "welcome " + person, Done: true, Body: []byte(`{"plan":"` + person + `"}`)},
		{Tenant: "a", Kind: ledger.ErasureKind, ID: "er_1", Body: []byte(`{}`)},
	}})
	must(t, err)
	conn, err := pgx.Connect(ctx, d.dsn())
	must(t, err)
	defer conn.Close(context.Background())
	naming := func() (tables []string) {
		rows, err := conn.Query(ctx, `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)
		must(t, err)
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		for _, table := range all {
			var n int
			must(t, conn.QueryRow(ctx, `SELECT count(*) FROM `+pgx.Identifier{table}.Sanitize()+` AS x WHERE strpos(x::text, $1) > 0 OR strpos(x::text, $2) > 0`,
				person, hex.EncodeToString([]byte(person))).Scan(&n))
			if n > 0 {
				tables = append(tables, table)
			}
		}
		return tables
	}
	if before := naming(); len(before) < 4 {
		t.Fatalf("before the erasure only %v name the person", before)
	}
	did, err := l.Erase(ctx, ledger.Erasing{Tenant: "a", Erasure: "er_1", Writes: []ledger.ID{rec.ID}, Documents: []ledger.Document{{Kind: ledger.SagaKind, ID: "welcome " + person}}})
	if err != nil || did.Writes != 1 || did.Documents != 1 {
		t.Fatalf("erased %+v, error %v", did, err)
	}
	if after := naming(); len(after) > 0 {
		t.Errorf("still in %s", strings.Join(after, ", "))
	}
}
