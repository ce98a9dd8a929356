package readback_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/readback-go/readback"

// floors are the packages of the module by number: shipped code imports packages of
// the module only from floors below its own. A package that is missing here fails the
// test, and so does one that is gone.
var floors = [][]string{
	{ // 0: text of others
		"internal/visible",
	},
	{ // 1: needs no more of the module, or has only tests
		".", "connectors/egress", "readbacktest/fault", "signing",
		"internal/access/accesstest", "internal/browsertest", "internal/explorer", "internal/httpapi/contracttest",
		"internal/jsonkind", "internal/load", "internal/mailtext", "internal/matrix", "internal/mutants", "internal/need",
		"internal/notices", "internal/openapi", "internal/otel", "internal/otel/oteltest", "internal/pause", "internal/pgserver", "internal/pgtest",
		"internal/program", "internal/release", "internal/sagamatrix", "internal/simulation", "internal/snippets",
		"internal/wire", "internal/yamlfile",
	},
	{ // 2: what a caller declares
		"intent", "internal/chaos", "internal/jsonplace", "internal/fakes/imap", "internal/fakes/jira", "internal/fakes/mcp", "internal/fakes/rest",
	},
	{ // 3: what a destination is, and what is recorded
		"connectors", "internal/fakes/mail", "ledger",
	},
	{ // 4: what is true
		"verify", "audit", "redact", "connectors/connectortest", "connectors/httpsend", "connectors/sql",
		"lag", "ledger/ledgertest", "ledger/shards", "internal/crashtest", "internal/declared", "internal/driver", "internal/elapsed", "internal/mailconn", "internal/replays",
	},
	{ // 5: what to do about it, the destinations and the drivers
		"policies", "ledger/postgres", "ledger/sqlite", "connectors/imap", "connectors/jira", "connectors/mcp", "connectors/rest", "connectors/s3",
		"connectors/webhook", "readbacktest", "receipt",
		"internal/fakes/orders", "internal/eval", "internal/mcpapi/tool", "internal/objects", "internal/probe", "internal/sealed", "internal/verifytest",
	},
	{ // 6: does it; and a destination that needs another
		"engine", "connectors/mail", "internal/fakes/orders/orderstest", "internal/killtest",
	},
	{ // 7: what is built on the engine
		"guards", "telemetry", "gate", "once", "saga",
		"internal/access", "internal/adaptertest", "internal/demo", "internal/messages", "internal/storebench", "internal/webhooks",
	},
	{ // 8: what the interfaces share
		"internal/config", "internal/dispatchtest", "internal/erasure", "internal/httpapi", "internal/report", "internal/rules", "internal/service", "internal/soak",
	},
	{ // 9: the interfaces
		"internal/catalog", "internal/httpapi/v1", "internal/mcpapi", "internal/metrics", "internal/notify", "internal/reviewui",
	},
	{ // 10: before another server's interface
		"internal/mcpgate",
	},
	{ // 11: every interface in one server
		"internal/server",
	},
	{ // 12: what the program does
		"command",
	},
	{ // 13: the program
		"cmd/readback",
	},
}

// testKit reports whether a package is for tests, of ours or of others. The order system
// is also a program's.
func testKit(dir string) bool {
	fake := strings.HasPrefix(dir, "internal/fakes/") && dir != "internal/fakes/orders"
	return fake || strings.HasSuffix(dir, "test") || dir == "internal/need" || dir == "internal/soak"
}

// floorOf is the number of a package of the module, or -1.
func floorOf(dir string) int {
	return slices.IndexFunc(floors, func(packages []string) bool { return slices.Contains(packages, dir) })
}

// heavy lists dependencies that only the named packages may import, and why:
// who embeds the core must not have to carry them.
var heavy = map[string][]string{
	"zombiezen.com/go/sqlite":            {"ledger/sqlite"},                                                                              // megabytes of translated C
	"github.com/emersion/go-imap":        {"connectors/imap", "internal/fakes/imap"},                                                     // one destination's protocol
	"github.com/emersion/go-smtp":        {"connectors/mail", "internal/fakes/mail"},                                                     // likewise
	"github.com/andygrunwald/go-jira":    {"connectors/jira"},                                                                            // likewise
	"github.com/jackc/pgx":               {"connectors/sql", "internal/pgserver", "internal/pgtest", "internal/soak", "ledger/postgres"}, // likewise, and one ledger's
	"github.com/anishathalye/porcupine":  {"ledger/ledgertest"},                                                                          // for tests of ledgers
	"github.com/google/cel-go":           {"internal/rules"},                                                                             // for who writes rules
	"github.com/prometheus":              {"internal/metrics"},                                                                           // for who scrapes
	"github.com/sony/gobreaker":          {"guards"},
	"github.com/DataDog/sketches-go":     {"lag"},
	"github.com/theory/jsonpath":         {"internal/jsonplace"},                                                          // for contracts and declarations
	"github.com/yosida95/uritemplate":    {"connectors/rest"},                                                             // for declarations
	"golang.org/x/oauth2":                {"connectors/rest", "internal/access"},                                          // for declarations
	"github.com/go-jose":                 {"connectors/rest", "internal/access/accesstest"},                               // for signed logins
	"github.com/modelcontextprotocol":    {"connectors/mcp", "internal/fakes/mcp", "internal/mcpapi", "internal/mcpgate"}, // one protocol, and its doors
	"github.com/coreos/go-oidc":          {"internal/access"},                                                             // for who logs people in
	"github.com/getkin/kin-openapi":      {"internal/httpapi/v1", "internal/openapi"},                                     // for who reads descriptions of doors
	"github.com/standard-webhooks":       {"connectors/webhook"},                                                          // one destination's signatures
	"go.opentelemetry.io/otel/sdk":       {"internal/otel"},                                                               // the program's, not the libraries'
	"go.opentelemetry.io/otel/exporters": {"internal/otel"},                                                               // likewise
	"github.com/in-toto":                 {"receipt"},                                                                     // for who wants proof
	"github.com/secure-systems-lab":      {"signing"},                                                                     // likewise
	"github.com/minio":                   {"connectors/s3", "internal/objects"},                                           // one destination, and one place for heads
	"github.com/jstemmer":                {"internal/eval"},                                                               // one form of a report
	"gonum.org":                          {"internal/eval"},                                                               // confidence intervals
	"github.com/spf13/cobra":             {"command"},                                                                     // the command line's
	"github.com/goccy/go-yaml":           {"command", "internal/yamlfile"},                                                // the configuration's and the declarations'
}

