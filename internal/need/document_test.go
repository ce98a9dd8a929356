package need_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/readback-go/readback/internal/need"
)

// TestDocument sees the difference that an inner test must report.
func TestDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	const head = "Prose.\n\n<!-- rendered by make docs: do not edit below -->\n"
	if err := os.WriteFile(path, []byte(head+"\nold\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	need.Document(t, path, "make docs", "old\n", false)
	need.Document(t, path, "make docs", "new\n", true)
	text, err := os.ReadFile(path)
	if want := head + "\nnew\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
	const tail = "\n<!-- end -->\n\nProse, and <!-- another mark -->\n"
	if err := os.WriteFile(path, []byte(head+"\nold\n"+tail), 0o600); err != nil {
		t.Fatal(err)
	}
	need.Document(t, path, "make docs", "old\n", false)
	need.Document(t, path, "make docs", "new\n", true)
	text, err = os.ReadFile(path)
	if want := head + "\nnew\n" + tail; err != nil || string(text) != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
	for name, c := range map[string]struct{ by, rendered string }{
		"another text": {"make docs", "newer\n"},
		"no mark":      {"make nothing", "new\n"},
	} {
		if !fails(func(t *testing.T) { need.Document(t, path, c.by, c.rendered, false) }) {
			t.Errorf("%s: it passed", name)
		}
	}
}

// fails runs a test of its own and reports whether it failed.
func fails(f func(*testing.T)) bool {
	var inner testing.T
	done := make(chan struct{})
	go func() { // Fatal ends the goroutine
		defer close(done)
		f(&inner)
	}()
	<-done
	return inner.Failed()
}
