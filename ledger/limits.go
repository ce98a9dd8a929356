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
