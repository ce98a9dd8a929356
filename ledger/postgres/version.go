package postgres

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/readback-go/readback/ledger"
)

// Version is that of the ledger, and the newest that this program knows.
func (l *Ledger) Version(ctx context.Context) (have, known int, err error) {
	have, err = l.haveVersion(ctx)
	return have, l.version, err
}

// InTheClear finds a host of another machine that a DSN may speak to without
// TLS; "" when there is none. sslmode=prefer, which is the default, falls back
// to that. It fails with [ledger.ErrUnavailable] where the DSN is none.
func InTheClear(dsn string) (string, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	c := config.ConnConfig
	hosts := []*pgconn.FallbackConfig{{Host: c.Host, TLSConfig: c.TLSConfig}}
	for _, h := range append(hosts, c.Fallbacks...) {
		ip := net.ParseIP(h.Host)
		local := h.Host == "localhost" || strings.HasPrefix(h.Host, "/") || ip != nil && ip.IsLoopback()
		if h.TLSConfig == nil && !local {
			return h.Host, nil
		}
	}
	return "", nil
}

// Weaknesses are the settings of the server with which a crash or a failover can
// lose what it acknowledged, most severe first. The ledger's own transactions
// raise synchronous_commit, which is therefore none of them.
func (l *Ledger) Weaknesses(ctx context.Context) (weak []string, err error) {
	const query = `SELECT name || ' = off' FROM unnest(ARRAY['fsync', 'full_page_writes']) AS name WHERE current_setting(name, true) = 'off'
UNION ALL SELECT 'synchronous_standby_names is empty, replication connections = ' || count(*) FROM pg_stat_replication
	WHERE coalesce(current_setting('synchronous_standby_names', true), '') = '' HAVING count(*) > 0`
	err = l.read(ctx, query, nil, func(rows pgx.Rows) error {
		weak, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return weak, err
}
