package yamlfile_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/yamlfile"
)

func TestShipped(t *testing.T) {
	errInvalid := errors.New("invalid")
	s := yamlfile.Shipped{Folder: "contracts", What: "contract", Invalid: errInvalid, Files: fstest.MapFS{
		"contracts/b.yaml": {Data: []byte("b: 1")}, "contracts/a.yaml": {Data: []byte("a: 1")}, "other/c.yaml": {},
	}}
	if diff := cmp.Diff([]string{"a", "b"}, s.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if text, err := s.Text("b"); err != nil || string(text) != "b: 1" {
		t.Errorf("text %q, error %v", text, err)
	}
	// A name is one of the list, and never a way to another file.
	for _, name := range []string{"c", "../other/c", "a.yaml", ""} {
		text, err := s.Text(name)
		if !errors.Is(err, errInvalid) || text != nil || !strings.Contains(err.Error(), "no contract") || !strings.Contains(err.Error(), "want one of a, b") {
			t.Errorf("%q: text %q, error %v", name, text, err)
		}
	}
}
