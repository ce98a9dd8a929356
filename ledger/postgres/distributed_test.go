package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/postgres"
)

// remote is a proxy that answers as a distributed database may. Its chances are drawn from one
// seed.
type remote struct {
	serialization float64       // of each statement: that it fails with 40001, and is not run
	unsure        float64       // of each commit: that its result is not known, with 40003 or with the connection
	away          time.Duration // of the database: one way
	lacks         []string      // words of statements that it does not know

	mu      sync.Mutex
	random  *rand.Rand
	instead func() // what happens in place of the next commit, or nil
}

// lose makes something happen in place of the next commit, whose result is then not known.
func (r *remote) lose(instead func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.instead = instead
}

// lost returns what happens in place of this commit.
func (r *remote) lost() (instead func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	instead, r.instead = r.instead, nil
	return instead
}

// through returns the connection string of a database behind the proxy.
func (r *remote) through(t *testing.T, d *database) string {
	t.Helper()
	r.random = rand.New(rand.NewPCG(1, 2))
	host, port, err := net.SplitHostPort(between(t, d.server.Addr(), r.serve))
	must(t, err)
	fields := strings.Fields(d.dsn())
	fields[0], fields[1] = "host="+host, "port="+port
	return strings.Join(fields, " ")
}

func (r *remote) chance(of float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.Float64() < of
}

// verbatim is messages of a client, as they came.
type verbatim []byte

func (verbatim) Frontend()                           {}
func (verbatim) Decode([]byte) error                 { panic("it is only sent") }
func (b verbatim) Encode(dst []byte) ([]byte, error) { return append(dst, b...), nil }

// group is what a client sends before it waits for an answer.
type group struct {
	messages verbatim
	texts    []string // of the statements that are run
	parsed   string   // of the others
	end      bool
}

func (g group) begins(word string) bool {
	return len(g.texts) == 1 && strings.HasPrefix(g.texts[0], word)
}

var change = regexp.MustCompile(`(?i)\b(INSERT INTO|UPDATE|DELETE FROM) `)

func (g group) changes() bool {
	for _, text := range g.texts {
		if change.MatchString(strings.ReplaceAll(text, "FOR UPDATE", "")) {
			return true
		}
	}
	return false
}

// next reads a group. Statements are those that the connection keeps prepared.
func next(back *pgproto3.Backend, statements map[string]string) (g group, err error) {
	bound := ""
	for {
		m, err := back.Receive()
		if err != nil {
			return g, err
		}
		if g.messages, err = m.Encode(g.messages); err != nil {
			return g, err
		}
		switch m := m.(type) {
		case *pgproto3.Parse:
			statements[m.Name] = m.Query
			g.parsed += m.Query
		case *pgproto3.Bind:
			bound = m.PreparedStatement
		case *pgproto3.Execute:
			g.texts = append(g.texts, statements[bound])
		case *pgproto3.Query:
			g.texts = append(g.texts, m.String)
			return g, nil
		case *pgproto3.Sync:
			return g, nil
		case *pgproto3.Terminate:
			g.end = true
			return g, nil
		}
	}
}

