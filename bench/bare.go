//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/readback-go/readback/connectors"
	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// The bare pair is the least that a program can do that wants to know after a crash which calls
// it may have made: a row before the call, and its outcome after it. Each is a statement and a
// commit of its own.

var bareOnPostgres = contender{
	name: "bare pair, PostgreSQL", store: postgresStore, module: "github.com/jackc/pgx/v5",
	open: func(ctx context.Context, m *machine, d *destination) (session, error) {
		dsn, drop, err := m.database()
		if err != nil {
			return session{}, err
		}
		p, err := poolOf(ctx, dsn)
		if err != nil {
			return session{}, errors.Join(err, drop())
		}
		if _, err := p.Exec(ctx, "CREATE TABLE bare (id text PRIMARY KEY, state text NOT NULL, body text NOT NULL)"); err != nil {
			p.Close()
			return session{}, errors.Join(err, drop())
		}
		return session{
			write: func(ctx context.Context, o order) error {
				body, err := json.Marshal(o)
				if err != nil {
					return err
				}
				if _, err := p.Exec(ctx, "INSERT INTO bare (id, state, body) VALUES ($1, 'sending', $2)", o.Reference, string(body)); err != nil {
					return err
				}
				d.send(o.Reference, connectors.Record{})
				_, err = p.Exec(ctx, "UPDATE bare SET state = 'settled' WHERE id = $1", o.Reference)
				return err
			},
			close: func() error { p.Close(); return drop() },
		}, nil
	},
}

func poolOf(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = pool
	return pgxpool.NewWithConfig(ctx, config)
}

// One connection, since SQLite has one writer.
var bareOnSQLite = contender{
	name: "bare pair, SQLite", store: sqliteStore, module: "zombiezen.com/go/sqlite",
	open: func(_ context.Context, m *machine, d *destination) (session, error) {
		folder, remove, err := m.folder()
		if err != nil {
			return session{}, err
		}
		c, err := zombiezen.OpenConn(filepath.Join(folder, "bare.db"), zombiezen.OpenReadWrite, zombiezen.OpenCreate)
		if err != nil {
			return session{}, errors.Join(err, remove())
		}
		closed := func() error { return errors.Join(c.Close(), remove()) }
		for _, q := range []string{
			"PRAGMA journal_mode = wal", "PRAGMA synchronous = full",
			"CREATE TABLE bare (id TEXT PRIMARY KEY, state TEXT NOT NULL, body TEXT NOT NULL) STRICT",
		} {
			if err := sqlitex.ExecuteTransient(c, q, nil); err != nil {
				return session{}, errors.Join(err, closed())
			}
		}
		var mu sync.Mutex
		exec := func(q string, args ...any) error {
			mu.Lock()
			defer mu.Unlock()
			return sqlitex.Execute(c, q, &sqlitex.ExecOptions{Args: args})
		}
		return session{
			write: func(_ context.Context, o order) error {
				body, err := json.Marshal(o)
				if err != nil {
					return err
				}
				if err := exec("INSERT INTO bare (id, state, body) VALUES (?, 'sending', ?)", o.Reference, string(body)); err != nil {
					return err
				}
				d.send(o.Reference, connectors.Record{})
				return exec("UPDATE bare SET state = 'settled' WHERE id = ?", o.Reference)
			},
			close: closed,
		}, nil
	},
}
