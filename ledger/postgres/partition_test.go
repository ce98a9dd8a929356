package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/postgres"
)

func TestPartitions(t *testing.T) {
	empty := fresh(t).movable() // its tables are made once, and copied
	for _, schema := range []string{"one", "two"} {
		l, err := postgres.Open(t.Context(), empty.dsn(), &postgres.Options{Schema: schema})
		must(t, err)
		must(t, l.Close())
	}
	var d *database
	ledgertest.RunPartitions(t, func(t *testing.T) [2]ledger.Partition {
		name, err := empty.server.CopyDatabase(empty.name)
		must(t, err)
		d = (&database{t: t, server: empty.server, name: name}).moved()
		return [2]ledger.Partition{d.open(&postgres.Options{Schema: "one"}), d.open(&postgres.Options{Schema: "two"})}
	}, ledgertest.Options{Sleep: func(by time.Duration) { d.move(by) }, Enqueue: enqueue})
}

// What changes a tenant while it is given up is either there when that is done, or refused.
func TestGivingUpATenantWaitsForWriters(t *testing.T) {
	d := fresh(t)
	ledgers := []*postgres.Ledger{d.open(nil), d.open(nil)} // two processes
	mover := d.open(nil)
	ctx := t.Context()
	must(t, mover.Join(ctx, "a", nil))
	count := func() int {
		found, err := mover.Find(ctx, ledger.Search{Tenant: "acme", Limit: 200})
		must(t, err)
		n, next := len(found.Records), found.Next
		for next != "" {
			found, err = mover.Find(ctx, ledger.Search{Tenant: "acme", Limit: 200, After: next})
			must(t, err)
			n, next = n+len(found.Records), found.Next
		}
		return n
	}
	for round := range 4 {
		active := ledger.Ownership{Tenant: "acme", Epoch: int64(2*round + 2), State: ledger.TenantActive}
		was := ledger.Ownership{Tenant: "acme", Epoch: active.Epoch - 1, State: ledger.TenantMoved}
		if round == 0 {
			was = ledger.Ownership{}
		}
		must(t, mover.Own(ctx, active, was))
		var all sync.WaitGroup
		for w := range 8 {
			all.Go(func() {
				for i := 0; ; i++ {
					_, _, err := ledgers[w%2].Reserve(ctx, reservation(t, asked(fmt.Sprintf("w%d-%d-%d", round, w, i))))
					if errors.Is(err, ledger.ErrNotOwned) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for count() < 20*(round+1) { // they are under way
		}
		must(t, mover.Own(ctx, ledger.Ownership{Tenant: "acme", Epoch: active.Epoch + 1, State: ledger.TenantMoved}, active))
		then := count()
		all.Wait()
		if now := count(); now != then {
			t.Fatalf("%d writes after the tenant was given up, %d later", then, now)
		}
	}
}
