package load

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors/simulated"
)

// worlds are the destinations: one of each class, all of which lose answers.
var classes = []simulated.Class{simulated.Plain, simulated.Native, simulated.Unique, simulated.Lagging}

type worlds map[simulated.Class]*simulated.World

// chance is how often a destination takes a write and its answer is lost.
const chance = 0.002

func newWorlds(t *testing.T) (worlds, map[simulated.Class]string) {
	t.Helper()
	all, where := worlds{}, map[simulated.Class]string{}
	for i, class := range classes {
		o := class.Options()
		o.Seed = uint64(i)
		o.Faults = []simulated.Fault{{Vice: simulated.LostAnswer, Chance: chance}}
		if class == simulated.Lagging {
			o.Lags = []time.Duration{100 * time.Millisecond}
			o.Faults = nil // an answer that is lost there is waited for as long as its horizon
		}
		w, err := simulated.New(o)
		if err != nil {
			t.Fatal(err)
		}
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: simulated.Handler(w), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(l) }() // it ends with the test
		t.Cleanup(func() { _ = server.Close() })
		all[class], where[class] = w, "http://"+l.Addr().String()
	}
	return all, where
}

// configuration is a file that names the destinations by their class.
func configuration(t *testing.T, where map[simulated.Class]string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "ledger: readback.db\nqueue: {waiting: 100000, in_hand: 10000}\ndestinations:\n")
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
type server struct {
	cmd *exec.Cmd
	url string
}

func serve(t *testing.T, config string) *server {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "readback")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/readback")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(binary, "serve", "--dev", "--listen", "127.0.0.1:0", "--config", config)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{cmd: cmd}
	t.Cleanup(func() { s.end(t) })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the server said nothing: %v", lines.Err())
	}
	s.url = lines.Text()
	go func() {
		for lines.Scan() { // so that it is never held up by us
		}
	}()
	return s
}

func (s *server) end(t *testing.T) {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// resident is how much memory the server has, in MiB.
func (s *server) resident(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
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
