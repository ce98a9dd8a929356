package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/internal/program"
)

// inputs is a root with the clients as a release has them, but for what the compiler of
// TypeScript makes, and a program for each system: the real one for this one.
func inputs(t *testing.T) packages {
	t.Helper()
	p := packages{root: t.TempDir(), programs: t.TempDir(), out: filepath.Join(t.TempDir(), "packages")}
	p.notice = filepath.Join(p.programs, "NOTICE")
	for to, from := range map[string]string{"LICENSE": "LICENSE", "clients/python/pyproject.toml": "", "clients/typescript/package.json": "",
		"clients/typescript/README.md": "", "clients/typescript/bin/readback.js": "", "clients/typescript/dist/index.js": "LICENSE"} {
		if from == "" {
			from = to
		}
		text, err := os.ReadFile(filepath.Join("../..", filepath.FromSlash(from)))
		if err != nil {
			t.Fatal(err)
		}
		if to == "clients/typescript/dist/index.js" {
			text = []byte("export const made = true;\n")
		}
		put(t, filepath.Join(p.root, filepath.FromSlash(to)), text)
	}
	put(t, p.notice, []byte("the licences of others\n"))
	for _, s := range systems {
		put(t, filepath.Join(p.programs, "readback_"+s.goos+"_"+s.goarch+"_v1", s.program()), []byte("for "+s.goos+"/"+s.goarch))
	}
	return p
}

func put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, data, 0o700)); err != nil { //nolint:gosec // programs are run
		t.Fatal(err)
	}
}

// here is the system of this machine.
func here(t *testing.T) system {
	t.Helper()
	i := slices.IndexFunc(systems, func(s system) bool { return s.goos == runtime.GOOS && s.goarch == runtime.GOARCH })
	if i < 0 {
		need.Have(t, fmt.Errorf("%w: a program released for %s/%s", need.ErrMissing, runtime.GOOS, runtime.GOARCH))
	}
	return systems[i]
}

