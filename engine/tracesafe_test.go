package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// broken are guards that permit everything, and panic when they observe.
type broken struct{ engine.Unguarded }

func (broken) Observe(engine.Activity) { panic("the guards are down") }

// An observer or guards that panic when they observe fail no write, and cost it nothing.
func TestAnObserverThatPanicsFailsNoWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), &engine.Options{Guards: broken{}, Observer: func(engine.Activity) { panic("the observer is down") }})
		began := time.Now()
		for range 2 {
			if out := b.do(order("A-1", intent.Create)); out.Status != ledger.Verified || out.Sends != 1 {
				t.Errorf("%+v", out)
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// cutting is a tracer that returns another context than it got: an ended one, or none.
type cutting struct {
	embedded.Tracer
	to trace.Tracer
	as context.Context
}

// provided is a provider of one tracer.
type provided struct {
	embedded.TracerProvider
	only trace.Tracer
}

func (p provided) Tracer(string, ...trace.TracerOption) trace.Tracer { return p.only }

func (c cutting) Start(ctx context.Context, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	_, span := c.to.Start(ctx, name, o...)
	return c.as, span
}

// nothing is a tracer that makes no span.
type nothing struct{ embedded.Tracer }

func (nothing) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	return ctx, nil
}

// A tracer's return values decide nothing about a write but its trace.
func TestATracerCannotEndAWrite(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	working := sdk.NewTracerProvider().Tracer("")
	for name, tracer := range map[string]trace.Tracer{
		"a context that is over": cutting{to: working, as: over}, "no context": cutting{to: working}, "no span": nothing{},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Native.Options(), &engine.Options{Tracer: provided{only: tracer}})
				if out := b.do(order("A-1", intent.Create)); out.Status != ledger.Verified || out.Sends != 1 {
					t.Errorf("%+v", out)
				}
			})
		})
	}
}

// falling is a ledger in which a reservation panics.
type falling struct{ ledger.Ledger }

func (falling) Reserve(context.Context, ledger.Reservation) (ledger.Record, bool, error) {
	panic("the ledger is broken")
}

// Each call leaves a span, and each span ends, even where the call failed.
func TestCallsWithoutAWriteLeaveSpans(t *testing.T) {
	const failed = " stage=new status=refused sends=0 error.type="
	for name, c := range map[string]struct {
		reason string
		do     func(b *bench, spans *tape) error
		want   []string
	}{
		"a closed engine": {"a caller with too long a wait", func(b *bench, spans *tape) error {
			e := b.newEngine(spans.options())
			e.Close()
			_, err := e.Do(b.t.Context(), order("A-1", intent.Create))
			return err
		}, []string{"execute_tool orders.create" + failed + "closed"}},
		"too many calls": {"a flood is seen", func(b *bench, spans *tape) error {
			opts := spans.options()
			opts.MaxInFlight = 1
			ctx, cancel := context.WithCancel(b.t.Context())
			defer cancel()
			b.set(orders.Fault{Kind: orders.LateCommit, Times: 1})
			e := b.newEngine(opts)
			go func() { _, _ = e.Do(ctx, order("A-1", intent.Create)) }()
			synctest.Wait()
			spans.Reset()
			_, err := e.Do(b.t.Context(), order("A-2", intent.Create))
			return err
		}, []string{"execute_tool orders.create" + failed + "full"}},
		"a ledger that panics": {"the work is over, and so are its spans", func(b *bench, spans *tape) error {
			_, err := b.engineOn(falling{b.ledger}, b.world.Destination(), spans.options()).Do(b.t.Context(), order("A-1", intent.Create))
			return err
		}, []string{"execute_tool orders.create stage=new status=in_progress sends=0 error.type=panic", "  read (client) before=true records=0 verdict=indeterminate", "  reserve error.type=panic"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spans := newTape()
				if err := c.do(newBench(t, orders.Native.Options(), nil), spans); err == nil || errors.Is(err, context.Canceled) {
					t.Errorf("error %v", err)
				}
				if diff := cmp.Diff(c.want, spans.tree()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.reason, diff)
				}
			})
		})
	}
}

// The span of an intent that is not valid has no name longer than those of valid ones: an API
// passes on what a caller wrote.
func TestTheSpanOfAnInvalidIntentIsBounded(t *testing.T) {
	spans := newTape()
	w := order("A-1", intent.Create)
	w.Tool, w.Kind = strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<20)
	if _, err := newBench(t, orders.Native.Options(), spans.options()).engine.Do(t.Context(), w); !errors.Is(err, intent.ErrInvalid) {
		t.Fatal(err)
	}
	all := strings.Join(spans.tree(), "\n")
	for _, s := range spans.Ended() {
		all += fmt.Sprint(s.Name(), s.Attributes(), s.Status(), s.Events())
	}
	if n := len(all); n == 0 || n > 16<<10 {
		t.Errorf("its spans have %d bytes", n)
	}
}

// A write that was refused because another one has its name leaves nothing in the ledger: its
// span and the log name the other write, and nothing sensitive.
func TestRefusalsAreRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*intent.WriteIntent)
		log, trace string
		reason     string
	}{
		"an operation that another workflow has": {func(w *intent.WriteIntent) { w.Workflow = "wf-2" }, "reason=blocked", "error.type=blocked blocked_by=", "who asks finds what blocks it"},
		"another intent under one name": {func(w *intent.WriteIntent) { w.Expect = intent.Fields{"amount_cents": jsonNumber(1)} },
			"reason=digest_mismatch", "error.type=digest_mismatch", "the write of that name is the span's own"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines bytes.Buffer
				spans := newTape()
				opts := spans.options()
				opts.Logger = slog.New(slog.NewTextHandler(&lines, nil))
				b := newBench(t, orders.Native.Options(), opts)
				w := order("A-1", intent.Create)
				w.IdempotencyKey = "wire:7721"
				first := b.do(w)
				spans.Reset()
				c.change(&w)
				if _, err := b.engine.Do(t.Context(), w); err == nil {
					t.Fatal("it was not refused")
				}
				b.engine.Close()
				if !strings.Contains(lines.String(), c.log) || !strings.Contains(lines.String(), string(first.ID)) {
					t.Errorf("the log: %s, want %q and %s: %s", lines.String(), c.log, first.ID, c.reason)
				}
				found := map[string]bool{}
				for _, s := range spans.Started()[:1] {
					for _, kv := range s.Attributes() {
						found[pair(kv)] = true
					}
				}
				for want := range strings.FieldsSeq(c.trace) {
					if want == "blocked_by=" {
						want += string(first.ID)
					}
					if !found[want] {
						t.Errorf("the span has no %s: %v: %s", want, found, c.reason)
					}
				}
			})
		})
	}
}

// However often a write is read, its effect is reported once.
func TestAnEffectIsRecordedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shown := 0
		b := newBench(t, rechecked(), &engine.Options{Observer: func(a engine.Activity) {
			if a.Kind == engine.ActivityShown {
				shown++
			}
		}})
		b.set(orders.Fault{Kind: orders.DuplicateByOthers, Delay: time.Minute, Times: 1})
		out := b.do(order("A-1", intent.Create))
		b.work(20 * time.Minute)
		if rec := b.state(out.ID); rec.Reads < 3 || shown != 1 {
			t.Errorf("after %d reads the effect was recorded %d times, want once", rec.Reads, shown)
		}
	})
}
