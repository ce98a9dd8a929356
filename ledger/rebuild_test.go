package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
)

// aLife is a write that was held, approved, sent and read back.
func aLife(t *testing.T) (ledger.Record, []ledger.Event) {
	t.Helper()
	key := fmt.Sprintf("%064x", 7)
	res := ledger.Reservation{Owner: "one", LeaseFor: time.Minute,
		Record: ledger.Record{ID: ledger.IDOf(key), StructuralKey: key, Tenant: "a", Intent: []byte(`{"secret":"canary"}`), Digest: "d"},
		Events: []ledger.Event{{Kind: ledger.EvHeld}}}
	rec, events, err := ledger.Begin(res, "", at)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []ledger.Event{
		{Kind: ledger.EvApproved, By: "ann"}, {Kind: ledger.EvAnnounced, SendFor: time.Second}, {Kind: ledger.EvSent, Fate: ledger.FateAnswered},
		{Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(`{}`)}, {Kind: ledger.EvSettled, Settlement: ledger.Verified, Rule: "verdict"},
	} {
		next, stamped, err := ledger.Advance(rec, rec.Fence, []ledger.Event{e}, at.Add(time.Duration(rec.Seq)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		rec, events = next, append(events, stamped...)
	}
	return rec, events
}

func TestRebuild(t *testing.T) {
	rec, events := aLife(t)
	got, err := ledger.Rebuild(events)
	if err != nil {
		t.Fatal(err)
	}
	unknown := cmpopts.IgnoreFields(ledger.Record{}, "Intent", "Owner", "LeaseUntil", "LeaseFor")
	if diff := cmp.Diff(rec, got, unknown); diff != "" {
		t.Errorf("rebuilt (-record +rebuilt):\n%s", diff)
	}
	if got.Intent != nil {
		t.Errorf("the intent's body is in the events: %s", got.Intent)
	}
}

func TestRebuildRefuses(t *testing.T) {
	change := func(i int, f func(*ledger.Event)) func([]ledger.Event) []ledger.Event {
		return func(events []ledger.Event) []ledger.Event { f(&events[i]); return events }
	}
	tests := map[string]struct {
		reason string
		change func([]ledger.Event) []ledger.Event
		want   error
	}{
		"nothing":          {"there is no write without events", func([]ledger.Event) []ledger.Event { return nil }, ledger.ErrCorrupt},
		"a gap":            {"an event was deleted", func(e []ledger.Event) []ledger.Event { return slices.Delete(e, 2, 3) }, ledger.ErrCorrupt},
		"no first":         {"the life has lost its beginning", func(e []ledger.Event) []ledger.Event { return e[1:] }, ledger.ErrCorrupt},
		"another first":    {"a life begins with its reservation", change(0, func(e *ledger.Event) { e.Kind = ledger.EvHeld }), ledger.ErrCorrupt},
		"out of order":     {"two events changed places", func(e []ledger.Event) []ledger.Event { e[2], e[3] = e[3], e[2]; return e }, ledger.ErrCorrupt},
		"twice":            {"an event was put in", func(e []ledger.Event) []ledger.Event { return slices.Insert(e, 4, e[3]) }, ledger.ErrCorrupt},
		"an illegal move":  {"what never could happen did not", change(3, func(e *ledger.Event) { e.Kind = ledger.EvRechecked }), ledger.ErrIllegalMove},
		"no identity":      {"the events do not say whose life it is", change(0, func(e *ledger.Event) { e.Evidence = nil }), ledger.ErrCorrupt},
		"a broken one":     {"the identity is no JSON", change(0, func(e *ledger.Event) { e.Evidence = []byte("{") }), ledger.ErrCorrupt},
		"another's":        {"an id follows from its structural key", change(0, func(e *ledger.Event) { e.Evidence = []byte(`{"id":"wr_1","tenant":"a","structural_key":"2"}`) }), ledger.ErrCorrupt},
		"no tenant's":      {"an identity names its tenant", change(0, func(e *ledger.Event) { e.Evidence = []byte(`{}`) }), ledger.ErrCorrupt},
		"only a beginning": {"a life may be cut short: what is left still holds", func(e []ledger.Event) []ledger.Event { return e[:4] }, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, events := aLife(t)
			if _, err := ledger.Rebuild(tt.change(events)); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v: %s", err, tt.want, tt.reason)
			}
		})
	}
}

// TestIdentityIsWhole compares the evidence of the reserved event with the reserved record, field
// by field.
func TestIdentityIsWhole(t *testing.T) {
	var full ledger.Record
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("of " + v.Type().Field(i).Name)
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int64:
			f.SetInt(7)
		}
	}
	full.Intent, full.KeyDigest, full.ID = json.RawMessage(`{}`), "", ledger.IDOf(full.StructuralKey)
	want := full.Identity()
	want.Intent = nil
	for _, key := range []string{"", "line"} { // a delegated write has no key digest
		full.KeyDigest, full.Delegated = key, key == ""
		want.KeyDigest, want.Delegated = full.KeyDigest, full.Delegated
		res := ledger.Reservation{Record: full}
		if full.Delegated {
			res.Events = []ledger.Event{{Kind: ledger.EvDelegated}}
		}
		_, events, err := ledger.Begin(res, "", at)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ledger.Rebuild(events)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Identity()); diff != "" {
			t.Errorf("identity (-reserved +rebuilt):\n%s", diff)
		}
	}
}
