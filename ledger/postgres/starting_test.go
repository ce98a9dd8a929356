package postgres_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

// Several programs start on an empty database at once: each opens a ledger, and there is one.
func TestOpenTogether(t *testing.T) {
	for name, schema := range map[string]string{"search path": "", "schema": "readback"} {
		t.Run(name, func(t *testing.T) {
			d := fresh(t)
			var wg sync.WaitGroup
			begin := make(chan struct{})
			fresh := make([]bool, 8)
			res := reservation(t, asked("w"))
			for i := range fresh {
				wg.Go(func() {
					<-begin
					l, err := postgres.Open(context.Background(), d.dsn()+" pool_max_conns=2", &postgres.Options{Schema: schema})
					if err != nil {
						t.Error(err)
						return
					}
					defer l.Close()
					if _, fresh[i], err = l.Reserve(context.Background(), res); err != nil {
						t.Error(err)
					}
				})
			}
			close(begin)
			wg.Wait()
			owners := 0
			for _, won := range fresh {
				if won {
					owners++
				}
			}
			if owners != 1 {
				t.Errorf("%d programs own the write", owners)
			}
		})
	}
}

// A migration that ends halfway leaves the previous version, which works; the next program runs
// it.
func TestMigrationInterrupted(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	half := "CREATE TABLE @ledger_more (n INT); INSERT INTO @ledger_more VALUES (1); SELECT 1 / 0"
	if err := l.Migrate(t.Context(), append(postgres.Versions[:len(postgres.Versions):len(postgres.Versions)], half)); err == nil {
		t.Fatal("a migration that fails passed")
	}
	must(t, pair(l, reservation(t, asked("w"))))
	d.open(nil)
	whole := "CREATE TABLE @ledger_more (n INT)"
	must(t, l.Migrate(t.Context(), append(postgres.Versions[:len(postgres.Versions):len(postgres.Versions)], whole)))
	d.exec("INSERT INTO ledger_more VALUES (1)")
	if have, known, err := l.Version(t.Context()); err != nil || have != known+1 {
		t.Errorf("version %d of %d, error %v", have, known, err)
	}
}

// An upgrade that is compatible with programs of the previous version does not stop them; any
// other stops each at its next call, and no older program starts.
func TestNewerVersion(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	rec, _, err := l.Reserve(t.Context(), reservation(t, asked("w1")))
	must(t, err)
	d.exec("UPDATE ledger_meta SET version = 99")
	must(t, pair(l, reservation(t, asked("w2"))))
	must(t, pair(d.open(nil), reservation(t, asked("w3")))) // as after a crash during an upgrade
	d.exec("UPDATE ledger_meta SET compatible_from = 98")
	if _, err := postgres.Open(t.Context(), d.dsn(), nil); !errors.Is(err, ledger.ErrVersion) || !strings.Contains(err.Error(), "has version 99 and needs a program that knows version 98") {
		t.Errorf("open: error %v, want one that names the versions", err)
	}
	for name, call := range calls(t, l, rec) {
		if err := call(); !errors.Is(err, ledger.ErrVersion) {
			t.Errorf("%s: error %v, want the version", name, err)
		}
	}
	d.exec(fmt.Sprintf("UPDATE ledger_meta SET version = %d, compatible_from = 1", len(postgres.Versions)))
	l = d.open(nil)
	if got, err := l.Get(t.Context(), rec.Tenant, rec.ID); err != nil || got.Seq != rec.Seq {
		t.Errorf("seq %d, error %v: something was changed", got.Seq, err)
	}
	must(t, pair(l, reservation(t, asked("other1")))) // what was refused was not recorded
}

