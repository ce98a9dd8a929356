package restate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/readback-go/readback/adapters/restate"
	"github.com/readback-go/readback/internal/adaptertest"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
)

// noting halts the worker around each change of a waiter.
type noting struct {
	ledger.Ledger
	w *adaptertest.Worker
}

func (l noting) SetNote(ctx context.Context, n ledger.Note) (set ledger.Note, err error) {
	if !strings.HasPrefix(n.Name, "restate/") {
		return l.Ledger.SetNote(ctx, n)
	}
	l.w.Around("note", func() { set, err = l.Ledger.SetNote(ctx, n) })
	return set, err
}

// waking halts the worker around each call of the ingress.
type waking struct{ w *adaptertest.Worker }

func (c waking) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	c.w.Around("wake-up", func() { resp, err = http.DefaultTransport.RoundTrip(r) })
	return resp, err
}

// worker serves the handlers, makes due writes, wakes handlers, and approves what is held, until the
// file of its parent exists.
func worker(ctx context.Context) error {
	w, err := adaptertest.NewWorker(ctx)
	if err != nil {
		return err
	}
	book := noting{w.Ledger, w}
	serving := sync.OnceFunc(func() { w.Halt("serving") })
	done := func() (bool, error) {
		serving()
		if _, err := os.Stat(os.Getenv("RESTATE_STOP")); err == nil {
			return true, nil
		}
		waiters, _, err := book.Notes(ctx, "restate/")
		for _, n := range waiters { // a reviewer decides while the handler waits
			w.Approve(ledger.ID(strings.Split(n.Name, "/")[1]))
		}
		return false, err
	}
	return w.Work(ctx, done,
		func(ctx context.Context) error {
			return serve(ctx, os.Getenv("RESTATE_AT"), restate.Writes{Engine: w.Engine, Ledger: book}, os.Getenv("RESTATE_PREFIX"), new(atomic.Int32))
		},
		func(ctx context.Context) error {
			return restate.Wake(ctx, book, os.Getenv("RESTATE_INGRESS"), &http.Client{Transport: waking{w}, Timeout: 10 * time.Second})
		})
}

// The worker, or Restate's server, is killed at each call of the worker: of two writes of a workflow,
// the second of which a reviewer approves, each is made once, and the workflow ends.
func TestKilled(t *testing.T) {
	need.Long(t)
	t.Run("worker", func(t *testing.T) {
		server, points := newServer(t), 0
		t.Run("undisturbed", func(t *testing.T) { points = killed(t, server, "", 0) })
		for n := 1; n <= points; n += need.OneIn(3) {
			t.Run(fmt.Sprint("point ", n), func(t *testing.T) { t.Parallel(); killed(t, server, "worker", n) })
		}
	})
	points := 0
	t.Run("undisturbed", func(t *testing.T) { points = killed(t, newServer(t), "", 0) })
	const servers = 4 // each is killed in one scene after the other
	for first := 1; first <= servers; first++ {
		t.Run(fmt.Sprint("server ", first), func(t *testing.T) {
			t.Parallel()
			server := newServer(t)
			for n := first; n <= points; n += servers * need.OneIn(3) {
				t.Run(fmt.Sprint("point ", n), func(t *testing.T) { killed(t, server, "server", n) })
			}
		})
	}
}

// killed runs one scene, in which one is killed at the nth point. It returns the number of points.
func killed(t *testing.T, server *restateServer, who string, nth int) (points int) {
	scene, prefix := adaptertest.NewScene(t), fmt.Sprintf("killed_%s%d_", who, nth)
	at, stop := fmt.Sprintf("127.0.0.1:%d", freePort(t)), filepath.Join(t.TempDir(), "stop")
	env := []string{"RESTATE_AT=" + at, "RESTATE_INGRESS=http://" + server.ingress, "RESTATE_STOP=" + stop, "RESTATE_PREFIX=" + prefix}
	result := make(chan string, 1)
	finish := func() {
		var got string
		err := errors.New("not called")
		for deadline := time.Now().Add(100 * time.Second); err != nil && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			// The connection ends with a server that is killed. A workflow that has begun is not begun again.
			if got, err = server.invoke(prefix+"checkout/run-1/run", `{"order_id": "A"}`, ""); err != nil {
				got, err = call(context.Background(), http.MethodGet, "http://"+server.ingress+"/restate/workflow/"+prefix+"checkout/run-1/attach", "", nil)
			}
		}
		if err := os.WriteFile(stop, nil, 0o600); err != nil {
			t.Error(err)
		}
		result <- fmt.Sprint(got, err)
	}
	begun := false
	point := scene.Run(t, "worker", env, func(n int, point string) bool {
		if points = n; !begun {
			begun = true
			server.register(at)
			go finish()
		}
		if n != nth || who == "worker" {
			return n == nth
		}
		t.Log("the server is killed", point)
		server.kill()
		server.start()
		return false
	})
	if point != "" {
		t.Log("the worker was killed", point)
		scene.Run(t, "worker", env, nil)
	}
	if got := <-result; got != `"both"<nil>` {
		t.Errorf("the workflow returned %s", got)
	}
	if sum := scene.World.Summary("A-charge", "A-held"); sum.Duplicates != 0 || len(sum.Lost) != 0 {
		t.Errorf("%+v", sum)
	}
	return points
}
