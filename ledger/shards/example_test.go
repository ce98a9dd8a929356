package shards_test

import (
	"context"
	"fmt"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
	"github.com/readback-go/readback/ledger/shards"
)

// Two databases, of which the first one has the directory. An engine on the ledger knows nothing of
// them.
func ExampleOpen() {
	at := func(dsn string) func(context.Context) (ledger.Partition, error) {
		return func(ctx context.Context) (ledger.Partition, error) { return postgres.Open(ctx, dsn, nil) }
	}
	_ = func(ctx context.Context) (ledger.Ledger, error) {
		return shards.Open(ctx, []shards.Shard{
			{Name: "a", Open: at("postgres://readback@db-a.example.org/readback")},
			{Name: "b", Open: at("postgres://readback@db-b.example.org/readback")},
		}, shards.Options{Tenants: map[string]string{"acme": "b"}})
	}
	err := shards.Check([]string{"a", "b"}, shards.Options{Tenants: map[string]string{"acme": "c"}})
	fmt.Println(err)
	// Output: shards: tenant "acme" goes to "c", which is not configured
}
