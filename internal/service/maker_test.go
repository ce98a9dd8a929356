package service_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// The page of a write names the other write that made the record which was found, and no write where
// another actor made it.
func TestTheMakerOfARecord(t *testing.T) {
	f := newFixture(t)
	submit := func(order intent.WriteIntent) ledger.ID {
		t.Helper()
		out, err := f.Submit(t.Context(), who(engine.RoleAgent), order, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return out.ID
	}
	again := func(w *intent.WriteIntent) {
		w.Step += " again"
		w.Expect = intent.Fields{"amount_cents": json.Number("2999")}
	}
	first := submit(order("A-1", nil))
	second := submit(order("A-1", again))
	if _, err := f.world.Seed(intent.Fields{"order_id": "A-2", "amount_cents": json.Number("5")}, ""); err != nil {
		t.Fatal(err)
	}
	third := submit(order("A-2", again))
	for id, want := range map[ledger.ID]ledger.ID{first: "", second: first, third: ""} {
		v, err := f.View(t.Context(), who(engine.RoleReviewer), id)
		if err != nil {
			t.Fatal(err)
		}
		var got ledger.ID
		if v.Maker != nil {
			got = v.Maker.ID
		}
		if got != want {
			t.Errorf("write %s (%s): made by %q, want %q", id, v.Outcome.Text, got, want)
		}
	}
}
