package config

import (
	"net"
	"net/url"

	"github.com/readback-go/readback/internal/otel"
	"github.com/readback-go/readback/internal/yamlfile"
)

// Telemetry says where spans, metrics and events are sent. What is not set follows the
// standard variables of OpenTelemetry; if these are not set either, nothing is sent.
type Telemetry struct {
	// Endpoint is the OTLP over HTTP endpoint, without the path of a signal. Default "".
	Endpoint string
	// Headers is the source of the headers of each request. Default none.
	Headers Secret
	// NoTraces, NoMetrics and NoEvents omit a signal. Default false.
	NoTraces, NoMetrics, NoEvents bool
	// Content sends arguments and results too, redacted. Default false.
	Content bool
	// Line is its line in the file, 0 if it is not set.
	Line int
}

type telemetrySettings struct {
	Endpoint    yamlfile.Text `yaml:"endpoint"`
	Protocol    yamlfile.Text `yaml:"protocol"`
	Plaintext   bool          `yaml:"plaintext"`
	HeadersEnv  yamlfile.Text `yaml:"headers_env"`
	HeadersFile yamlfile.Text `yaml:"headers_file"`
	HeadersArgv argv          `yaml:"headers_command"`
	Traces      *bool         `yaml:"traces"`
	Metrics     *bool         `yaml:"metrics"`
	Events      *bool         `yaml:"events"`
	Content     bool          `yaml:"content"`
}

// telemetry reads the section, and makes the checks that need no environment.
func (r *reader) telemetry(e yamlfile.Entry) Telemetry {
	var s telemetrySettings
	if e.Value.IsNull() || !r.Fill(e.Value, e.Name, &s) {
		return Telemetry{Line: e.Line}
	}
	if p := s.Protocol; p.Value != "" && p.Value != "http" {
		r.At(p.Place, "is %q; want http, which is OTLP in protobuf over HTTP: a collector takes it at port 4318", yamlfile.Clip(p.Value))
	}
	if at := s.Endpoint; at.Value != "" {
		switch problem := otel.EndpointProblem(at.Value); {
		case problem != "":
			r.At(at.Place, "%s", problem)
		case !s.Plaintext && readable(at.Value):
			r.At(at.Place, "can be read on the way to another machine; want https, or telemetry.plaintext: true on a private network")
		}
	}
	r.oneOf(s.HeadersEnv, s.HeadersFile, s.HeadersArgv)
	return Telemetry{Endpoint: s.Endpoint.Value, Headers: Secret{s.HeadersEnv.Value, s.HeadersFile.Value, s.HeadersArgv},
		NoTraces: no(s.Traces), NoMetrics: no(s.Metrics), NoEvents: no(s.Events), Content: s.Content, Line: e.Line}
}

func no(set *bool) bool { return set != nil && !*set }

// readable reports whether others can read what is sent to an address.
func readable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// TelemetrySettings are the configured settings of telemetry, with the headers from their
// source. Version, Logger and Env are left to the caller. It fails with [InvalidError].
func (c Config) TelemetrySettings(env func(string) string) (otel.Settings, error) {
	t := c.Telemetry
	out := otel.Settings{Endpoint: t.Endpoint, NoTraces: t.NoTraces, NoMetrics: t.NoMetrics, NoEvents: t.NoEvents}
	text, err := t.Headers.as("headers").once(c.origin(env))
	if err == nil && text != "" {
		out.Headers, err = otel.Headers(text)
	}
	for name, value := range out.Headers { // as they are sent: a receiver may repeat them
		known.add("telemetry "+name, value)
	}
	if err != nil {
		return out, invalid(c.Path, []Problem{{Line: t.Line, Field: "telemetry", Problem: err.Error()}})
	}
	return out, nil
}
