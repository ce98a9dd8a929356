package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tables must not rot: each snippet occurs in the code exactly once, each
// mutant is Go, and each test is there. Whether the tests fail, "make mutants"
// finds out.
func TestTablesFitTheCode(t *testing.T) {
	if err := run(t.Context(), io.Discard, options{check: true}); err != nil {
		t.Error(err)
	}
}

// After a change of names one list says what is to be mended, and where.
func TestCheckNamesAllThatDoesNotFit(t *testing.T) {
	root := module(t, map[string]string{
		"p/p.go":      "package p\n\nvar a, b = 1, 1\n",
		"p/p_test.go": "package p\n\nfunc TestP(t *testing.T) { t.Run(\"a sub\", nil) }\n",
		"p/mutants.txt": `
rule: It fits.
section: 5
file: p.go
test: TestP/a_sub
-a, b
+b, a

rule: It was renamed.
section: 5
file: p.go
test: TestP
-c, d
+d, c

rule: It is there twice.
section: 5
file: p.go
test: TestP
-1
+2

rule: It is no Go.
section: 5
file: p.go
test: TestP
-a, b = 1, 1
+a, b =

rule: It changes nothing.
section: 5
file: p.go
test: TestP
-a, b
+a, b

rule: Its test is gone, and its file.
section: 5
file: q.go
test: TestQ
-a
+b

rule: The case of its test is gone.
section: 5
file: p.go
test: TestP/a_sub/10s/its_case
-a, b
+b, a
`})
	all, err := tables(root)
	if err != nil || len(all) != 7 {
		t.Fatalf("%d mutants, %v", len(all), err)
	}
	want := []string{
		`p/mutants.txt:9: the code occurs in p/p.go 0 times, want once: "c, d"`,
		`p/mutants.txt:16: the code occurs in p/p.go 2 times, want once: "1"`,
		`p/mutants.txt:23: the mutant is no Go: `,
		`p/mutants.txt:30: p/p.go: the code is replaced by itself`,
		`p/mutants.txt:37: file: `,
		`p/mutants.txt:37: test: ./p has no func TestQ(t *testing.T)`,
		`p/mutants.txt:44: test: ./p has no its case`,
	}
	list := strings.Split(fmt.Sprint(check(root, all)), "\n")
	if !slices.EqualFunc(list, want, strings.HasPrefix) {
		t.Errorf("%s\nwant\n%s", strings.Join(list, "\n"), strings.Join(want, "\n"))
	}
}

// module is a folder with the files.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// Code is taken as it is, blanks and ends of lines included.
func TestTableTakesCodeAsItIs(t *testing.T) {
	got, err := parseTable("a/b/mutants.txt", `# Comment.

rule: Never: say "never".
section: 5
file: sql/x.sql
package: engine
test: TestX/a:_b
-	if x == "\n" {
-
-	}
-
+if `+"`y` && \n"+`
# Comment.
rule: Nothing is left.
section: 6
file: x.go
test: TestY
--x`)
	want := []Mutant{
		{Where: "a/b/mutants.txt:3", Section: 5, Rule: `Never: say "never".`, File: "a/b/sql/x.sql", Package: "engine", Test: "TestX/a:_b",
			Old: "\tif x == \"\\n\" {\n\n\t}\n", New: "if `y` && "},
		{Where: "a/b/mutants.txt:15", Section: 6, Rule: "Nothing is left.", File: "a/b/x.go", Package: "a/b", Test: "TestY", Old: "-x"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
}

func TestWrongTablesAreRefusedByLine(t *testing.T) {
	const head = "rule: A.\nsection: 5\nfile: a.go\ntest: TestA\n"
	for text, want := range map[string]string{
		head + "-a\n+b\n-c\n":    `p/mutants.txt:7: want one change in a block: no "-" after "+"`,
		head + "+b\n":            `p/mutants.txt:1: want a rule, a test, and code after "-"`,
		"\n" + head[9:] + "-a\n": `p/mutants.txt:2: want a rule, a test, and code after "-"`,
		head + "if a {\n":        `p/mutants.txt:5: want rule, section, file, package or test, once in a block, or code after "-" or "+": "if a {"`,
		head + "-a\n" + head:     `p/mutants.txt:6: want rule, section, file, package or test, once in a block, or code after "-" or "+": "rule: A."`,
		"#\n\n\n\nrule: A.\nsection: 11\nfile: a.go\ntest: A\n-a":     `p/mutants.txt:5: section: want a section of DESIGN, 1 to 10, not "11"`,
		"rule: A.\nsection: 5\nfile: ../q/a.go\ntest: A\n-a":          `p/mutants.txt:1: file: want a file in the folder of the table, not "../q/a.go"`,
		head + "-a\n\n" + head + "-a\n+b\n":                           `p/mutants.txt:7: rule: "A." has a mutant at p/mutants.txt:1 already; want a rule of its own`,
		head + "-a\n+b\n-c\n\n" + head[9:] + "-a\n\n" + head + "-a\n": "p/mutants.txt:7: want one change in a block: no \"-\" after \"+\"\np/mutants.txt:9: want a rule, a test, and code after \"-\"",
	} {
		if _, err := tables(module(t, map[string]string{"p/mutants.txt": text})); err == nil || err.Error() != want {
			t.Errorf("%q:\n%v, want\n%s", text, err, want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, options{markdown: true, only: "phantom"}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 3 || !strings.Contains(out.String(), "`policies` `TestSecondSendKeys/burnt`") {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
	if err := run(t.Context(), &out, options{markdown: true, only: "("}); err == nil {
		t.Error("a pattern that is none is taken")
	}
}

func TestParse(t *testing.T) {
	output := `{"Action":"run","Test":"TestA/b"}
{"Action":"output","Test":"TestA/b","Output":"boom\n"}
{"Action":"fail","Test":"TestA/b"}
{"Action":"fail","Package":"p"}
not JSON
`
	s, err := parse(bytes.NewBufferString(output), "stderr\n")
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