// goFile is one parsed file of the module.
type goFile struct {
	dir, path string
	test      bool
	file      *ast.File
	fset      *token.FileSet
}

// parsed are all Go files of the module. It opens and parses each itself: a test that
// asked the go command for imports would pass from the test cache after a bad import.
func parsed(t *testing.T) []goFile {
	t.Helper()
	all, err := parseAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no Go files found: this test must run in the module's root")
	}
	return all
}

var parseAll = sync.OnceValues(func() (all []goFile, err error) {
	err = filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && p != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() && p != "." {
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
				return filepath.SkipDir // another module: bench
			}
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, text, parser.ParseComments)
		if err != nil {
			return err
		}
		all = append(all, goFile{dir: filepath.ToSlash(filepath.Dir(p)), path: p, test: strings.HasSuffix(name, "_test.go"), file: f, fset: fset})
		return nil
	})
	return all, err
})

func (f goFile) imports(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, spec := range f.file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	return paths
}

func TestImportsPointDown(t *testing.T) {
	found := map[string]bool{}
	for _, f := range parsed(t) {
		if strings.HasPrefix(f.dir, "examples/") {
			continue // examples may import whatever a user may
		}
		if !found[f.dir] && floorOf(f.dir) < 0 {
			t.Errorf("package %q is on none of the floors", f.dir)
		}
		found[f.dir] = true
		if f.test {
			continue
		}
		for _, p := range f.imports(t) {
			checkImport(t, f, p)
		}
	}
	for n, packages := range floors {
		for _, dir := range packages {
			if !found[dir] {
				t.Errorf("floor %d names %q, which has no Go files", n, dir)
			}
		}
	}
}

func checkImport(t *testing.T, f goFile, imported string) {
	t.Helper()
	if inside, ok := strings.CutPrefix(imported, module+"/"); ok {
		if at := floorOf(inside); at < 0 || at >= floorOf(f.dir) {
			t.Errorf("%s, on floor %d, imports %q of floor %d: want one below", f.path, floorOf(f.dir), inside, at)
		}
		if testKit(inside) && !testKit(f.dir) && f.dir != "internal/demo" { // which shows a mailbox
			t.Errorf("%s imports %q, which is for tests", f.path, inside)
		}
	}
	for dependency, where := range heavy {
		if (imported == dependency || strings.HasPrefix(imported, dependency+"/")) && !slices.Contains(where, f.dir) {
			t.Errorf("%s imports %q, which only %v may", f.path, imported, where)
		}
	}
	if imported == "C" {
		t.Errorf("%s uses cgo", f.path)
	}
}

// forbidden are package names that say nothing.
var forbidden = []string{"pkg", "util", "utils", "common", "types", "models", "helpers", "misc", "base"}

func TestPackagesHaveNamesAndComments(t *testing.T) {
	comments := map[string]int{}
	for _, f := range parsed(t) {
		if slices.Contains(forbidden, path.Base(f.dir)) {
			t.Errorf("%s: a package named %q says nothing", f.path, path.Base(f.dir))
		}
		if !f.test && f.file.Doc != nil {
			comments[f.dir]++
		}
	}
	for _, dir := range slices.Concat(floors...) {
		if comments[dir] != 1 {
			t.Errorf("package %q has %d package comments, want exactly one", dir, comments[dir])
		}
	}
}

func TestExportedNamesHaveComments(t *testing.T) {
	for _, f := range parsed(t) {
		if f.test || f.file.Name.Name == "main" {
			continue
		}
		for _, decl := range f.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) && d.Doc == nil {
					t.Errorf("%s: %s has no comment", f.fset.Position(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				checkSpecs(t, f, d)
			}
		}
	}
}

// wellKnown are methods whose meaning their interface gives.
var wellKnown = []string{"Error", "Unwrap", "String", "PushStep", "PopStep", "Report", "Read", "Write", "Close", "Header", "WriteHeader", "RoundTrip"}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	if slices.Contains(wellKnown, d.Name.Name) {
		return false
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X
	}
	name, ok := typ.(*ast.Ident)
	return ok && name.IsExported()
}

func checkSpecs(t *testing.T, f goFile, d *ast.GenDecl) {
	t.Helper()
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
				t.Errorf("%s: %s has no comment", f.fset.Position(s.Pos()), s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					t.Errorf("%s: %s has no comment", f.fset.Position(name.Pos()), name.Name)
				}
			}
		}
	}
}
