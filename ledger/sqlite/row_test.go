package sqlite

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/readback-go/readback/ledger"
)

// A raw message that somebody adds to a record or an event must get a column:
// in the body it would be compacted and escaped.
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
	if got, want := len(raws(&ledger.Record{}))+len([]string{"intent"}), count(reflect.TypeFor[ledger.Record]()); got != want {
		t.Errorf("a record has %d raw messages, %d have columns", want, got)
	}
	if got, want := len([]string{"evidence", "mismatches"}), count(reflect.TypeFor[ledger.Event]()); got != want {
		t.Errorf("an event has %d raw messages, %d have columns", want, got)
	}
}

// What has a column is not written a second time into the body, with every
// event anew.
func TestBodyIsWithoutRawMessages(t *testing.T) {
	large := json.RawMessage(`"large"`)
	rec := ledger.Record{Intent: large}
	for _, raw := range raws(&rec) {
		*raw = large
	}
	body, err := encode(rec)
	if err != nil || strings.Contains(body, "large") {
		t.Errorf("error %v, body %s", err, body)
	}
	if string(rec.Intent) != string(large) {
		t.Error("the record itself was changed")
	}
	event, err := encodeEvent(ledger.Event{Evidence: large, Mismatches: large})
	if err != nil || strings.Contains(event, "large") {
		t.Errorf("error %v, event %s", err, event)
	}
}
