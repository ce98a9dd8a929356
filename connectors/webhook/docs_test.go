package webhook_test

import (
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors/webhook"
	"github.com/readback-go/readback/internal/need"
)

// The documentation's line of Python, with the package, verifies what is sent, and nothing else.
func TestThePythonOfTheDocumentation(t *testing.T) {
	python := need.Program(t, "python3")
	page, err := os.ReadFile("../../docs/reference/http.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page shows no Python")
	}
	r := newReceiver(t, secret)
	if err := send(t, r.connector(func(o *webhook.Options) { o.Previous = older }), 1); err != nil {
		t.Fatal(err)
	}
	verifies := func(secret, body string, change func(http.Header)) bool {
		h := r.heads[0].Clone()
		change(h)
		script := `
import os, sys, types
import readback
body = sys.stdin.buffer.read()
request = types.SimpleNamespace(headers={"webhook-id": sys.argv[1], "webhook-timestamp": sys.argv[2], "webhook-signature": sys.argv[3]})
try:
    ` + string(block[1]) + `
except readback.BadSignature:
    sys.exit(3)
`
		cmd := exec.CommandContext(t.Context(), python, "-c", script, h.Get("webhook-id"), h.Get("webhook-timestamp"), h.Get("webhook-signature"))
		cmd.Env = append(os.Environ(), "PYTHONPATH=../../clients/python/src", "OPS_HOOK_SECRET="+secret)
		cmd.Stdin = strings.NewReader(body)
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState.ExitCode() != 3 {
			t.Fatalf("%v: %s", err, out)
		}
		return err == nil
	}
	same := func(http.Header) {}
	for name, c := range map[string]struct {
		got, want bool
	}{
		"as it came":       {verifies(secret, r.bodies[0], same), true},
		"by the older one": {verifies(older, r.bodies[0], same), true},
		"another body":     {verifies(secret, r.bodies[0]+" ", same), false},
		"another id":       {verifies(secret, r.bodies[0], func(h http.Header) { h.Set("webhook-id", "x") }), false},
		"long ago":         {verifies(secret, r.bodies[0], func(h http.Header) { h.Set("webhook-timestamp", "1000000000") }), false},
		"another secret":   {verifies("whsec_"+strings.Repeat("A", 32), r.bodies[0], same), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: verified %v, want %v", name, c.got, c.want)
		}
	}
}
