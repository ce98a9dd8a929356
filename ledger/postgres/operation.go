package postgres

import (
	"context"
	"slices"

	"github.com/readback-go/readback/ledger"
)

// Operation implements [ledger.Ledger].
func (l *Ledger) Operation(ctx context.Context, tenant, tool, key string) ([]ledger.Record, error) {
	found, err := l.rows(ctx, "operation_holders", tenant, tool, operationKeys(tenant, tool, key), ledger.OperationLimit)
	if err != nil {
		return nil, err
	}
	var recs []ledger.Record
	for _, r := range found {
		switch {
		case r.unread != nil:
			return nil, r.unread
		case r.rec.Blocking():
			recs = append(recs, r.rec)
		}
	}
	return recs, nil
}

// operationKeys returns the idempotency key of an operation and its replacement after erasure, which
// may be the same.
func operationKeys(tenant, tool, key string) []string {
	return slices.Compact([]string{key, ledger.ErasedKey(tenant, tool, key)})
}
