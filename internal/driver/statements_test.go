package driver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/driver"
)

func TestReadStatements(t *testing.T) {
	files := fstest.MapFS{
		"sql/a.sql": {Data: []byte("-- name: one\n-- The first.\nSELECT 1\n\n-- name: two\nSELECT\n\t2\n")},
		"sql/b.sql": {Data: []byte("-- name: three\nSELECT 3\n")},
	}
	want := driver.Statements{"one": "-- The first.\nSELECT 1", "two": "SELECT\n\t2", "three": "SELECT 3"}
	got := driver.ReadStatements(files)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	panics := func(what string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", what)
			}
		}()
		f()
	}
	panics("an unknown name", func() { got.Text("four") })
	files["sql/c.sql"] = &fstest.MapFile{Data: []byte("-- name: one\nSELECT 4")}
	panics("one name twice", func() { driver.ReadStatements(files) })
}

// A statement that nothing names is dead.
func TestStatementsAreUsed(t *testing.T) {
	for _, folder := range []string{"../../ledger/sqlite", "../../ledger/postgres"} {
		paths, err := filepath.Glob(folder + "/*.go")
		var code strings.Builder
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			var text []byte
			if text, err = os.ReadFile(path); err != nil {
				break
			}
			code.Write(text)
		}
		all := driver.ReadStatements(os.DirFS(folder))
		if err != nil || len(all) == 0 {
			t.Fatalf("%s: %d statements, error %v", folder, len(all), err)
		}
		for name := range all {
			if !strings.Contains(code.String(), `"`+name+`"`) {
				t.Errorf("%s: nothing uses %s", folder, name)
			}
		}
	}
}
