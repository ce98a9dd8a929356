package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The table must not rot: each snippet stands in the code exactly once, each
// mutant is Go, and each test is there. Whether the tests fail, "make mutants"
// finds out.
func TestTableFitsTheCode(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]bool{}
	for _, m := range table() {
		if _, err := m.mutate(root); err != nil {
			t.Errorf("%s: %v", m.Rule, err)
		}
		if !declares(t, filepath.Join(root, m.pkg()), "func "+m.top()+"(t *testing.T)") {
			t.Errorf("%s: %s has no %s", m.Rule, m.pkg(), m.top())
		}
		if rules[m.Rule] || m.Rule == "" || m.Section < 1 || m.Section > 10 {
			t.Errorf("§%d %q: want a rule of its own from a section of DESIGN, 1 to 10", m.Section, m.Rule)
		}
		rules[m.Rule] = true
	}
}

func declares(t *testing.T, dir, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(source, []byte(text)) {
			return true
		}
	}
	return false
}

func TestMarkdown(t *testing.T) {
	var out strings.Builder
	if err := run(context.Background(), &out, true, "phantom", 1); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 3 || !strings.Contains(out.String(), "`policies` `TestSecondSendKeys/burnt`") {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
	if err := run(context.Background(), &out, true, "(", 1); err == nil {
		t.Error("a pattern that is none is taken")
	}
}

func TestParse(t *testing.T) {
	said := `{"Action":"run","Test":"TestA/b"}
{"Action":"output","Test":"TestA/b","Output":"boom\n"}
{"Action":"fail","Test":"TestA/b"}
{"Action":"fail","Package":"p"}
not JSON
`
	s, err := parse(bytes.NewBufferString(said), "stderr\n")
	if err != nil || s.tests["TestA/b"] != "fail" || len(s.tests) != 1 || s.unbuilt || s.tail() != "stderr\nboom\nnot JSON\n" {
		t.Errorf("%+v, %v, %q", s.tests, err, s.tail())
	}
	s, err = parse(bytes.NewBufferString(`{"ImportPath":"p","Action":"build-fail"}`), "")
	if err != nil || !s.unbuilt {
		t.Errorf("a build that failed is not seen: %v", err)
	}
}

func TestExactly(t *testing.T) {
	if got, want := exactly("TestA/one_(1.5)"), `^TestA$/^one_\(1\.5\)$`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
