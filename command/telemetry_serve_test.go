package command

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/otel/oteltest"
)

// A caller's trace passes from the API of a server, through the write, to its
// destination, and arrives complete in the telemetry.
func TestAServerExports(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	var mu sync.Mutex
	var asked []string // the trace context of each request to the destination
	p := newPlaceIn(t, t.TempDir(), orders.Plain.Options(), func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked = append(asked, r.Method+" "+r.Header.Get("Traceparent")+" "+r.Header.Get("Tracestate")+r.Header.Get("Baggage"))
			mu.Unlock()
			h.ServeHTTP(w, r)
		})
	})
	r := oteltest.Start(t)
	p.exportTo("  endpoint: " + r.URL + "\n")
	s := serveProcess(t, p.dir)
	code, body := s.ask("POST", "/v1/writes", strings.ReplaceAll(sampleIntent("create_order", "A-1"), `{"workflow"`, `{"tenant":"acme","workflow"`),
		"Prefer", "wait=30", "Traceparent", "00-"+trace+"-00f067aa0ba902b7-01", "Tracestate", "theirs=1", "Baggage", "user=ada")
	if code/100 != 2 || body["status"] != "verified" {
		t.Fatalf("%d %v", code, body)
	}
	_, _, numbers := answered(t, "GET", s.url+"/metrics", "")
	if !strings.Contains(numbers, `readback_telemetry_lost_total{cause="dropped",signal="traces"} 0`) || !strings.Contains(numbers, `readback_writes_ended_total{destination="orders",kind="order",status="verified"} 1`) {
		t.Errorf("metrics for Prometheus:\n%s", numbers)
	}
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d\n%s", code, s.errs)
	}
	ids := map[string]string{} // spans of the trace
	for _, span := range r.Spans() {
		if fmt.Sprintf("%x", span.TraceId) == trace {
			ids[fmt.Sprintf("%x", span.SpanId)] = span.Name
		}
	}
	mu.Lock()
	defer mu.Unlock()
	within := map[string][]string{}
	for _, a := range asked {
		method, rest, _ := strings.Cut(a, " ")
		parent, others, _ := strings.Cut(rest, " ")
		parts := strings.Split(parent, "-")
		if len(parts) != 4 || parts[1] != trace || others != "" {
			t.Errorf("the destination was asked with %q", a)
			continue
		}
		within[method] = append(within[method], ids[parts[2]])
	}
	if !slices.Equal(within["POST"], []string{"send"}) || !slices.Contains(within["GET"], "read") {
		t.Errorf("requests of the destination by span: %v", within)
	}
}

// A server that seals the audit log reports its progress in metrics.
func TestAServerCountsItsSealing(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.configure(p.url, "audit: {seal: 100ms}\n")
	s := serveProcess(t, p.dir)
	eventually(t, "the numbers of the audit log", func() bool {
		_, _, numbers := answered(t, "GET", s.url+"/metrics", "")
		return strings.Contains(numbers, "\nreadback_audit_unsealed_seconds ") && strings.Contains(numbers, "\nreadback_audit_failures_total 0")
	})
}
