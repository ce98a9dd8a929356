package sql_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pgtest"
)

func (d *bench) request(w intent.WriteType, n int, before *connectors.Observation) connectors.Request {
	in := d.order(w, n)
	in.Tenant, in.Destination, in.Workflow, in.Tool, in.Call = "t", "books", "run"+d.run, string(w), n
	return connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1, Before: before}
}

func (d *bench) query(w intent.WriteType, n int) connectors.Query {
	r := d.request(w, n, nil)
	return connectors.Query{Intent: r.Intent, Stamp: r.Stamp}
}

func (d *bench) wrote(w intent.WriteType, n int, before *connectors.Observation) connectors.Receipt {
	d.t.Helper()
	receipt, err := d.Write(d.t.Context(), d.request(w, n, before))
	if err != nil {
		d.t.Fatal(err)
	}
	return receipt
}

func fate(t *testing.T, err error, want connectors.Fate, why string) {
	t.Helper()
	if got := connectors.FateOf(err); got != want {
		t.Errorf("the write says %q (%v), want %q: %s", got, err, want, why)
	}
}

// TestLostCommit: the answer to COMMIT is lost, both ways; a loss before COMMIT means not
// applied, which is known.
func TestLostCommit(t *testing.T) {
	for name, c := range map[string]struct {
		fault  string
		fate   connectors.Fate
		rows   int
		reason string
	}{
		"after the server has it":  {wireLost, connectors.FateUnknown, 1, "it was committed and the answer was lost"},
		"before the server has it": {wireDropped, connectors.FateUnknown, 0, "from here that is the same"},
		"ROLLBACK is the answer":   {wireRolled, connectors.FateRefused, 0, "so does PostgreSQL answer COMMIT when the transaction had failed"},
		"at the statement":         {wireStatement, connectors.FateNotSent, 0, "a transaction without COMMIT has no effect"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newBench(t, plainTable(), false, nil)
			d.writes.arm(c.fault)
			_, err := d.Write(t.Context(), d.request(intent.Create, 1, nil))
			fate(t, err, c.fate, c.reason)
			if o, err := d.Read(t.Context(), d.query(intent.Create, 1)); err != nil || len(o.Records) != c.rows || o.Strength != connectors.Strong {
				t.Errorf("the read finds %d rows, %q (%v); want %d, strong: %s", len(o.Records), o.Strength, err, c.rows, c.reason)
			}
		})
	}
}

// TestLateCommitIsBounded: a COMMIT that is delayed for longer than the server waits fails. The
// declared horizon follows from that.
func TestLateCommitIsBounded(t *testing.T) {
	d := newBench(t, plainTable(), false, func(o *sql.Options) { o.SendTimeout = 3 * time.Second })
	if h, ok := d.Profiles()["order"].Horizon.Declared(); !ok || h < 3*time.Second {
		t.Errorf("horizon %v, %t; want at least as long as the server waits", h, ok)
	}
	d.writes.held = make(chan struct{})
	d.writes.arm(wireLate)
	_, err := d.Write(t.Context(), d.request(intent.Create, 1, nil))
	fate(t, err, connectors.FateUnknown, "no answer came")
	d.eventually("the server ends the transaction", "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = $1 AND state LIKE 'idle in transaction%'", d.app())
	close(d.writes.held)
	d.eventually("the proxy lets go", "SELECT true")
	if n := len(d.records(d.key(1))); n != 0 {
		t.Errorf("%d rows after the server had given the transaction up, want 0", n)
	}
}

