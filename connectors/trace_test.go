package connectors_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/connectors/sql"
)

// The span of a call names the server that it goes to, also where nothing answers
// there. A tracer that panics fails nothing else.
func TestSpansNameTheServer(t *testing.T) {
	refuses := func(context.Context, string, string) (net.Conn, error) { return nil, errNoServer }
	password := func(context.Context) (string, error) { return "x", nil }
	box := imap.Options{Addr: "imap.example.com:993", Username: "ada", Password: password, Dial: refuses}
	calls := map[string]struct {
		address, port string
		call          func(context.Context) error
	}{
		"HTTP": {"127.0.0.1", "1", func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:1/orders", nil)
			if err != nil {
				return err
			}
			_, err = httpsend.New(nil).Read(req)
			return err
		}},
		"IMAP": {"imap.example.com", "993", func(ctx context.Context) error {
			c, err := imap.New(box)
			if err != nil {
				t.Fatal(err)
			}
			return c.Probe(ctx)
		}},
		"SMTP": {"smtp.example.com", "465", func(ctx context.Context) error {
			c, err := mail.New(mail.Options{Addr: "smtp.example.com:465", From: "ada@example.com", Dial: refuses, Proof: mail.Filed, IMAP: box})
			if err != nil {
				t.Fatal(err)
			}
			return c.Probe(ctx)
		}},
		"MCP over HTTP": {"127.0.0.1", "1", func(ctx context.Context) error {
			c, err := mcp.NewClient(mcp.Server{URL: "http://127.0.0.1:1/mcp"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Call(ctx, "orders", map[string]any{}, nil)
			return err
		}},
		"PostgreSQL": {"127.0.0.1", "1", func(ctx context.Context) error {
			c, err := sql.New(sql.Options{DSN: "postgres://ada@127.0.0.1:1/shop?sslmode=disable&connect_timeout=2", Password: password,
				Tables: map[string]sql.Table{"order": {Name: "orders", Key: []string{"id"}, Unique: true, Columns: []sql.Column{{Name: "id"}}}}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			return c.Probe(ctx)
		}},
	}
	for name, c := range calls {
		for _, panics := range []bool{false, true} {
			span := &recorded{panics: panics, got: map[attribute.Key]string{}}
			if err := c.call(trace.ContextWithSpan(t.Context(), span)); err == nil {
				t.Errorf("%s: no error, and no server", name)
			}
			want := map[attribute.Key]string{"server.address": c.address, "server.port": c.port}
			if diff := cmp.Diff(want, span.got); !panics && diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

var errNoServer = errors.New("no server")

// recorded is a span that keeps its attributes.
type recorded struct {
	noop.Span
	panics bool
	got    map[attribute.Key]string
}

func (*recorded) IsRecording() bool { return true }

func (s *recorded) SetAttributes(all ...attribute.KeyValue) {
	if s.panics {
		panic("the tracer is down")
	}
	for _, kv := range all {
		s.got[kv.Key] = kv.Value.String()
	}
}
