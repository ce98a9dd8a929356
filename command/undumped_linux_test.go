package command

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
)

const hidden = "hunter2-of-the-environment"

// unprivileged lets a program run as a user without rights, in a folder of that user. If the
// test does not run as root, it runs as the test's user: then the two are the same.
func unprivileged(cmd *exec.Cmd, dir string) error {
	cmd.Dir = dir
	if os.Geteuid() != 0 {
		return nil
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		return errors.Join(err, os.Chown(path, 65534, 65534))
	})
}

// Another process of the same user, such as a program of a gateway, reads neither the
// environment nor the memory of the server.
func TestProgramsOfTheSameUserCannotReadTheServer(t *testing.T) {
	dir, err := os.MkdirTemp("", "readback") //nolint:usetesting // another user cannot enter the folders of a test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "readback"), text, 0o700) //nolint:gosec // it is run
	}
	if err != nil {
		t.Fatal(err)
	}
	read := func(pid int, name string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "/bin/cat", "/proc/"+strconv.Itoa(pid)+"/"+name)
		if err := unprivileged(cmd, dir); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.Output()
		return string(out), err
	}
	begin := func(name string, args ...string) (pid int, out io.Reader) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = []string{asProgram + "=1", "PATH=" + os.Getenv("PATH"), "SOME_SECRET=" + hidden}
		if err := unprivileged(cmd, dir); err != nil {
			t.Fatal(err)
		}
		in, err := cmd.StdinPipe() // open until the end, which the shell waits for
		if err != nil {
			t.Fatal(err)
		}
		out, err = cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = in.Close() })
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd.Process.Pid, out
	}
	other, out := begin("/bin/sh", "-c", "echo ready; read end")
	first(t, out)
	if env, err := read(other, "environ"); err != nil || !strings.Contains(env, hidden) {
		t.Fatalf("a program that does not protect itself cannot be read here either, which proves nothing: %v", err)
	}
	server, out := begin(filepath.Join(dir, "readback"), "serve", "--dev", "--listen", "127.0.0.1:0")
	if line := first(t, out); !strings.HasPrefix(line, "http://") {
		t.Fatalf("it does not serve: %q", line)
	}
	for _, name := range []string{"environ", "maps", "auxv"} {
		if text, err := read(server, name); err == nil {
			t.Errorf("%s can be read: %d bytes, the secret among them: %v", name, len(text), strings.Contains(text, hidden))
		}
	}
}

// first is the first line of an output.
func first(t *testing.T, r io.Reader) string {
	t.Helper()
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := r.Read(b); err != nil || b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

// Variables with secrets leave the environment when the configuration is read, by
// whatever command, and the program still knows them.
func TestSecretsLeaveTheEnvironment(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.write("readback.yaml", `ledger: a.db
destinations:
  shop: {type: rest, declaration: ./shop.yaml, base_url: 'https://a.example', secrets: {token: {env: TEST_TOKEN}}, parameters: {env: TEST_NONE}}
  far: {type: mcp, url: 'https://a.example', contract: filesystem, headers: {Authorization: {env: TEST_HEADER}}}
  box: {type: imap, addr: 'a.example:993', username: u, password_env: TEST_PASSWORD}
telemetry: {headers_env: TEST_HEADERS}
webhooks:
  - {name: ops, url: 'https://a.example/x', secret_env: TEST_HOOK}
`)
	want := []string{"READBACK_LEDGER", "TEST_HEADER", "TEST_HEADERS", "TEST_HOOK", "TEST_PASSWORD", "TEST_TOKEN"}
	for name, read := range map[string]func(*app) error{
		"settings": func(a *app) error { _, err := a.settings(); return err },
		"destinations alone": func(a *app) error {
			if _, err := a.onlyDestinations(); err == nil {
				return errors.New("a declaration that is not there is taken")
			}
			return nil
		},
	} {
		var gone []string
		a := &app{stdout: io.Discard, stderr: io.Discard, env: func(string) string { return "" }, config: p.config,
			forget: func(name string) error { gone = append(gone, name); return nil }}
		if err := read(a); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if slices.Sort(gone); !slices.Equal(gone, want) {
			t.Errorf("%s takes out %v; want %v", name, gone, want)
		}
	}
	t.Setenv("TEST_HOOK", hidden)
	a := ofThisProcess()
	if err := a.forget("TEST_HOOK"); err != nil {
		t.Fatal(err)
	}
	if _, there := os.LookupEnv("TEST_HOOK"); there {
		t.Error("it is still in the environment")
	}
	if a.env("TEST_HOOK") != hidden || !slices.Contains(a.environ(), "TEST_HOOK="+hidden) {
		t.Error("the program does not know its own variables any more")
	}
}
