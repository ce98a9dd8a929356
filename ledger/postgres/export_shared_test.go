package postgres

import "github.com/jackc/pgx/v5/pgxpool"

// Pool is the pool of the ledger, for callers with transactions of their own.
func (l *Ledger) Pool() *pgxpool.Pool { return l.pool }

// Schema is where its tables are.
func (l *Ledger) Schema() string { return l.schema }
