package command

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestOwnAddress(t *testing.T) {
	tests := map[string]struct {
		listen string
		secure bool
		want   string
	}{
		"here":         {"127.0.0.1:8080", false, "http://127.0.0.1:8080"},
		"everywhere":   {"0.0.0.0:8080", false, "http://127.0.0.1:8080"},
		"everywhere 6": {"[::]:1", true, "https://127.0.0.1:1"},
		"no host":      {":1", true, "https://127.0.0.1:1"},
		"a name":       {"localhost:1", false, "http://localhost:1"},
		"an address":   {"192.0.2.1:1", false, "http://192.0.2.1:1"},
	}
	for name, test := range tests {
		if got, err := ownAddress(test.listen, test.secure); got != test.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
}

func TestHealthcheck(t *testing.T) {
	s := serveProcess(t, t.TempDir())
	check := func(env map[string]string, args ...string) result {
		var out, errs bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, env: func(name string) string { return env[name] }}
		code := a.run(t.Context(), append([]string{"healthcheck"}, args...))
		return result{code, out.String(), errs.String()}
	}
	t.Chdir(t.TempDir())
	listen := map[string]string{"READBACK_SERVER_LISTEN": strings.TrimPrefix(s.url, "http://")}
	for _, args := range [][]string{nil, {"--ready"}, {"--url", s.url}} {
		if r := check(listen, args...); r.code != 0 {
			t.Errorf("%v: %s", args, r)
		}
	}
	dir := t.TempDir() // whose files are corrupted under a running server, which continues
	for name, text := range map[string]string{"setting.yaml": "ledger: a.db\nlog: xml\n", "no.yaml": "ledger: [\n"} {
		putFile(t, dir, name, text)
		if r := check(listen, "--config", filepath.Join(dir, name)); r.code != 0 {
			t.Errorf("%s: %s", name, r)
		}
	}
	putFile(t, dir, "says.yaml", "ledger: a.db\nlog: xml\nserver: {listen: '"+listen["READBACK_SERVER_LISTEN"]+"'}\n")
	if r := check(nil, "--config", filepath.Join(dir, "says.yaml")); r.code != 0 {
		t.Errorf("the address is in the file: %s", r)
	}
	if r := check(nil, "--url", "http://127.0.0.1:1"); r.code != exitUnavailable {
		t.Errorf("no server there: %s", r)
	}
	if r := check(nil, "--url", "http://u:p@127.0.0.1:1"); r.code != exitUsage || strings.Contains(r.String(), "u:p") {
		t.Errorf("a password: %s", r)
	}
}
