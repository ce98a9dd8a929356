package sqlite

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/readback-go/readback/ledger"
	"zombiezen.com/go/sqlite"
)

//go:embed sql/tenants.sql
var sqlTenants string

//go:embed sql/lives.sql
var sqlLives string

//go:embed sql/kept.sql
var sqlKept string

//go:embed sql/foreign.sql
var sqlForeign string

var _ ledger.Witness = (*Ledger)(nil)

// Tenants implements [ledger.Witness].
func (l *Ledger) Tenants(ctx context.Context) ([]string, error) { return l.names(ctx, sqlTenants) }

// Foreign implements [ledger.Witness]. No migration makes a trigger.
func (l *Ledger) Foreign(ctx context.Context) ([]string, error) { return l.names(ctx, sqlForeign) }

// names are the values of the first column of a query.
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

// Lives implements [ledger.Witness]. A write and its events are as they were at
// one time.
func (l *Ledger) Lives(ctx context.Context, after ledger.ID, limit int) (lives []ledger.Life, err error) {
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		newest, err := l.clock(conn)
		if err != nil {
			return err
		}
		s, err := l.statement(conn, sqlLives)
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
			r.rec.Now = clamp(l.now(), newest)
			life := ledger.Life{Record: r.rec, Unread: err}
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

// Kept implements [ledger.Witness].
func (l *Ledger) Kept(ctx context.Context, after ledger.Paper, limit int) (kept []ledger.Paper, err error) {
	err = l.read(ctx, func(conn *sqlite.Conn) error {
		newest, err := l.clock(conn)
		if err != nil {
			return err
		}
		s, err := l.statement(conn, sqlKept)
		if err != nil {
			return err
		}
		s.BindText(1, ledger.AuditKind)
		s.BindInt64(2, int64(ledger.RunLimit(limit)))
		bindPaperName(s, 3, after.Tenant, after.Kind, after.ID)
		return each(l.path, s, func() error {
			_, p := scanPaper(s, clamp(l.now(), newest))
			kept = append(kept, p)
			return nil
		})
	})
	return kept, err
}
