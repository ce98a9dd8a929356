package readback_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/readback-go/readback"

// rooms is the table of who may import whom: for each package of the module,
// the packages of the module that its shipped code may import. A package that
// is missing here fails the test, and so does one that is gone.
var rooms = map[string][]string{
	".":      {},
	"intent": {"internal/jsonkind"},

	"connectors":               {"intent"},
	"connectors/httpsend":      {"connectors"},
	"connectors/connectortest": {"connectors", "intent"},
	"connectors/imap":          {"connectors", "intent", "internal/mailtext"},
	"connectors/imap/imaptest": {},
	"connectors/jira":          {"connectors", "connectors/httpsend", "intent"},
	"connectors/jira/jiratest": {"intent", "internal/wire"},
	"connectors/mail":          {"connectors", "connectors/imap", "intent", "internal/mailtext"},
	"connectors/mail/mailtest": {"connectors/imap/imaptest", "intent"},
	"connectors/rest":          {"connectors", "connectors/httpsend", "intent", "internal/jsonplace", "internal/yamlfile"},
	"connectors/rest/resttest": {"intent", "internal/wire"},
	"connectors/simulated":     {"connectors", "connectors/httpsend", "intent", "internal/wire"},
	"connectors/sql":           {"connectors", "intent", "internal/pgserver"},
	"connectors/mcp":           {"connectors", "connectors/httpsend", "intent", "internal/jsonplace", "internal/yamlfile"},
	"connectors/mcp/mcptest":   {},
	"connectors/webhook":       {"connectors", "connectors/httpsend", "intent"},

	"signing":       {},
	"redact":        {"connectors", "intent"},
	"telemetry":     {"connectors", "engine", "ledger", "verify"},
	"audit/objects": {"audit", "signing"},
	"audit":         {"intent", "internal/pause", "ledger", "signing"},
	"receipt":       {"connectors", "intent", "ledger", "redact", "signing"},
	"eval":          {"connectors", "intent", "internal/yamlfile", "verify"},
	"readbacktest":  {"connectors", "connectors/connectortest", "intent", "internal/wire"},

	"ledger":            {"intent"},
	"ledger/ledgertest": {"ledger", "intent"},
	"ledger/postgres":   {"intent", "internal/driver", "internal/pgserver", "ledger"},
	"ledger/sqlite":     {"intent", "internal/driver", "ledger"},

	"verify":            {"connectors", "intent"},
	"verify/verifytest": {"connectors", "connectors/connectortest", "intent", "verify"},
	"policies":          {"connectors", "intent", "ledger", "verify"},
	"engine":            {"connectors", "intent", "internal/elapsed", "ledger", "policies", "redact", "verify"},
	"workflow":          {"engine", "intent", "ledger", "policies", "internal/pause"},
	"workflow/rules":    {"internal/yamlfile", "workflow"},
	"workflow/saga":     {"connectors", "engine", "intent", "internal/jsonkind", "ledger", "policies", "internal/pause"},
	"guards":            {"connectors", "engine", "ledger", "internal/pause"},
	"lag":               {"engine", "ledger"},

	"internal/browsertest": {},
	"internal/catalog":     {"connectors", "connectors/imap", "connectors/jira", "connectors/mail", "connectors/mcp", "connectors/rest", "connectors/simulated", "connectors/sql", "intent", "internal/report", "policies"},
	"internal/config":      {"audit", "audit/objects", "connectors", "connectors/imap", "connectors/jira", "connectors/mail", "connectors/mcp", "connectors/rest", "connectors/simulated", "connectors/sql", "connectors/webhook", "engine", "intent", "internal/access", "internal/mcpapi/tool", "internal/otel", "internal/pgserver", "internal/webhooks", "internal/yamlfile", "ledger", "ledger/postgres", "ledger/sqlite", "policies", "redact", "signing"},
	"internal/demo":        {"connectors", "connectors/imap", "connectors/imap/imaptest", "connectors/simulated", "engine", "intent", "ledger", "ledger/sqlite"},
	"internal/document":    {},
	"internal/elapsed":     {"ledger"},
	"internal/explorer":    {},
	"internal/access":      {"engine", "ledger"},
	"internal/httpapi":     {"internal/access", "internal/jsonkind", "engine", "ledger", "workflow"},
	"internal/httpapi/v1":  {"connectors", "engine", "guards", "intent", "internal/access", "internal/jsonkind", "internal/office", "lag", "ledger", "verify", "workflow", "workflow/saga", "receipt", "signing"},
	"internal/mcpapi":      {"connectors", "engine", "intent", "internal/access", "internal/mcpapi/tool", "internal/office", "ledger"},
	"internal/mcpgate":     {"connectors", "connectors/mcp", "engine", "intent", "internal/access", "internal/mcpapi", "internal/mcpapi/tool", "internal/office", "ledger"},
	"internal/reviewui":    {"connectors", "engine", "guards", "intent", "internal/access", "internal/office", "internal/report", "lag", "ledger", "verify", "workflow", "workflow/saga", "receipt", "redact", "signing"},
	"internal/webhooks":    {"connectors/webhook", "engine", "intent", "internal/pause", "ledger"},
	"internal/office":      {"connectors", "engine", "guards", "intent", "internal/access", "internal/replays", "lag", "ledger", "redact", "verify", "workflow", "workflow/saga"},
	"internal/sagamatrix":  {},
	"internal/sealed":      {"connectors", "intent", "ledger", "redact"},
	"internal/jsonkind":    {},
	"internal/jsonplace":   {"internal/yamlfile"},
	"internal/load":        {},
	"internal/mailtext":    {},
	"internal/matrix":      {},
	"internal/mutants":     {},
	"internal/metrics":     {"connectors", "engine", "internal/httpapi", "ledger", "telemetry", "verify"},
	"internal/need":        {},
	"internal/notices":     {},
	"internal/otel":        {},
	"internal/pause":       {},
	"internal/pgserver":    {},
	"internal/pgtest":      {},
	"internal/program":     {},
	"internal/probe":       {"connectors", "intent", "verify"},
	"internal/replays":     {"ledger"},
	"internal/report":      {"connectors", "engine", "guards", "intent", "lag", "ledger", "verify"},
	"internal/soak":        {},
	"internal/simulation":  {},
	"internal/snippets":    {},
	"internal/driver":      {"ledger"},
	"internal/storebench":  {"connectors", "engine", "intent", "ledger"},
	"internal/wire":        {},
	"internal/yamlfile":    {},

	"internal/access/accesstest":    {},
	"internal/httpapi/contracttest": {},
	"internal/otel/oteltest":        {},
	"internal/mcpapi/tool":          {"connectors", "intent", "internal/jsonkind", "verify"},

	"cmd/readback": {"audit", "eval", "internal/otel", "receipt", "redact", "signing", "telemetry", "internal/replays", "connectors/mcp", "internal/mcpgate", "internal/reviewui", "internal/access", "internal/office", "internal/httpapi/v1", "workflow", "workflow/rules", "workflow/saga", "internal/httpapi", "connectors", "connectors/rest", "connectors/simulated", "engine", "guards", "intent", "internal/catalog", "internal/config", "internal/demo", "internal/mcpapi", "internal/metrics", "internal/pgserver", "internal/probe", "internal/report", "internal/sealed", "internal/webhooks", "internal/yamlfile", "lag", "ledger", "ledger/postgres", "ledger/sqlite", "policies", "verify"},
}

