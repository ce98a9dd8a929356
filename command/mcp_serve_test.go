package command

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// bearer sends a token.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (p *place) token(role string) bearer {
	p.t.Helper()
	if role != "agent" {
		p.personTokens()
	}
	r := p.want(0, p.run("token", "create", "--role", role, "--name", role+"-1"))
	return bearer(strings.TrimSpace(r.out))
}

// serveForTokens starts a server that asks for them, and returns its address. End ends it, and
// returns its exit code.
func (p *place) serveForTokens() (url string, end func() int) {
	p.t.Helper()
	return p.served(program(p.t, "--config", p.config, "serve", "--listen", "127.0.0.1:0", "--grace", "20s"))
}

// served starts a server, and returns its address. End ends it, and returns its exit code.
func (p *place) served(cmd *exec.Cmd) (url string, end func() int) {
	p.t.Helper()
	var errs lines
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	r := bufio.NewReader(out)
	url, err = r.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%v\n%s", err, errs.String())
	}
	end = sync.OnceValue(func() int {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		_, _ = io.Copy(io.Discard, r)           // until it closes its output
		if err := cmd.Wait(); err != nil {      // the exit code has it
			p.t.Logf("%v\n%s", err, errs.String())
		}
		return cmd.ProcessState.ExitCode()
	})
	p.t.Cleanup(func() { end() })
	return strings.TrimSpace(url), end
}

func (p *place) mcpOver(url string, b bearer, version string) (*mcp.ClientSession, error) {
	p.t.Helper()
	transport := &mcp.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: b}, DisableStandaloneSSE: true}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(context.Background(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		p.t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// TestMCPOfAServer: the MCP API of a real server, with tokens, in a version of the
// protocol with sessions and in one without.
func TestMCPOfAServer(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	if err := p.world.Set(orders.Fault{Kind: orders.LostAnswer}); err != nil {
		t.Fatal(err)
	}
	p.configure(p.url, someTools)
	agent, reviewer := p.token("agent"), p.token("reviewer")
	url, end := p.serveForTokens()
	for version, orderID := range map[string]string{"2025-11-25": "A-1", "2026-07-28": "A-2"} {
		if _, err := p.mcpOver(url, "", version); err == nil {
			t.Errorf("%s: no caller was let in", version)
		}
		s, err := p.mcpOver(url, agent, version)
		if err != nil {
			t.Fatal(err)
		}
		if r := callOrder(t, s, orderID); !r.Verified {
			t.Errorf("%s: %+v", version, r)
		}
		p.effects(1, orderID)
		if s, err = p.mcpOver(url, reviewer, version); err != nil {
			t.Fatal(err)
		}
		listed, err := s.ListTools(context.Background(), nil)
		if err != nil || len(listed.Tools) != 1 {
			t.Errorf("%s: a reviewer sees %+v, %v", version, listed, err)
		}
	}
	if code := end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestMCPOfAServerThatStops: waiting callers are notified that the write continues.
func TestMCPOfAServerThatStops(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	if err := p.world.Set(orders.Fault{Kind: orders.Throttled, Ops: []orders.Op{orders.OpCreate}, Times: 1, Delay: time.Hour}); err != nil {
		t.Fatal(err)
	}
	p.configure(p.url, someTools)
	agent := p.token("agent")
	url, end := p.serveForTokens()
	s, err := p.mcpOver(url, agent, "2025-11-25")
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan string, 1)
	go func() { answered <- callOrder(t, s, "A-1").Status }()
	eventually(t, "the destination is asked", func() bool {
		all := p.writes()
		return len(all) > 0 && all[0].Sends > 0
	})
	code := end()
	if status := <-answered; status != "in_progress" || code != 0 {
		t.Errorf("%s, exit code %d", status, code)
	}
}
