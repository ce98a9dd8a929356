package v1

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/readback-go/readback/internal/need"
)

// TestTypeScriptClient: types generated from the document compile strictly, and a
// client with them can call each route. A linter of OpenAPI documents accepts it.
func TestTypeScriptClient(t *testing.T) {
	need.Long(t)
	dir := t.TempDir()
	need.Have(t, need.Install(filepath.Join("testdata", "npm"), dir))
	client, err := os.ReadFile(filepath.Join("testdata", "npm", "client.ts"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes() {
		if call := "client." + r.method + "(\"" + r.pattern + "\""; !bytes.Contains(client, []byte(call)) {
			t.Errorf("client.ts has no call that begins with %s", call)
		}
	}
	for name, text := range map[string][]byte{"openapi.json": document("test"), "client.ts": client,
		"node.d.ts": []byte("declare const process: { argv: string[] };\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "node_modules", ".bin")
	for _, args := range [][]string{
		{filepath.Join(bin, "redocly"), "lint", "openapi.json"},
		{filepath.Join(bin, "openapi-typescript"), "openapi.json", "-o", "api.d.ts"},
		{filepath.Join(bin, "tsc"), "--strict", "--noEmit", "--erasableSyntaxOnly", "--noUncheckedIndexedAccess", "--module", "nodenext", "--target", "es2022", "client.ts", "node.d.ts"},
	} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", filepath.Base(args[0]), err, out)
		}
	}
}
