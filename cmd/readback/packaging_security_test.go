package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every build that is given to others can be loaded at any address.
func TestBuildsArePositionIndependent(t *testing.T) {
	files := packaged(t)
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	files["Makefile"] = string(text)
	for _, name := range []string{"Dockerfile", ".goreleaser.yaml", "Makefile"} {
		if !strings.Contains(files[name], "-trimpath -buildmode=pie") && !strings.Contains(files[name], "-trimpath, -buildmode=pie") {
			t.Errorf("%s builds without -buildmode=pie", name)
		}
	}
}

// The security policy is where forges look for it: it names a private way to report, and
// the page that says what is promised leads to it, and it to the page.
func TestSecurityPolicy(t *testing.T) {
	policy, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"*Report a vulnerability*", "Do not open an issue", "(docs/security.md)"} {
		if !strings.Contains(string(policy), want) {
			t.Errorf("SECURITY.md does not say %q", want)
		}
	}
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, reporting, ok := strings.Cut(string(page), "\n## Reporting\n"); !ok || !strings.Contains(reporting, "(../SECURITY.md)") {
		t.Error("docs/security.md does not lead to SECURITY.md")
	}
}

// A database of vulnerabilities that cannot be asked is no failure, is kept for the
// end of a run, and is no excuse for vulnerabilities that were found.
func TestLintWithoutTheDatabaseOfVulnerabilities(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is missing")
	}
	versions, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		code     string
		fails    bool
		reported bool
	}{"none": {"0", false, false}, "away": {"1", false, true}, "found": {"3", true, false}} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			put := func(name, text string) {
				if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil { //nolint:gosec // it is run
					t.Fatal(err)
				}
			}
			put("unchecked", "of an earlier run\n")
			put("golangci-lint", "#!/bin/sh\n")
			put("govulncheck", "#!/bin/sh\nexit "+c.code+"\n")
			for line := range strings.Lines(string(versions)) { // the stamps of what is installed
				if variable, version, ok := strings.Cut(strings.TrimSpace(line), " := v"); ok {
					put(map[string]string{"LINT_VERSION": "golangci-lint", "VULN_VERSION": "govulncheck"}[variable]+"-v"+version, "")
				}
			}
			out, err := exec.CommandContext(t.Context(), "make", "-C", "../..", "lint", "BIN="+bin).CombinedOutput()
			if (err != nil) != c.fails {
				t.Errorf("error %v\n%s", err, out)
			}
			kept, err := os.ReadFile(filepath.Join(bin, "unchecked"))
			if reported := err == nil; reported != c.reported || reported && !strings.HasPrefix(string(kept), "warning: govulncheck could not ask") {
				t.Errorf("kept for the end: %q, %v", kept, err)
			}
		})
	}
	ci, err := os.ReadFile("../../.ci/run")
	if err != nil || !strings.Contains(string(ci), "cat bin/unchecked\nfi\n") || !strings.HasSuffix(string(ci), "fi\n") {
		t.Errorf("the last thing that CI does is not to print it: %v", err)
	}
}
