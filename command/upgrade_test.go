package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
)

// earlier is the last commit whose PostgreSQL ledger has version 1. Until there is a release it is used
// in place of the release before.
const earlier = "2de463f6a09c390b5a4b345c0c29cf7b6696d79b"

// earlierProgram builds the program as it was then.
func earlierProgram(t *testing.T) string {
	t.Helper()
	if given := os.Getenv("READBACK_EARLIER"); given != "" { // a release that was downloaded
		return given
	}
	git := func(args ...string) error {
		out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "git", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	if err := git("cat-file", "-e", earlier+"^{commit}"); err != nil { // a shallow clone, or no clone
		need.Have(t, fmt.Errorf("the earlier program: %w: fetch the whole history, or name a built one in READBACK_EARLIER: %w", need.ErrMissing, err))
	}
	tree := filepath.Join(t.TempDir(), "tree")
	if err := git("worktree", "add", "--detach", "--force", tree, earlier); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := git("worktree", "remove", "--force", tree); err != nil {
			t.Error(err)
		}
	})
	exe := filepath.Join(t.TempDir(), "readback")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", exe, "./cmd/readback")
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return exe
}

// Servers of an earlier and of this version work side by side on one ledger, while the newer one
// migrates it and the earlier one is replaced: no caller sees an error, and each write is made once.
func TestUpgradeWithoutDowntime(t *testing.T) {
	need.Long(t)
	exe := earlierProgram(t)
	o := orders.Plain.Options()
	o.Faults = []orders.Fault{{Kind: orders.LostAnswer, Chance: 0.1}}
	p, _ := newPlaceInPostgres(t, o)
	was := func(args ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), exe, append([]string{"--config", p.config}, args...)...)
	}
	token, err := was("token", "create", "--role", "agent", "--name", "agent-1").Output() // with a ledger of version 1
	if err != nil {
		t.Fatal(err)
	}
	who := &http.Client{Transport: bearer(strings.TrimSpace(string(token))), Timeout: 2 * time.Minute}
	serve := []string{"serve", "--listen", "127.0.0.1:0", "--grace", "20s"}
	old, endOld := p.served(was(serve...))

	var asked atomic.Int64
	var target atomic.Pointer[[]string]
	target.Store(&[]string{old})
	stop := make(chan struct{})
	var callers sync.WaitGroup
	defer callers.Wait()
	end := sync.OnceFunc(func() { close(stop) })
	defer end()
	for range 8 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				n := asked.Add(1)
				to := *target.Load()
				body := order(fmt.Sprintf("A-%d", n), "")
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to[int(n)%len(to)]+"/v1/writes", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Prefer", "wait=60")
				answer, err := who.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				text, _ := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if answer.StatusCode != http.StatusOK || !strings.Contains(string(text), `"verified"`) {
					t.Errorf("A-%d: %s: %s", n, answer.Status, text)
				}
			}
		})
	}
	until := func(more int64) {
		t.Helper()
		want := asked.Load() + more
		eventually(t, "more writes", func() bool { return asked.Load() >= want })
	}
	until(50)
	now, endNow := p.served(program(t, append([]string{"--config", p.config}, serve...)...)) // which migrates
	until(50)
	target.Store(&[]string{old, now})
	until(100)
	target.Store(&[]string{now})
	until(20) // nothing is asked of the earlier one any more
	if code := endOld(); code != 0 {
		t.Errorf("the earlier server ended with %d", code)
	}
	until(50)
	end()
	callers.Wait()
	if code := endNow(); code != 0 {
		t.Errorf("the server ended with %d", code)
	}

	made := make(map[string]int)
	for _, e := range p.world.Effects() {
		if e.Applied() {
			made[e.OrderID]++
		}
	}
	for id, n := range made {
		if n != 1 {
			t.Errorf("%s was made %d times", id, n)
		}
	}
	if n := int(asked.Load()); len(made) != n {
		t.Errorf("%d orders of %d", len(made), n)
	}
}
