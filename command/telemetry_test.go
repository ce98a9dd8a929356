package command

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/otel/oteltest"
	"github.com/readback-go/readback/internal/server"
)

// exportTo adds a section about telemetry to the configuration.
func (p *place) exportTo(section string) {
	p.t.Helper()
	p.configure(p.url, "telemetry:\n"+section)
}

// A command exports telemetry, but not by default.
func TestACommandExports(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	r := oteltest.Start(t)
	p.submit(exitVerified, order("A-0", ""))
	if got := r.Requests(); len(got) != 0 {
		t.Fatal("telemetry was exported without being configured")
	}
	t.Setenv("TELL", "Authorization=Basic%20eDp5")
	p.variable = map[string]string{"TELL": "Authorization=Basic%20eDp5"}
	p.exportTo("  endpoint: " + r.URL + "\n  headers_env: TELL\n")
	write := id(t, p.submit(exitVerified, order("A-1", "")))
	names := map[string]bool{}
	for _, s := range r.Spans() {
		names[s.Name] = true
	}
	if !names["send"] || !names["read"] || len(r.Records()) != 1 || oteltest.Attributes(r.Records()[0].Attributes)["readback.write.id"] != write {
		t.Errorf("spans %v, events %v", names, r.Records())
	}
	found := map[string]bool{}
	for _, m := range r.Metrics() {
		found[m.Name] = true
	}
	for _, want := range []string{"readback.writes", "readback.queue.writes", "readback.reviews.open", "readback.ledger.up"} {
		if !found[want] {
			t.Errorf("no metric %s: %v", want, found)
		}
	}
	for _, req := range r.Requests() {
		if req.Header.Get("Authorization") != "Basic eDp5" {
			t.Errorf("%s came without the header", req.URL.Path)
		}
	}
	for _, from := range r.Resources() {
		if a := oteltest.Attributes(from.Attributes); a["service.name"] != "readback" || a["service.version"] != server.Built().Version {
			t.Errorf("the resource is %v", a)
		}
	}
}

// A command ends as it would without a receiver.
func TestACommandDoesNotMindItsReceiver(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	r := oteltest.Start(t)
	for i, answer := range []func(http.ResponseWriter, *http.Request) bool{
		func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return true }, nil,
	} {
		r.Answer(answer)
		if answer == nil {
			r.Close()
		}
		p.exportTo("  endpoint: " + r.URL + "\n")
		name := fmt.Sprint("A-", i)
		result := p.submit(exitVerified, order(name, ""))
		p.effects(1, name)
		if n := strings.Count(result.err, "telemetry"); n != 1 {
			t.Errorf("%d complaints, want one:\n%s", n, result.err)
		}
	}
}

func TestBadTelemetrySettings(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	t.Run("of the configuration", func(t *testing.T) {
		p.exportTo("  endpoint: http://collector:4318\n")
		says(t, p.want(exitConfig, p.run("work")), "telemetry.endpoint", "want https, or telemetry.plaintext: true")
	})
	t.Run("of the environment", func(t *testing.T) {
		p.configure(p.url, "")
		p.variable = map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
		says(t, p.want(exitConfig, p.run("work")), "OTEL_EXPORTER_OTLP_PROTOCOL asks for a protocol that is not spoken here; want http/protobuf")
		says(t, p.want(exitConfig, p.run("config", "check", "--env")), "the environment", "OTEL_EXPORTER_OTLP_PROTOCOL")
		says(t, p.want(0, p.run("config", "check")), "")
	})
	t.Run("of the secret", func(t *testing.T) {
		p.exportTo("  endpoint: https://collector:4318\n  headers_env: TELL\n")
		p.variable = map[string]string{"TELL": "hunter2"}
		r := p.want(exitConfig, p.run("work"))
		says(t, r, "telemetry: want name=value")
		if strings.Contains(r.String(), "hunter2") {
			t.Errorf("the secret is printed: %s", r)
		}
		says(t, p.want(0, p.run("config", "check")), "")
		says(t, p.want(exitConfig, p.run("config", "check", "--env")), "want name=value")
	})
	if effects := len(p.world.Effects()); effects != 0 {
		t.Errorf("%d effects", effects)
	}
}

func TestDoctorTriesTheReceiver(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitVerified, order("A-1", ""))
	r := oteltest.Start(t)
	p.exportTo("  endpoint: " + r.URL + "\n")
	says(t, p.want(0, p.run("doctor")), "ok telemetry the receiver answers")
	r.Answer(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusUnauthorized); return true })
	says(t, p.want(0, p.run("doctor")), "warning telemetry", "401", "Writes go on without it.")
	p = newPlace(t, orders.Plain.Options())
	p.submit(exitVerified, order("A-1", ""))
	p.exportTo("  endpoint: http://127.0.0.1:1\n") // a closed server's port may be reused by now
	says(t, p.want(0, p.run("doctor")), "warning telemetry", "connection refused")
}
