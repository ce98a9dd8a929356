package mcpgate_test

import (
	"os"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors/mcp"
)

// TestTheContractOfTheDocumentLoads: a user can start from it.
func TestTheContractOfTheDocumentLoads(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.HasPrefix(block, "contract: 1\n") {
			continue
		}
		found++
		c, err := mcp.Load([]byte(block), "docs/reference/mcp.md")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Writes(); len(got) != 2 || len(c.Digests(got[0])) == 0 {
			t.Errorf("writes %v", got)
		}
	}
	if found != 1 {
		t.Errorf("%d contracts in the document, want 1", found)
	}
}
