package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// bench runs tests, with or without a mutant, in a copy of the module: others
// may be at work on the module itself meanwhile.
type bench struct {
	root     string
	parallel int
}

// snapshot copies what git knows of the module, and what it does not know yet,
// into a temporary folder.
func snapshot(ctx context.Context, module string) (dir string, remove func(), err error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = module
	names, err := list.Output()
	if err != nil {
		return "", nil, fmt.Errorf("git ls-files: %w", err)
	}
	if dir, err = os.MkdirTemp("", "mutants"); err != nil {
		return "", nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // the overlay needs the name the go command uses
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // a leftover in the temporary folder is harmless
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(module, name), filepath.Join(dir, name)); err != nil {
			remove()
			return "", nil, err
		}
	}
	return dir, remove, nil
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) { // deleted, and still in git's index
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

// fate is what became of a mutant.
type fate string

const (
	killed   fate = "killed"            // its test failed
	survived fate = "SURVIVED"          // its test passed
	broken   fate = "DOES NOT COMPILE"  // nothing was tested
	missed   fate = "FAILED ELSEWHERE"  // something failed, and not the test
	notFound fate = "SNIPPET NOT FOUND" // its table is out of date
)

// result is one line of the report.
type result struct {
	mutant  Mutant
	verdict fate
	detail  string
	took    time.Duration
}

// String is the line, with what helps to mend what is wrong.
func (r result) String() string {
	line := fmt.Sprintf("%-18s §%d %s\n%-18s    %s: %s %s, %.1fs", r.verdict, r.mutant.Section, r.mutant.Rule, "", r.mutant.Where, r.mutant.pkg(), r.mutant.Test, r.took.Seconds())
	if r.detail != "" {
		line += "\n" + r.detail
	}
	return line
}

// baseline fails when a named test is not there or fails without a mutant.
func (b bench) baseline(ctx context.Context, all []Mutant) error {
	byPackage := map[string][]Mutant{}
	for _, m := range all {
		byPackage[m.pkg()] = append(byPackage[m.pkg()], m)
	}
	for _, pkg := range slices.Sorted(maps.Keys(byPackage)) {
		tops := map[string]bool{}
		for _, m := range byPackage[pkg] {
			tops[m.top()] = true
		}
		seen, err := b.test(ctx, pkg, "^("+strings.Join(slices.Sorted(maps.Keys(tops)), "|")+")$", "")
		if err != nil {
			return err
		}
		for _, m := range byPackage[pkg] {
			if how := seen.tests[m.Test]; how != "pass" {
				return fmt.Errorf("%s %s must pass without a mutant; it did %q\n%s", pkg, m.Test, how, seen.tail())
			}
		}
	}
	return nil
}

// all tries the mutants, several at once, and reports each as soon as it is known.
func (b bench) all(ctx context.Context, mutants []Mutant, report func(result)) {
	places := make(chan struct{}, b.parallel)
	var wg sync.WaitGroup
	var reporting sync.Mutex
	for _, m := range mutants {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			began := time.Now()
			r := b.one(ctx, m)
			r.took = time.Since(began)
			reporting.Lock()
			defer reporting.Unlock()
			report(r)
		})
	}
	wg.Wait()
}

func (b bench) one(ctx context.Context, m Mutant) result {
	changed, err := m.mutate(b.root)
	if err != nil {
		return result{mutant: m, verdict: notFound, detail: err.Error()}
	}
	overlay, remove, err := b.overlay(m.File, changed)
	if err != nil {
		return result{mutant: m, verdict: missed, detail: err.Error()}
	}
	defer remove()
	seen, err := b.test(ctx, m.pkg(), exactly(m.Test), overlay)
	switch {
	case err != nil:
		return result{mutant: m, verdict: missed, detail: err.Error()}
	case seen.tests[m.Test] == "fail":
		return result{mutant: m, verdict: killed}
	case seen.unbuilt:
		return result{mutant: m, verdict: broken, detail: seen.tail()}
	case seen.tests[m.Test] == "pass":
		return result{mutant: m, verdict: survived}
	}
	return result{mutant: m, verdict: missed, detail: seen.tail()}
}

// exactly is the -run pattern of one test, subtests apart.
func exactly(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// overlay writes what the go command needs to read the changed file in place of
// the real one.
func (b bench) overlay(file string, changed []byte) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // a leftover in the temporary folder is harmless
	instead := filepath.Join(dir, filepath.Base(file))
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(b.root, filepath.FromSlash(file)): instead}})
	if err == nil {
		err = os.WriteFile(instead, changed, 0o600)
	}
	path = filepath.Join(dir, "overlay.json")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

// seen is the output of a test run.
type seen struct {
	tests   map[string]string // "pass" or "fail" by name
	unbuilt bool
	output  strings.Builder
}

func (s *seen) tail() string {
	text := s.output.String()
	return text[max(len(text)-shownOutput, 0):]
}

// test runs tests of a package; a failing test is no error.
func (b bench) test(ctx context.Context, pkg, pattern, overlay string) (*seen, error) {
	ctx, cancel := context.WithTimeout(ctx, goTimeout)
	defer cancel()
	args := []string{"test", "-json", "-vet=off", "-timeout", testTimeout.String(), "-run", pattern}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir = filepath.Join(b.root, filepath.FromSlash(pkg)) // it may be in a module of its own
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var failed *exec.ExitError
	if ctx.Err() != nil || (err != nil && !errors.As(err, &failed)) {
		return nil, fmt.Errorf("go test %s: %w", pkg, errors.Join(err, ctx.Err()))
	}
	return parse(&stdout, stderr.String())
}

func parse(stdout *bytes.Buffer, stderr string) (*seen, error) {
	s := &seen{tests: map[string]string{}}
	s.output.WriteString(stderr)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			s.output.WriteString(lines.Text() + "\n")
			continue
		}
		switch e.Action {
		case "pass", "fail":
			if e.Test != "" {
				s.tests[e.Test] = e.Action
			}
		case "build-fail":
			s.unbuilt = true
		case "output", "build-output":
			s.output.WriteString(e.Output)
		}
	}
	return s, lines.Err()
}
