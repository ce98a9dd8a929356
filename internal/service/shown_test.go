package service

import (
	"testing"

	"github.com/readback-go/readback/ledger"
)

// A built request may hold confidential addresses.
func TestWhatIsSentIsNotShown(t *testing.T) {
	rec := ledger.Record{ID: "wr_1", Prepared: []byte("bcc: secret@example.org")}
	if got := ShownAll([]ledger.Record{rec}); len(got) != 1 || got[0].ID != "wr_1" || got[0].Prepared != nil {
		t.Errorf("%+v", got)
	}
	if rec.Prepared == nil {
		t.Error("the caller's record was changed")
	}
	if got := ShownAll(nil); got == nil || len(got) != 0 {
		t.Errorf("%v; want an empty list, which JSON writes as []", got)
	}
}
