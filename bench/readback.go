//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
	"github.com/readback-go/readback/ledger/sqlite"
)

var readbackOnPostgres = contender{
	name: "readback, PostgreSQL", store: postgresStore, module: "github.com/readback-go/readback",
	open: func(ctx context.Context, m *machine, d *destination) (session, error) {
		dsn, drop, err := m.database()
		if err != nil {
			return session{}, err
		}
		l, err := postgres.Open(ctx, dsn, nil)
		if err != nil {
			return session{}, errors.Join(err, drop())
		}
		return engineOn(l, d, func() error { return errors.Join(l.Close(), drop()) })
	},
}

var readbackOnSQLite = contender{
	name: "readback, SQLite", store: sqliteStore, module: "github.com/readback-go/readback",
	open: func(ctx context.Context, m *machine, d *destination) (session, error) {
		folder, remove, err := m.folder()
		if err != nil {
			return session{}, err
		}
		l, err := sqlite.Open(ctx, filepath.Join(folder, "ledger.db"), nil)
		if err != nil {
			return session{}, errors.Join(err, remove())
		}
		return engineOn(l, d, func() error { return errors.Join(l.Close(), remove()) })
	},
}

// engineOn is an engine with the default options. A write is the whole of Engine.Do: recorded,
// sent, read back, compared, settled.
func engineOn(l ledger.Ledger, d *destination, close func() error) (session, error) {
	var reg connectors.Registry
	err := reg.Register("payments", connectors.Destination{Connector: d, Profiles: map[string]connectors.Profile{
		"charge": {Stamped: true, Unique: []intent.WriteType{intent.Create}, Settle: connectors.Within(0), Horizon: connectors.Within(time.Minute)},
	}})
	if err != nil {
		return session{}, errors.Join(err, close())
	}
	e := engine.New(l, &reg, nil)
	return session{
		write: func(ctx context.Context, o order) error {
			out, err := e.Do(ctx, intent.WriteIntent{
				Tenant: "acme", Workflow: o.Reference, Step: "charge", Tool: "payments.create",
				Destination: "payments", Kind: "charge", Write: intent.Create, IdempotencyKey: "invoice:" + o.Reference,
				Key:    intent.Fields{"reference": o.Reference},
				Expect: intent.Fields{"amount": o.Amount, "currency": o.Currency, "customer": o.Customer, "description": o.Description},
			})
			if err == nil && out.Status != ledger.Verified {
				err = fmt.Errorf("%s is %s: %s", o.Reference, out.Status, out.Text)
			}
			return err
		},
		close: func() error { e.Close(); return close() },
	}, nil
}

// Write implements [connectors.Connector].
func (d *destination) Write(_ context.Context, r connectors.Request) (connectors.Receipt, error) {
	reference := r.Intent.Key["reference"].(string)
	fields := intent.Fields{"reference": reference}
	for name, v := range r.Intent.Expect {
		fields[name] = v
	}
	d.send(reference, connectors.Record{Ref: reference, Stamp: r.Stamp, Fields: fields})
	return connectors.Receipt{Ref: reference}, nil
}

// Read implements [connectors.Connector].
func (d *destination) Read(_ context.Context, q connectors.Query) (connectors.Observation, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := connectors.Observation{Strength: connectors.Strong, At: time.Now()}
	if r, ok := d.records[q.Intent.Key["reference"].(string)]; ok {
		seen.Records = []connectors.Record{r}
	}
	return seen, nil
}
