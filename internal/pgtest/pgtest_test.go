//go:build unix

package pgtest_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/internal/pgtest"
)

func count(t *testing.T, s *pgtest.Server) (n int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	if err := c.QueryRow(t.Context(), "SELECT count(*) FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestServer(t *testing.T) {
	began := time.Now()
	s := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"application_name": "it's"}})
	t.Logf("started after %v", time.Since(began))
	must(t, s.Exec("postgres", "CREATE TABLE t AS SELECT 1 AS n; INSERT INTO t VALUES (2)"))
	must(t, s.Restart())
	if n := count(t, s); n != 2 {
		t.Errorf("%d rows after a restart, want 2", n)
	}
	must(t, s.Exec("postgres", "INSERT INTO t VALUES (3)"))
	must(t, s.Kill())
	if err := s.Exec("postgres", "SELECT 1"); err == nil {
		t.Error("a killed server answers")
	}
	must(t, s.Recover())
	if n := count(t, s); n != 3 {
		t.Errorf("%d rows after SIGKILL, want 3: fsync is on", n)
	}
	one, err := s.CreateDatabase()
	must(t, err)
	two, err := s.CreateDatabase()
	must(t, err)
	if one == two {
		t.Errorf("two databases of the name %q", one)
	}
}

func TestStandby(t *testing.T) {
	s := pgtest.Start(t, pgtest.Options{})
	must(t, s.Exec("postgres", "CREATE TABLE t (n int)"))
	standby, err := s.Standby(pgtest.StandbyOptions{})
	must(t, err)
	must(t, s.Exec("postgres", "INSERT INTO t VALUES (1)"))
	must(t, standby.CaughtUp(s))
	if n := count(t, standby); n != 1 {
		t.Errorf("%d rows on a standby that caught up, want 1", n)
	}
	must(t, standby.Pause())
	must(t, s.Exec("postgres", "INSERT INTO t VALUES (2)"))
	if n := count(t, standby); n != 1 {
		t.Errorf("%d rows on a paused standby, want 1", n)
	}
	if err := standby.Exec("postgres", "INSERT INTO t VALUES (3)"); err == nil {
		t.Error("a standby takes a write")
	}
	must(t, standby.Resume())
	must(t, standby.CaughtUp(s))
	if n := count(t, standby); n != 2 {
		t.Errorf("%d rows after it went on, want 2", n)
	}
	must(t, standby.Promote())
	must(t, standby.Exec("postgres", "INSERT INTO t VALUES (3)"))
}

// fake is a test that ended.
type fake struct{ skipped, failed string }

func (*fake) Helper()                       {}
func (*fake) Cleanup(func())                {}
func (f *fake) Errorf(s string, _ ...any)   { f.failed = s }
func (f *fake) Fatalf(s string, _ ...any)   { f.failed = s }
func (f *fake) Skipf(s string, args ...any) { f.skipped = args[0].(error).Error() + s }

func TestNeed(t *testing.T) {
	for name, c := range map[string]struct {
		strict          string
		err             error
		skipped, failed bool
		reason          string
	}{
		"there":            {"1", nil, false, false, "nothing is wrong"},
		"missing":          {"", pgtest.ErrMissing, true, false, "a machine without PostgreSQL can run the rest"},
		"missing, strict":  {"1", pgtest.ErrMissing, false, true, "nothing may be left out in silence"},
		"broken":           {"", os.ErrPermission, false, true, "a server that does not start is no missing one"},
		"missing, not one": {"0", pgtest.ErrMissing, true, false, "only 1 is strict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("READBACK_STRICT", c.strict)
			var f fake
			pgtest.Need(&f, c.err)
			if (f.skipped != "") != c.skipped || (f.failed != "") != c.failed {
				t.Errorf("skipped %q, failed %q: %s", f.skipped, f.failed, c.reason)
			}
			if c.skipped && !strings.Contains(f.skipped, "postgresql") {
				t.Errorf("skipped with %q, want the name of the package to install", f.skipped)
			}
		})
	}
}

// TestMain runs as the process that dies with a server open, where the environment says so.
func TestMain(m *testing.M) {
	if os.Getenv("PGTEST_DIES") == "" {
		os.Exit(m.Run())
	}
	s, err := pgtest.Open(pgtest.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Addr())
	select {} // until it is killed
}

// TestDies: a test process that is killed leaves neither a server nor a folder.
func TestDies(t *testing.T) {
	pgtest.Start(t, pgtest.Options{}) // or the test is skipped
	folder := t.TempDir()
	must(t, os.Chmod(filepath.Dir(folder), 0o755)) // the server runs as another user
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "PGTEST_DIES=1", "TMPDIR="+folder)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	address, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	address = strings.TrimSpace(address)
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	for end := time.Now().Add(30 * time.Second); ; <-time.After(20 * time.Millisecond) {
		left, err := os.ReadDir(folder)
		must(t, err)
		c, err := net.Dial("tcp4", address)
		if err == nil {
			_ = c.Close()
		}
		if err != nil && len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left are %v, and the server answers: %t", left, err == nil)
		}
	}
}
