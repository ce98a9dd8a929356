package v1

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// root is that of the module.
const root = "../../.."

// speaking are the packages whose errors reach this API.
var speaking = []string{"intent", "connectors", "ledger", "engine", "guards", "saga", "internal/access", "internal/service"}

// elsewhere are sentinels of them that never come this way, and why.
var elsewhere = map[string]string{
	"engine.ErrIdentityChanged": "of Engine.Step, which adapters of workflow engines call",
	"connectors.ErrScope":       "only the listing of a destination for an evaluation returns it",
	"connectors.ErrWriteOnly":   "of reads, which become part of an outcome",
	"connectors.ErrNoTarget":    "of reads, which become part of an outcome",
	"access.ErrInvalid":         "only the command line, which makes tokens, returns it",
	"access.ErrNoToken":         "only the command line, which revokes tokens, returns it",
	"access.ErrNoFormToken":     "it is an ErrForbidden; only forms of the review UI say more",
}

// parsed reads the Go files of a folder without its tests.
func parsed(t *testing.T, dir string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no Go files in %s: %v", dir, err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// sentinelsOf are the exported errors that a package declares, with its name.
func sentinelsOf(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	for _, f := range parsed(t, dir) {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if strings.HasPrefix(name.Name, "Err") {
						found = append(found, f.Name.Name+"."+name.Name)
					}
				}
			}
		}
	}
	return found
}

// Every error of the packages below has a row, so that none becomes a 500 by omission.
func TestEverySentinelHasARow(t *testing.T) {
	rows := map[string]bool{}
	for _, f := range parsed(t, "internal/service") {
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || v.Names[0].Name != "Problems" {
				return true
			}
			ast.Inspect(v, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					rows[n.X.(*ast.Ident).Name+"."+n.Sel.Name] = true
				case *ast.Ident:
					rows["service."+n.Name] = true
				}
				return true
			})
			return false
		})
	}
	if len(rows) < 30 {
		t.Fatalf("only %d rows were found", len(rows))
	}
	there := map[string]bool{}
	for _, dir := range speaking {
		for _, name := range sentinelsOf(t, dir) {
			there[name] = true
			if !rows[name] && elsewhere[name] == "" {
				t.Errorf("%s has no row in service.Problems", name)
			}
			if rows[name] && elsewhere[name] != "" {
				t.Errorf("%s has a row, and is listed as one that never comes this way", name)
			}
		}
	}
	for name := range elsewhere {
		if !there[name] {
			t.Errorf("%s is no longer there", name)
		}
	}
}

// Each row is reached: one after an error that it wraps would never be.
func TestEveryRowIsReached(t *testing.T) {
	for _, row := range service.Problems {
		if got := kindOf(fmt.Errorf("somewhere: %w", row.Err)); row.Type != "" && got.name != row.Type {
			t.Errorf("%v is answered as %s, want %s", row.Err, got.name, row.Type)
		}
	}
}

