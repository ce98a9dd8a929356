package catalog_test

import (
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/catalog"
	"github.com/readback-go/readback/internal/need"
)

var update = flag.Bool("update", false, "render docs/reference/destinations.md anew")

func TestDocument(t *testing.T) {
	need.Document(t, "../../docs/reference/destinations.md", "go test ./internal/catalog -update", catalog.Markdown(catalog.All()), *update)
}

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// TestEverySheetIsWhole: every claim has a source, and every declaration has a claim.
func TestEverySheetIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range catalog.All() {
		t.Run(s.Name, func(t *testing.T) {
			if seen[s.Name] || !nameForm.MatchString(s.Name) || s.System == "" || s.Kind == "" {
				t.Errorf("name %q, system %q, kind %q; want all of them, and a name of its own", s.Name, s.System, s.Kind)
			}
			seen[s.Name] = true
			about := map[connectors.Topic]int{}
			for _, c := range s.Claims {
				about[c.About]++
				if strings.TrimSpace(c.Says) == "" || strings.TrimSpace(c.Source) == "" {
					t.Errorf("a claim about %q says %q with the source %q; want both", c.About, c.Says, c.Source)
				}
				if !slices.Contains(connectors.Topics(), c.About) {
					t.Errorf("a claim is about %q; want one of %v", c.About, connectors.Topics())
				}
			}
			for _, topic := range connectors.Topics() {
				if about[topic] == 0 {
					t.Errorf("no claim about %q", topic)
				}
			}
			coherent(t, s.Profile)
		})
	}
	if len(seen) < 12 {
		t.Errorf("%d sheets; want those of every connector and declaration", len(seen))
	}
}

// coherent: a profile declares nothing about a missing write type, and declares how it reads.
func coherent(t *testing.T, p connectors.Profile) {
	t.Helper()
	for name, all := range map[string][]intent.WriteType{"Unique": p.Unique, "Conditional": p.Conditional, "Undo": p.Undo, "Irreversible": p.Irreversible} {
		for _, w := range all {
			if err := p.Check(w); err != nil {
				t.Errorf("%s names %s: %v", name, w, err)
			}
		}
	}
	for w := range p.NativeWindow {
		if err := p.Check(w); err != nil {
			t.Errorf("NativeWindow names %s: %v", w, err)
		}
	}
	if len(p.Reads) > 0 == p.WriteOnly {
		t.Errorf("%d ways of reading, write-only %t; want one of the two", len(p.Reads), p.WriteOnly)
	}
	for _, r := range p.Reads {
		if r.Path == "" || !slices.Contains([]string{"ref", "stamp", "key"}, r.By) {
			t.Errorf("the read %q by %q; want a name, and ref, stamp or key", r.Path, r.By)
		}
	}
	if p.Rate.Calls > 0 != (p.Rate.Per > 0) {
		t.Errorf("the rate is %+v; want both or none", p.Rate)
	}
}

func TestFind(t *testing.T) {
	sheets := catalog.All()
	e, err := catalog.Find(sheets, sheets[0].Name)
	if err != nil || e.Name != sheets[0].Name || len(e.Promises) == 0 || len(e.Claims) == 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := catalog.Find(sheets, "erp"); err == nil || !strings.Contains(err.Error(), sheets[0].Name) {
		t.Errorf("%v; want the names that there are", err)
	}
}

// A page keeps its values inside its cells, and shows what is not declared.
func TestPage(t *testing.T) {
	s := connectors.Sheet{Name: "x", System: "X | Y", Kind: "thing", Type: "rest", Profile: connectors.Profile{
		Writes: []intent.WriteType{intent.Create}, Horizon: connectors.Within(90 * time.Second),
		NativeWindow: map[intent.WriteType]time.Duration{intent.Create: 24 * time.Hour}},
		Claims: []connectors.Claim{{About: connectors.TopicNative, Says: "a|b\nc", Source: "RFC 1", Assumed: true}}}
	text := catalog.Page(catalog.Of(s), 2)
	for _, want := range []string{"## X | Y: thing\n", "- **create**: ", "| horizon | 1m30s |", "| settle time | not declared |",
		"| native idempotency | create for 24h |", "| native idempotency | a\\|b c *(assumed)* | RFC 1 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "- **update**") {
		t.Error("promises a write type that there is not")
	}
}
