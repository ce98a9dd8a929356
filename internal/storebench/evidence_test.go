//go:build unix

package storebench

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/otel"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/signing"
	"github.com/readback-go/readback/telemetry"
)

// evidence is what is recorded and exported beside the work.
type evidence struct {
	name            string
	observed, seals bool
}

var allEvidence = []evidence{
	{name: "off"}, {name: "observed", observed: true}, {name: "sealing", seals: true}, {name: "all", observed: true, seals: true},
}

func onDisk(tb testing.TB) ledger.Ledger {
	tb.Helper()
	l, err := sqlite.Open(tb.Context(), filepath.Join(tb.TempDir(), "ledger.db"), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

func onServer(tb testing.TB) ledger.Ledger {
	tb.Helper()
	server, err := pgtest.Open(pgtest.Options{})
	pgtest.Need(tb, err)
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Error(err)
		}
	})
	database, err := server.CreateDatabase()
	if err != nil {
		tb.Fatal(err)
	}
	l, err := postgres.Open(tb.Context(), server.DSN(database), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

// options exports to a receiver on this machine, as the program does: spans, metrics and events,
// in batches. Flush delivers what waits.
func (v evidence) options(tb testing.TB) (options func(*connectors.Registry) *engine.Options, flush func()) {
	tb.Helper()
	if !v.observed {
		return func(*connectors.Registry) *engine.Options { return nil }, func() {}
	}
	k, err := otel.Start(tb.Context(), otel.Settings{Endpoint: elsewhere(tb).receiver, Env: func(string) string { return "" }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		k.Shutdown()
		if d := k.Deliveries()["traces"]; d.Delivered == 0 || d.Failed+d.Dropped > 0 {
			tb.Errorf("%+v; all spans must be delivered", d)
		}
	})
	flush = func() {
		for _, p := range []any{k.Tracer(), k.Events(), k.Meter()} {
			if err := p.(interface{ ForceFlush(context.Context) error }).ForceFlush(context.Background()); err != nil {
				tb.Error(err)
			}
		}
	}
	return func(reg *connectors.Registry) *engine.Options {
		return &engine.Options{Tracer: k.Tracer(), Events: k.Events(), Observer: telemetry.NewMeter(k.Meter(), reg).Observe}
	}, flush
}

// sealer seals a ledger and signs heads, as the program does.
func (v evidence) sealer(tb testing.TB, l ledger.Ledger) *audit.Sealer {
	tb.Helper()
	private, _, err := signing.Generate()
	if err != nil {
		tb.Fatal(err)
	}
	signer, err := signing.ReadSigner(private)
	if err != nil {
		tb.Fatal(err)
	}
	store, err := audit.NewFile(filepath.Join(tb.TempDir(), "heads"))
	if err != nil {
		tb.Fatal(err)
	}
	return audit.New(l, audit.Options{Signer: signer, Heads: time.Second, HeadStores: map[string]audit.HeadStore{"file": store}, Logger: slog.New(slog.DiscardHandler)})
}

// setting is what writes are made in: a ledger, and a destination. Its engine is
// made with options, and its n-th write is of a batch.
type setting struct {
	name   string
	ledger func(testing.TB) ledger.Ledger
	engine func(testing.TB, ledger.Ledger, func(*connectors.Registry) *engine.Options) *engine.Engine
	intent func(batch string, n int) intent.WriteIntent
}

// settings are what a user has, a destination behind HTTP and a ledger on disk; and
// the worst cases, in which everything but the evidence costs little.
func settings() []setting {
	memory := func(testing.TB) ledger.Ledger { return ledger.NewMemory() }
	return []setting{
		{"sqlite/http", onDisk, engineOverHTTP, order},
		{"sqlite/costless", onDisk, engineWith, Intent},
		{"postgres/costless", onServer, engineWith, Intent},
		{"memory/costless", memory, engineWith, Intent},
	}
}

// BenchmarkEvidence measures writes from intent to verified outcome without evidence, with spans,
// metrics and events exported to a receiver in another process, with every event sealed into a
// chain whose heads are signed, and with all of that, alternately. ×name is the rate against that
// without, cpu×name the same of processor time, of this process alone: destination and receiver
// are in another one.
func BenchmarkEvidence(b *testing.B) {
	for _, in := range settings() {
		for _, callers := range callerCounts {
			b.Run(fmt.Sprintf("%s/callers=%d", in.name, callers), func(b *testing.B) {
				var sides []side
				spent, last := make([]used, len(allEvidence)), used{}
				for i, v := range allEvidence {
					s := v.writing(b, in, fmt.Sprint(v.name, callers, "-", b.N, "-", runs.Add(1)))
					sides = append(sides, side{do: s.do, rest: func() {
						s.rest()
						now := usedSoFar(b)
						spent[i].processor += now.processor - last.processor
						spent[i].memory += now.memory - last.memory
						last = now
					}})
				}
				last = usedSoFar(b)
				took := alternateAll(b, callers, b.N, sides...)
				b.ReportMetric(perSecond(took[0]), "writes/s")
				writes := float64(rounds * max(b.N/rounds, callers))
				b.ReportMetric(float64(spent[0].processor.Microseconds())/writes, "cpu-µs/write")
				b.ReportMetric(float64(spent[0].memory)/writes/1024, "KiB/write")
				for i, v := range allEvidence[1:] {
					b.ReportMetric(float64(took[0])/float64(took[i+1]), "×"+v.name)
					b.ReportMetric(float64(spent[0].processor)/float64(spent[i+1].processor), "cpu×"+v.name)
					b.ReportMetric(float64(spent[i+1].memory-spent[0].memory)/writes/1024, "KiB+"+v.name)
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// runs makes the writes of each run new to a destination that keeps running.
var runs atomic.Int64

// used is what this process has used: time of the processor, and bytes that were
// allocated, which no neighbour changes.
type used struct {
	processor time.Duration
	memory    int64
}

func usedSoFar(tb testing.TB) used {
	tb.Helper()
	var times syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &times); err != nil {
		tb.Fatal(err)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return used{time.Duration(times.Utime.Nano() + times.Stime.Nano()), int64(memory.TotalAlloc)}
}

// writing is one side: an engine and its background work.
func (v evidence) writing(b *testing.B, in setting, batch string) side {
	b.Helper()
	l := in.ledger(b)
	seal := func() {}
	if v.seals {
		ctx, end := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		s := v.sealer(b, l)
		if _, err := s.Seal(ctx); err != nil { // from here on what is not sealed is remembered
			b.Fatal(err)
		}
		go func() { ended <- s.Work(ctx) }()
		seal = func() {
			if _, err := s.Seal(ctx); err != nil {
				b.Error(err)
			}
		}
		b.Cleanup(func() {
			end()
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
	}
	options, flush := v.options(b)
	e := in.engine(b, l, options)
	return side{
		do: func(i int) error {
			out, err := e.Do(context.Background(), in.intent(batch, i))
			if err == nil && out.Status != ledger.Verified {
				err = fmt.Errorf("outcome %+v", out)
			}
			return err
		},
		rest: func() { flush(); seal() },
	}
}

// Evidence is recorded beside the work: a write stays two durable commits, one send and one read,
// whatever is exported and sealed.
func TestEvidenceCostsNoCommit(t *testing.T) {
	const writes = 20
	for _, v := range allEvidence {
		t.Run(v.name, func(t *testing.T) {
			l := onDisk(t)
			var s *audit.Sealer
			if v.seals {
				s = v.sealer(t, l)
				if _, err := s.Seal(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			options, _ := v.options(t)
			e := engineWith(t, l, options)
			before := l.(*sqlite.Ledger).Stats().Commits
			for i := range writes {
				out, err := e.Do(t.Context(), Intent(v.name, i))
				if err != nil || out.Status != ledger.Verified || out.Sends != 1 || out.Reads != 1 {
					t.Fatalf("%+v, %v", out, err)
				}
			}
			if commits := l.(*sqlite.Ledger).Stats().Commits - before; commits != 2*writes {
				t.Errorf("%d writes took %d durable commits, want 2 each", writes, commits)
			}
			if !v.seals {
				return
			}
			if n, err := s.Seal(t.Context()); err != nil || n < 2*writes {
				t.Errorf("%d entries were sealed, %v: it must have been on", n, err)
			}
		})
	}
}