// run runs a program in a folder, and returns what it prints, errors included.
func run(t *testing.T, dir string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...) //nolint:gosec // npm, node, python3 and what they installed
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func must(t *testing.T, out string, err error) string {
	t.Helper()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// From empty folders and without a network: npm and pip install the packages, and the command
// readback is the program of this system, or says what is missing.
func TestInstalledPackagesStartTheProgram(t *testing.T) {
	need.Long(t)
	if runtime.GOOS == "windows" {
		need.Have(t, fmt.Errorf("%w: SIGTERM, which the test sends, on Windows", need.ErrMissing))
	}
	p, s := inputs(t), here(t)
	at := filepath.Join(p.programs, "readback_"+s.goos+"_"+s.goarch+"_v1")
	if err := os.Remove(filepath.Join(at, s.program())); err != nil {
		t.Fatal(err)
	}
	built, err := program.Build(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.Run(t.Context(), "version")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.make(); err != nil {
		t.Fatal(err)
	}
	_, version, err := p.manifest()
	if err != nil {
		t.Fatal(err)
	}

	t.Run("npm", func(t *testing.T) {
		npm := need.Program(t, "npm")
		client, platform := filepath.Join(p.out, "npm", "readback-"+version+".tgz"), filepath.Join(p.out, "npm", "readback-"+s.os+"-"+s.cpu+"-"+version+".tgz")
		install := func(args ...string) (string, []string) {
			dir := t.TempDir()
			env := []string{"npm_config_cache=" + t.TempDir(), "npm_config_update_notifier=false"}
			put(t, filepath.Join(dir, "package.json"), []byte(`{"private": true}`))
			out, err := run(t, dir, env, npm, append([]string{"install", "--offline", "--no-audit", "--no-fund"}, args...)...)
			must(t, out, err)
			return dir, env
		}
		dir, env := install(client, platform)
		out, err := run(t, dir, env, "npx", "--offline", "--no", "readback", "version")
		if got := must(t, out, err); got != text {
			t.Errorf("it prints %q, want %q", got, text)
		}
		out, err = run(t, dir, env, "npx", "--offline", "--no", "readback", "no-such-command")
		wants, direct := run(t, dir, env, filepath.Join(at, s.program()), "no-such-command")
		if code(err) != code(direct) || out != wants || code(err) <= 0 {
			t.Errorf("a wrong command ends with %d and %q, of the program itself with %d and %q", code(err), out, code(direct), wants)
		}
		out, err = run(t, dir, env, "node", "-e", `import("readback").then((m) => console.log(m.made))`)
		if got := must(t, out, err); got != "true\n" {
			t.Errorf("the client is %q", got)
		}

		command := filepath.Join(dir, "node_modules", ".bin", "readback")
		ends(t, dir, nil, command, syscall.SIGTERM)
		ends(t, dir, nil, command, os.Interrupt)
		speaks(t, dir, nil, command)

		change(t, filepath.Join(dir, "node_modules", "@readback", s.os+"-"+s.cpu, "package.json"), version, "0.0.9")
		out, err = run(t, dir, env, "npx", "--offline", "--no", "readback", "version")
		if code(err) != 127 || !strings.Contains(out, "npm install @readback/"+s.os+"-"+s.cpu+"@"+version+"\n") {
			t.Errorf("with the program of another version: %v\n%s", err, out)
		}

		dir, env = install(client)
		out, err = run(t, dir, env, "npx", "--offline", "--no", "readback", "version")
		if code(err) != 127 || !strings.Contains(out, "npm install @readback/"+s.os+"-"+s.cpu+"@"+version+"\n") {
			t.Errorf("without the program: %v\n%s", err, out)
		}
	})

	t.Run("pip", func(t *testing.T) {
		python := need.Program(t, "python3")
		dir := t.TempDir()
		client, err := filepath.Abs("../../clients/python")
		if err != nil {
			t.Fatal(err)
		}
		pip := []string{"-m", "pip", "--disable-pip-version-check", "--no-cache-dir"}
		out, err := run(t, dir, nil, python, append(pip, "wheel", "--quiet", "--no-index", "--no-deps", "--wheel-dir", filepath.Join(p.out, "pypi"), client)...)
		must(t, out, err)
		install := func(what string) (string, []string) {
			at := t.TempDir()
			out, err := run(t, dir, nil, python, append(pip, "install", "--quiet", "--root-user-action", "ignore", "--no-index", "--find-links", filepath.Join(p.out, "pypi"), "--target", at, what)...)
			must(t, out, err)
			return filepath.Join(at, "bin", "readback"), []string{"PYTHONPATH=" + at}
		}
		command, env := install("readback[bin]")
		out, err = run(t, dir, env, command, "version")
		if got := must(t, out, err); got != text {
			t.Errorf("it prints %q, want %q", got, text)
		}
		out, err = run(t, dir, env, python, "-m", "readback", "version")
		if got := must(t, out, err); got != text {
			t.Errorf("-m readback prints %q, want %q", got, text)
		}
		ends(t, dir, env, command, syscall.SIGTERM)
		ends(t, dir, env, command, os.Interrupt)
		speaks(t, dir, env, command)
		change(t, filepath.Join(filepath.Dir(filepath.Dir(command)), "readback_bin", "__init__.py"), version, "0.0.9")
		out, err = run(t, dir, env, command, "version")
		if code(err) != 127 || !strings.Contains(out, "pip install 'readback[bin]=="+version+"'\n") {
			t.Errorf("with the program of another version: %v\n%s", err, out)
		}
		command, env = install("readback")
		out, err = run(t, dir, env, command, "version")
		if code(err) != 127 || !strings.Contains(out, "pip install 'readback[bin]=="+version+"'\n") {
			t.Errorf("without the program: %v\n%s", err, out)
		}
	})
}

// change replaces a text of an installed file.
func change(t *testing.T, name, from, to string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil || !bytes.Contains(text, []byte(from)) {
		t.Fatalf("%s has no %q, %v", name, from, err)
	}
	put(t, name, bytes.ReplaceAll(text, []byte(from), []byte(to)))
}

// speaks starts a server of the Model Context Protocol by a command, as a client does: a response
// comes while the input is open, and the server ends with its input.
func speaks(t *testing.T, dir string, env []string, command string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, "chaos", "--mcp")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	answer, errRead := bufio.NewReader(out).ReadString('\n')
	if err = errors.Join(err, errRead, in.Close(), cmd.Wait()); err != nil || !strings.Contains(answer, `"result":{}`) {
		t.Errorf("it answers %q, %v", answer, err)
	}
}

// ends starts a server by a command in a folder, asks that command to end, and expects that the
// server ends with it.
func ends(t *testing.T, dir string, env []string, command string, by os.Signal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // a signal that does not reach the server
	defer cancel()
	cmd := exec.CommandContext(ctx, command, "serve", "--dev", "--listen", "127.0.0.1:0")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first, err := bufio.NewReader(out).ReadString('\n')
	address := strings.TrimPrefix(strings.TrimSpace(first), "http://")
	if err != nil || address == first {
		t.Fatalf("it prints %q, %v", first, err)
	}
	if err := errors.Join(cmd.Process.Signal(by), cmd.Wait()); err != nil {
		t.Errorf("after %v it ends with %v", by, err)
	}
	if c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address); err == nil {
		t.Errorf("the server at %s still runs, %v", address, c.Close())
	}
}

func code(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}

