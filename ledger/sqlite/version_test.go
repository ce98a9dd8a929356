package sqlite_test

import (
	"slices"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// The events of a lifetime.
var (
	evSend   = ledger.Event{Kind: ledger.EvAnnounced, SendFor: time.Second}
	evSent   = ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered}
	evRead   = ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(`{"a": 1}`)}
	evSettle = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified}
)

// A newer program upgrades a file once and does not stop the ones that run, if it only adds to it.
// An upgrade that fails changes nothing.
func TestUpgrade(t *testing.T) {
	const addition = "ALTER TABLE ledger_writes ADD COLUMN invented TEXT;"
	path := file(t)
	l := open(t, path, nil)
	rec := reserve(t, l, "w1")
	version := func(want string) {
		t.Helper()
		if got, err := l.Read("SELECT version FROM ledger_meta"); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("version %v, error %v; want %s", got, err, want)
		}
	}
	if err := sqlite.Upgrade(path, addition+"SELECT missing FROM ledger_writes;"); err == nil {
		t.Error("a migration that fails passed")
	}
	version("1")
	for range 2 {
		must(t, sqlite.Upgrade(path, addition))
		version("2")
	}
	if _, err := l.Append(t.Context(), rec.ID, rec.Fence, evSent, evRead, evSettle); err != nil {
		t.Error(err)
	}
	again := open(t, path, nil)
	reserve(t, again, "w2")
	version("2")
	if have, known, err := again.Version(t.Context()); have != 2 || known != 1 || err != nil {
		t.Errorf("version %d of %d, error %v", have, known, err)
	}
}
