// Package need is what tests need from the machine: programs, and packages of npm
// for servers, clients and checkers that are not ours. What is missing leaves a
// test out, with the reason, and fails it where nothing may be left out. It ships
// nothing, and knows of a package only what its lock file says.
package need

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// ErrMissing is wrapped when something cannot be had on this machine.
var ErrMissing = errors.New("it cannot be had on this machine")

// patience is how long npm may take: it may have to fetch them.
const patience = 3 * time.Minute

// Install installs what package.json and package-lock.json of a folder name, in
// exactly these versions, below dir. No script of a package is run.
func Install(folder, dir string) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("packages of npm: %w: %w: %s", ErrMissing, err, out)
	}
	return nil
}

// Strict reports whether nothing may be left out: READBACK_STRICT is 1.
func Strict() bool { return os.Getenv("READBACK_STRICT") == "1" }

// Long leaves a test that takes long, or starts other programs, out of a short
// run, and says so. Where nothing may be left out it fails.
func Long(tb testing.TB) {
	tb.Helper()
	switch {
	case !testing.Short():
	case Strict():
		tb.Fatal("-short leaves out what takes long or starts other programs, and READBACK_STRICT is 1")
	default:
		tb.Skip("skipped: -short leaves out what takes long or starts other programs")
	}
}

// Have ends a test that something is missing for: skipped, with the reason; where
// nothing may be left out, and for any error but [ErrMissing], failed.
func Have(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case errors.Is(err, ErrMissing) && !Strict():
		tb.Skipf("skipped: %v", err)
	default:
		tb.Fatal(err)
	}
}

// Program is the path of a program, without which the test ends as with [Have].
func Program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Have(tb, fmt.Errorf("%s: %w: %w", name, ErrMissing, err))
	}
	return path
}
