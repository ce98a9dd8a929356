package driver

import (
	"cmp"
	"maps"

	"github.com/readback-go/readback/ledger"
)

// Party is a unit of fairness: each state of a destination and tenant by itself, so that paused
// work need not be read.
type Party struct{ Destination, Tenant, State string }

// Before reports whether a party is read before another one.
func (p Party) Before(q Party) bool {
	return cmp.Or(cmp.Compare(p.Destination, q.Destination), cmp.Compare(p.Tenant, q.Tenant), cmp.Compare(p.State, q.State)) < 0
}

// Rest returns what a claim still wants.
func Rest(c ledger.Claim, got []ledger.Record) ledger.Claim {
	c.Limit -= len(got)
	c.Most = maps.Clone(c.Most)
	for _, r := range got {
		if _, bounded := c.Most[r.Destination]; bounded {
			c.Most[r.Destination]--
		}
	}
	return c
}
