package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
	"github.com/readback-go/readback/ledger"
)

// inProcess carries requests to a handler, without a network.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	p.ServeHTTP(w, r)
	return w.Result(), nil
}

// TestARefusedLoginHoldsTheWrite: whichever message meets it, nothing is sent and
// nothing is settled, for longer than any other refusal is tried again. The write is
// sent once when the login works.
func TestARefusedLoginHoldsTheWrite(t *testing.T) {
	for name, c := range map[string]struct {
		status    int
		of, armed string // the messages that are refused, and the one from which on
	}{
		"at the beginning, 401":     {401, "", ""},
		"at the beginning, 403":     {403, "", ""},
		"in a session, 401":         {401, "", "notifications/initialized"},
		"of the list of tools, 401": {401, "tools/list", ""},
		"of the list of tools, 403": {403, "tools/list", ""},
		"of the call alone, 401":    {401, `"create_order"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fakemcp.New(fakemcp.NewWorld())
				inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.MCP }, &sdk.StreamableHTTPOptions{JSONResponse: true, SessionTimeout: time.Minute})
				var refusing, armed atomic.Bool
				var refused atomic.Int64
				refusing.Store(true)
				armed.Store(c.armed == "")
				handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body := new(strings.Builder)
					if _, err := copyTo(body, r); err != nil {
						t.Error(err)
					}
					if refusing.Load() && armed.Load() && strings.Contains(body.String(), c.of) {
						refused.Add(1)
						w.WriteHeader(c.status)
						return
					}
					armed.Store(armed.Load() || strings.Contains(body.String(), c.armed))
					inner.ServeHTTP(w, r)
				})
				conn, err := mcp.New(pinned(t, fakemcp.Contract), mcp.Options{Server: mcp.Server{URL: "http://localhost/", RoundTripper: inProcess{handler}}})
				if err != nil {
					t.Fatal(err)
				}
				var reg connectors.Registry
				if err := reg.Register("shop", connectors.Destination{Connector: conn, Profiles: conn.Profiles()}); err != nil {
					t.Fatal(err)
				}
				l := ledger.NewMemory()
				g := guards.New(l, &reg, nil)
				e := engine.New(l, &reg, &engine.Options{Guards: g})
				id, err := e.Enqueue(t.Context(), create(1).Intent)
				if err != nil {
					t.Fatal(err)
				}
				work := func(d time.Duration) ledger.Record {
					ctx, cancel := context.WithTimeout(t.Context(), d)
					defer cancel()
					if err := e.Work(ctx, &engine.WorkOptions{Idle: time.Minute}); err != nil {
						t.Error(err)
					}
					rec, err := l.Get(t.Context(), "acme", id)
					if err != nil {
						t.Fatal(err)
					}
					return rec
				}
				if rec := work(24 * time.Hour); rec.State == ledger.Settled || rec.State == ledger.Review || rec.Sends != rec.Unsent || refused.Load() == 0 {
					t.Errorf("%s after %d sends, of which %d sent nothing, and %d refusals; want it to wait", rec.Phase(), rec.Sends, rec.Unsent, refused.Load())
				}
				status, err := guards.Status(t.Context(), l)
				if err != nil || len(status.Destinations) != 1 || status.Destinations[0].Breaker.Login.IsZero() {
					t.Errorf("%+v, %v; want it to say that the login is refused", status.Destinations, err)
				}
				refusing.Store(false)
				if rec := work(time.Hour); rec.Settlement != ledger.Verified || s.World.Calls(fakemcp.Create) != 1 {
					t.Errorf("the login works again: %s after %d calls", rec.Phase(), s.World.Calls(fakemcp.Create))
				}
				e.Close()
				_ = g.Close()
				_ = conn.Close()
				s.Cut()
				time.Sleep(2 * time.Minute) // sessions that could not be closed end by themselves
			})
		})
	}
}

// TestCredentialsThatAServerRepeats: they are in no receipt, of which the ledger keeps the text.
func TestCredentialsThatAServerRepeats(t *testing.T) {
	const token = "tok/en-0123456789"
	give := func(name, value string) map[string]func(context.Context) (string, error) {
		return map[string]func(context.Context) (string, error){name: func(context.Context) (string, error) { return value, nil }}
	}
	s := fakemcp.New(fakemcp.NewWorld())
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.MCP }, &sdk.StreamableHTTPOptions{JSONResponse: true})
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := new(strings.Builder)
		if _, err := copyTo(body, r); err != nil {
			t.Error(err)
		}
		if !strings.Contains(body.String(), `"create_order"`) {
			inner.ServeHTTP(w, r)
			return
		}
		var call struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.Unmarshal([]byte(body.String()), &call); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no user has the token %s, %s"}}`, call.ID, r.Header.Get("Authorization"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	})
	program := mcp.Server{Command: []string{os.Args[0]}, Env: map[string]string{asServer: filepath.Join(t.TempDir(), "notes")}}
	asSecret, asVariable := program, program
	asSecret.Secrets = give(itsToken, token)
	asVariable.Env = map[string]string{asServer: program.Env[asServer], itsToken: token}
	for name, server := range map[string]mcp.Server{
		"a header":                             {URL: "http://localhost/", RoundTripper: inProcess{echo}, Headers: give("Authorization", "Bearer "+token)},
		"a secret of a program":                asSecret,
		"a variable that is called a secret's": asVariable,
	} {
		t.Run(name, func(t *testing.T) {
			c, err := mcp.New(pinned(t, fakemcp.Contract), mcp.Options{Server: server})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			got, err := c.Write(t.Context(), create(1))
			if said := fmt.Sprintf("%+v %s %v", got, got.Reply.Raw, err); strings.Contains(said, token) || !strings.Contains(got.Reply.Message, "no user has the token") {
				t.Errorf("%s; want the server's words without the token", said)
			}
		})
	}
}