// calls are all calls about an existing write.
func calls(t *testing.T, l *postgres.Ledger, rec ledger.Record) map[string]func() error {
	ctx := context.Background()
	number := 0
	return map[string]func() error{
		"reserve": func() error {
			number++
			_, _, err := l.Reserve(ctx, reservation(t, asked(fmt.Sprint("other", number))))
			return err
		},
		"repeat": func() error { _, _, err := l.Reserve(ctx, reservation(t, asked(rec.Workflow))); return err },
		"append": func() error {
			_, err := l.Append(ctx, rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvLate})
			return err
		},
		"claim": func() error { _, err := l.Claim(ctx, ledger.Claim{Owner: "two", LeaseFor: 1}); return err },
		"claim by name": func() error {
			_, err := l.Claim(ctx, ledger.Claim{Owner: "two", LeaseFor: 1, Tenant: rec.Tenant, ID: rec.ID})
			return err
		},
		"get":    func() error { _, err := l.Get(ctx, rec.Tenant, rec.ID); return err },
		"absent": func() error { _, err := l.Get(ctx, rec.Tenant, "wr_0"); return err },
		"events": func() error { _, err := l.Events(ctx, rec.Tenant, rec.ID); return err },
		"list":   func() error { _, err := l.List(ctx, ledger.Filter{Tenant: rec.Tenant}); return err },
		"file": func() error {
			number++
			_, err := l.Commit(ctx, ledger.Batch{Documents: []ledger.Document{page(rec.Tenant, fmt.Sprint("p", number), 0)}})
			return err
		},
		"file several": func() error {
			number++
			late := ledger.Appending{ID: rec.ID, Fence: rec.Fence, Events: []ledger.Event{{Kind: ledger.EvLate}}}
			_, err := l.Commit(ctx, ledger.Batch{Documents: []ledger.Document{page(rec.Tenant, fmt.Sprint("p", number), 0)}, Append: []ledger.Appending{late, late}})
			return err
		},
		"no document": func() error {
			if _, err := l.Document(ctx, rec.Tenant, "step", "none"); !errors.Is(err, ledger.ErrNoDocument) {
				return err
			}
			return nil
		},
		"find documents": func() error {
			_, _, err := l.FindDocuments(ctx, ledger.DocumentQuery{Tenant: rec.Tenant, Kind: "step"})
			return err
		},
		"due documents": func() error { _, _, err := l.DueDocuments(ctx, "step", 1); return err },
		"prune":         func() error { _, err := l.Prune(ctx, ledger.Prune{Keep: time.Hour, Remember: time.Hour}); return err },
		"follow":        func() error { _, _, err := l.Follow(ctx, ledger.Following{Limit: 1000}); return err },
		"latest":        func() error { _, err := l.Latest(ctx); return err },
		"find": func() error {
			for _, s := range []ledger.Search{{}, {Oldest: true}, {Workflow: rec.Workflow}, {Settlements: []ledger.Status{ledger.Denied}}} {
				s.Tenant = rec.Tenant
				if found, err := l.Find(ctx, s); err != nil || len(s.Settlements) == 0 && len(found.Records) == 0 {
					return cmp.Or(err, fmt.Errorf("%+v found nothing", s))
				}
			}
			return nil
		},
		"history": func() error {
			_, err := l.History(ctx, ledger.Past{Tenant: rec.Tenant, Since: time.Now().Add(-time.Hour), Until: time.Now(), Step: time.Minute})
			return err
		},
	}
}

// A standby's answers may be old, so it gives none; once promoted, it is a database like any
// other.
func TestStandby(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	d := freshOn(t, s)
	l := d.open(nil)
	rec, _, err := l.Reserve(t.Context(), reservation(t, asked("w")))
	must(t, err)
	standby, err := s.Standby(pgtest.StandbyOptions{})
	must(t, err)
	must(t, standby.CaughtUp(s))
	if _, err := postgres.Open(t.Context(), standby.DSN(d.name), nil); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("open: error %v, want unavailable", err)
	}
	l.Demote(t, standby.DSN(d.name))
	for name, call := range calls(t, l, rec) {
		if err := call(); !errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrUnsure) {
			t.Errorf("%s: error %v, want unavailable and sure", name, err)
		}
	}
	must(t, standby.Promote())
	for name, call := range calls(t, l, rec) {
		if err := call(); err != nil && !(name == "absent" && errors.Is(err, ledger.ErrNotFound)) {
			t.Errorf("%s, promoted: %v", name, err)
		}
	}
}

// A database that cannot be written, or has no connection left, is named with its fault; when
// that is over the ledger works again.
func TestReadOnly(t *testing.T) {
	d := fresh(t)
	l := d.open(nil)
	rec, _, err := l.Reserve(t.Context(), reservation(t, asked("w")))
	must(t, err)
	d.exec("ALTER DATABASE " + d.name + " SET default_transaction_read_only = on")
	if _, err := postgres.Open(t.Context(), d.dsn(), nil); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "default_transaction_read_only") {
		t.Errorf("open: error %v, want one that names the setting", err)
	}
	l.Reset()
	for _, name := range []string{"reserve", "append", "claim by name"} {
		if err := calls(t, l, rec)[name](); !errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrUnsure) {
			t.Errorf("%s: error %v, want unavailable and sure", name, err)
		}
	}
	must(t, calls(t, l, rec)["get"]())
	must(t, d.server.Exec("postgres", "ALTER DATABASE "+d.name+" RESET default_transaction_read_only"))
	l.Reset()
	must(t, calls(t, l, rec)["append"]())
}

func TestOutOfConnections(t *testing.T) {
	d := fresh(t)
	role := "only_two_" + d.name
	d.exec("CREATE ROLE " + role + " LOGIN CONNECTION LIMIT 2; GRANT ALL ON SCHEMA public TO " + role)
	dsn := strings.Replace(d.dsn(), "user="+pgtest.Superuser, "user="+role, 1) + " pool_max_conns=2"
	first, err := postgres.Open(t.Context(), dsn, nil)
	must(t, err)
	release := first.Occupy(t, 2)
	if _, err := postgres.Open(t.Context(), dsn, nil); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "max_connections") {
		t.Errorf("open: error %v, want one that says what to do", err)
	}
	release()
	must(t, pair(first, reservation(t, asked("w"))))
	must(t, first.Close())
	second, err := postgres.Open(t.Context(), dsn, nil)
	for n := 0; errors.Is(err, ledger.ErrUnavailable) && n < 1000; n++ { // the server's side of a connection ends a little later
		second, err = postgres.Open(t.Context(), dsn, nil)
	}
	must(t, err)
	must(t, second.Close())
}
