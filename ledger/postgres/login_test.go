package postgres_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger/postgres"
)

// A connection that is made after the login was changed uses the new one, and a login that the
// server refuses is reported.
func TestNewConnectionsLogInAsItIsNow(t *testing.T) {
	d := freshOn(t, server(t))
	var user atomic.Value
	var refused atomic.Int64
	user.Store(pgtest.Superuser)
	l, err := postgres.Open(t.Context(), d.dsn(), &postgres.Options{Login: func(context.Context) (string, func(), error) {
		return strings.Replace(d.dsn(), pgtest.Superuser, user.Load().(string), 1), func() { refused.Add(1) }, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := d.server.Exec(d.name, "CREATE ROLE rotated SUPERUSER LOGIN"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.server.Exec(d.name, "DROP ROLE rotated") })
	who := func() (name string, err error) {
		l.Reset()
		err = l.Within(t.Context(), func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), "SELECT current_user").Scan(&name) })
		return name, err
	}
	user.Store("rotated")
	if got, err := who(); got != "rotated" || err != nil || refused.Load() != 0 {
		t.Errorf("connected as %q, %v, after %d refusals; want the new user", got, err, refused.Load())
	}
	user.Store("not_there")
	if got, err := who(); err == nil || refused.Load() == 0 {
		t.Errorf("connected as %q, %v, after %d refusals; want that the refusal is reported", got, err, refused.Load())
	}
}
