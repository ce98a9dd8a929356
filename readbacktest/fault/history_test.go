package fault_test

import (
	"testing"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

// TestHistory: a read sees the state of its moment, also between two changes, before the first
// and after a delete; of two changes at one moment it sees the later one.
func TestHistory(t *testing.T) {
	began := time.Unix(1_000_000_000, 0)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	h := fault.History[string]{{At: at(1), Value: "made"}, {At: at(3), Value: "changed"}, {At: at(3), Value: "again"}, {At: at(5)}}
	for seconds, want := range []string{"", "made", "made", "again", "again", "", ""} {
		if got := h.AsOf(at(seconds)); got != want {
			t.Errorf("at %d s it is %q, want %q", seconds, got, want)
		}
	}
	if got := fault.History[string](nil).AsOf(began); got != "" {
		t.Errorf("a record that never was is %q", got)
	}
}
