package postgres

import (
	"context"

	"github.com/readback-go/readback/ledger"
)

var _ ledger.Operations = (*Ledger)(nil)

// Operation implements [ledger.Operations].
func (l *Ledger) Operation(ctx context.Context, tenant, tool, key string) ([]ledger.Record, error) {
	found, err := l.rows(ctx, "holders", tenant, tool, key, ledger.OperationLimit)
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
