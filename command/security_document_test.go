package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePromisesAreHeld: every row of the page of promises names its tests, and
// all of them are there.
func TestThePromisesAreHeld(t *testing.T) {
	page, err := os.ReadFile("../docs/operate/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(page), "| attack | defence | tests |\n")
	part, _, ended := strings.Cut(part, "\n\n")
	if !found || !ended {
		t.Fatal("the table of promises is not there")
	}
	quoted, rows := regexp.MustCompile("`([^`]+)`"), 0
	for line := range strings.SplitSeq(part, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if strings.HasPrefix(line, "|---") {
			continue
		}
		if len(cells) != 3 || !strings.Contains(cells[2], "Test") {
			t.Errorf("no test is named in %q", line)
			continue
		}
		rows++
		folder := ""
		for _, name := range quoted.FindAllStringSubmatch(cells[2], -1) {
			test := name[1]
			if in, of, ok := strings.Cut(test, ": "); ok {
				folder, test = in, of
			}
			if !hasTest(t, folder, test) {
				t.Errorf("%s has no test %s, which %q names", folder, test, cells[0])
			}
		}
	}
	if rows < 15 {
		t.Errorf("only %d promises are listed", rows)
	}
}

// hasTest reports whether a package has a test.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