// Each package has the program of its own system, and equal inputs give equal packages.
func TestPackages(t *testing.T) {
	p := inputs(t)
	if err := p.make(); err != nil {
		t.Fatal(err)
	}
	first := contents(t, p.out)
	var names []string
	for name := range first {
		names = append(names, name)
	}
	slices.Sort(names)
	_, version, err := p.manifest()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{
		"npm/readback-VERSION.tgz", "npm/readback-darwin-arm64-VERSION.tgz", "npm/readback-darwin-x64-VERSION.tgz", "npm/readback-linux-arm64-VERSION.tgz",
		"npm/readback-linux-x64-VERSION.tgz", "npm/readback-win32-arm64-VERSION.tgz", "npm/readback-win32-x64-VERSION.tgz",
		"pypi/readback_bin-VERSION-py3-none-macosx_12_0_arm64.whl", "pypi/readback_bin-VERSION-py3-none-macosx_12_0_x86_64.whl",
		"pypi/readback_bin-VERSION-py3-none-manylinux2014_aarch64.musllinux_1_1_aarch64.whl",
		"pypi/readback_bin-VERSION-py3-none-manylinux2014_x86_64.musllinux_1_1_x86_64.whl",
		"pypi/readback_bin-VERSION-py3-none-win_amd64.whl", "pypi/readback_bin-VERSION-py3-none-win_arm64.whl",
	} {
		want = append(want, strings.ReplaceAll(name, "VERSION", version))
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := p.make(); err != nil {
		t.Fatal(err)
	}
	for name, data := range contents(t, p.out) {
		if !bytes.Equal(first[name], data) {
			t.Errorf("%s differs the second time", name)
		}
	}
	for name := range first { // npm publishes no statement of where a package was built if the package names another repository, or none
		if !strings.HasSuffix(name, ".tgz") {
			continue
		}
		out, err := run(t, p.out, nil, "tar", "-xOzf", filepath.FromSlash(name), "package/package.json")
		var manifest struct{ Repository struct{ URL string } }
		if err := json.Unmarshal([]byte(must(t, out, err)), &manifest); err != nil || manifest.Repository.URL != "git+https://github.com/readback-go/readback.git" {
			t.Errorf("%s is of the repository %q, %v", name, manifest.Repository.URL, err)
		}
	}
	for _, s := range systems {
		out, err := run(t, filepath.Join(p.out, "npm"), nil, "tar", "-xOzf", "readback-"+s.os+"-"+s.cpu+"-"+version+".tgz", "package/bin/"+s.program(), "package/package.json")
		if got := must(t, out, err); !strings.HasSuffix(got, "for "+s.goos+"/"+s.goarch) || !strings.Contains(got, `"os": [`+"\n    \""+s.os+"\"\n  ]") || !strings.Contains(got, `"cpu": [`+"\n    \""+s.cpu+"\"\n  ]") {
			t.Errorf("%s/%s: %s", s.goos, s.goarch, got)
		}
	}
}

func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		all[name], err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Everything that names the version of the release names the same: an adapter needs a core that
// exists, and a manifest the image that was tested with it.
func TestVersions(t *testing.T) {
	_, version, err := packages{root: "../.."}.manifest()
	if err != nil {
		t.Fatal(err)
	}
	wants := map[string]string{
		"clients/python/backend.py":               `NAME, VERSION, PYTHON = "readback", "` + version + `", `,
		"clients/python/pyproject.toml":           `{ bin = ["readback-bin==` + version + `"] }`,
		"clients/python/src/readback/__init__.py": `__version__ = "` + version + `"`,
		"deploy/kubernetes/deployment.yaml":       "image: ghcr.io/readback-go/readback:" + version + "\n",
		"deploy/compose.yaml":                     "image: ghcr.io/readback-go/readback:" + version + "\n",
		"docs/reference/versions.md":              "go install github.com/readback-go/readback/cmd/readback@v" + version + "\n",
		".github/ISSUE_TEMPLATE/fault.yaml":       "placeholder: v" + version + " ",
	}
	modules, err := filepath.Glob("../../adapters/*/go.mod")
	if err != nil || len(modules) < 6 {
		t.Fatalf("%d adapters, %v", len(modules), err)
	}
	for _, m := range append(modules, "../../bench/go.mod") {
		rel, err := filepath.Rel("../..", m)
		if err != nil {
			t.Fatal(err)
		}
		wants[filepath.ToSlash(rel)] = "github.com/readback-go/readback v" + version + "\n"
	}
	for name, want := range wants {
		if text, err := os.ReadFile(filepath.Join("../..", filepath.FromSlash(name))); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not contain %q, %v", name, want, err)
		}
	}
}

func TestAReleaseThatIsIncomplete(t *testing.T) {
	for name, c := range map[string]struct {
		breaks func(p packages) error
		want   error
	}{
		"a program is missing": {func(p packages) error { return os.RemoveAll(filepath.Join(p.programs, "readback_windows_arm64_v1")) }, errProgram},
		"two programs": {func(p packages) error {
			return os.CopyFS(filepath.Join(p.programs, "readback_linux_arm64_v2"), os.DirFS(filepath.Join(p.programs, "readback_linux_arm64_v1")))
		}, errProgram},
		"another version": {func(p packages) error {
			return os.WriteFile(filepath.Join(p.root, "clients", "python", "pyproject.toml"), []byte("version = \"9.9.9\"\n"), 0o600)
		}, errVersion},
		"the client is not built": {func(p packages) error { return os.RemoveAll(filepath.Join(p.root, "clients", "typescript", "dist")) }, os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			p := inputs(t)
			if err := c.breaks(p); err != nil {
				t.Fatal(err)
			}
			if err := p.make(); !errors.Is(err, c.want) {
				t.Errorf("%v; want %v", err, c.want)
			}
		})
	}
}
