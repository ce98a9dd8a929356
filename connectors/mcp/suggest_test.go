package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
)

// recorded is a tool of a server: its name and the names and types of its arguments, what it does
// ("read", a write type, or "unsure" where an argument decides it), and which tools would show it.
type recorded struct {
	sdk.Tool
	Is string   `json:"is"`
	By []string `json:"by"`
}

// records reads what was recorded of the servers.
func records(t *testing.T) map[string][]recorded {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "servers", "*.json"))
	if err != nil || len(files) != 10 {
		t.Fatalf("%d servers, %v; want 10", len(files), err)
	}
	all := map[string][]recorded{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var server struct {
			Server string
			Tools  []recorded
		}
		if err := json.Unmarshal(text, &server); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = server.Tools
	}
	return all
}

// TestSuggestGuessesRight: of what is guessed of ten servers' tools four fifths are right, and
// what an argument decides is never proposed to read.
func TestSuggestGuessesRight(t *testing.T) {
	right, total := 0, 0
	for name, server := range records(t) {
		var tools []*sdk.Tool
		for i := range server {
			tools = append(tools, &server[i].Tool)
		}
		guesses := mcp.Guesses(tools)
		ok, n := 0, 0
		for _, r := range server {
			g := guesses[r.Name]
			n++
			if g.Is == r.Is {
				ok++
			} else {
				t.Logf("%s: %s is guessed to be %s, and is %s", name, r.Name, g.Is, r.Is)
			}
			if r.Is == "read" || r.Is == "unsure" {
				continue
			}
			n++
			if g.By == "" && len(r.By) == 0 || slices.Contains(r.By, g.By) {
				ok++
			} else {
				t.Logf("%s: %s is guessed to be shown by %q, want one of %q", name, r.Name, g.By, r.By)
			}
			if r.Is == "unsure" && g.Is == "read" {
				t.Errorf("%s: %s is proposed to read", name, r.Name)
			}
		}
		t.Logf("%s: %d of %d guesses are right", name, ok, n)
		right, total = right+ok, total+n
	}
	if t.Logf("%d of %d guesses are right (%d %%)", right, total, 100*right/total); 100*right < 80*total {
		t.Error("less than 80 % are right")
	}
}

// TestSuggestDoesNotProposeLanguages: a tool that takes a language is under reads in no draft.
func TestSuggestDoesNotProposeLanguages(t *testing.T) {
	for _, argument := range []string{"sql", "query", "command"} {
		schema := map[string]any{"type": "object", "properties": map[string]any{argument: map[string]any{"type": "string"}}}
		for _, tool := range []string{"read_rows", "query", "search", "run"} {
			text, err := mcp.Suggest("a server", []*sdk.Tool{{Name: tool, InputSchema: schema, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}})
			if err != nil || !strings.Contains(text, "reads:\n  []\n  # - \""+tool+"\"") || strings.Contains(text, "tool: \"") {
				t.Errorf("%s(%s): %v\n%s", tool, argument, err, text)
			}
		}
	}
}
