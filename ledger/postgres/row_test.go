package postgres

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

// What has a column of its own is not also written into the body: a claim changes the lease and
// not the body.
func TestBodyIsWithoutColumns(t *testing.T) {
	large := json.RawMessage(`"large"`)
	rec := ledger.Record{Intent: large, Owner: "owner", LeaseFor: 77, Fence: 77, LeaseUntil: time.Unix(77, 0)}
	for _, raw := range driver.Raws(&rec) {
		*raw = large
	}
	body, err := encode(rec)
	if err != nil || strings.Contains(body, "large") || strings.Contains(body, "owner") || strings.Contains(body, "77") {
		t.Errorf("error %v, body %s", err, body)
	}
	if string(rec.Intent) != string(large) || rec.Owner == "" {
		t.Error("the record itself was changed")
	}
	event, err := driver.EncodeEvent(nil, ledger.Event{Evidence: large, Mismatches: large})
	if err != nil || strings.Contains(string(event), "large") {
		t.Errorf("error %v, event %s", err, event)
	}
}

// The number of a migration is the version of a ledger, so none may be missing or occur twice.
func TestMigrationsAreNumbered(t *testing.T) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) != len(versions()) {
		t.Fatalf("%d names, error %v", len(names), err)
	}
	for i, name := range names {
		if want := "migrations/000" + string(rune('1'+i)) + "_"; !strings.HasPrefix(name, want) {
			t.Errorf("%s: want a name that begins with %s", name, want)
		}
	}
}
