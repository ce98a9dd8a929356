package reviewui

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
	"github.com/readback-go/readback/ledger/sqlite"
)

// BenchmarkInbox measures pages of the inbox of a tenant with 100,000 writes that wait, of which a
// fifth is in review. READBACK_BENCH_ROWS says how many.
func BenchmarkInbox(b *testing.B) {
	for name, open := range map[string]func(b *testing.B) (l ledger.Ledger, settle func()){
		"sqlite": func(b *testing.B) (ledger.Ledger, func()) {
			l, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "ledger.db"), nil)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = l.Close() })
			return l, func() {}
		},
		"postgres": func(b *testing.B) (ledger.Ledger, func()) {
			s := pgtest.Start(b, pgtest.Options{Settings: map[string]string{"shared_buffers": "512MB", "max_wal_size": "8GB"}})
			database, err := s.CreateDatabase()
			if err != nil {
				b.Fatal(err)
			}
			l, err := postgres.Open(b.Context(), s.DSN(database), nil)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = l.Close() })
			return l, func() { // as autovacuum does within a minute
				conn, err := pgx.Connect(b.Context(), s.DSN(database))
				if err != nil {
					b.Fatal(err)
				}
				defer conn.Close(b.Context())
				if _, err := conn.Exec(b.Context(), "VACUUM ANALYZE"); err != nil {
					b.Fatal(err)
				}
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			rows, _ := strconv.Atoi(os.Getenv("READBACK_BENCH_ROWS"))
			l, settle := open(b)
			fillInbox(b, l, cmp.Or(rows, 100_000))
			settle()
			world, err := orders.New(orders.Plain.Options())
			if err != nil {
				b.Fatal(err)
			}
			var reg connectors.Registry
			if err := reg.Register("orders", world.Destination()); err != nil {
				b.Fatal(err)
			}
			e := engine.New(l, &reg, nil)
			b.Cleanup(e.Close)
			o := service.New(service.Parts{Writes: e, Ledger: l, Registry: &reg})
			h := New(o, &Options{Who: byHeader{}})
			second := nextPage(b, h)
			for page, path := range map[string]string{"first": "/inbox", "second": second, "tool": "/inbox?tool=tool+7", "reason and age": "/inbox?age=1h&reason=approval&destination=bank", "none": "/inbox?tool=none"} {
				b.Run(page, func(b *testing.B) {
					for b.Loop() {
						if a := pageOf(b, h, path); a.Code != http.StatusOK {
							b.Fatal(a.Code, a.Body)
						}
					}
				})
			}
		})
	}
}

func pageOf(b *testing.B, h http.Handler, path string) *httptest.ResponseRecorder {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, nil)
	r.Header.Set("X-Role", "reviewer")
	r.Header.Set("X-Tenant", "acme")
	r.Header.Set("X-Name", "rita")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func nextPage(b *testing.B, h http.Handler) string {
	b.Helper()
	_, link, _ := strings.Cut(pageOf(b, h, "/inbox").Body.String(), `class="next" href="`)
	link, _, ok := strings.Cut(link, `"`)
	if !ok {
		b.Fatal("the first page leads to no next one")
	}
	return strings.ReplaceAll(link, "&amp;", "&")
}

// fillInbox reserves writes that wait.
func fillInbox(b *testing.B, l ledger.Ledger, rows int) {
	b.Helper()
	var all sync.WaitGroup
	var failed sync.Once
	const at = 64
	for worker := range at {
		all.Go(func() {
			for i := worker; i < rows; i += at {
				if err := await(b.Context(), l, i); err != nil {
					failed.Do(func() { b.Error(err) })
					return
				}
			}
		})
	}
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

func await(ctx context.Context, l ledger.Ledger, i int) error {
	w := order(fmt.Sprint("B-", i), func(w *intent.WriteIntent) {
		w.Tenant, w.Workflow, w.Tool, w.Destination = "acme", fmt.Sprint("run ", i), fmt.Sprint("tool ", i%20), []string{"orders", "bank", "mail"}[i%3]
	})
	rec, err := ledger.NewRecord(w)
	if err != nil {
		return err
	}
	event := ledger.Event{Kind: ledger.EvHeld, Reason: "its risk class requires a reviewer's approval"}
	if i%5 == 0 {
		event = ledger.Event{Kind: ledger.EvEscalated, Verdict: []string{"mismatched", "indeterminate", "absent"}[i%7%3], Reason: "it differs"}
	}
	_, _, err = l.Reserve(ctx, ledger.Reservation{Record: rec, Events: []ledger.Event{event}, Owner: "bench", LeaseFor: time.Second})
	return err
}
