package rest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors/rest"
)

// TestDocumentedDeclarations: the examples of the documentation can be loaded.
func TestDocumentedDeclarations(t *testing.T) {
	const page = "../../docs/guide/destinations.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	loaded := 0
	for i, block := range strings.Split(string(text), "```") {
		body, isYAML := strings.CutPrefix(block, "yaml\n")
		if i%2 == 0 || !isYAML || !strings.HasPrefix(body, "declaration:") {
			continue
		}
		if _, err := rest.Load([]byte(body), page); err != nil {
			t.Errorf("%v in\n%s", err, body)
		}
		loaded++
	}
	if loaded == 0 {
		t.Errorf("%s shows no declaration", page)
	}
}