func (r *remote) serve(back *pgproto3.Backend, front *pgproto3.Frontend) {
	statements := make(map[string]string)
	discard := func(pgproto3.BackendMessage) {}
	for status, changed := byte('I'), false; ; {
		g, err := next(back, statements)
		if err != nil || g.end {
			return
		}
		if r.away > 0 {
			<-time.After(r.away)
		}
		// pass sends messages to the server, and its answer to take.
		pass := func(m pgproto3.FrontendMessage, take func(pgproto3.BackendMessage)) bool {
			front.Send(m)
			return front.Flush() == nil && untilReady(front, take, &status) == nil
		}
		refuse := func(code string) {
			back.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: code, Message: "as a distributed database answers"})
			back.Send(&pgproto3.ReadyForQuery{TxStatus: status})
		}
		commit := g.begins("commit")
		commits := commit && changed || status == 'I' && !g.begins("BEGIN") && g.changes()
		var instead func()
		if commits {
			instead = r.lost()
		}
		switch {
		case slices.ContainsFunc(r.lacks, func(word string) bool { return strings.Contains(g.parsed+strings.Join(g.texts, ";"), word) }):
			if status == 'T' && !pass(&pgproto3.Query{String: "SELECT 1/0"}, discard) {
				return
			}
			refuse("42883")
		case status == 'E' || g.begins("rollback"):
			if !pass(g.messages, back.Send) {
				return
			}
		case instead != nil:
			if commit && !pass(&pgproto3.Query{String: "ROLLBACK"}, discard) {
				return
			}
			instead()
			refuse("40003")
		// A server never refuses to forget a statement; pgx would take the rest of such an answer for
		// that of what it sends next.
		case (g.parsed != "" || len(g.texts) > 0) && r.chance(r.serialization):
			ok := true
			if commit {
				ok = pass(&pgproto3.Query{String: "ROLLBACK"}, discard)
			} else if status == 'T' {
				ok = pass(&pgproto3.Query{String: "SELECT 1/0"}, discard)
			}
			if !ok {
				return
			}
			refuse("40001")
		case commits && r.chance(r.unsure):
			ok := true
			if r.chance(0.5) {
				ok = pass(g.messages, discard)
			} else if commit {
				ok = pass(&pgproto3.Query{String: "ROLLBACK"}, discard)
			}
			if !ok || r.chance(0.5) {
				return // with the connection
			}
			refuse("40003")
		default:
			if !pass(g.messages, back.Send) {
				return
			}
		}
		changed = status != 'I' && (changed || g.changes())
		if r.away > 0 {
			<-time.After(r.away)
		}
		if back.Flush() != nil {
			return
		}
	}
}

