package snippets

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/internal/need"
)

// scripts are the blocks of the page, by file.
var scripts = map[string]string{"charge.ts": "ts-act", "tool.ts": "ts-tool", "mcp.ts": "ts-mcp", "pay.test.ts": "chaos-node"}

// installed are the packages of npm, got once for all tests, and that of clients/typescript, built
// as it is published.
var installed = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(folder, "npm")
	files := filepath.Join("testdata", "npm")
	if err := os.CopyFS(dir, os.DirFS(files)); err != nil {
		return dir, err
	}
	if err := need.Install(files, dir); err != nil {
		return dir, err
	}
	return dir, errors.Join(buildClient(filepath.Join(folder, "client")), os.Symlink(filepath.Join(folder, "client"), filepath.Join(dir, "node_modules", "readback")))
})

func buildClient(dir string) error {
	source := filepath.Join("..", "..", "clients", "typescript")
	for _, part := range []string{"src", "scripts"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join(source, part))); err != nil {
			return err
		}
	}
	settings, err := os.ReadFile(filepath.Join(source, "tsconfig.json"))
	if err != nil {
		return err
	}
	_, failed := built()
	if err := errors.Join(failed, os.WriteFile(filepath.Join(dir, "tsconfig.json"), settings, 0o600), need.Install(source, dir)); err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), "node", "scripts/build.mjs")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "READBACK_BINARY="+filepath.Join(folder, "readback"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = errors.Join(err, errors.New(string(out)))
	}
	return err
}

func in(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = errors.Join(err, errors.New(string(out)))
	}
	return err
}

// compile has the compiler of the installed packages check blocks of a page, by their files in a folder,
// strictly, with other files.
func compile(t *testing.T, dir string, blocks map[string]string, others ...string) error {
	t.Helper()
	npm, err := installed()
	if err != nil {
		return err
	}
	args := append([]string{"--strict", "--erasableSyntaxOnly", "--noUncheckedIndexedAccess", "--module", "nodenext", "--target", "es2022", "--skipLibCheck"}, others...)
	for file, name := range blocks {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(block(t, name)), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	return in(t.Context(), dir, filepath.Join(npm, "node_modules", ".bin", "tsc"), args...)
}

// compiled is the compiler's output for the blocks of the page, which are compiled once.
var compiled struct {
	sync.Mutex
	done bool
	err  error
}

func compilePage(t *testing.T, dir string) error {
	t.Helper()
	compiled.Lock()
	defer compiled.Unlock()
	if !compiled.done {
		compiled.err, compiled.done = compile(t, dir, scripts), true
	}
	return compiled.err
}

// node runs a checked script of the page, or one of testdata/npm.
func node(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	need.Long(t)
	dir, err := installed()
	need.Have(t, err)
	if err := compilePage(t, dir); err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), "node", append([]string{filepath.Join(dir, script)}, args...)...)
}

// The same job in TypeScript.
func TestTypeScript(t *testing.T) {
	p := newPlace(t, "")
	p.loses("A-1")
	for range 2 {
		if got := p.says(node(t, "charge.js", "invoice-run-7", "A-1")); !strings.HasPrefix(got, "verified ord_") {
			t.Errorf("it says %q", got)
		}
	}
	p.hasOne("A-1")
	wrong := node(t, "charge.js", "invoice-run-7", "A-1")
	p.token = "rbk_wrong"
	if out, errs, err := p.run(wrong); err == nil || !strings.Contains(errs, "Refused") {
		t.Errorf("with a bad token it says %q, %q, %v", out, errs, err)
	}
}

// A tool of the package gives a model a result, in every run that of the same write.
func TestTypeScriptTool(t *testing.T) {
	p := newPlace(t, "")
	p.loses("A-1")
	first := p.says(node(t, "tool.js", "run-7", "A-1"))
	if again := p.says(node(t, "tool.js", "run-8", "A-1")); !strings.Contains(first, `"verified":true`) || again != first {
		t.Errorf("two runs print %q and %q", first, again)
	}
	p.hasOne("A-1")
}

// A client of another make lists the tools and calls one.
func TestTypeScriptMCP(t *testing.T) {
	p := newPlace(t, "")
	p.loses("A-1")
	for i, text := range []string{`"text":"The order`, `"text":"This operation was begun before; nothing was sent again.`} {
		got := p.says(node(t, "mcp.js", "run-7", "A-1"))
		for _, want := range []string{"tools: create_order, get_outcome\n", `"status":"verified"`, text} {
			if !strings.Contains(got, want) {
				t.Errorf("run %d says %s, want %s in it", i, got, want)
			}
		}
	}
	p.hasOne("A-1")
}

// Every schema of a tool can be read, and says what it should, by a validator that
// is not ours.
func TestSchemas(t *testing.T) {
	p := newPlace(t, "")
	if got, want := p.says(node(t, "schemas.js")), "create_order true false false\nget_outcome false false true"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}
