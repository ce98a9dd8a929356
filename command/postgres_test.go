package command

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
)

// postgresServer is the PostgreSQL of all tests of this package, each of which has a
// database of its own.
var postgresServer struct {
	once sync.Once
	pg   *pgtest.Server
	err  error
}

// closeServer ends it after the last test.
func closeServer() {
	if postgresServer.pg == nil {
		return
	}
	if err := postgresServer.pg.Close(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
	}
}

// newPlaceInPostgres is a place whose ledger is a database, with the name of
// that.
func newPlaceInPostgres(t *testing.T, o orders.Options) (*place, string) {
	t.Helper()
	postgresServer.once.Do(func() { postgresServer.pg, postgresServer.err = pgtest.Open(pgtest.Options{}) })
	pgtest.Need(t, postgresServer.err)
	return newPlaceOn(t, postgresServer.pg, o)
}

// newPlaceOn is the same on a server of its own.
func newPlaceOn(t *testing.T, pg *pgtest.Server, o orders.Options) (*place, string) {
	t.Helper()
	name, err := pg.CreateDatabase()
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, o)
	p.database("postgres://postgres@" + pg.Addr() + "/" + name)
	return p, name
}

// database makes the ledger a database.
func (p *place) database(url string) {
	p.t.Helper()
	p.variable = map[string]string{"LEDGER": url}
	p.t.Setenv("LEDGER", url) // for processes
	p.write("readback.yaml", fmt.Sprintf("ledger: {type: postgres, url_env: LEDGER}\ntenant: acme\ndestinations:\n  orders:\n    type: simulated\n    url: %s\n    class: plain\n", p.url))
}

// What the server acknowledges with these settings, a crash or a failover can lose.
func TestDoctorFindsWeakSettingsOfTheDatabase(t *testing.T) {
	for setting, want := range map[string]string{
		"fsync":            "failed durability a crash can lose what the database acknowledged: fsync = off",
		"full_page_writes": "failed durability a crash can lose what the database acknowledged: full_page_writes = off",
	} {
		t.Run(setting, func(t *testing.T) {
			pg, err := pgtest.Open(pgtest.Options{Settings: map[string]string{setting: "off"}})
			pgtest.Need(t, err)
			t.Cleanup(func() { _ = pg.Close() })
			p, _ := newPlaceOn(t, pg, orders.Plain.Options())
			p.submit(exitVerified, order("A-1", ""))
			says(t, p.want(exitAttention, p.run("doctor")), want, "1 of ")
		})
	}
}