// heavy lists dependencies that only the named packages may import, and why:
// who embeds the core must not have to carry them.
var heavy = map[string][]string{
	"zombiezen.com/go/sqlite":            {"ledger/sqlite"},                                                             // megabytes of translated C
	"github.com/emersion/go-imap":        {"connectors/imap", "connectors/imap/imaptest"},                               // one destination's protocol
	"github.com/emersion/go-smtp":        {"connectors/mail", "connectors/mail/mailtest"},                               // likewise
	"github.com/andygrunwald/go-jira":    {"connectors/jira"},                                                           // likewise
	"github.com/jackc/pgx":               {"connectors/sql", "internal/pgserver", "internal/pgtest", "ledger/postgres"}, // likewise, and one ledger's
	"github.com/anishathalye/porcupine":  {"ledger/ledgertest"},                                                         // for tests of ledgers
	"github.com/google/cel-go":           {"workflow/rules"},                                                            // for who writes rules
	"github.com/prometheus":              {"internal/metrics"},                                                          // for who scrapes
	"github.com/sony/gobreaker":          {"guards"},
	"github.com/DataDog/sketches-go":     {"lag"},
	"github.com/theory/jsonpath":         {"internal/jsonplace"},                                                              // for contracts and declarations
	"github.com/yosida95/uritemplate":    {"connectors/rest"},                                                                 // for declarations
	"golang.org/x/oauth2":                {"connectors/rest", "internal/access"},                                              // for declarations
	"github.com/modelcontextprotocol":    {"connectors/mcp", "connectors/mcp/mcptest", "internal/mcpapi", "internal/mcpgate"}, // one protocol, and its doors
	"github.com/coreos/go-oidc":          {"internal/access"},                                                                 // for who logs people in
	"github.com/getkin/kin-openapi":      {"internal/httpapi/v1"},                                                             // for who reads the description of the door
	"github.com/standard-webhooks":       {"connectors/webhook"},                                                              // one destination's signatures
	"go.opentelemetry.io/otel/sdk":       {"internal/otel"},                                                                   // the program's, not the libraries'
	"go.opentelemetry.io/otel/exporters": {"internal/otel"},                                                                   // likewise
	"github.com/in-toto":                 {"receipt"},                                                                         // for who wants proof
	"github.com/secure-systems-lab":      {"signing"},                                                                         // likewise
	"github.com/minio":                   {"audit/objects"},                                                                   // one place for heads
	"github.com/jstemmer":                {"eval"},                                                                            // one form of a report
	"gonum.org":                          {"eval"},                                                                            // confidence intervals
	"github.com/spf13/cobra":             {"cmd/readback"},                                                                    // the command line's
	"github.com/goccy/go-yaml":           {"internal/yamlfile"},                                                               // the configuration's and the declarations'
}

