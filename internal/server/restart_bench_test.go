package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
)

// openWrites is how many writes a crash leaves announced: an hour's outage of a destination.
const openWrites = 100_000

// BenchmarkRestart starts a server on a ledger whose previous server died with many writes
// announced, beside one on an empty ledger. ready-ms is how long it takes until /readyz is 200,
// read-ms until the first write is read back, post-ms until the first new write is accepted.
func BenchmarkRestart(b *testing.B) {
	pg := pgtest.Start(b, pgtest.Options{})
	for _, store := range []string{"sqlite", "postgres"} {
		for _, open := range []int{0, openWrites} {
			b.Run(fmt.Sprintf("%s/open=%d", store, open), func(b *testing.B) {
				r := newRestart(b)
				if store == "postgres" {
					name, err := pg.CreateDatabase()
					r.check(err)
					r.env["LEDGER"] = "postgres://postgres@" + pg.Addr() + "/" + name
				}
				r.leave(open)
				b.ResetTimer()
				for b.Loop() {
					r.start(open > 0)
				}
				for i, name := range []string{"ready-ms", "post-ms", "read-ms"} {
					b.ReportMetric(float64(r.took[i].Milliseconds())/float64(b.N), name)
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// restart is a ledger of a server that is started again and again.
type restart struct {
	b    *testing.B
	env  map[string]string
	url  string
	read chan time.Time // gets the time of a read of the destination
	took [3]time.Duration
}

func newRestart(b *testing.B) *restart {
	r := &restart{b: b, env: map[string]string{}, read: make(chan time.Time, 1)}
	world, err := orders.New(orders.Plain.Options())
	r.check(err)
	destination := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodGet {
			select {
			case r.read <- time.Now():
			default:
			}
		}
		orders.Handler(world).ServeHTTP(w, q)
	}))
	b.Cleanup(destination.Close)
	r.url = destination.URL
	r.env["FOLDER"] = b.TempDir()
	return r
}

func (r *restart) check(err error) {
	r.b.Helper()
	if err != nil {
		r.b.Fatal(err)
	}
}

func (r *restart) config() config.Config {
	r.b.Helper()
	kept := "readback.db"
	if r.env["LEDGER"] != "" {
		kept = "{type: postgres, url_env: LEDGER}"
	}
	path := filepath.Join(r.env["FOLDER"], "readback.yaml")
	r.check(os.WriteFile(path, fmt.Appendf(nil, "ledger: %s\ntenant: acme\ndestinations:\n  orders: {type: simulated, url: %s, class: plain}\n", kept, r.url), 0o600))
	c, err := config.LoadOver(path, r.environment())
	r.check(err)
	c.Server.Listen, c.Server.Grace = "127.0.0.1:0", time.Second
	c.Queue.Waiting = 2 * openWrites
	return c
}

func (r *restart) environment() config.Environment {
	return config.Environment{Get: func(name string) string { return r.env[name] }}
}

func (r *restart) process() Process {
	return Process{Env: r.environment(), Log: slog.New(slog.DiscardHandler)}
}

// leave reserves and announces writes, whose lease has ended when the server starts.
func (r *restart) leave(open int) {
	r.b.Helper()
	d, err := Open(r.b.Context(), r.config(), config.OpenOptions{Create: true}, r.process())
	r.check(err)
	defer d.Close()
	const callers = 256
	var wg sync.WaitGroup
	for from := range callers {
		wg.Go(func() {
			for n := from; n < open; n += callers {
				rec, err := ledger.NewRecord(intent.WriteIntent{Tenant: "acme", Workflow: fmt.Sprint("wf-", n), Step: "order", Tool: "create_order",
					Destination: "orders", Kind: "order", Write: intent.Create, IdempotencyKey: fmt.Sprint("order-", n),
					Key: intent.Fields{"order_id": fmt.Sprint("A-", n)}, Expect: intent.Fields{"amount_cents": 1999, "currency": "USD"}})
				if err == nil {
					_, _, err = d.Ledger.Reserve(r.b.Context(), ledger.Reservation{Record: rec, Owner: "worker", LeaseFor: time.Millisecond,
						Events: []ledger.Event{{Kind: ledger.EvAnnounced, SendFor: 30 * time.Second}}})
				}
				if err != nil {
					r.b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// start starts a server, waits for what is measured, and ends it. reads says that there is
// something to read back.
func (r *restart) start(reads bool) {
	r.b.Helper()
	ctx, end := context.WithCancel(r.b.Context())
	ended, where := make(chan error, 1), make(chan string, 1)
	select {
	case <-r.read:
	default:
	}
	c, began := r.config(), time.Now()
	go func() {
		ended <- Serve(ctx, Options{Process: r.process(), Config: c, Dev: true,
			Announce: func(at string, away error) error { where <- at; return away }})
	}()
	var at string
	select {
	case at = <-where:
	case err := <-ended:
		r.b.Fatal(err)
	}
	r.ask(http.MethodGet, at+"/readyz", "", http.StatusOK)
	r.took[0] += time.Since(began)
	r.ask(http.MethodPost, at+"/v1/writes", fmt.Sprintf(`{"workflow":"wf","step":"s%d","tool":"create_order","destination":"orders","kind":"order",
		"key":{"order_id":"B-%[1]d"},"write":"create","expect":{"amount_cents":1999,"currency":"USD"}}`, began.UnixNano()), http.StatusAccepted)
	r.took[1] += time.Since(began)
	if reads {
		r.took[2] += (<-r.read).Sub(began)
	}
	end()
	if err := <-ended; err != nil && !errors.Is(err, ErrLate) {
		r.b.Fatal(err)
	}
}

func (r *restart) ask(method, at, body string, want int) {
	r.b.Helper()
	q, err := http.NewRequestWithContext(r.b.Context(), method, at, strings.NewReader(body))
	r.check(err)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Prefer", "respond-async")
	resp, err := (&http.Client{Timeout: time.Minute}).Do(q)
	r.check(err)
	defer func() { _ = resp.Body.Close() }()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != want {
		r.b.Fatalf("%s %s: %d %s", method, at, resp.StatusCode, text)
	}
}
