package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

// Tenants implements [ledger.Feed].
func (l *Ledger) Tenants(ctx context.Context) ([]string, error) { return l.names(ctx, "tenants") }

// Foreign implements [ledger.Feed]. No migration creates a trigger or a rule.
func (l *Ledger) Foreign(ctx context.Context) ([]string, error) { return l.names(ctx, "foreign") }

// names returns the values of the first column of a query.
func (l *Ledger) names(ctx context.Context, query string) (names []string, err error) {
	err = l.read(ctx, l.sql.Text(query), nil, func(rows pgx.Rows) (err error) {
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return names, err
}

// Lifetimes implements [ledger.Feed]. The events of a write are at least those that it had
// when its record was read.
func (l *Ledger) Lifetimes(ctx context.Context, after ledger.ID, limit int) (lives []ledger.Lifetime, err error) {
	found, err := l.rows(ctx, "lifetimes", string(after), int64(ledger.RunLimit(limit)))
	parts := spans{}
	for i, r := range found {
		lives = append(lives, ledger.Lifetime{Record: r.rec, Unread: r.unread})
		parts.add(r.n, -1<<62, 1<<62, i)
	}
	if err == nil {
		err = l.spanned(ctx, parts, func(i int, e ledger.Event, unread error) {
			lives[i].Events = append(lives[i].Events, e)
			if unread != nil {
				lives[i].Unread = fmt.Errorf("write %s: %w", lives[i].Record.ID, unread)
			}
		})
	}
	return lives, err
}

// Kept implements [ledger.Feed].
func (l *Ledger) Kept(ctx context.Context, after ledger.Document, limit int) ([]ledger.Document, error) {
	args := []any{after.Tenant, after.Kind, after.ID, ledger.AuditKind, int64(ledger.RunLimit(limit))}
	found, _, err := l.documents(ctx, "document_inventory", args)
	return found, err
}
