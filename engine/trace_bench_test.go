package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// BenchmarkTracing makes writes on a ledger in memory with a destination that costs nothing, so
// that only the engine with and without spans is measured: none is an engine without a
// provider.
func BenchmarkTracing(b *testing.B) {
	for _, c := range []struct {
		name string
		ctx  func(testing.TB) context.Context
		opts engine.Options
	}{
		{"none", func(tb testing.TB) context.Context { return tb.Context() }, engine.Options{}},
		{"none, a caller's trace", within, engine.Options{}},
		{"no-op", within, engine.Options{Tracer: noop.NewTracerProvider()}},
		{"sampled out", within, engine.Options{Tracer: sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample()))}},
		{"recorded", within, engine.Options{Tracer: sdk.NewTracerProvider()}},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := &instant{records: make(map[string]connectors.Record)}
			var reg connectors.Registry
			err := reg.Register("orders", connectors.Destination{Connector: d, Profiles: map[string]connectors.Profile{
				"order": {Stamped: true, Unique: []intent.WriteType{intent.Create}, Settle: connectors.Within(0), Horizon: connectors.Within(time.Minute)},
			}})
			if err != nil {
				b.Fatal(err)
			}
			e := engine.New(ledger.NewMemory(), &reg, &c.opts)
			defer e.Close()
			ctx := c.ctx(b)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if out, err := e.Do(ctx, order(fmt.Sprint("A-", i), intent.Create)); err != nil || out.Status != ledger.Verified {
					b.Fatalf("%+v, %v", out, err)
				}
			}
		})
	}
}
