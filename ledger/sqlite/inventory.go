package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

// Tenants implements [ledger.Feed].
func (l *Ledger) Tenants(ctx context.Context) ([]string, error) { return l.names(ctx, "tenants") }

// Foreign implements [ledger.Feed]. No migration creates a trigger.
func (l *Ledger) Foreign(ctx context.Context) ([]string, error) { return l.names(ctx, "foreign") }

// names returns the values of the first column of a query.
func (l *Ledger) names(ctx context.Context, query string) (names []string, err error) {
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		s, err := l.statement(conn, query)
		if err != nil {
			return err
		}
		return each(l.path, s, func() error {
			names = append(names, s.ColumnText(0))
			return nil
		})
	})
	return names, err
}

// Lifetimes implements [ledger.Feed]. A write and its events are from one moment.
func (l *Ledger) Lifetimes(ctx context.Context, after ledger.ID, limit int) (lives []ledger.Lifetime, err error) {
	err = l.readNow(ctx, func(conn *sqlite.Conn, now time.Time) error {
		s, err := l.statement(conn, "lifetimes")
		if err != nil {
			return err
		}
		s.BindText(1, string(after))
		s.BindInt64(2, int64(ledger.RunLimit(limit)))
		return each(l.path, s, func() error {
			r, err := scan(s, 0)
			if err != nil && !ofOneRow(err) {
				return err
			}
			r.rec.Now = now
			life := ledger.Lifetime{Record: r.rec, Unread: err}
			if life.Events, err = l.runEvents(conn, r.n, ledger.Run{ID: r.rec.ID, First: -1 << 62, Last: 1 << 62}); err != nil {
				if !ofOneRow(err) {
					return err
				}
				life.Unread = fmt.Errorf("write %s: %w", r.rec.ID, err)
			}
			lives = append(lives, life)
			return nil
		})
	})
	return lives, err
}

// Kept implements [ledger.Feed].
func (l *Ledger) Kept(ctx context.Context, after ledger.Document, limit int) (kept []ledger.Document, err error) {
	err = l.readNow(ctx, func(conn *sqlite.Conn, now time.Time) error {
		s, err := l.statement(conn, "document_inventory")
		if err != nil {
			return err
		}
		s.BindText(1, ledger.AuditKind)
		s.BindInt64(2, int64(ledger.RunLimit(limit)))
		bindDocumentName(s, 3, after.Tenant, after.Kind, after.ID)
		return each(l.path, s, func() error {
			_, p := scanDocument(s, now)
			kept = append(kept, p)
			return nil
		})
	})
	return kept, err
}
