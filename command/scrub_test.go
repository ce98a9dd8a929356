package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
)

// TestLogsAreScrubbed: a sensitive value of any type is redacted in a log, and everything
// else is written unchanged.
func TestLogsAreScrubbed(t *testing.T) {
	const hot = "4111111111111111"
	type record struct {
		Card   string
		Fields json.RawMessage
	}
	say := map[string]func(*slog.Logger){
		"the message":         func(l *slog.Logger) { l.Info("card " + hot) },
		"a string":            func(l *slog.Logger) { l.Info("x", "card", hot) },
		"a number":            func(l *slog.Logger) { l.Info("x", "card", int64(4111111111111111)) },
		"an error":            func(l *slog.Logger) { l.Info("x", "error", errors.New("refused "+hot)) },
		"a wrapped error":     func(l *slog.Logger) { l.Info("x", "error", errors.Join(io.EOF, errors.New(hot))) },
		"bytes":               func(l *slog.Logger) { l.Info("x", "body", []byte(`{"card":"`+hot+`"}`)) },
		"JSON":                func(l *slog.Logger) { l.Info("x", "body", json.RawMessage(`{"card":"`+hot+`"}`)) },
		"JSON in a struct":    func(l *slog.Logger) { l.Info("x", "body", record{Fields: json.RawMessage(`{"card":"` + hot + `"}`)}) },
		"a struct":            func(l *slog.Logger) { l.Info("x", "body", record{Card: hot}) },
		"a map":               func(l *slog.Logger) { l.Info("x", "body", map[string]any{"a": []any{hot}}) },
		"a group":             func(l *slog.Logger) { l.Info("x", slog.Group("g", "card", hot)) },
		"bound before":        func(l *slog.Logger) { l.With("card", hot).Info("x") },
		"bound within a name": func(l *slog.Logger) { l.WithGroup("g").With("card", hot).Info("x") },
		"a value of its own":  func(l *slog.Logger) { l.Info("x", "card", late(hot)) },
	}
	scrub := func(text string) string { return strings.ReplaceAll(text, hot, "redacted:0123") }
	for name, log := range say {
		t.Run(name, func(t *testing.T) {
			for form, handler := range map[string]func(io.Writer) slog.Handler{
				"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
				"json": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
			} {
				var out bytes.Buffer
				log(slog.New(scrubbed{handler(&out), scrub}))
				if got := out.String(); strings.Contains(got, hot) || !strings.Contains(got, "redacted:0123") {
					t.Errorf("%s: %s", form, got)
				}
			}
		})
	}
	var with, without bytes.Buffer
	for w, scrub := range map[*bytes.Buffer]func(string) string{&with: scrub, &without: nil} {
		var h slog.Handler = slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})
		if scrub != nil {
			h = scrubbed{h, scrub}
		}
		slog.New(h).With("n", 1).Info("x", "list", []string{"a"}, "map", map[string]int{"a": 1}, slog.Group("g", "b", true))
	}
	if with.String() != without.String() {
		t.Errorf("what is not sensitive is written as\n%swant\n%s", with.String(), without.String())
	}
}

// late is a value that is only formatted late.
type late string

func (l late) LogValue() slog.Value { return slog.StringValue(string(l)) }
