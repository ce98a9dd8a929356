package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/internal/pgserver"
)

// Version is that of the ledger, and the newest that this program knows.
func (l *Ledger) Version(ctx context.Context) (have, known int, err error) {
	have, err = l.haveVersion(ctx)
	return have, l.version, err
}

// Weaknesses are the settings of the server with which a crash or a failover can
// lose what it acknowledged, most severe first. The ledger's own transactions
// raise synchronous_commit, which is therefore none of them.
func (l *Ledger) Weaknesses(ctx context.Context) (weak []string, err error) {
	err = l.read(ctx, pgserver.Weaknesses, nil, func(rows pgx.Rows) error {
		weak, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return weak, err
}
