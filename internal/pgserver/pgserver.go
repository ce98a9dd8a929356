// Package pgserver is what a ledger and a destination in PostgreSQL both ask of
// their server. It knows neither of them.
package pgserver

import (
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Weaknesses is a query for the settings of the server with which a crash or a
// failover can lose what it acknowledged, most severe first. A row that begins with
// [Standby] is about failovers. synchronous_commit is none of them: transactions
// raise it by themselves.
const Weaknesses = `SELECT name || ' = off' FROM unnest(ARRAY['fsync', 'full_page_writes']) AS name WHERE current_setting(name, true) = 'off'
UNION ALL SELECT '` + Standby + ` is empty, replication connections = ' || count(*) FROM pg_stat_replication
	WHERE coalesce(current_setting('` + Standby + `', true), '') = '' HAVING count(*) > 0`

// Standby is the setting that makes commits wait for standbys.
const Standby = "synchronous_standby_names"

// InTheClear finds a host of another machine that a connection string may lead to
// without TLS: sslmode=prefer, which is the default, falls back to that. "" when there
// is none. It fails where the string is none.
func InTheClear(dsn string) (string, error) {
	c, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return "", err
	}
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
