package otel

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
)

// ErrSettings is wrapped when telemetry cannot be set up as it is asked for.
var ErrSettings = errors.New("telemetry")

// Settings say where telemetry goes. The zero value says nothing, and telemetry
// is off unless the environment says where.
type Settings struct {
	// Endpoint is where OTLP over HTTP is taken, without the path of a signal:
	// https://collector.example.org:4318. Default: what OTEL_EXPORTER_OTLP_ENDPOINT
	// and its kin for each signal say.
	Endpoint string
	// Headers go with each request. Default: what OTEL_EXPORTER_OTLP_HEADERS and
	// its kin say.
	Headers map[string]string
	// NoTraces, NoMetrics and NoEvents leave a signal out. Default: all are exported, unless
	// OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER or OTEL_LOGS_EXPORTER is "none".
	NoTraces, NoMetrics, NoEvents bool
	// Version is the program's.
	Version string
	// Logger gets export errors, once a minute at most. Default none.
	Logger *slog.Logger
	// Env is the environment. Default the process's. The exporters read further
	// variables from the process's in any case.
	Env func(string) string
}

// signal is one kind of telemetry.
type signal struct{ word, variable, path string }

var (
	traces  = signal{"traces", "TRACES", "/v1/traces"}
	metrics = signal{"metrics", "METRICS", "/v1/metrics"}
	events  = signal{"events", "LOGS", "/v1/logs"} // events are records of logs
)

const generalEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"

func (s Settings) env(name string) string {
	if s.Env != nil {
		return strings.TrimSpace(s.Env(name))
	}
	return strings.TrimSpace(os.Getenv(name))
}

// On reports whether telemetry goes anywhere: an endpoint is known, and
// OTEL_SDK_DISABLED does not forbid it.
func (s Settings) On() bool {
	return !strings.EqualFold(s.env("OTEL_SDK_DISABLED"), "true") &&
		slices.ContainsFunc([]signal{traces, metrics, events}, s.exports)
}

// exports reports whether a signal goes anywhere.
func (s Settings) exports(which signal) bool {
	off := map[signal]bool{traces: s.NoTraces, metrics: s.NoMetrics, events: s.NoEvents}[which]
	return !off && s.env("OTEL_"+which.variable+"_EXPORTER") != "none" &&
		(s.Endpoint != "" || s.env(generalEndpoint) != "" || s.env(endpointOf(which)) != "")
}

func endpointOf(which signal) string { return "OTEL_EXPORTER_OTLP_" + which.variable + "_ENDPOINT" }

// url is where a signal goes as the settings say; "" where the environment does.
func (s Settings) url(which signal) string {
	if s.Endpoint == "" {
		return ""
	}
	return strings.TrimRight(s.Endpoint, "/") + which.path
}

// Check says what is wrong with the settings and with the variables that count
// with them: exporters would quietly take localhost instead.
func (s Settings) Check() error {
	var wrong []error
	add := func(what, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%w: %s %s", ErrSettings, what, fmt.Sprintf(format, args...)))
	}
	if s.Endpoint != "" {
		if problem := EndpointProblem(s.Endpoint); problem != "" {
			add("endpoint", "%s", problem)
		}
	}
	endpoints, protocols := []string{generalEndpoint}, []string{"OTEL_EXPORTER_OTLP_PROTOCOL"}
	for _, which := range []signal{traces, metrics, events} {
		endpoints = append(endpoints, endpointOf(which))
		protocols = append(protocols, "OTEL_EXPORTER_OTLP_"+which.variable+"_PROTOCOL")
		name := "OTEL_" + which.variable + "_EXPORTER"
		if v := s.env(name); !slices.Contains([]string{"", "otlp", "none"}, v) {
			add(name, "is not known; want otlp or none")
		}
	}
	for _, name := range endpoints {
		if v := s.env(name); v != "" {
			if problem := EndpointProblem(v); problem != "" {
				add(name, "%s", problem)
			}
		}
	}
	for _, name := range protocols {
		if v := s.env(name); !slices.Contains([]string{"", "http/protobuf"}, v) {
			add(name, "asks for a protocol that is not spoken here; want http/protobuf")
		}
	}
	if v := s.env("OTEL_SDK_DISABLED"); !slices.Contains([]string{"", "true", "false"}, strings.ToLower(v)) {
		add("OTEL_SDK_DISABLED", "is neither true nor false")
	}
	return errors.Join(wrong...)
}

// EndpointProblem says what is wrong with an address, and what would be right; ""
// when nothing is. It does not repeat the address: there may be a password in it.
func EndpointProblem(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "is no address; want one such as https://collector.example.org:4318, without the path of a signal"
	case u.User != nil:
		return "holds a password, which does not belong there; want it in a header (headers_env or headers_file)"
	case u.RawQuery != "" || u.Fragment != "":
		return "has a query or a fragment; want an address such as https://collector.example.org:4318"
	}
	return ""
}

// Headers reads headers as OTEL_EXPORTER_OTLP_HEADERS has them: name=value, several
// with commas between them, values encoded as in URLs.
func Headers(text string) (map[string]string, error) {
	all := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || !token(name) || strings.ContainsAny(plain, "\r\n\x00") {
			return nil, errors.New("want name=value, several with commas between them, such as Authorization=Basic%20dXNlcjpwYXNz")
		}
		all[name] = plain
	}
	return all, nil
}

// token reports whether a text can be the name of a header.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
