package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// The flood, and what it may cost.
const (
	floodWrites      = 6000
	floodConnections = 200
	floodStreams     = 200
	floodBodies      = 50
	floodSlow        = 100
	floodMemory      = 150 // MB more than before
	quietWrites      = 100
)

// flooded is a server with a destination that hangs and one that does not.
type flooded struct {
	t              *testing.T
	s              *server
	client         *http.Client
	stuck, healthy *orders.World
	resume         func() // ends the hanging
	dir            string
}

func newFlooded(t *testing.T) *flooded {
	f := &flooded{t: t, dir: t.TempDir(), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: floodConnections, MaxConnsPerHost: 0}}}
	open := make(chan struct{})
	f.resume = sync.OnceFunc(func() { close(open) })
	t.Cleanup(f.resume)
	world := func(through func(http.Handler) http.Handler) (*orders.World, string) {
		w, err := orders.New(orders.Native.Options())
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(through(orders.Handler(w)))
		t.Cleanup(s.Close)
		return w, s.URL
	}
	var stuck, healthy string
	f.healthy, healthy = world(func(h http.Handler) http.Handler { return h })
	f.stuck, stuck = world(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body) // so that the end of the connection is seen
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			select {
			case <-open:
				h.ServeHTTP(w, r)
			case <-r.Context().Done():
			}
		})
	})
	path := filepath.Join(f.dir, "readback.yaml")
	text := fmt.Sprintf("ledger: readback.db\nserver: {parallel: 100}\ndestinations:\n  stuck: {type: simulated, url: %q, class: native, tenants: [loud]}\n  healthy: {type: simulated, url: %q, class: native, tenants: [quiet]}\n", stuck, healthy)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f.s = serve(t, path)
	return f
}

// post sends a write, or whatever the body is, and returns the status and the answer.
func (f *flooded) post(tenant, token, body, prefer string) (int, http.Header, []byte) {
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.s.URL+"/v1/writes", strings.NewReader(body))
	if err != nil {
		f.t.Error(err)
		return 0, nil, nil
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Tenant-ID", tenant)
	r.Header.Set("X-User-ID", token)
	if prefer != "" {
		r.Header.Set("Prefer", prefer)
	}
	resp, err := f.client.Do(r)
	if err != nil {
		f.t.Error(err)
		return 0, nil, nil
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Error(err)
	}
	return resp.StatusCode, resp.Header, text
}

func tiny(tenant, destination, id string) string {
	text, err := json.Marshal(intent.WriteIntent{Tenant: tenant, Workflow: "flood", Step: id, Tool: "order", Destination: destination, Kind: orders.Kind, Write: intent.Create,
		Key: intent.Fields{"order_id": id}, Expect: intent.Fields{"amount_cents": json.Number("1"), "currency": "EUR"}})
	if err != nil {
		panic(err) // texts alone
	}
	return string(text)
}

// quiet makes writes one after the other, each of which must be verified, and says how
// long 99 of 100 took at most.
func (f *flooded) quiet(stage string) time.Duration {
	f.t.Helper()
	var took []time.Duration
	for n := range quietWrites {
		began := time.Now()
		status, _, text := f.post("quiet", "bot", tiny("quiet", "healthy", fmt.Sprintf("%s-%d", stage, n)), "wait=60")
		took = append(took, time.Since(began))
		var out struct{ Status string }
		if err := json.Unmarshal(text, &out); err != nil || status != http.StatusOK || out.Status != "verified" {
			f.t.Fatalf("%s, write %d of the quiet tenant: %d %s", stage, n, status, text)
		}
	}
	slices.Sort(took)
	return took[len(took)*99/100].Round(time.Millisecond)
}

// flood is what agents of the loud tenant do, all of it at once: one posts, another
// sends bodies as large as there are. It returns the
// writes that were accepted, and how many were refused.
func (f *flooded) flood() (accepted map[ledger.ID]string, refused int) {
	accepted = map[ledger.ID]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan int)
	for range floodConnections {
		wg.Go(func() {
			for n := range next {
				id := fmt.Sprint("F-", n)
				status, header, text := f.post("loud", "bot", tiny("loud", "stuck", id), "")
				mu.Lock()
				switch {
				case status == http.StatusAccepted || status == http.StatusOK:
					var out struct{ ID ledger.ID }
					if err := json.Unmarshal(text, &out); err != nil || out.ID == "" {
						f.t.Errorf("accepted without an id: %s", text)
					}
					accepted[out.ID] = id
				case (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) && header.Get("Retry-After") != "":
					refused++
				default:
					f.t.Errorf("write %d: %d %v %s", n, status, header, text)
				}
				mu.Unlock()
			}
		})
	}
	for range floodBodies {
		wg.Go(func() { f.post("loud", "large", "{"+strings.Repeat(" ", 1<<20), "") })
	}
	for n := range floodWrites {
		next <- n
	}
	close(next)
	wg.Wait()
	return accepted, refused
}

