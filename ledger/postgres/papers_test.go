package postgres_test

import (
	"fmt"

	"github.com/readback-go/readback/ledger"
)

// page is a paper as a step of a workflow has one.
func page(tenant, id string, version int64) ledger.Paper {
	return ledger.Paper{
		Tenant: tenant, Kind: "step", ID: id, Binder: "w", State: "open", Version: version,
		Body: fmt.Appendf(nil, `{"version": %d}`, version),
	}
}
