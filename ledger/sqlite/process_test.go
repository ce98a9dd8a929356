package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/sqlite"
)

// These tests run the test binary again as other processes. Environment variables name what a
// process does, and its arguments.
const (
	envRole = "READBACK_TEST_ROLE"
	envPath = "READBACK_TEST_PATH"
	envName = "READBACK_TEST_NAME"
)

var roles = map[string]func(path, name string) error{"reserver": reserver, "storm": storm}

func TestMain(m *testing.M) {
	role, ok := roles[os.Getenv(envRole)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := role(os.Getenv(envPath), os.Getenv(envName)); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// process is this test binary in another role.
func process(t *testing.T, role, path, name string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envRole+"="+role, envPath+"="+path, envName+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

const (
	keys     = 40 // that every process wants
	inflight = 16 // goroutines of a process
)

// reserver waits for the start, then tries to reserve every key from many goroutines, and prints
// which it got.
func reserver(path, name string) error {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	l, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	for g := range inflight {
		wg.Go(func() {
			for i := range keys {
				key := (i*7 + g) % keys // each in another order
				rec, err := ledger.NewRecord(asked(fmt.Sprint("w", key)))
				if err == nil {
					var fresh bool
					_, fresh, err = l.Reserve(context.Background(), ledger.Reservation{Record: rec, Owner: name, LeaseFor: time.Minute})
					if fresh {
						fmt.Println("fresh", key)
					}
				}
				if err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed
}

// Several processes start on a file that does not exist yet, and want the same writes: each write
// gets one owner.
func TestProcessesReserve(t *testing.T) {
	path := file(t)
	var outs []io.Reader
	var cmds []*exec.Cmd
	var starts []io.WriteCloser
	for i := range 3 {
		cmd := process(t, "reserver", path, fmt.Sprint("process ", i))
		start, err := cmd.StdinPipe()
		must(t, err)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		cmds, starts, outs = append(cmds, cmd), append(starts, start), append(outs, out)
	}
	for _, start := range starts {
		_, err := fmt.Fprintln(start, "go")
		must(t, err)
	}
	owners := map[string]int{}
	for i, out := range outs {
		text, err := io.ReadAll(out)
		must(t, err)
		if err := cmds[i].Wait(); err != nil {
			t.Errorf("process %d: %v: %s", i, err, text)
		}
		for line := range strings.Lines(string(text)) {
			owners[strings.TrimSpace(line)]++
		}
	}
	for key := range keys {
		if n := owners[fmt.Sprint("fresh ", key)]; n != 1 {
			t.Errorf("write %d has %d owners", key, n)
		}
	}
	l := open(t, path, nil)
	recs, err := l.List(context.Background(), ledger.Filter{Tenant: "acme"})
	if err != nil || len(recs) != keys {
		t.Errorf("%d writes, error %v; want %d", len(recs), err, keys)
	}
}

// storm reserves and settles until it is killed, and prints its results.
func storm(path, name string) error {
	l, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for g := range inflight {
		wg.Go(func() {
			for i := 0; ; i++ {
				w := fmt.Sprint(name, "-", g, "-", i)
				rec, err := ledger.NewRecord(asked(w))
				if err == nil {
					rec, _, err = l.Reserve(context.Background(), ledger.Reservation{
						Record: rec, Owner: name, LeaseFor: time.Minute, Events: []ledger.Event{{Kind: ledger.EvAnnounced}}})
				}
				if err != nil {
					fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
					return
				}
				fmt.Println("reserved", w)
				if i%3 == 2 { // some are left in flight
					continue
				}
				_, err = l.Append(context.Background(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvSent},
					ledger.Event{Kind: ledger.EvRead, Evidence: []byte(`{"seen":true}`)}, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified})
				if err != nil {
					fmt.Println("error", err)
					return
				}
				fmt.Println("settled", w)
			}
		})
	}
	wg.Wait()
	return nil
}

// Processes are killed during their work, again and again. Everything reported as done exists,
// and nothing exists by half.
func TestProcessesKilled(t *testing.T) {
	path := file(t)
	reported := map[string]string{} // in all rounds
	for round := range 3 {
		maps.Copy(reported, untilKilled(t, "storm", path, fmt.Sprint("r", round, "p"), 150, 250))
		holds(t, path, reported)
	}
}

// untilKilled runs one process for each limit, kills it once it has made more reports than that, and
// returns the last report about each name.
func untilKilled(t *testing.T, role, path, prefix string, limits ...int) map[string]string {
	t.Helper()
	reported := map[string]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, limit := range limits {
		cmd := process(t, role, path, fmt.Sprint(prefix, i))
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		wg.Go(func() {
			lines := bufio.NewScanner(out)
			for n := 0; lines.Scan(); n++ { // also what was printed before the kill and read after it
				word, name, _ := strings.Cut(lines.Text(), " ")
				if word == "error" {
					t.Errorf("%s", lines.Text())
				}
				mu.Lock()
				reported[name] = word
				mu.Unlock()
				if n == limit {
					_ = cmd.Process.Kill()
				}
			}
			_ = cmd.Wait() // it was killed
		})
	}
	wg.Wait()
	return reported
}

// holds checks whether a ledger has everything that was reported, and whole.
func holds(t *testing.T, path string, reported map[string]string) {
	t.Helper()
	l, err := sqlite.Open(context.Background(), path, nil)
	must(t, err)
	defer l.Close()
	if check, err := l.Read("PRAGMA integrity_check"); err != nil || len(check) != 1 || check[0] != "ok" {
		t.Errorf("integrity: %v, error %v", check, err)
	}
	publishesAll(t, l)
	found := map[string]ledger.State{}
	f := ledger.Filter{Tenant: "acme", Limit: 1000}
	for {
		page, err := l.List(context.Background(), f)
		must(t, err)
		if len(page) == 0 {
			break
		}
		for _, rec := range page {
			found[rec.Workflow] = rec.State
			whole(t, l, rec)
		}
		f.Before = page[len(page)-1].ID
	}
	for workflow, word := range reported {
		state, ok := found[workflow]
		if !ok || (word == "settled" && state != ledger.Settled) {
			t.Errorf("%s was %s, now there: %v, %s", workflow, word, ok, state)
		}
	}
	t.Logf("%d writes, %d of them reported", len(found), len(reported))
}

// whole checks whether a record follows from its events.
func whole(t *testing.T, l *sqlite.Ledger, rec ledger.Record) {
	t.Helper()
	events, err := l.Events(context.Background(), rec.Tenant, rec.ID)
	must(t, err)
	again, err := ledgertest.Replay(rec, events)
	must(t, err)
	lease := cmpopts.IgnoreFields(ledger.Record{}, "Owner", "LeaseUntil", "LeaseFor", "Fence", "Now")
	if diff := cmp.Diff(again, rec, lease); diff != "" {
		t.Errorf("a record does not follow from its events (-events +record):\n%s", diff)
	}
}
