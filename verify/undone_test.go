package verify_test

import (
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// A record that was written to and has nothing left of the write is distinguished from one that
// others changed.
func TestUndone(t *testing.T) {
	open := record(t, "", isOpen)
	void := record(t, "", `{"id":"1","state":"void"}`)
	for name, c := range map[string]struct {
		write  intent.WriteType
		seen   connectors.Record
		want   bool
		reason string
	}{
		"update, old fields under a new version": {intent.Update, versioned(open, "2"), true, "another actor took it back"},
		"update, other fields":                   {intent.Update, versioned(void, "2"), false, "another actor changed it since"},
		"update, another record":                 {intent.Update, named(open, "B"), false, "not the record of before"},
		"update, untouched":                      {intent.Update, versioned(open, "1"), false, "stale says so already"},
		"delete, back under a new version":       {intent.Delete, versioned(open, "2"), true, "the deleted record is there again"},
		"delete, back with other fields":         {intent.Delete, versioned(void, "2"), true, "the deleted record is there again"},
		"delete, another record":                 {intent.Delete, named(open, "B"), false, "another actor made a new one"},
	} {
		t.Run(name, func(t *testing.T) {
			j := verify.Judge(verify.Case{Intent: paid(c.write), Before: one(versioned(open, "1")), Seen: strong(c.seen)})
			if j.Undone != c.want {
				t.Errorf("undone %t (%s), want %t: %s", j.Undone, j.Verdict, c.want, c.reason)
			}
		})
	}
}
