package sqlite

import (
	"context"
	"errors"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/readback-go/readback/ledger"
)

// noWorkflow is a workflow of no write: names have no blanks at their ends.
const noWorkflow = " "

// Operation implements [ledger.Ledger].
func (l *Ledger) Operation(ctx context.Context, tenant, tool, key string) (recs []ledger.Record, err error) {
	err = l.readNow(ctx, func(conn *sqlite.Conn, now time.Time) error {
		recs, err = l.operation(conn, tenant, tool, key)
		if erased := ledger.ErasedKey(tenant, tool, key); err == nil && erased != key {
			var more []ledger.Record
			more, err = l.operation(conn, tenant, tool, erased)
			recs = append(recs, more...)[:min(len(recs)+len(more), ledger.OperationLimit)]
		}
		for i := range recs {
			recs[i].Now = now
		}
		return err
	})
	return recs, err
}

// errEnough ends a listing that is long enough.
var errEnough = errors.New("enough")

func (l *Ledger) operation(conn *sqlite.Conn, tenant, tool, key string) (recs []ledger.Record, err error) {
	s, err := l.statement(conn, "operation")
	if err != nil {
		return nil, err
	}
	s.BindText(1, tenant)
	s.BindText(2, tool)
	s.BindText(3, key)
	bindTime(s, 4, earliest)
	s.BindText(5, noWorkflow)
	err = each(l.path, s, func() error {
		r, err := scan(s, 0)
		if err != nil {
			return err
		}
		if recs = append(recs, r.rec); len(recs) == ledger.OperationLimit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return recs, err
}
