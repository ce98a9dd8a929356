package sqlite

import (
	"encoding/json"
	"reflect"
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
