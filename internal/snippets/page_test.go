package snippets

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	page        = "../../docs/guide/start.md"
	enginesPage = "../../docs/guide/engines.md"
	linesPage   = "../../docs/guide/your-200-lines.md"
)

// tests says which test runs each block of the pages.
var tests = map[string]func(*testing.T){
	"setup":              TestWhy,
	"try":                TestTry,
	"python-naive":       TestWhy,
	"python-fixed":       TestWhy,
	"account":            TestWhy,
	"python-act":         TestPython,
	"python-decorator":   TestPythonDecorator,
	"python-langgraph":   TestLangGraph,
	"python-agents-mcp":  TestAgentsServers,
	"python-agents-tool": TestAgentsTool,
	"ts-act":             TestTypeScript,
	"ts-tool":            TestTypeScriptTool,
	"ts-mcp":             TestTypeScriptMCP,
	"mcp-stdio":          TestConfiguredProcess,
	"mcp-http":           TestConfiguredServer,
	"go":                 TestGo,
	"go-once":            TestGo,
	"engine-step":        TestEngines,
	"engine-inngest":     TestEngines,
	"engine-trigger":     TestEngines,
	"engine-vercel":      TestEngines,
	"engine-durabletask": TestEngines,
	"engine-gate":        TestEngines,
	"chaos-python":       TestChaosPython,
	"chaos-node":         TestChaosNode,
}

var fence = regexp.MustCompile("(?ms)^(?:<!-- run: ([a-z-]+) -->\n)?```[a-z]*\n(.*?)^```$")

// blocks are the blocks of the pages by their marks. The page of workflow engines has blocks
// without a mark: those in Go, which the adapters' own tests run. The page of the fault kit has others.
func blocks(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, of := range []string{page, enginesPage, linesPage} {
		text, err := os.ReadFile(of)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
			found++
			if m[1] == "" {
				if of == page || of == enginesPage && !strings.HasPrefix(m[0], "```go\n") {
					t.Errorf("a block without a mark, which nothing runs:\n%s", m[2])
				}
				continue
			}
			if _, twice := all[m[1]]; twice {
				t.Errorf("two blocks are called %q", m[1])
			}
			all[m[1]] = m[2]
		}
		if n := strings.Count(string(text), "\n```"); n != 2*found {
			t.Errorf("%s has %d fences, and %d blocks were found", of, n, found)
		}
	}
	return all
}

func block(t *testing.T, name string) string {
	t.Helper()
	text, found := blocks(t)[name]
	if !found {
		t.Fatalf("the page has no block %q", name)
	}
	return text
}

// Every block of the page is run, and nothing that it does not show.
func TestEveryBlockIsRun(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(maps.Keys(tests)), slices.Sorted(maps.Keys(blocks(t)))); diff != "" {
		t.Errorf("blocks that tests run, and those of the page:\n%s", diff)
	}
}

// The pages of the entry points link to each other.
func TestPagesAreLinked(t *testing.T) {
	pages := []string{"guide/start.md", "reference/http.md", "reference/mcp.md"}
	for _, from := range pages {
		text, err := os.ReadFile("../../docs/" + from)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range pages {
			link, err := filepath.Rel(filepath.Dir(from), to)
			if err != nil {
				t.Fatal(err)
			}
			if from != to && !strings.Contains(string(text), "]("+filepath.ToSlash(link)) {
				t.Errorf("%s does not lead to %s", from, to)
			}
		}
	}
}