// goFile is one parsed file of the module.
type goFile struct {
	dir, path string
	test      bool
	file      *ast.File
	fset      *token.FileSet
}

// parseAll opens and parses every Go file itself: a test that asked the go
// command for imports would pass from the test cache after a bad import.
func parseAll(t *testing.T) []goFile {
	t.Helper()
	var all []goFile
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && p != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
			return filepath.SkipDir
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
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no Go files found: this test must run in the module's root")
	}
	return all
}

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
	for _, f := range parseAll(t) {
		if strings.HasPrefix(f.dir, "examples/") {
			continue // examples may import whatever a user may
		}
		allowed, known := rooms[f.dir]
		if !known {
			t.Errorf("%s: package %q is missing from the table of rooms", f.path, f.dir)
			continue
		}
		found[f.dir] = true
		if f.test {
			continue
		}
		for _, p := range f.imports(t) {
			checkImport(t, f, p, allowed)
		}
	}
	for dir := range maps.Keys(rooms) {
		if !found[dir] {
			t.Errorf("the table of rooms names %q, which has no Go files", dir)
		}
	}
}

func checkImport(t *testing.T, f goFile, imported string, allowed []string) {
	t.Helper()
	if inside, ok := strings.CutPrefix(imported, module+"/"); ok && !slices.Contains(allowed, inside) {
		t.Errorf("%s imports %q; the table of rooms allows %v", f.path, inside, allowed)
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
	for _, f := range parseAll(t) {
		if slices.Contains(forbidden, path.Base(f.dir)) {
			t.Errorf("%s: a package named %q says nothing", f.path, path.Base(f.dir))
		}
		if !f.test && f.file.Doc != nil {
			comments[f.dir]++
		}
	}
	for dir := range rooms {
		if comments[dir] != 1 {
			t.Errorf("package %q has %d package comments, want exactly one", dir, comments[dir])
		}
	}
}

func TestExportedNamesHaveComments(t *testing.T) {
	for _, f := range parseAll(t) {
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
