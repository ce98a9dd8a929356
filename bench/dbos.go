//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite" // registers the driver
	"github.com/readback-go/readback/connectors"
)

const dbosModule = "github.com/dbos-inc/dbos-transact-golang"

var dbosOnPostgres = contender{
	name: "DBOS, PostgreSQL", store: postgresStore, module: dbosModule,
	open: func(ctx context.Context, m *machine, d *destination) (session, error) {
		dsn, drop, err := m.database()
		if err != nil {
			return session{}, err
		}
		return dbosOn(ctx, m, d, dbos.Config{DatabaseURL: dsn}, drop)
	},
}

// As it comes: DBOS opens SQLite with synchronous=NORMAL, which syncs at checkpoints, not at
// each commit.
var dbosOnSQLite = contender{
	name: "DBOS, SQLite, as it comes", store: sqliteStore, module: dbosModule,
	open: func(ctx context.Context, m *machine, d *destination) (session, error) {
		folder, remove, err := m.folder()
		if err != nil {
			return session{}, err
		}
		return dbosOn(ctx, m, d, dbos.Config{DatabaseURL: "sqlite:" + filepath.Join(folder, "dbos.db")}, remove)
	},
}

// With the durability of the others: a handle like the one that DBOS opens, but with
// synchronous=FULL.
var dbosOnSQLiteFull = contender{
	name: "DBOS, SQLite, synced", store: sqliteStore, module: dbosModule,
	open: func(ctx context.Context, m *machine, d *destination) (session, error) {
		folder, remove, err := m.folder()
		if err != nil {
			return session{}, err
		}
		db, err := sql.Open("sqlite", filepath.Join(folder, "dbos.db")+
			"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=foreign_keys(ON)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
		if err != nil {
			return session{}, errors.Join(err, remove())
		}
		db.SetMaxOpenConns(8)
		db.SetMaxIdleConns(4)
		return dbosOn(ctx, m, d, dbos.Config{SQLiteSystemDB: db}, func() error { return errors.Join(db.Close(), remove()) })
	},
}

// dbosOn runs a workflow of one step for each write.
func dbosOn(ctx context.Context, m *machine, d *destination, config dbos.Config, close func() error) (session, error) {
	config.Logger = m.log
	s, err := dbosSession(ctx, config, func(ctx dbos.Context, o order) (string, error) {
		return dbos.RunAsStep(ctx, func(context.Context) (string, error) {
			d.send(o.Reference, connectors.Record{})
			return o.Reference, nil
		}, dbos.WithStepName("charge"))
	})
	if err != nil {
		return session{}, errors.Join(err, close())
	}
	stop := s.close
	s.close = func() error { return errors.Join(stop(), close()) }
	return s, nil
}

// dbosSession runs a workflow for each write, in this process and without a queue: the shortest path that DBOS has.
func dbosSession(ctx context.Context, config dbos.Config, flow dbos.Workflow[order, string]) (session, error) {
	config.AppName, config.ApplicationVersion = "bench", "1"
	c, err := dbos.NewContext(ctx, config)
	if err != nil {
		return session{}, err
	}
	dbos.RegisterWorkflow(c, flow, dbos.WithWorkflowName("charge"))
	stop := func() error { return dbos.Shutdown(c, 10*time.Second) }
	if err := dbos.Launch(c); err != nil {
		return session{}, errors.Join(err, stop())
	}
	return session{
		write: func(_ context.Context, o order) error {
			h, err := dbos.RunWorkflow(c, flow, o, dbos.WithWorkflowID(o.Reference))
			if err != nil {
				return err
			}
			_, err = h.GetResult()
			return err
		},
		close: stop,
	}, nil
}
