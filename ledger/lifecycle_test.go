package ledger

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The diagram of a write's lifecycle in the documentation has every transition of the
// table, and no other one.
func TestTheDiagramOfTheLifecycle(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "guide", "writes.md"))
	if err != nil {
		t.Fatal(err)
	}
	var shown, want []string
	for _, m := range regexp.MustCompile(`(?m)^  (\S+) --> (\S+): `).FindAllStringSubmatch(string(page), -1) {
		shown = append(shown, m[1]+" "+m[2])
	}
	for _, m := range moves {
		for _, from := range m.from {
			if from == "" {
				from = "[*]" // the start in state diagrams
			}
			if m.to != "" && m.to != from {
				want = append(want, string(from)+" "+string(m.to))
			}
		}
	}
	slices.Sort(shown)
	slices.Sort(want)
	if d := cmp.Diff(slices.Compact(want), shown); d != "" {
		t.Errorf("docs/guide/writes.md (-table +diagram):\n%s", d)
	}
}
