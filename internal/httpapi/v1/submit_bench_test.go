//go:build unix

package v1

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// instant is a destination that costs nothing.
type instant struct{ records sync.Map }

func (d *instant) Write(_ context.Context, r connectors.Request) (connectors.Receipt, error) {
	fields := intent.Fields{}
	for _, some := range []intent.Fields{r.Intent.Key, r.Intent.Expect} {
		for name, v := range some {
			fields[name] = v
		}
	}
	id := fmt.Sprint(r.Intent.Key["order_id"])
	d.records.Store(id, connectors.Record{Ref: id, Stamp: r.Stamp, Fields: fields})
	return connectors.Receipt{Ref: id}, nil
}

func (d *instant) Read(_ context.Context, q connectors.Query) (connectors.Observation, error) {
	seen := connectors.Observation{Strength: connectors.Strong, At: time.Now()}
	if r, ok := d.records.Load(fmt.Sprint(q.Intent.Key["order_id"])); ok {
		seen.Records = []connectors.Record{r.(connectors.Record)}
	}
	return seen, nil
}

const (
	benchCallers = 64
	// benchTurn is how many writes each way makes before the next has its turn: a machine that
	// other programs use slows all ways alike.
	benchTurn = 16 * benchCallers
)

// BenchmarkSubmit takes writes from 64 callers to their verified outcomes: by the engine in this
// process, over HTTP, and over HTTP by one caller in batches of 64. The ways take turns within
// one run; http/engine and batch/engine are their speeds relative to the engine's. cpu-http/engine
// and cpu-batch/engine are those by the time of processors, which other programs disturb less; the
// client is part of it, so it does no more than to write and to read bytes.
func BenchmarkSubmit(b *testing.B) {
	book, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "ledger.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer book.Close()
	var reg connectors.Registry
	if err := reg.Register("orders", connectors.Destination{Connector: &instant{}, Profiles: map[string]connectors.Profile{
		"order": {Stamped: true, Unique: []intent.WriteType{intent.Create}, Settle: connectors.Within(0), Horizon: connectors.Within(time.Minute)},
	}}); err != nil {
		b.Fatal(err)
	}
	e := engine.New(book, &reg, nil)
	defer e.Close()
	shares := access.NewShares(access.Limits{TokenRate: 1_000_000, TenantRate: 1_000_000}, nil, nil)
	api := New(service.New(service.Parts{Writes: e, Ledger: book, Registry: &reg}), &Options{Who: shares.Resolver(&tokens{})})
	server := httptest.NewServer(access.Protect(shares.Handler(api), access.ProtectOptions{}))
	defer server.Close()

	// before prepares a turn, which is not measured: intents, and the same as texts.
	var made int
	intents, texts := make([]intent.WriteIntent, benchTurn), make([]string, benchTurn)
	before := func() {
		for i := range intents {
			made++
			intents[i] = order(fmt.Sprint("A-", made))
			texts[i] = asJSON(intents[i])
			intents[i].Tenant = "acme"
		}
	}
	verified := func(got []byte, want int) {
		if bytes.Count(got, []byte(`"status":"verified"`)) != want {
			b.Errorf("%s", got)
		}
	}
	ways := []struct {
		name      string
		run       func(callers []*wire)
		took, cpu time.Duration
		commits   int64
	}{
		{name: "engine", run: func([]*wire) {
			atOnce(benchCallers, func(n int) {
				if out, err := e.Do(b.Context(), intents[n]); err != nil || out.Status != ledger.Verified {
					b.Errorf("%+v, %v", out, err)
				}
			})
		}},
		{name: "http", run: func(callers []*wire) {
			atOnce(benchCallers, func(n int) { verified(callers[n%benchCallers].post("/v1/writes", texts[n]), 1) })
		}},
		{name: "batch", run: func(callers []*wire) {
			for some := range slices.Chunk(texts, benchCallers) {
				verified(callers[0].post("/v1/writes/batch", batch(some...)), len(some))
			}
		}},
	}
	var callers []*wire
	for range benchCallers {
		callers = append(callers, dial(b, server.Listener.Addr().String()))
	}
	b.ResetTimer()
	for range b.N {
		for i := range ways {
			before()
			began, cpu, commits := time.Now(), processors(b), book.Stats().Commits
			ways[i].run(callers)
			ways[i].took += time.Since(began)
			ways[i].cpu += processors(b) - cpu
			ways[i].commits += book.Stats().Commits - commits
		}
	}
	b.StopTimer()
	for _, way := range ways {
		b.ReportMetric(float64(b.N*benchTurn)/way.took.Seconds(), way.name+"-writes/s")
		b.ReportMetric(float64(way.commits)/float64(b.N*benchTurn), way.name+"-commits/write")
		if way.name != "engine" {
			b.ReportMetric(float64(ways[0].took)/float64(way.took), way.name+"/engine")
			b.ReportMetric(float64(ways[0].cpu)/float64(way.cpu), "cpu-"+way.name+"/engine")
		}
	}
	b.ReportMetric(0, "ns/op") // of a turn of each, which says nothing
}

// atOnce has callers make the writes of a turn, each its own one after the other.
func atOnce(callers int, do func(n int)) {
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n := i; n < benchTurn; n += callers {
				do(n)
			}
		})
	}
	wg.Wait()
}

// processors is the time that this process has had of them.
func processors(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// wire is a connection of a caller.
type wire struct {
	b    *testing.B
	conn net.Conn
	read *bufio.Reader
}

func dial(b *testing.B, addr string) *wire {
	b.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return &wire{b, conn, bufio.NewReader(conn)}
}

// post sends a request and returns the body of its response.
func (c *wire) post(path, body string) []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "POST %s HTTP/1.1\r\nHost: readback\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nPrefer: wait=60\r\nContent-Length: %d\r\n\r\n%s",
		path, agent, len(body), body)
	if _, err := c.conn.Write(text.Bytes()); err != nil {
		c.b.Error(err)
		return nil
	}
	answer, err := http.ReadResponse(c.read, nil)
	if err != nil {
		c.b.Error(err)
		return nil
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		c.b.Error(err)
	}
	return got
}