// beside opens what stays open beside the flood: event streams, and connections that
// send their header or their body slowly. It returns how many streams were let in.
func (f *flooded) beside() (streams int) {
	at := strings.TrimPrefix(f.s.URL, "http://")
	hold := func(text string) (answer string) {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, text); err != nil {
			f.t.Fatal(err)
		}
		if !strings.HasPrefix(text, "GET /v1/events") {
			return ""
		}
		begin := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(conn, begin); err != nil {
			f.t.Fatal(err)
		}
		return string(begin)
	}
	const who = "Host: 127.0.0.1\r\nX-Tenant-ID: loud\r\nX-User-ID: slow\r\n"
	for range floodStreams {
		switch answer := hold("GET /v1/events HTTP/1.1\r\n" + who + "\r\n"); answer {
		case "HTTP/1.1 200":
			streams++
		case "HTTP/1.1 429":
		default:
			f.t.Errorf("a stream: %s", answer)
		}
	}
	for range floodSlow {
		hold("POST /v1/writes HTTP/1.1\r\n" + who)
		hold("POST /v1/writes HTTP/1.1\r\n" + who + "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{")
	}
	return streams
}

// A flood by one agent, at a destination that hangs, costs a bounded part of memory,
// holds up no other tenant, and loses nothing: what was accepted is carried out, and what was
// refused says when to come again.
func TestAFloodByOneAgent(t *testing.T) {
	need.Long(t)
	f := newFlooded(t)
	alone := f.quiet("before")
	before := f.s.resident(t)
	streams := f.beside()
	type flooding struct {
		accepted map[ledger.ID]string
		refused  int
	}
	done := make(chan flooding, 1)
	began := time.Now()
	go func() {
		accepted, refused := f.flood()
		done <- flooding{accepted, refused}
	}()
	during := f.quiet("during") // while it continues, and the destination hangs
	got := <-done
	took := time.Since(began)
	grown := f.s.resident(t) - before
	after := f.quiet("hanging") // it still hangs
	grown = max(grown, f.s.resident(t)-before)
	t.Logf("%d writes in %s: %d accepted, %d refused; %d of %d streams let in; the server grew from %.0f by %.0f MiB; 99 %% of the other tenant's writes within %s alone, %s during the flood (%.1f times), %s while the destination hangs",
		floodWrites, took.Round(time.Millisecond), len(got.accepted), got.refused, streams, floodStreams, before, grown, alone, during, float64(during)/float64(alone), after)
	if grown*1.048576 > floodMemory {
		t.Errorf("the server grew by %.0f MiB, want at most %d MB", grown, floodMemory)
	}
	if len(got.accepted) == 0 || len(got.accepted)+got.refused != floodWrites {
		t.Errorf("%d accepted and %d refused of %d", len(got.accepted), got.refused, floodWrites)
	}
	if streams == 0 || streams > 128 {
		t.Errorf("%d streams of one agent were let in, want at most a quarter of 512", streams)
	}
	f.resume()
	f.settled(got.accepted)
}

// settled waits until every accepted write is verified, and asks the destination whether
// each was applied once.
func (f *flooded) settled(accepted map[ledger.ID]string) {
	l, err := sqlite.Open(f.t.Context(), filepath.Join(f.dir, "readback.db"), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var orders []string
	for id, order := range accepted {
		orders = append(orders, order)
		for {
			r, err := l.Get(f.t.Context(), "loud", id)
			if err != nil {
				f.t.Fatalf("an accepted write is not in the ledger: %v", err)
			}
			if r.State == ledger.Settled {
				if r.Settlement != ledger.Verified {
					f.t.Errorf("%s is %s", id, r.Settlement)
				}
				break
			}
			select {
			case <-time.After(50 * time.Millisecond): // the process beside this one has no other signal
			case <-f.t.Context().Done():
				f.t.Fatal("it does not settle")
			}
		}
	}
	if sum := f.stuck.Summary(orders...); sum.Duplicates != 0 || len(sum.Lost) != 0 || sum.Orders != len(orders) {
		f.t.Errorf("the destination has %d orders of %d, %d of them twice, and lacks %d", sum.Orders, len(orders), sum.Duplicates, len(sum.Lost))
	}
}
