package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// newShardedPlace is a place whose ledger is in two databases.
func newShardedPlace(t *testing.T) (p *place, names [2]string) {
	t.Helper()
	p, names[0] = newPlaceInPostgres(t, orders.Plain.Options())
	var err error
	if names[1], err = postgresServer.pg.CreateDatabase(); err != nil {
		t.Fatal(err)
	}
	p.variable = map[string]string{}
	for i, variable := range []string{"A", "B"} {
		p.variable[variable] = "postgres://postgres@" + postgresServer.pg.Addr() + "/" + names[i]
		t.Setenv(variable, p.variable[variable])
	}
	p.sharded("{name: a, url_env: A, tenants: [acme]}, {name: b, url_env: B}")
	return p, names
}

// sharded configures the shards of the ledger.
func (p *place) sharded(shards string) {
	p.t.Helper()
	p.write("readback.yaml", fmt.Sprintf("ledger: {type: postgres, shards: [%s]}\ntenant: acme\ndestinations:\n  orders:\n    type: simulated\n    url: %s\n    class: plain\n", shards, p.url))
}

func TestShards(t *testing.T) {
	p, names := newShardedPlace(t)
	p.submit(exitVerified, order("A-1", ""))
	says(t, p.want(0, p.run("shards", "list")), "a 1 reached, has the directory", "acme a 1 active")
	r := p.want(0, p.run("shards", "move", "acme", "--to", "b"))
	says(t, r, "Tenant acme is in shard b (epoch 2).")
	p.submit(exitVerified, order("A-1", "")) // the same write: nothing is sent
	p.submit(exitVerified, order("A-2", ""))
	says(t, p.want(0, p.run("list")), "A-1", "A-2")
	says(t, p.want(0, p.run("doctor")), "ok shards")
	says(t, p.want(0, p.run("shards", "check")), "The directory and the shards agree.")
	for args, want := range map[string]int{"move acme": exitUsage, "move acme --to z": exitRefused, "move none --to a": exitRefused, "resume acme": exitRefused, "abandon acme": exitRefused, "keep acme --in a": exitRefused} {
		p.want(want, p.run(append([]string{"shards"}, strings.Fields(args)...)...))
	}
	// A backup of the first database, from before the move.
	execute(t, names[0], "UPDATE ledger_tenants SET state = 'active', epoch = 1")
	p.submit(exitUnknown, order("A-3", "")) // it cannot be read whether it is recorded
	says(t, p.want(exitAttention, p.run("shards", "check")), `tenant "acme" is in 2 partitions`, `"a" (epoch 1)`, `"b" (epoch 2)`)
	says(t, p.want(exitAttention, p.run("doctor")), "failed shards", `tenant "acme" is in 2 partitions`)
	says(t, p.want(0, p.run("shards", "keep", "acme", "--in", "b")), "Tenant acme is in shard b (epoch 3).")
	p.submit(exitVerified, order("A-3", ""))
	if w, _ := p.world.Count(); w != 3 {
		t.Errorf("%d orders were sent; want 3", w)
	}
}

// Both shards are one database: two would own its tenants.
func TestShardsInOneDatabase(t *testing.T) {
	p, _ := newShardedPlace(t)
	p.variable["B"] = p.variable["A"]
	t.Setenv("B", p.variable["A"])
	says(t, p.want(exitConfig, p.submit(exitConfig, order("A-1", ""))), `is partition "a" already`)
	p.variable["B"] = ""
}

// A shard that cannot be reached concerns its own tenants; the others are served, and the server says
// which it is.
func TestShardThatCannotBeReached(t *testing.T) {
	p, _ := newShardedPlace(t)
	p.submit(exitVerified, order("A-1", ""))
	p.variable["B"] = "postgres://postgres@127.0.0.1:1/none"
	t.Setenv("B", p.variable["B"])
	p.submit(exitVerified, order("A-2", ""))
	says(t, p.want(exitAttention, p.run("shards", "list")), "b 0", "a 1 reached")
	says(t, p.want(exitAttention, p.run("doctor")), "failed shards", "shard b cannot be reached")
}
