package ledger

import "errors"

const (
	// defaultList and maxList bound one listing: a page for a person, and what
	// fits in memory and on a wire without thought.
	defaultList = 100
	maxList     = 1000
)

// Checked is the filter with its defaults filled in, or an error that says
// what is missing.
func (f Filter) Checked() (Filter, error) {
	if f.Tenant == "" {
		return f, errors.New("list: the tenant is missing; every listing is of one tenant")
	}
	if f.Limit <= 0 {
		f.Limit = defaultList
	}
	f.Limit = min(f.Limit, maxList)
	return f, nil
}

// maxClaim bounds one claim: each record is lent, and its lease runs, from the
// moment of the claim, whether the worker gets to it soon or late.
const maxClaim = 1000

// Checked is the claim with its defaults filled in, or an error that says
// what is missing.
func (c Claim) Checked() (Claim, error) {
	if (c.Tenant == "") != (c.ID == "") {
		return c, errors.New("claim: tenant and id belong together: name both for one record, or neither for any that is due")
	}
	c.Early = c.Early && c.ID != ""
	c.Limit = min(max(c.Limit, 1), maxClaim)
	return c, nil
}
