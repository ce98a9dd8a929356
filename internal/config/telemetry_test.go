package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/otel"
)

func TestBadTelemetry(t *testing.T) {
	for name, c := range map[string]struct {
		reason, text string
		want         []string
	}{
		"good":            {"", "  endpoint: https://c.example:4318\n  protocol: http\n", nil},
		"nothing":         {"commented out", "", nil},
		"on this machine": {"the network cannot read it", "  endpoint: http://127.0.0.1:4318\n", nil},
		"allowed":         {"a network of its own", "  endpoint: http://collector:4318\n  plaintext: true\n", nil},
		"no endpoint":     {"the environment says where", "  metrics: false\n", nil},
		"in the clear":    {"the network could read it", "  endpoint: http://collector:4318\n", []string{":3: telemetry.endpoint: can be read on the way to another machine; want https, or telemetry.plaintext: true on a private network"}},
		"no address":      {"an exporter would take localhost", "  endpoint: collector:4318\n", []string{":3: telemetry.endpoint: is no address; want one such as https://collector.example.org:4318, without the path of a signal"}},
		"a password":      {"it would stand in logs", "  endpoint: https://a:hunter2@c.example\n", []string{":3: telemetry.endpoint: holds a password, which does not belong there; want it in a header (headers_env or headers_file)"}},
		"a protocol":      {"it is not spoken", "  protocol: grpc\n", []string{`:3: telemetry.protocol: is "grpc"; want http, which is OTLP in protobuf over HTTP: a collector takes it at port 4318`}},
		"both":            {"which one?", "  headers_env: A\n  headers_file: b\n", []string{":4: telemetry.headers_file: is given beside telemetry.headers_env; want one of them"}},
		"unknown":         {"a misspelt word must not be overlooked", "  endpoints: x\n", []string{":3: telemetry.endpoints: is not known; did you mean endpoint?"}},
		"no truth":        {"", "  traces: sometimes\n", []string{":3: telemetry.traces: has the wrong type; want true or false"}},
		"not set":         {"it would be refused there", "  endpoint: https://c.example\n  headers_env: T\n", []string{":2: telemetry: headers_env: the environment variable T is not set, or empty"}},
		"no header":       {"what is not understood is not repeated: it is a secret", "  headers_env: BAD\n", []string{":2: telemetry: want name=value, several with commas between them, such as Authorization=Basic%20dXNlcjpwYXNz"}},
		"the secret":      {"people write it where its place should be", "  headers_env: Authorization=Basic hunter2\n", []string{":2: telemetry: headers_env: is not the name of an environment variable; want one such as MAIL_PASSWORD, which holds the secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, "ledger: a.db\ntelemetry:\n"+c.text)
			cfg, err := config.Load(path)
			if err == nil {
				_, err = cfg.TelemetrySettings(environment("BAD", "hunter2"))
			}
			var got []string
			if invalid := (&config.InvalidError{}); errors.As(err, &invalid) {
				for _, p := range invalid.Problems {
					got = append(got, p.String())
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", c.reason, diff, err)
			}
		})
	}
}

func TestTelemetry(t *testing.T) {
	path := write(t, "ledger: a.db\ntelemetry:\n  endpoint: https://c.example/otel\n  headers_file: headers\n  metrics: false\n  events: false\n  content: true\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "headers"), []byte("Authorization=Basic%20x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.TelemetrySettings(environment())
	want := otel.Settings{Endpoint: "https://c.example/otel", Headers: map[string]string{"Authorization": "Basic x"}, NoMetrics: true, NoEvents: true}
	if diff := cmp.Diff(want, got); err != nil || diff != "" || !c.Telemetry.Content {
		t.Error(err, diff, c.Telemetry)
	}
}
