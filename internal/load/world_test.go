package load

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/program"
)

// worlds are the destinations: one of each class, all of which lose answers.
var classes = []orders.Class{orders.Plain, orders.Native, orders.Unique, orders.Lagging}

type worlds map[orders.Class]*orders.World

// chance is how often a destination takes a write and its answer is lost.
const chance = 0.002

func newWorlds(t *testing.T) (worlds, map[orders.Class]string) {
	t.Helper()
	all, where := worlds{}, map[orders.Class]string{}
	for i, class := range classes {
		o := class.Options()
		o.Seed = uint64(i)
		o.Faults = []orders.Fault{{Kind: orders.LostAnswer, Chance: chance}}
		if class == orders.Lagging {
			o.Lags = []time.Duration{100 * time.Millisecond}
			o.Faults = nil // an answer that is lost there is waited for as long as its horizon
		}
		w, err := orders.New(o)
		if err != nil {
			t.Fatal(err)
		}
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: orders.Handler(w), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(l) }() // it ends with the test
		t.Cleanup(func() { _ = server.Close() })
		all[class], where[class] = w, "http://"+l.Addr().String()
	}
	return all, where
}

// configuration is a file that names the destinations by their class.
func configuration(t *testing.T, where map[orders.Class]string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "ledger: readback.db\nqueue: {waiting: 100000, in_hand: 10000}\nserver: {limits: {token_rate: 100000, tenant_rate: 100000}}\ndestinations:\n")
	for _, class := range classes {
		fmt.Fprintf(&b, "  %s: {type: simulated, url: %q, class: %s}\n", class, where[class], class)
	}
	path := filepath.Join(t.TempDir(), "readback.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// server is the binary, serving.
type server struct{ *program.Server }

func serve(t *testing.T, config string) *server {
	t.Helper()
	built, err := program.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := built.Serve(os.Stderr, "--dev", "--listen", "127.0.0.1:0", "--config", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.End(); err != nil {
			t.Error(err)
		}
	})
	return &server{s}
}

// resident is how much memory the server has, in MiB.
func (s *server) resident(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(after, &kib); err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}
