package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// idle makes writes of many tenants of one destination, each due at a time.
func (d *database) idle(destination, state string, from, to int, due time.Time) {
	d.t.Helper()
	d.exec(fmt.Sprintf(`INSERT INTO ledger_writes (id, tenant, destination, tool, structural_key, idempotency_key, created, intent,
			state, due, seq, body, owner, lease_until, lease_for, fence, holds)
		SELECT 'wr_' || substr(k, 1, 32), 't' || lpad(i::text, 6, '0'), '%s', 'tool', k, '', 1, '{}', '%s', %d, 1, '{}', '', 0, 0, 1, FALSE
		FROM (SELECT i, encode(sha256(('%s' || i)::bytea), 'hex') AS k FROM generate_series(%d, %d) AS i) AS x`,
		destination, state, due.UnixNano(), destination, from, to))
}

// Any number of parties without work for this worker do not starve another party, wherever the
// last read of parties ended.
func TestManyIdleParties(t *testing.T) {
	later, long := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		reason string
		fill   func(d *database)
		claims int
	}{
		"more than one claim visits": {"the next claim continues from there",
			func(d *database) { d.idle("a", "settled", 1, 6000, later) }, 2},
		"behind the end of the scan": {"a claim goes round once",
			func(d *database) { d.idle("z", "settled", 1, 300, later) }, 1},
		"paused with a backlog": {"what is passed over is no work",
			func(d *database) { d.idle("a", "queued", 1, 1000, long) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := fresh(t)
			l := d.open(nil)
			c.fill(d)
			if name == "behind the end of the scan" { // there it ends
				w := asked("first")
				w.Tenant, w.Destination = "t000100", "z"
				rec, _, err := l.Reserve(t.Context(), reservation(t, w))
				must(t, err)
				deferredNow(t, l, rec)
				claim(t, l)
			}
			rec, _, err := l.Reserve(t.Context(), reservation(t, asked("w")))
			must(t, err)
			deferredNow(t, l, rec)
			for range c.claims - 1 {
				claim(t, l)
			}
			if got := claim(t, l); len(got) != 1 || got[0].ID != rec.ID {
				t.Errorf("claim %d lent %d; want the one that is due: %s", c.claims, len(got), c.reason)
			}
		})
	}
}

func claim(t *testing.T, l *postgres.Ledger) []ledger.Record {
	t.Helper()
	got, err := l.Claim(context.Background(), ledger.Claim{Owner: "two", LeaseFor: time.Hour, Limit: 10, Paused: []string{"a"}})
	must(t, err)
	return got
}
