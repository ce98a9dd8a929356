package ledger

import (
	"errors"
	"slices"
	"time"
)

// Claim is a request for work.
type Claim struct {
	Owner    string
	LeaseFor time.Duration
	// Leases sets lease times for single destinations. Default LeaseFor.
	Leases map[string]time.Duration
	// Limit is the most records to return. Default 1.
	Limit int
	// Tenant and ID narrow it to one record; both or neither. Default: any
	// record of any tenant.
	Tenant string
	ID     ID
	// Early takes a record before it is due, or one that is not due at all, but never one that is
	// queued behind another. Only with ID. Default false.
	Early bool
	// Gone is an owner whose process is known to have ended: its lease on the record is ignored.
	// Only with ID. Default: leases last their full time.
	Gone string
	// Most bounds the records of single destinations within Limit; 0 takes none. Destinations
	// that are not named are bounded by Limit only.
	Most map[string]int
	// Paused names destinations whose queued writes are skipped. Their other work (reads,
	// rechecks) is leased.
	Paused []string
}

// maxClaim bounds one claim: the lease of each record runs from the moment of the claim, whether
// the worker gets to it soon or late.
const maxClaim = 1000

// Checked returns the claim with its defaults, or an error that names what is missing.
func (c Claim) Checked() (Claim, error) {
	if (c.Tenant == "") != (c.ID == "") {
		return c, errors.New("claim: tenant and id belong together: name both for one record, or neither for any that is due")
	}
	c.Early = c.Early && c.ID != ""
	c.Limit = min(max(c.Limit, 1), maxClaim)
	return c, nil
}

// Freed returns the record without the lease of an owner that is [Claim.Gone].
func (c Claim) Freed(r Record) Record {
	if c.ID != "" && c.Gone != "" && r.Owner == c.Gone {
		r.LeaseUntil = time.Time{}
	}
	return r
}

// Lease returns how long a lease on a record of a destination lasts.
func (c Claim) Lease(destination string) time.Duration {
	if own, ok := c.Leases[destination]; ok {
		return own
	}
	return c.LeaseFor
}

// Share returns what a claim gets of the records available to it, which are sorted oldest due
// first: tenants and destinations alternate, within the bounds of the claim. Drivers that cannot
// read everything that is due pass the oldest of each.
func (c Claim) Share(due []Record) []Record {
	type party struct{ tenant, destination string }
	var order []party
	waiting := make(map[party][]Record)
	for _, r := range due {
		if r.State == Queued && slices.Contains(c.Paused, r.Destination) {
			continue
		}
		p := party{r.Tenant, r.Destination}
		if waiting[p] == nil {
			order = append(order, p)
		}
		waiting[p] = append(waiting[p], r)
	}
	var got []Record
	taken := make(map[string]int)
	for len(order) > 0 && len(got) < c.Limit {
		var again []party
		for _, p := range order {
			most, bounded := c.Most[p.destination]
			if len(got) == c.Limit || bounded && taken[p.destination] >= most {
				continue
			}
			got = append(got, waiting[p][0])
			taken[p.destination]++
			if waiting[p] = waiting[p][1:]; len(waiting[p]) > 0 {
				again = append(again, p)
			}
		}
		order = again
	}
	return got
}
