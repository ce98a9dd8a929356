package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/readback-go/readback/ledger/postgres"
)

// Statements mean the same in every mode that a connection string can set.
func TestExecModes(t *testing.T) {
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			d := fresh(t)
			l, err := postgres.Open(t.Context(), d.dsn()+" default_query_exec_mode="+mode, nil)
			must(t, err)
			defer l.Close()
			release := l.Occupy(t, 14)
			var wg sync.WaitGroup
			for g := range 40 { // new and changed ones meet in one transaction
				wg.Go(func() {
					if err := pair(l, reservation(t, asked(fmt.Sprint("w", g)))); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			release()
			must(t, enqueue(t, l, true, about("r", 1), about("r", 2), about("s", 1)))
			are(t, lent(t, l), about("r", 1), about("s", 1))
			are(t, lent(t, l), about("r", 2))
			rec, _, err := l.Reserve(context.Background(), reservation(t, asked("last")))
			must(t, err)
			for name, call := range calls(t, l, rec) {
				if err := call(); err != nil && name != "absent" {
					t.Errorf("%s: %v", name, err)
				}
			}
			rec, err = l.Get(t.Context(), rec.Tenant, rec.ID)
			must(t, err)
			follows(t, l, rec)
		})
	}
}
