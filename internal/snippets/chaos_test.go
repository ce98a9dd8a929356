package snippets

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/need"
)

// The test of the page fails for code that repeats a request without reading, and passes for code
// that reads.
func (p *place) tellsApart(command func() *exec.Cmd, failure string) {
	p.t.Helper()
	if _, err := built(); err != nil {
		p.t.Fatal(err)
	}
	p.openShop()
	if out, errs, err := p.run(command()); err == nil || !strings.Contains(out+errs, failure) {
		p.t.Errorf("code that repeats a request: %v; %s%s", err, out, errs)
	}
	if n := len(p.world.Records("A-1")); n != 2 {
		p.t.Errorf("code that repeats a request made %d orders, want 2", n)
	}
	p.openShop()
	p.t.Setenv("PAY_READS", "1")
	if out, errs, err := p.run(command()); err != nil {
		p.t.Errorf("code that reads: %v; %s%s", err, out, errs)
	}
	p.hasOne("A-1")
}

func TestChaosPython(t *testing.T) {
	python := need.Program(t, "python3")
	p := &place{t: t, dir: t.TempDir(), written: make(chan struct{}), held: make(chan struct{})}
	close(p.held)
	code, err := os.ReadFile(filepath.Join("testdata", "pay.py"))
	if err != nil {
		t.Fatal(err)
	}
	p.file("pay.py", string(code))
	p.file("test_pay.py", block(t, "chaos-python")) // pytest would call the function as well
	p.tellsApart(func() *exec.Cmd {
		return exec.CommandContext(t.Context(), python, "-c", "import test_pay; test_pay.test_a_lost_response_makes_no_second_order()")
	}, `["effects"] == 1`)
}

func TestChaosNode(t *testing.T) {
	p := &place{t: t, dir: t.TempDir(), written: make(chan struct{}), held: make(chan struct{})}
	close(p.held)
	p.tellsApart(func() *exec.Cmd { return node(t, "pay.test.js") }, "2 !== 1")
}