func TestWhatProblemsSay(t *testing.T) {
	prior := ledger.Record{ID: "wr_1", Tenant: "acme", Digest: "d1", State: ledger.Settled, Settlement: ledger.NotApplied, Reason: "refused"}
	outcome := engine.OutcomeOf(prior)
	foreign := prior
	foreign.Tenant = "umbrella"
	tests := map[string]struct {
		reason string
		err    error
		kind   *kind
		want   Problem
	}{
		"an intent": {"all that is wrong is listed, and the first place",
			&intent.InvalidError{Problems: []intent.Problem{{Path: "/key", Problem: "is missing", Want: "one"}, {Path: "/tool", Problem: "is missing", Want: "one"}}}, invalidIntent,
			Problem{Field: "/key", Problems: []intent.Problem{{Path: "/key", Problem: "is missing", Want: "one"}, {Path: "/tool", Problem: "is missing", Want: "one"}}}},
		"a write type that there is not": {"the place is found in the text", fmt.Errorf("%w: /write: no", intent.ErrInvalid), invalidIntent, Problem{Field: "/write"}},
		"no such destination":            {"likewise", fmt.Errorf("/destination: %w %q", connectors.ErrUnknownDestination, "x"), unknownDestination, Problem{Field: "/destination"}},
		"another digest": {"both are returned", &ledger.DigestMismatchError{ID: "wr_1", Recorded: "d1", Received: "d2"}, digestMismatch,
			Problem{ID: "wr_1", Recorded: "d1", Received: "d2"}},
		"an operation that was begun": {"the prior's outcome is returned", &ledger.BlockedError{Prior: prior, Received: "d2"}, operationBegun,
			Problem{ID: "wr_1", Recorded: "d1", Received: "d2", Known: "not applied", Outcome: &outcome}},
		"that of another tenant": {"nothing of it is returned", &ledger.BlockedError{Prior: foreign}, operationBegun, Problem{}},
		"the ledger broke":       {"an earlier request may have sent it, and the cause is not returned", &engine.Error{ID: "wr_1", Known: engine.KnownNotApplied, Err: unavailableLedger()}, unavailable, Problem{ID: "wr_1", Known: "unknown"}},
		"in the middle":          {"it is not known", fmt.Errorf("%w: %w", ledger.ErrUnsure, unavailableLedger()), unsure, Problem{Known: "unknown"}},
		"unsure, with its write": {"likewise", &engine.Error{ID: "wr_1", Known: engine.KnownNothing, Err: fmt.Errorf("%w: %w", ledger.ErrUnsure, errBroken)}, unsure, Problem{ID: "wr_1", Known: "unknown"}},
		"a plan":                 {"its place is returned", &saga.PlanError{Path: "/steps/0/name", Problem: "is missing", Err: intent.ErrInvalid}, invalidSaga, Problem{Field: "/steps/0/name"}},
		"expired":                {"nothing was sent", engine.ErrExpired, expired, Problem{Known: "not applied"}},
		"refused":                {"likewise", &ledger.RefusedError{ID: "wr_1", Reason: "no"}, refusedWrite, Problem{ID: "wr_1", Known: "not applied"}},
		"anonymous":              {"a reason is enough", access.ErrNoCredentials, unauthorized, Problem{}},
		"another tenant":         {"it precedes forbidden, which it wraps", service.ErrTenant, otherTenant, Problem{}},
		"a stop":                 {"in its own words", guards.ErrNotStopped, notStopped, Problem{}},
		"anything else":          {"what is inside stays inside", errBroken, broken, Problem{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			k, got := problemOf(test.err, "acme")
			if k != test.kind {
				t.Fatalf("kind %s, want %s", k.name, test.kind.name)
			}
			if strings.Contains(got.Detail, "secrets") || k.quiet != (got.Detail == "") {
				t.Errorf("detail %q", got.Detail)
			}
			got.Type, got.Title, got.Status, got.Detail, got.retry = "", "", 0, "", 0
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Problem{})); diff != "" {
				t.Errorf("%s:\n%s", test.reason, diff)
			}
		})
	}
}

// A repeat of a completed write does not get "nothing was done" while the ledger is
// unreachable.
func TestRepeatToABrokenLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nativeOptions(), nil)
		b.submit(order("A-1"))
		b.ledger.breaks(unavailableLedger())
		if p := b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1"))).problem(unavailable); p.Known != "unknown" {
			t.Errorf("%+v", p)
		}
	})
}

// A write whose reservation was lost by the ledger reports that.
func TestSubmitToABrokenLedger(t *testing.T) {
	tests := map[string]struct {
		err   error
		kind  *kind
		known string
	}{
		"away":   {unavailableLedger(), unavailable, "unknown"},
		"unsure": {fmt.Errorf("%w: %w", ledger.ErrUnsure, unavailableLedger()), unsure, "unknown"},
		"full":   {ledger.ErrFull, full, ""},
		"clock":  {ledger.ErrClock, unavailable, ""},
		"other":  {errors.New("something with secrets"), broken, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nativeOptions(), nil)
			b.ledger.breaks(test.err)
			a := b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1")), "Prefer: wait=1")
			p := a.problem(test.kind)
			if test.known != "" && p.Known != test.known || strings.Contains(string(a.Body), "secrets") {
				t.Errorf("%s", a.Body)
			}
			if len(b.world.Effects()) != 0 {
				t.Error("it was sent")
			}
		})
	}
}

// A name in a body may be as long as the body; a response does not repeat it.
func TestProblemsAreBounded(t *testing.T) {
	long := strings.Repeat("n", 300_000)
	_, err := decodeIntent([]byte(`{"`+long+`":1}`), "acme", "")
	if _, p := problemOf(err, "acme"); err == nil || len(text(t, p)) > 3*maxDetail || p.Field == "" {
		t.Errorf("%d bytes: %.300s", len(text(t, p)), text(t, p))
	}
	many := make([]intent.Problem, 5000)
	_, p := problemOf(&intent.InvalidError{Problems: many}, "acme")
	if len(p.Problems) != maxProblems || len(many) != 5000 {
		t.Errorf("%d problems are listed", len(p.Problems))
	}
}
