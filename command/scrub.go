package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/readback-go/readback/internal/visible"
)

// scrubbed is a log handler that redacts messages and attributes before another handler
// writes them: values that match a pattern of the configuration, and its secrets. Callers
// of the logger need not do it.
type scrubbed struct {
	next  slog.Handler
	scrub func(string) string
}

// Enabled implements [slog.Handler].
func (s scrubbed) Enabled(ctx context.Context, l slog.Level) bool { return s.next.Enabled(ctx, l) }

// Handle implements [slog.Handler].
func (s scrubbed) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, s.scrub(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(s.attr(a))
		return true
	})
	return s.next.Handle(ctx, clean)
}

// WithAttrs implements [slog.Handler].
func (s scrubbed) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = s.attr(a)
	}
	return scrubbed{s.next.WithAttrs(clean), s.scrub}
}

// WithGroup implements [slog.Handler].
func (s scrubbed) WithGroup(name string) slog.Handler {
	return scrubbed{s.next.WithGroup(name), s.scrub}
}

func (s scrubbed) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		group := make([]slog.Attr, len(v.Group()))
		for i, one := range v.Group() {
			group[i] = s.attr(one)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(group...)}
	case slog.KindTime, slog.KindDuration, slog.KindBool:
		return slog.Attr{Key: a.Key, Value: v}
	case slog.KindAny:
		return slog.Attr{Key: a.Key, Value: s.any(v)}
	}
	if text := v.String(); s.scrub(text) != text { // a number too
		v = slog.StringValue(s.scrub(text))
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// any is a value of any type: unchanged if nothing in it is sensitive, however a handler
// writes it, and else as text.
func (s scrubbed) any(v slog.Value) slog.Value {
	switch one := v.Any().(type) {
	case nil:
		return v
	case error:
		return slog.StringValue(s.scrub(one.Error()))
	case fmt.Stringer:
		return slog.StringValue(s.scrub(one.String()))
	case []byte:
		return slog.StringValue(s.scrub(string(one)))
	case json.RawMessage:
		return slog.StringValue(s.scrub(string(one)))
	}
	text := fmt.Sprintf("%+v", v.Any())
	if s.scrub(text) != text {
		return slog.StringValue(s.scrub(text))
	}
	if written, err := json.Marshal(v.Any()); err == nil && s.scrub(string(written)) != string(written) {
		return slog.StringValue(s.scrub(string(written)))
	}
	return v
}

// maxLogged bounds one text of a log entry, in bytes: a destination or a server behind a
// gateway can answer with megabytes. A trace of a goroutine has less.
const maxLogged = 16 << 10

// visibleLines writes log lines in which every character is visible: both forms of the
// log use JSON escapes for the others.
type visibleLines struct{ to io.Writer }

// Write implements [io.Writer].
func (v visibleLines) Write(line []byte) (int, error) {
	if _, err := v.to.Write(visible.JSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}