// An asynchronous standby lacks what was acknowledged last when it takes over; a
// synchronous one does not.
func TestDoctorWarnsOfAsynchronousStandbys(t *testing.T) {
	pg, err := pgtest.Open(pgtest.Options{})
	pgtest.Need(t, err)
	t.Cleanup(func() { _ = pg.Close() })
	standby, err := pg.Standby(pgtest.StandbyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := standby.CaughtUp(pg); err != nil {
		t.Fatal(err)
	}
	p, _ := newPlaceOn(t, pg, orders.Plain.Options())
	p.submit(exitVerified, order("A-1", ""))
	says(t, p.want(0, p.run("doctor")), "durability", "a failover can lose what the database acknowledged: synchronous_standby_names is empty, replication connections = 1")
	if err := errors.Join(pg.Exec("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'"), pg.Exec("postgres", "SELECT pg_reload_conf()")); err != nil {
		t.Fatal(err)
	}
	r := p.want(0, p.run("doctor"))
	for asked := 1; asked < 200 && strings.Contains(r.out, "can lose"); asked++ { // the server reloads its file with a delay
		r = p.want(0, p.run("doctor"))
	}
	says(t, r, "ok durability", "no setting of the database weakens it")
}

// What a strong read of a destination showed is lost with its primary, unless a
// recheck finds that.
func TestDoctorWarnsOfDestinationsThatCanLoseWrites(t *testing.T) {
	pg, err := pgtest.Open(pgtest.Options{})
	pgtest.Need(t, err)
	t.Cleanup(func() { _ = pg.Close() })
	standby, err := pg.Standby(pgtest.StandbyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := standby.CaughtUp(pg); err != nil {
		t.Fatal(err)
	}
	if err := pg.Exec("postgres", "CREATE TABLE orders (number text PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, orders.Plain.Options())
	for recheck, warned := range map[string]bool{"": true, "    recheck: 10m\n": false} {
		p.write("readback.yaml", "ledger: readback.db\ntenant: acme\ndestinations:\n  shop:\n    type: postgresql\n    dsn: postgres://postgres@"+pg.Addr()+"/postgres\n"+
			"    tables: {order: {name: orders, columns: {number: text}, key: [number], unique: true}}\n"+recheck)
		r := p.run("doctor")
		says(t, r, "destination shop", "reached, and the login works")
		if got := strings.Contains(r.out, "a verified write can be lost"); got != warned {
			t.Errorf("recheck %q: warned: %v, want %v\n%s", recheck, got, warned, r.out)
		}
	}
}

// execute runs SQL bypassing the program.
func execute(t *testing.T, database, sql string) {
	t.Helper()
	if err := postgresServer.pg.Exec(database, sql); err != nil {
		t.Fatal(err)
	}
}

func TestEveryCommandOnPostgres(t *testing.T) {
	p, _ := newPlaceInPostgres(t, orders.Plain.Options())
	write := id(t, p.submit(exitVerified, order("A-1", "")))
	p.submit(exitVerified, order("A-1", "")) // the same
	p.effects(1, "A-1")
	says(t, p.want(0, p.run("show", write)), "VERIFIED create order", write)
	says(t, p.want(0, p.run("list")), write[:len("wr_")+8], "settled (verified)")
	says(t, p.want(0, p.run("review")), "Nothing waits for a reviewer.")
	says(t, p.want(0, p.run("resume")), "Everything is settled.")
	says(t, p.want(0, p.run("doctor")), "can be read and written", "which is what this program knows", "ok durability", "Everything is in order.")
	says(t, p.want(0, p.run("status")), "Nothing needs attention.", "PostgreSQL, as $LEDGER says", "version")
	says(t, p.want(0, p.run("prune", "--keep", "1h", "--remember", "30d")), "made 0 settled writes tombstones and forgot 0 tombstones.")
	p.want(0, p.run("stop", "--destination", "orders", "--by", "ann", "--reason", "bad batch"))
	queued := id(t, p.submit(exitInProgress, order("A-2", ""), "--wait", "0"))
	says(t, p.want(exitAttention, p.run("status")), `Stopped: destination "orders", by ann`, "bad batch")
	p.want(0, p.run("release", "--destination", "orders", "--by", "bob", "--reason", "looked at"))
	p.want(exitVerified, p.run("resume", queued))
	p.effects(1, "A-2")
	p.want(0, p.run("resume", "--reset-clock"))
}

func TestPostgresThatCannotBeUsed(t *testing.T) {
	const word = "hunter2"
	tests := map[string]struct {
		reason string
		spoil  func(t *testing.T, p *place, name string)
		code   int
		want   string
	}{
		"unreachable": {"no server is there", func(_ *testing.T, p *place, _ string) {
			p.database("postgres://app:" + word + "@127.0.0.1:1/x?sslmode=disable")
		}, exitUnavailable, "ledger unavailable"},
		"no URL": {"a word that may be a secret", func(_ *testing.T, p *place, _ string) { p.database(word) },
			exitConfig, "ledger: "},
		"a broken URL": {"the driver would repeat it", func(_ *testing.T, p *place, _ string) {
			p.database("postgres://app:" + word + "@127.0.0.1:port/x")
		}, exitConfig, "ledger: "},
		"no TLS": {"everything that is asked for would be read on the way", func(_ *testing.T, p *place, _ string) {
			p.database("postgres://app:" + word + "@db.example.org/x")
		}, exitConfig, "may go to db.example.org without TLS"},
		"no database": {"misspelt", func(_ *testing.T, p *place, name string) {
			p.database("postgres://postgres:" + word + "@" + postgresServer.pg.Addr() + "/" + name + "x")
		}, exitUnavailable, "does not exist"},
		"read-only": {"a copy, or full", func(t *testing.T, _ *place, name string) {
			execute(t, "postgres", "ALTER DATABASE "+name+" SET default_transaction_read_only = on")
		}, exitUnavailable, "can only be read"},
		"newer": {"an older program does not know what it would spoil", func(t *testing.T, _ *place, name string) {
			execute(t, name, "UPDATE ledger_meta SET version = version + 1, compatible_from = version + 1")
		}, exitUnavailable, "ledger of a newer version"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, database := newPlaceInPostgres(t, orders.Plain.Options())
			p.want(0, p.run("list"))
			tt.spoil(t, p, database)
			for _, args := range [][]string{{"list"}, {"status"}, {"doctor"}, {"stop", "--all", "--reason", "x"}, {"prune", "--keep", "1h", "--remember", "30d"}, {"work"}, {"list", "--json"}} {
				r := p.want(tt.code, p.run(args...))
				says(t, r, tt.want)
				if strings.Contains(r.String(), word) {
					t.Errorf("%s: %v: the secret is shown:\n%s", tt.reason, args, r)
				}
			}
			r := p.submit(tt.code, order("A-1", ""))
			if strings.Contains(r.String(), word) {
				t.Errorf("%s: the secret is shown:\n%s", tt.reason, r)
			}
			p.calls(0)
		})
	}
}

var servedAt = regexp.MustCompile(`msg="metrics are served" address=(\S+)`)

// Workers as processes of their own: they do enqueued writes, serve metrics, and end on a
// signal with all work handed back.
func TestWorkerOnPostgres(t *testing.T) {
	p, name := newPlaceInPostgres(t, orders.Plain.Options())
	cmd, out, errs := p.process("", "work", "--verbose", "--metrics", "127.0.0.1:0", "--idle", "20ms")
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for i := range 20 {
		r := p.runIn(order(fmt.Sprintf("A-%d", i), ""), "submit", "-f", "-", "--enqueue")
		if r.code != exitInProgress && r.code != exitVerified { // the worker may be faster than the response
			t.Fatal(r)
		}
	}
	eventually(t, "the work", func() bool {
		return strings.Contains(p.want(0, p.run("resume")).out, "Everything is settled.")
	})
	for i := range 20 {
		p.effects(1, fmt.Sprintf("A-%d", i))
	}
	eventually(t, "the address", func() bool { return servedAt.MatchString(errs.String()) })
	base := "http://" + servedAt.FindStringSubmatch(errs.String())[1]
	if code, text := fetched(t, base+"/readyz"); code != http.StatusOK {
		t.Errorf("not ready: %d %s", code, text)
	}
	_, text := fetched(t, base+"/metrics")
	for _, want := range []string{"readback_survey_up 1", `readback_stops{scope="all"} 0`, "go_goroutines"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %s in\n%.2000s", want, text)
		}
	}
	if strings.Contains(text, "acme") || strings.Contains(text, name) {
		t.Error("the metrics name a tenant or the database")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	says(t, p.want(0, end(cmd, out, errs)), "msg=working", "msg=stopped")
}

func fetched(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// What is in hand when the signal comes is finished, or left to its lease when
// it lasts longer than the bound.
func TestWorkerOnPostgresWithASendInHand(t *testing.T) {
	for name, c := range map[string]struct {
		grace string
		let   bool
		code  int
		fate  string
		held  bool
	}{"finished": {"30s", true, 0, ledger.FateAnswered, false}, "left": {"100ms", false, exitFailed, ledger.FateUnknown, true}} {
		t.Run(name, func(t *testing.T) {
			g, asked, let := blockedPlace(t, orders.Plain.Options())
			p, _ := newPlaceInPostgres(t, orders.Plain.Options())
			p.url, p.world = g.url, g.world
			p.database(p.variable["LEDGER"])
			write := id(t, p.submit(exitInProgress, order("A-1", ""), "--enqueue"))
			cmd, out, errs := p.process("", "work", "--verbose", "--grace", c.grace)
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			<-asked
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if c.let {
				let()
			}
			p.want(c.code, end(cmd, out, errs))
			r := decode(t, p.want(0, p.run("show", "--json", write)))["record"].(map[string]any)
			fate, _ := r["last_fate"].(string)
			if _, held := r["owner"]; fate != c.fate || held != c.held {
				t.Errorf("fate %q, in somebody's hands %t; want %q, %t", fate, held, c.fate, c.held)
			}
			p.calls(1)
		})
	}
}

// A second signal ends a worker at once.
func TestSecondSignal(t *testing.T) {
	p, asked, _ := blockedPlace(t, orders.Plain.Options())
	p.submit(exitInProgress, order("A-1", ""), "--enqueue")
	cmd, out, errs := p.process("", "work", "--verbose", "--grace", "10m")
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	<-asked
	ended := make(chan result, 1)
	go func() { ended <- end(cmd, out, errs) }()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case r := <-ended:
			if r.code != -1 {
				t.Errorf("%s", r)
			}
			return
		case <-tick.C:
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
}
