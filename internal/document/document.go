// Package document holds the rendered parts of documents against what renders
// them, in tests. It does not know what they say.
package document

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Hold compares what follows the line "rendered by" in the file with what was
// rendered now, and fails the test where they differ. With update it writes the
// file anew. by is the command that updates it.
func Hold(t *testing.T, path, by, rendered string, update bool) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("<!-- rendered by %s: do not edit below -->\n", by)
	prose, old, found := strings.Cut(string(text), mark)
	if !found {
		t.Fatalf("%s lacks the line %q", path, mark)
	}
	if update {
		if err := os.WriteFile(path, []byte(prose+mark+"\n"+rendered), 0o644); err != nil { //nolint:gosec // a document is for everybody to read
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(old), "\n"), strings.Split(strings.TrimSpace(rendered), "\n")); diff != "" {
		t.Errorf("%s does not agree; look at the difference, then %s (-document +rendered):\n%s", path, by, diff)
	}
}
