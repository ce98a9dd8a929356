package driver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

// A raw message that is added to a record or an event must get a column: in the body it would be
// compacted and escaped.
func TestRawMessagesHaveColumns(t *testing.T) {
	raw := reflect.TypeFor[json.RawMessage]()
	count := func(of reflect.Type) (n int) {
		for i := range of.NumField() {
			if of.Field(i).Type == raw {
				n++
			}
		}
		return n
	}
	if got, want := len(driver.Raws(&ledger.Record{}))+len([]string{"intent"}), count(reflect.TypeFor[ledger.Record]()); got != want {
		t.Errorf("a record has %d raw messages, %d have columns", want, got)
	}
	if got, want := len([]string{"evidence", "mismatches"}), count(reflect.TypeFor[ledger.Event]()); got != want {
		t.Errorf("an event has %d raw messages, %d have columns", want, got)
	}
}

func TestBody(t *testing.T) {
	raw := json.RawMessage(`{"a": 1.0}`)
	r := ledger.Record{ID: "wr_1", Tenant: "acme", Intent: raw, Before: raw, Evidence: raw, Mismatches: raw, ChildIntent: raw, Sends: 2}
	body, err := driver.Encode(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	var got ledger.Record
	if err := driver.Decode(body, &got); err != nil {
		t.Fatal(err)
	}
	want := ledger.Record{ID: "wr_1", Tenant: "acme", Sends: 2, Intent: json.RawMessage("null")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what has columns of its own is in the body, or something is missing (-want +got):\n%s", diff)
	}
	if string(r.Intent) != string(raw) || string(r.Evidence) != string(raw) {
		t.Error("encoding changed the record")
	}
	body, err = driver.EncodeEvent(nil, ledger.Event{Kind: ledger.EvRead, Evidence: raw, Mismatches: raw})
	var e ledger.Event
	if err = errors.Join(err, driver.Decode(body, &e)); err != nil || e.Evidence != nil || e.Mismatches != nil || e.Kind != ledger.EvRead {
		t.Errorf("%s, %v", body, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		reason, body string
		want         error
	}{
		"a newer program's": {"a field that is dropped when the body is written again is lost", `{"id":"wr_1","invented":1}`, ledger.ErrVersion},
		"cut off":           {"half a record is none", `{"id":"wr_1"`, ledger.ErrCorrupt},
		"another type":      {"likewise", `{"id":7}`, ledger.ErrCorrupt},
	} {
		if err := driver.Decode([]byte(c.body), new(ledger.Record)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v; reason: %s", name, err, c.want, c.reason)
		}
	}
}

func TestFate(t *testing.T) {
	var f driver.Fate
	for range 2 {
		if !f.Begin() || f.Abandon() || f.Abandoned() {
			t.Error("what was begun can be begun again, and cannot be given up")
		}
	}
	var g driver.Fate
	if !g.Abandon() || g.Begin() || !g.Abandoned() || g.Abandon() {
		t.Error("what was given up is never begun")
	}
}

func TestLeft(t *testing.T) {
	var none, one, many driver.Left
	one.Leave("wr_0", ledger.ErrCorrupt)
	for i := range 2 * ledger.MaxUnread {
		many.Leave(ledger.ID(fmt.Sprint("wr_", i)), ledger.ErrCorrupt)
	}
	if err := none.Error(); err != nil {
		t.Errorf("nothing was left: %v", err)
	}
	for _, c := range []struct {
		err  error
		want int
	}{{one.Error(), 1}, {append(one, one...).Error(), 2}, {many.Error(), ledger.MaxUnread}, {append(many, many...).Error(), ledger.MaxUnread}} {
		var unread *ledger.UnreadError
		if !errors.As(c.err, &unread) || len(unread.Writes) != c.want || !errors.Is(c.err, ledger.ErrCorrupt) {
			t.Errorf("%v, want %d writes", c.err, c.want)
		}
	}
}

// No write is read before its own time: what a short rule for another destination reads again at
// each sweep must not grow.
func TestSweepUntil(t *testing.T) {
	now := time.Now()
	p := ledger.Prune{Keep: 10 * time.Hour, Remember: 20 * time.Hour, Destinations: map[string]time.Duration{"crm": time.Hour}}
	for name, c := range map[string]struct {
		at   driver.Sweep
		want time.Duration
	}{
		"tombstones":     {driver.Sweep{Tombstones: true}, 20 * time.Hour},
		"own":            {driver.Sweep{Retained: driver.Retained{Tenant: "a", Destination: "crm"}}, time.Hour},
		"another":        {driver.Sweep{Retained: driver.Retained{Tenant: "a", Destination: "shop"}}, 10 * time.Hour},
		"no destination": {driver.Sweep{Retained: driver.Retained{Tenant: "a"}}, 10 * time.Hour},
	} {
		if got := now.Sub(c.at.Until(p, now)); got != c.want {
			t.Errorf("%s: what was settled %s ago, want %s", name, got, c.want)
		}
	}
}
