package config

import (
	"net"
	"net/url"
	"path/filepath"

	"github.com/readback-go/readback/internal/otel"
	"github.com/readback-go/readback/internal/yamlfile"
)

// Telemetry says where spans, metrics and events go. Where it says nothing, the
// standard variables of OpenTelemetry do; where these say nothing either, it goes
// nowhere.
type Telemetry struct {
	// Endpoint is where OTLP over HTTP is taken, without the path of a signal.
	// Default "".
	Endpoint string
	// HeadersEnv or HeadersFile is where the headers are that go with each request.
	// Default none.
	HeadersEnv, HeadersFile string
	// NoTraces, NoMetrics and NoEvents leave a signal out. Default false.
	NoTraces, NoMetrics, NoEvents bool
	// Content tells arguments and results too, redacted. Default false.
	Content bool
	// Line is where it stands in the file, 0 when it does not.
	Line int
}

type telemetrySettings struct {
	Endpoint    yamlfile.Text `yaml:"endpoint"`
	Protocol    yamlfile.Text `yaml:"protocol"`
	Plaintext   bool          `yaml:"plaintext"`
	HeadersEnv  yamlfile.Text `yaml:"headers_env"`
	HeadersFile yamlfile.Text `yaml:"headers_file"`
	Traces      *bool         `yaml:"traces"`
	Metrics     *bool         `yaml:"metrics"`
	Events      *bool         `yaml:"events"`
	Content     bool          `yaml:"content"`
}

// telemetry reads the section, and checks what needs no environment.
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
			r.At(at.Place, "can be read on the way to another machine; want https, or telemetry.plaintext: true on a network that nobody else is on")
		}
	}
	r.oneOf(s.HeadersEnv, s.HeadersFile)
	return Telemetry{Endpoint: s.Endpoint.Value, HeadersEnv: s.HeadersEnv.Value, HeadersFile: s.HeadersFile.Value,
		NoTraces: no(s.Traces), NoMetrics: no(s.Metrics), NoEvents: no(s.Events), Content: s.Content, Line: e.Line}
}

func no(said *bool) bool { return said != nil && !*said }

// readable reports whether what is sent to an address can be read on the way.
func readable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// Telling is where telemetry goes: what the configuration says, with the headers
// from where it says. Version, Logger and Env are left to the caller. It fails
// with [InvalidError].
func (c Config) Telling(env func(string) string) (otel.Settings, error) {
	t := c.Telemetry
	out := otel.Settings{Endpoint: t.Endpoint, NoTraces: t.NoTraces, NoMetrics: t.NoMetrics, NoEvents: t.NoEvents}
	from := source{asVariable: "headers_env", asFile: "headers_file", variable: t.HeadersEnv, file: t.HeadersFile}
	text, err := secretFrom(from, filepath.Dir(c.Path), env)
	if err == nil && text != "" {
		out.Headers, err = otel.Headers(text)
	}
	for _, value := range out.Headers { // as they are sent: a receiver may repeat them
		known.add(value)
	}
	if err != nil {
		return out, invalid(c.Path, []Problem{{Line: t.Line, Field: "telemetry", Problem: err.Error()}})
	}
	return out, nil
}
