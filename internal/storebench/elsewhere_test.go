package storebench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// isElsewhere is set in the environment of the process that is the destination and
// the receiver of telemetry.
const isElsewhere = "READBACK_STOREBENCH_ELSEWHERE"

func TestMain(m *testing.M) {
	if os.Getenv(isElsewhere) == "" {
		code := m.Run()
		endElsewhere()
		os.Exit(code)
	}
	if err := serveElsewhere(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveElsewhere is that process: a receiver that takes everything and looks at
// nothing, and a destination with unique keys and no fault. It ends with its input.
func serveElsewhere() error {
	ctx, end := signal.NotifyContext(context.Background(), os.Interrupt)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	takes := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	server := &http.Server{Handler: takes, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // it ends with the process
	fmt.Printf("http://%s\n", l.Addr())
	return orders.Run(ctx, orders.RunOptions{Options: orders.Unique.Options()}, os.Stdout)
}

// place is where the two listen.
type place struct {
	receiver, destination string
	process               *exec.Cmd
	end                   io.Closer
}

var (
	there    place
	starting sync.Mutex
)

// elsewhere is that process, which is begun once.
func elsewhere(tb testing.TB) place {
	tb.Helper()
	starting.Lock()
	defer starting.Unlock()
	if there.process != nil {
		return there
	}
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	c := exec.CommandContext(context.Background(), self)
	c.Env, c.Stderr = append(os.Environ(), isElsewhere+"=1"), os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := c.Start(); err != nil {
		tb.Fatal(err)
	}
	there = place{process: c, end: in}
	lines := bufio.NewReader(out)
	for _, at := range []*string{&there.receiver, &there.destination} {
		line, err := lines.ReadString('\n')
		if err != nil {
			tb.Fatal(err)
		}
		*at = strings.TrimSpace(line)
	}
	return there
}

func endElsewhere() {
	if there.process != nil {
		_ = there.end.Close()
		_ = there.process.Wait()
	}
}

// engineOverHTTP is an engine before that destination.
func engineOverHTTP(tb testing.TB, l ledger.Ledger, options func(*connectors.Registry) *engine.Options) *engine.Engine {
	tb.Helper()
	c, err := orders.NewConnector(elsewhere(tb).destination, orders.Unique.Options(), &http.Transport{MaxIdleConnsPerHost: 1024})
	if err != nil {
		tb.Fatal(err)
	}
	var reg connectors.Registry
	if err := reg.Register("orders", connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
		tb.Fatal(err)
	}
	return engineBefore(tb, l, &reg, options)
}

// order is the n-th write of a batch to it.
func order(batch string, n int) intent.WriteIntent {
	name := fmt.Sprintf("%s-%d", batch, n)
	return intent.WriteIntent{
		Tenant: "acme", Workflow: name, Step: "order", Tool: "orders.create", Destination: "orders", Kind: orders.Kind, Write: intent.Create,
		IdempotencyKey: "order:" + name, Key: intent.Fields{"order_id": name},
		Expect: intent.Fields{"amount_cents": json.Number(fmt.Sprint(n + 1)), "currency": "EUR"},
	}
}
