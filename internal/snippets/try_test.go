package snippets

import (
	"bufio"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// free is an address that nothing listened at a moment ago.
func free(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// TestTry begins where a reader does: in an empty folder.
func TestTry(t *testing.T) {
	t.Parallel()
	if _, err := built(); err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: t.TempDir(), config: "readback.yaml"}
	shop := free(t)
	commands := strings.NewReplacer("127.0.0.1:8177", shop, "127.0.0.1:8080", "127.0.0.1:0",
		"readback init\n", "readback init >/dev/null\nsed s/127.0.0.1:8177/"+shop+"/ readback.yaml >moved && mv moved readback.yaml\n").Replace(block(t, "try"))
	sh := exec.CommandContext(t.Context(), "sh", "-c", commands+"wait")
	p.prepare(sh)
	ownGroup(sh)
	sh.Stderr = t.Output()
	out, err := sh.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endGroup(sh)
		_ = sh.Wait() // killed by our signal
	})
	for lines := bufio.NewScanner(out); p.url == "" || p.shop == ""; {
		if !lines.Scan() {
			t.Fatalf("the server and the destination did not both say where they are: %v", lines.Err())
		}
		if where := lines.Text(); strings.HasSuffix(where, shop) {
			p.shop = where
		} else {
			p.url = where
		}
	}
	token, errs, err := p.run(exec.CommandContext(t.Context(), "sh", "-c", tokenLine(t)+"\necho $READBACK_TOKEN"))
	if err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	p.token = strings.TrimSpace(token)
	for _, order := range []string{"A-1", "A-2", "A-3"} {
		if got := p.says(p.python("charge.py", block(t, "python-act"), "invoice-run-7", order)); !strings.HasPrefix(got, "charged: ord_") {
			t.Errorf("order %s: %s", order, got)
		}
	}
}

// tokenLine is the line of the page that gets a token.
func tokenLine(t *testing.T) string {
	t.Helper()
	line := regexp.MustCompile("(?m)^export READBACK_TOKEN=.*$").FindString(block(t, "setup"))
	if line == "" {
		t.Fatal("the page gets no token")
	}
	return line
}