// A ledger works in a database that is a quarter of a second away: each way of making a change
// sends a time that the database accepts.
func TestFarAway(t *testing.T) {
	d := fresh(t)
	d.open(nil) // its tables are made from nearby
	dsn := (&remote{away: 125 * time.Millisecond}).through(t, d)
	prepared, err := postgres.Open(t.Context(), dsn, nil)
	must(t, err)
	defer prepared.Close()
	l, err := postgres.Open(t.Context(), dsn+" default_query_exec_mode=exec", nil) // half the round trips
	must(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // they need 10 s
	defer cancel()
	var wg sync.WaitGroup
	alone := func(l *postgres.Ledger, name string) func() error {
		return func() error {
			rec, _, err := l.Reserve(ctx, reservation(t, asked(name)))
			if err == nil {
				_, err = l.Append(ctx, rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvSent})
			}
			return err
		}
	}
	ways := map[string]func() error{
		"alone":    alone(l, "alone"),
		"prepared": alone(prepared, "prepared"),
		"together": func() error {
			made, err := l.ReserveTogether(reservation(t, asked("one")), reservation(t, asked("two")))
			if err == nil && made != 2 {
				err = fmt.Errorf("%d of 2 were made", made)
			}
			return err
		},
		"in a queue": func() error {
			first, _, err := l.Reserve(ctx, reservation(t, about("r", 1)))
			if err != nil {
				return err
			}
			if _, _, err = l.Reserve(ctx, reservation(t, about("r", 2))); err != nil {
				return err
			}
			_, err = l.Append(ctx, first.ID, first.Fence, whole[1:]...) // frees the second
			return err
		},
		"from the outbox": func() error {
			if err := enqueue(t, l, true, about("s", 1), about("s", 2)); err != nil {
				return err
			}
			_, err := l.Get(ctx, "acme", idOf(about("s", 2)))
			return err
		},
		"with a document": func() error {
			res := reservation(t, asked("with a document"))
			_, err := l.Commit(ctx, ledger.Batch{Documents: []ledger.Document{page("acme", "p", 0)}, Reserve: &res})
			return err
		},
		"with several": func() error {
			rec, _, err := l.Reserve(ctx, reservation(t, asked("several")))
			if err != nil {
				return err
			}
			late := ledger.Appending{ID: rec.ID, Fence: rec.Fence, Events: []ledger.Event{{Kind: ledger.EvLate}}}
			_, err = l.Commit(ctx, ledger.Batch{Documents: []ledger.Document{page("acme", "several", 0)}, Append: []ledger.Appending{late, late}})
			return err
		},
	}
	for name, way := range ways {
		wg.Go(func() {
			if err := way(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
}

// missing is what the simulated database does not know.
var missing = []string{"SKIP LOCKED", "LISTEN", "pg_notify", "LOCK TABLE", "COLLATE", "pg_is_in_recovery", "synchronous_commit", "plpgsql", "xid", "advisory", "SAVEPOINT"}

// distributed returns an empty database without plpgsql whose connections have different clocks,
// with the tables of a ledger of the simulated dialect.
func distributed(t *testing.T, o *postgres.Options) *database {
	t.Helper()
	d := fresh(t)
	d.exec("DROP EXTENSION plpgsql")
	d.movable()
	d.exec(fmt.Sprintf(`CREATE OR REPLACE FUNCTION moved.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
		AS 'SELECT pg_catalog.clock_timestamp() + (SELECT by FROM moved.ahead) + pg_backend_pid() %% 3 * interval ''%d microseconds'''`, postgres.Skew.Microseconds()/2))
	l, err := postgres.Open(t.Context(), (&remote{lacks: missing}).through(t, d), o)
	must(t, err)
	must(t, l.Close())
	return d
}

// disturb is another session that locks some writes for up to 50 ms, again and again.
func disturb(t *testing.T, d *database) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	conn, err := pgx.Connect(ctx, d.dsn())
	must(t, err)
	var wg sync.WaitGroup
	t.Cleanup(func() {
		end()
		wg.Wait()
		must(t, conn.Close(context.Background()))
	})
	random := rand.New(rand.NewPCG(3, 4))
	wg.Go(func() {
		for ctx.Err() == nil {
			// A deadlock ends it as it ends any transaction.
			_, _ = conn.Exec(ctx, fmt.Sprintf("WITH l AS (SELECT id FROM readback.ledger_writes WHERE n %% 4 = %d LIMIT 3 FOR UPDATE) SELECT pg_sleep(%f) FROM (SELECT count(*) FROM l) AS c",
				random.IntN(4), 0.005+0.045*random.Float64()))
			select {
			case <-time.After(time.Duration(random.IntN(100)) * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
}

// patient claims what is due on the clocks of all nodes: twice, since what the first call takes in
// from the outbox may be due a little later on another clock.
type patient struct {
	*postgres.Ledger
	d *database
}

func (p patient) Claim(ctx context.Context, c ledger.Claim) ([]ledger.Record, error) {
	p.d.move(2 * postgres.Skew)
	recs, err := p.Ledger.Claim(ctx, c)
	if err != nil || len(recs) >= max(c.Limit, 1) {
		return recs, err
	}
	p.d.move(2 * postgres.Skew)
	more, err := p.Ledger.Claim(ctx, driver.Rest(c, recs))
	return append(recs, more...), err
}

// TestDistributed is the suite in a database in which any statement fails with 40001, the result of
// a commit may be lost, another session holds locks, clocks differ, and plpgsql, LISTEN, LOCK TABLE,
// collations and SKIP LOCKED are missing.
func TestDistributed(t *testing.T) {
	o := &postgres.Options{Schema: "readback", Dialect: "simulated"}
	empty := distributed(t, o)
	checks := flag.Lookup("rapid.checks")
	defer func(n string) { must(t, checks.Value.Set(n)) }(checks.Value.String())
	must(t, checks.Value.Set("25")) // of each model: each step costs many calls here
	var d *database
	direct := func(t *testing.T) *postgres.Ledger { return d.open(o) } // the pool of a caller with transactions of its own
	ledgertest.Run(t, func(t *testing.T) ledger.Ledger {
		name, err := empty.server.CopyDatabase(empty.name)
		must(t, err)
		d = (&database{t: t, server: empty.server, name: name}).moved()
		r := &remote{serialization: 0.05, unsure: 0.05, lacks: missing}
		l, err := postgres.Open(t.Context(), r.through(t, d), o)
		must(t, err)
		t.Cleanup(func() { must(t, l.Close()) })
		disturb(t, d)
		return patient{l, d}
	}, ledgertest.Options{
		Sleep: func(by time.Duration) { d.move(by) },
		Enqueue: func(t *testing.T, _ ledger.Ledger, commit bool, ws ...intent.WriteIntent) error {
			return enqueueTo(t, direct(t), postgres.Outbox{Quiet: true}, commit, ws...)
		},
		EnqueueSealed: func(t *testing.T, _ ledger.Ledger, keys ledger.Keys, ws ...intent.WriteIntent) error {
			return enqueueTo(t, direct(t), postgres.Outbox{Quiet: true, Keys: keys}, true, ws...)
		},
		OneIn: 12 * need.OneIn(5), // all would take minutes
	})
}

// Commits of which every third answers that its result is not known: each change is applied once,
// and callers do not notice.
func TestUnknownCommits(t *testing.T) {
	d := fresh(t)
	o := &postgres.Options{Dialect: "simulated"}
	l, err := postgres.Open(t.Context(), (&remote{unsure: 0.3}).through(t, d), o)
	must(t, err)
	defer l.Close()
	var note ledger.Note
	for i := range 6 {
		first, fresh, err := l.Reserve(t.Context(), reservation(t, about(fmt.Sprint("r", i), 1)))
		if err != nil || !fresh {
			t.Fatalf("reserve: fresh %t, error %v", fresh, err)
		}
		if _, fresh, err = l.Reserve(t.Context(), reservation(t, about(fmt.Sprint("r", i), 2))); err != nil || !fresh {
			t.Fatalf("reserve behind it: fresh %t, error %v", fresh, err)
		}
		late := ledger.Event{Kind: ledger.EvLate}
		rec, err := l.Append(t.Context(), first.ID, first.Fence, late)
		must(t, err)
		if rec.Seq != first.Seq+1 {
			t.Errorf("after an append the write has %d events, not %d", rec.Seq, first.Seq+1)
		}
		res := reservation(t, asked(fmt.Sprint("with a document", i)))
		did, err := l.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{page("acme", fmt.Sprint("p", i), 0)}, Reserve: &res,
			Append: []ledger.Appending{{ID: first.ID, Fence: first.Fence, Events: []ledger.Event{late}}}})
		must(t, err)
		if !did.Fresh || did.Documents[0].Version != 1 {
			t.Errorf("batch: %+v", did)
		}
		note.Name, note.Value = "a", []byte(fmt.Sprint(i))
		note, err = l.SetNote(t.Context(), note)
		must(t, err)
		if note.Version != int64(i+1) {
			t.Errorf("the note has version %d after %d changes", note.Version, i+1)
		}
		events, err := l.Events(t.Context(), "acme", first.ID)
		must(t, err)
		if want := int(first.Seq) + 2; len(events) != want {
			t.Errorf("the write has %d events, want %d", len(events), want)
		}
	}
	if notes, _, err := l.Notes(t.Context(), ""); err != nil || len(notes) != 1 {
		t.Errorf("notes %v, error %v: records of transactions are listed", notes, err)
	}
}

// A change whose commit is lost is not taken for that of another caller, and a lease whose renewal is
// lost is not taken for renewed. The clock of the ledger is late.
func TestLostCommits(t *testing.T) {
	late := ledger.Event{Kind: ledger.EvLate}
	for name, c := range map[string]struct {
		events    []ledger.Event // that are appended
		meanwhile func(t *testing.T, d *database, l *postgres.Ledger, rec ledger.Record)
		want      error
		more      int // events afterwards
	}{
		"an equal change": {[]ledger.Event{late}, func(t *testing.T, _ *database, l *postgres.Ledger, rec ledger.Record) {
			_, err := l.Append(t.Context(), rec.ID, rec.Fence, late)
			must(t, err)
		}, nil, 2},
		"a renewal and a claim": {nil, func(t *testing.T, d *database, l *postgres.Ledger, rec ledger.Record) {
			d.move(time.Hour)
			recs, err := l.Claim(t.Context(), ledger.Claim{Owner: "other", LeaseFor: time.Minute, Limit: 1})
			must(t, err)
			if len(recs) != 1 {
				t.Error("the other worker got nothing")
			}
		}, ledger.ErrFenced, 0},
		"a renewal and an append": {nil, func(t *testing.T, _ *database, l *postgres.Ledger, rec ledger.Record) {
			_, err := l.Append(t.Context(), rec.ID, rec.Fence, late)
			must(t, err)
		}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := fresh(t).movable()
			o := &postgres.Options{Dialect: "simulated"}
			nearby := d.open(o)
			rec, _, err := nearby.Reserve(t.Context(), reservation(t, asked("w")))
			must(t, err)
			must(t, nearby.Close()) // when it has recorded the newest time, so that the append is the next commit
			r := &remote{}
			l, err := postgres.Open(t.Context(), r.through(t, d), o)
			must(t, err)
			defer l.Close()
			d.move(-time.Second)
			r.lose(func() { c.meanwhile(t, d, l, rec) })
			got, err := l.Append(t.Context(), rec.ID, rec.Fence, c.events...)
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			have, err := l.Get(t.Context(), rec.Tenant, rec.ID)
			must(t, err)
			if have.Seq != rec.Seq+int64(c.more) {
				t.Errorf("the write has %d more events, want %d", have.Seq-rec.Seq, c.more)
			}
			if c.want == nil && !have.LeaseUntil.Equal(got.LeaseUntil) {
				t.Errorf("the lease ends at %v, but the caller got %v", have.LeaseUntil, got.LeaseUntil)
			}
		})
	}
}

// Workers that take no locks read the same candidates, and each write is leased once.
func TestClaimsWithoutLocks(t *testing.T) {
	d := fresh(t)
	o := &postgres.Options{Dialect: "simulated"}
	ledgers := []*postgres.Ledger{d.open(o), d.open(o)}
	const writes = 60
	for i := range writes {
		must(t, enqueueTo(t, ledgers[0], postgres.Outbox{Quiet: true}, true, asked(fmt.Sprint("w", i))))
	}
	var mu sync.Mutex
	leased := make(map[ledger.ID]int)
	var wg sync.WaitGroup
	deadline := time.Now().Add(30 * time.Second)
	for i := range 6 {
		wg.Go(func() {
			for time.Now().Before(deadline) {
				recs, err := ledgers[i%2].Claim(t.Context(), ledger.Claim{Owner: fmt.Sprint("worker", i), LeaseFor: time.Hour, Limit: 10})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, rec := range recs {
					leased[rec.ID]++
				}
				done := len(leased) == writes
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	wg.Wait()
	if len(leased) != writes {
		t.Errorf("%d of %d writes were leased", len(leased), writes)
	}
	for id, times := range leased {
		if times > 1 {
			t.Errorf("write %s was leased %d times", id, times)
		}
	}
}

// A lease has ended when it has on each clock of the database.
func TestClocksApart(t *testing.T) {
	for name, by := range map[string]struct {
		id     bool
		reason string
	}{"claims": {false, "the write is one of those that are due"}, "a claim by its id": {true, "the write is named"}} {
		t.Run(name, func(t *testing.T) {
			d := fresh(t).movable()
			l := d.open(&postgres.Options{Dialect: "an hour apart"})
			rec, _, err := l.Reserve(t.Context(), reservation(t, asked("w")))
			must(t, err)
			claim := ledger.Claim{Owner: "other", LeaseFor: time.Minute, Limit: 1}
			if by.id {
				claim.Tenant, claim.ID = rec.Tenant, rec.ID
			}
			for _, step := range []struct {
				after time.Duration
				want  int
			}{{rec.LeaseFor + 30*time.Minute, 0}, {time.Hour, 1}} {
				d.move(step.after)
				recs, err := l.Claim(t.Context(), claim)
				must(t, err)
				if len(recs) != step.want {
					t.Errorf("%v after: %d were leased, want %d: %s", step.after, len(recs), step.want, by.reason)
				}
			}
		})
	}
}

// A ledger is refused in a database that lacks what it rests on, or is not known.
func TestDialects(t *testing.T) {
	for name, c := range map[string]struct{ named, version, want string }{
		"PostgreSQL":             {"", "PostgreSQL 15.14 on x86_64-pc-linux-gnu", "postgres"},
		"CockroachDB":            {"", "CockroachDB CCL v25.2.0 (x86_64-pc-linux-gnu)", "cockroachdb"},
		"YugabyteDB":             {"", "PostgreSQL 15.12-YB-2025.2.0.0-b0 on x86_64-pc-linux-gnu", "yugabytedb"},
		"named":                  {"cockroachdb", "PostgreSQL 15.14", "cockroachdb"},
		"named as another":       {"postgres", "CockroachDB CCL v25.2.0", "its dialect is cockroachdb, not postgres"},
		"no name of one":         {"oracle", "PostgreSQL 15.14", `"oracle" is not known; want one of postgres, cockroachdb, yugabytedb`},
		"partial unique indexes": {"spanner", "PostgreSQL 14.1", "spanner cannot hold a ledger: it lacks partial unique indexes"},
		"and another one":        {"aurora-dsql", "PostgreSQL 16", "aurora-dsql cannot hold a ledger: it lacks partial unique indexes"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := postgres.DialectOf(c.named, c.version)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	d := fresh(t)
	d.open(nil)
	d.exec("CREATE SEQUENCE ledger_entries_n_seq CACHE 20") // of another application
	rows, err := d.open(nil).Pool().Query(t.Context(), "SELECT sequencename::text FROM pg_sequences WHERE cache_size = 1")
	must(t, err)
	sequences, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	if len(sequences) != 5 {
		t.Errorf("sequences of the ledger: %q", sequences)
	}
	for _, s := range sequences {
		d.exec("ALTER SEQUENCE " + s + " CACHE 20")
		if _, err := postgres.Open(t.Context(), d.dsn(), nil); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "CACHE 1") {
			t.Errorf("%s gives numbers in advance: error %v, want one with the remedy", s, err)
		}
		d.exec("ALTER SEQUENCE " + s + " CACHE 1")
	}
	if l := d.open(&postgres.Options{Dialect: "cockroachdb"}); !l.AsksForStandby() {
		t.Error("PostgreSQL under a wrong name is not asked whether it is a standby, or commits durably")
	}
	if _, err := postgres.Open(t.Context(), d.dsn(), &postgres.Options{Dialect: "spanner"}); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a dialect without what is needed: error %v", err)
	}
}

// In PostgreSQL itself any statement, and any commit, fails with 40001 every now and then: callers
// do not notice.
func TestSerializationFailures(t *testing.T) {
	d := fresh(t)
	l, err := postgres.Open(t.Context(), (&remote{serialization: 0.1}).through(t, d), nil)
	must(t, err)
	defer l.Close()
	d.exec(`CREATE SEQUENCE times;
		CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF hashint8(nextval('times')) % 6 = 0 THEN RAISE 'not serializable' USING ERRCODE = '40001'; END IF; RETURN NULL; END $$;
		CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON ledger_writes FOR EACH STATEMENT EXECUTE FUNCTION fail();
		CREATE CONSTRAINT TRIGGER fail_late AFTER INSERT OR UPDATE ON ledger_writes DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail();
		CREATE CONSTRAINT TRIGGER fail_late AFTER INSERT OR UPDATE ON ledger_documents DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()`)
	for i := range 5 {
		first, fresh, err := l.Reserve(t.Context(), reservation(t, about(fmt.Sprint("r", i), 1)))
		if err != nil || !fresh {
			t.Fatalf("reserve: fresh %t, error %v", fresh, err)
		}
		if _, fresh, err = l.Reserve(t.Context(), reservation(t, about(fmt.Sprint("r", i), 2))); err != nil || !fresh {
			t.Fatalf("reserve behind it: fresh %t, error %v", fresh, err)
		}
		if _, err := l.Append(t.Context(), first.ID, first.Fence, whole[1:]...); err != nil {
			t.Fatalf("append: %v", err)
		}
	}
	rec, _, err := l.Reserve(t.Context(), reservation(t, asked("last")))
	must(t, err)
	for name, call := range calls(t, l, rec) {
		if err := call(); err != nil && name != "absent" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A change that the database never accepts is tried a hundred times, and not a hundred times for each
// of them.
func TestLastingSerializationFailure(t *testing.T) {
	d := fresh(t)
	l := d.open(&postgres.Options{Dialect: "simulated"})
	note, err := l.SetNote(t.Context(), ledger.Note{Name: "a", Value: []byte("1")})
	must(t, err)
	d.exec(`CREATE SEQUENCE times;
		CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('times'); RAISE 'not serializable' USING ERRCODE = '40001'; END $$;
		CREATE TRIGGER fail BEFORE UPDATE ON ledger_notes FOR EACH STATEMENT EXECUTE FUNCTION fail()`)
	_, err = l.SetNote(t.Context(), note)
	var tries int
	must(t, l.Pool().QueryRow(t.Context(), "SELECT last_value FROM times").Scan(&tries))
	if !errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrUnsure) || tries < 2 || tries > 110 {
		t.Errorf("error %v after %d tries", err, tries)
	}
}
