package saga_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// telltale is an engine that cannot work on writes, and returns errors with their values.
type telltale struct {
	saga.Engine
	why error
}

func (t telltale) Wait(context.Context, string, ledger.ID, bool) (engine.Outcome, error) {
	return engine.Outcome{}, t.why
}

// quoting removes one word from sentences.
type quoting struct{ word string }

func (q quoting) Clean(_ string, v any, of ...intent.WriteIntent) {
	texts, ok := v.(*[]*string)
	for i := 0; ok && len(of) > 0 && i < len(*texts); i++ {
		*(*texts)[i] = strings.ReplaceAll(*(*texts)[i], q.word, "redacted")
	}
}

// Errors can contain sensitive values of the plan: they are redacted, in the log as well.
func TestErrorsAreLoggedWithoutValues(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		why    error
	}{
		"a reviewer must decide": {"a write that no worker can continue", errors.New("no such mailbox: ada@hot.example")},
		"it is put back":         {"a ledger that is unreachable", errors.Join(ledger.ErrUnavailable, errors.New("no such mailbox: ada@hot.example"))},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				b := newBench(t, orders.Unique.Options(), nil)
				b.runner = saga.New(b.ledger, telltale{b.engine, c.why}, &saga.Options{
					Redaction: quoting{"ada@hot.example"}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				b.begin(four())
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); _ = runWorker(ctx, b.runner) }()
				time.Sleep(time.Minute)
				stop()
				<-done
				if logged := log.String(); !strings.Contains(logged, "no such mailbox: redacted") || strings.Contains(logged, "ada") {
					t.Errorf("%s: the log says %q", c.reason, logged)
				}
			})
		})
	}
}

// owners records the tenants for which it redacted.
type owners map[string]bool

func (o owners) Clean(tenant string, _ any, _ ...intent.WriteIntent) { o[tenant] = true }

// Only the tenant of an unreadable saga is known, and digests are each tenant's own.
func TestTroubleIsTheTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, asked := newBench(t, orders.Unique.Options(), nil), owners{}
		b.begin(four())
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		store := &damaged{Memory: b.ledger, id: four().ID}
		if err := saga.New(store, b.engine, &saga.Options{Redaction: asked}).Work(ctx); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(owners{four().Tenant: true}, asked); diff != "" {
			t.Errorf("asked to clean for (-want +got):\n%s", diff)
		}
	})
}
