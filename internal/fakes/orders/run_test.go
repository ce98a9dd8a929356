package orders_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// TestMain makes the test binary the destination's process if its environment says so.
func TestMain(m *testing.M) {
	if path := os.Getenv("SIMULATED_RUN_LOG"); path != "" {
		err := orders.Run(context.Background(), orders.RunOptions{
			Options: orders.Plain.Options(), LogPath: path,
		}, os.Stdout)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// process is a destination in a process of its own.
type process struct {
	*exec.Cmd
	url string
}

func start(t *testing.T, path string) process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "SIMULATED_RUN_LOG="+path)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the process does not say where it is: %v", err)
	}
	return process{cmd, strings.TrimSpace(line)}
}

func (p process) connector(t *testing.T) *orders.Connector {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	c, err := orders.NewConnector(p.url, orders.Plain.Options(), transport)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p process) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // the error is the kill
}

// TestKilled kills the process during concurrent writes. Every accepted write must be in the log,
// and in the next process.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "effects.jsonl")
	p := start(t, path)
	c := p.connector(t)
	const writers, enough = 4, 40
	var (
		mu       sync.Mutex
		answered []string
		wg       sync.WaitGroup
	)
	full := make(chan struct{})
	for writer := range writers {
		wg.Go(func() {
			for n := 0; ; n++ {
				in := order(intent.Create, writer*100_000+n)
				_, err := c.Write(t.Context(), connectors.Request{Intent: in, Stamp: "s", Attempt: 1})
				if err != nil {
					return
				}
				mu.Lock()
				answered = append(answered, in.Key["order_id"].(string))
				if len(answered) == enough {
					close(full)
				}
				mu.Unlock()
			}
		})
	}
	<-full
	p.kill(t)
	wg.Wait()

	effects, err := orders.ReadLog(path)
	if err != nil {
		t.Fatal(err)
	}
	s := orders.Summarize(effects, answered...)
	if len(s.Lost) > 0 || s.Duplicates > 0 || s.SideEffectCalls < len(answered) || s.SideEffectCalls > len(answered)+writers {
		t.Errorf("%d were answered; the log says %+v", len(answered), s)
	}

	next := start(t, path)
	for _, id := range answered {
		in := order(intent.Create, 1)
		in.Key["order_id"] = id
		if o := find(t, next.connector(t), in); len(o.Records) != 1 {
			t.Errorf("after the restart %s has %d records, want 1", id, len(o.Records))
		}
	}
}

// TestControl sets faults and reads the account over HTTP.
func TestControl(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "effects.jsonl"))
	c := p.connector(t)
	if err := c.Probe(t.Context()); err != nil {
		t.Fatalf("probe: %v", err)
	}
	control := func(method, path, body string, want int) []byte {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := new(http.Client).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != want {
			t.Errorf("%s %s: %d %s %v, want %d", method, path, res.StatusCode, data, err, want)
		}
		return data
	}
	control("PUT", "/faults", "lost-answer,times=1\nbad-gateway,skip=1,times=1\n\n", 204)
	control("PUT", "/faults", "lost-answer\ngreed\n", 400) // none of them
	for i, want := range []string{"", "502", "<nil>"} {
		if _, err := send(t, c, order(intent.Create, i+1), ""); code(err) != want {
			t.Errorf("write %d: %v, want code %q", i+1, err, want)
		}
	}
	control("PUT", "/faults", "dropped-before", 204)
	control("DELETE", "/faults", "", 204)
	if _, err := send(t, c, order(intent.Create, 4), ""); err != nil {
		t.Errorf("with all faults off: %v", err)
	}
	var s orders.Summary
	if err := json.Unmarshal(control("GET", "/summary?expect=Order-001&expect=Order-009", "", 200), &s); err != nil {
		t.Fatal(err)
	}
	if s.SideEffectCalls != 4 || s.BalanceCents != 4010 || len(s.Lost) != 1 || s.Lost[0] != "Order-009" {
		t.Errorf("summary %+v", s)
	}
	var effects []orders.Effect
	if err := json.Unmarshal(control("GET", "/effects?after=1&order_id=Order-002", "", 200), &effects); err != nil {
		t.Fatal(err)
	}
	if len(effects) != 1 || effects[0].Seq != 2 || effects[0].OrderID != "Order-002" || effects[0].Faults[0] != orders.BadGateway {
		t.Errorf("effects %+v, want the second alone", effects)
	}
}

func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- orders.Run(ctx, orders.RunOptions{}, w) }()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "http://127.0.0.1:") {
		t.Errorf("ready: %q, %v; want an address of this machine", line, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("ended by its context it says %v", err)
	}
	for name, o := range map[string]orders.RunOptions{
		"fault":   {Options: orders.Options{Faults: []orders.Fault{{Kind: "greed"}}}},
		"log":     {LogPath: filepath.Join(t.TempDir(), "none", "log")},
		"address": {Address: "127.0.0.1:-1"},
	} {
		if err := orders.Run(t.Context(), o, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := orders.Run(t.Context(), orders.RunOptions{}, failing{}); !errors.Is(err, errDeaf) {
		t.Errorf("the address cannot be announced: %v, want the error", err)
	}
}

var errDeaf = errors.New("deaf")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errDeaf }