func (d *bench) eventually(what, q string, args ...any) {
	d.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		var done bool
		if err := d.c.admin.QueryRow(context.Background(), q, args...).Scan(&done); err != nil {
			d.t.Fatal(err)
		}
		if done {
			return
		}
		if time.Now().After(end) {
			d.t.Fatalf("never: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// TestFalseUnique: a key declared as unique that is not cannot make a second
// row; the server refuses the first.
func TestFalseUnique(t *testing.T) {
	table := plainTable()
	table.Unique = true
	d := newBench(t, table, false, nil)
	_, err := d.Write(t.Context(), d.request(intent.Create, 1, nil))
	fate(t, err, connectors.FateRefused, "ON CONFLICT finds no unique index")
	if n := len(d.records(d.key(1))); n != 0 {
		t.Errorf("%d rows, want 0", n)
	}
	if err := d.Probe(t.Context()); !errors.Is(err, sql.ErrTable) {
		t.Errorf("probe says %v, want ErrTable", err)
	}
}

// TestLockedRow: the send waits for a row that another actor has locked, and the server's answer
// comes before we give up.
func TestLockedRow(t *testing.T) {
	d := newBench(t, uniqueTable(), false, func(o *sql.Options) { o.SendTimeout = 4 * time.Second })
	d.wrote(intent.Create, 1, nil)
	tx, err := d.c.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "SELECT * FROM unique_orders WHERE order_id = $1 FOR UPDATE", d.key(1)["order_id"]); err != nil {
		t.Fatal(err)
	}
	_, err = d.Write(t.Context(), d.request(intent.Update, 1, nil))
	var e *connectors.Error
	if fate(t, err, connectors.FateNotSent, "lock_timeout"); !errors.As(err, &e) || e.Code != "55P03" {
		t.Errorf("error %v, want the code 55P03", err)
	}
}

// TestDurable: what was verified outlives SIGKILL of the server, also where the
// role's commits need not.
func TestDurable(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"wal_writer_delay": "10s"}})
	if err := s.Exec("postgres", "CREATE ROLE writer LOGIN; ALTER ROLE writer SET synchronous_commit = off; CREATE TABLE t (k text PRIMARY KEY, v text, stamp text); GRANT ALL ON t TO writer"); err != nil {
		t.Fatal(err)
	}
	open := func() *sql.Connector {
		c, err := sql.New(sql.Options{DSN: "host=127.0.0.1 sslmode=disable dbname=postgres user=writer port=" + s.Addr()[len("127.0.0.1:"):],
			Tables: map[string]sql.Table{"t": {Name: "t", Columns: []sql.Column{{Name: "k"}, {Name: "v"}}, Key: []string{"k"}, Unique: true, Stamp: "stamp"}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	in := intent.WriteIntent{Kind: "t", Write: intent.Create, Key: intent.Fields{"k": "1"}, Expect: intent.Fields{"v": "kept"}}
	if _, err := open().Write(t.Context(), connectors.Request{Intent: in, Stamp: "rb-1"}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Kill(), s.Recover()); err != nil {
		t.Fatal(err)
	}
	if o, err := open().Read(t.Context(), connectors.Query{Intent: in}); err != nil || len(o.Records) != 1 || o.Strength != connectors.Strong {
		t.Errorf("after SIGKILL %d rows, %q (%v); want the one that was acknowledged", len(o.Records), o.Strength, err)
	}
}

// Whatever the role has, our commits wait for the disk and for standbys that are
// there: a commit that is acknowledged without is lost at a failover.
func TestCommitsOfEveryRoleAreDurable(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	for _, has := range []string{"off", "local", "remote_write", "remote_apply"} {
		t.Run(has, func(t *testing.T) {
			if err := s.Exec("postgres", fmt.Sprintf(`CREATE ROLE w_%[1]s LOGIN; ALTER ROLE w_%[1]s SET synchronous_commit = %[1]s;
				CREATE TABLE t_%[1]s (k text PRIMARY KEY, v text, stamp text, made text DEFAULT current_setting('synchronous_commit')); GRANT ALL ON t_%[1]s TO w_%[1]s`, has)); err != nil {
				t.Fatal(err)
			}
			c, err := sql.New(sql.Options{DSN: "host=127.0.0.1 sslmode=disable dbname=postgres user=w_" + has + " port=" + s.Addr()[len("127.0.0.1:"):],
				Tables: map[string]sql.Table{"t": {Name: "t_" + has, Columns: []sql.Column{{Name: "k"}, {Name: "v"}, {Name: "made"}}, Key: []string{"k"}, Unique: true, Stamp: "stamp"}}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			in := intent.WriteIntent{Kind: "t", Write: intent.Create, Key: intent.Fields{"k": "1"}, Expect: intent.Fields{"v": "x"}}
			if _, err := c.Write(t.Context(), connectors.Request{Intent: in, Stamp: "rb-1"}); err != nil {
				t.Fatal(err)
			}
			o, err := c.Read(t.Context(), connectors.Query{Intent: in})
			if err != nil || len(o.Records) != 1 {
				t.Fatalf("%v, %v", o.Records, err)
			}
			if made := o.Records[0].Fields["made"]; made != "on" && made != "remote_apply" {
				t.Errorf("committed with synchronous_commit = %v", made)
			}
		})
	}
}
