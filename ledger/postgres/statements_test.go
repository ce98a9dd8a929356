package postgres_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/driver"
)

// A statement that nothing names is dead.
func TestStatementsAreUsed(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	must(t, err)
	var code strings.Builder
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			must(t, err)
			code.Write(text)
		}
	}
	for name := range driver.ReadStatements(os.DirFS(".")) {
		if !strings.Contains(code.String(), `"`+name+`"`) {
			t.Errorf("nothing uses %s", name)
		}
	}
}
