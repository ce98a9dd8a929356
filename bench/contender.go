//go:build unix

package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/readback-go/readback/connectors"
)

// Where contenders commit.
const (
	postgresStore = "PostgreSQL"
	sqliteStore   = "SQLite"
	restateStore  = "its own log"
)

// contender is one way to have an external call made and its end recorded durably.
type contender struct {
	name   string
	store  string
	module string // whose version is printed
	needs  string // its server's program, if it has one of its own
	// open starts it on an empty store of its own. Its writes are sent to d.
	open func(ctx context.Context, m *machine, d *destination) (session, error)
}

// session is a started contender.
type session struct {
	// write makes one write and returns after its end is durable. Keys are not repeated.
	write func(ctx context.Context, o order) error
	close func() error
}

// contenders are in the order of the tables. The first of a store is that which the others of
// the store are compared with.
var contenders = []contender{
	readbackOnPostgres, dbosOnPostgres, riverDefault, riverTuned, temporalOnPostgres, restateServer, bareOnPostgres,
	readbackOnSQLite, dbosOnSQLite, dbosOnSQLiteFull, bareOnSQLite,
}

func chosen(from []contender, only string) ([]contender, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	all := slices.DeleteFunc(slices.Clone(from), func(c contender) bool { return !pattern.MatchString(c.name) })
	if len(all) == 0 {
		return nil, fmt.Errorf("-only %q matches no contender", only)
	}
	return all, nil
}

// order is what every contender writes.
type order struct {
	Reference   string `json:"reference"`
	Amount      string `json:"amount"`
	Currency    string `json:"currency"`
	Customer    string `json:"customer"`
	Description string `json:"description"`
}

func newOrder(reference string) order {
	return order{Reference: reference, Amount: "120.00", Currency: "EUR", Customer: "cus_4711", Description: "Invoice " + reference}
}

// destination is the system that is written to. It costs nothing and counts.
type destination struct {
	mu      sync.Mutex
	records map[string]connectors.Record
	sends   int
}

func newDestination() *destination { return &destination{records: map[string]connectors.Record{}} }

// send is one call of its write API.
func (d *destination) send(reference string, r connectors.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sends++
	d.records[reference] = r
}

// count returns how many orders it has and how many calls made them.
func (d *destination) count() (orders, sends int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.records), d.sends
}
