package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A process that exchanges a secret has the one that was kept last, and after an exchange that failed the old one.
func TestASecretThatRotates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	file := filepath.Join(dir, "refresh")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(file, []byte("r0\n"), 0o640)); err != nil {
		t.Fatal(err)
	}
	process := func() func(context.Context, func(string) (string, error)) error {
		rotate, err := Secret{File: "refresh"}.as("").rotate(origin{dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return rotate
	}
	valid, uses := 0, 0 // of the API; the lock keeps both from races
	exchange := func(secret string) (string, error) {
		if uses++; secret != "r"+strconv.Itoa(valid) {
			t.Errorf("exchanged %s; want r%d", secret, valid)
		}
		valid++
		return "r" + strconv.Itoa(valid), nil
	}
	var all sync.WaitGroup
	for range 4 {
		rotate := process()
		all.Go(func() {
			for range 3 {
				if err := rotate(t.Context(), exchange); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	one := process()
	if err := one(t.Context(), func(string) (string, error) { return "lost", errors.New("no answer") }); err == nil {
		t.Error("an exchange that failed is no error")
	}
	away := filepath.Join(filepath.Dir(dir), "b")
	err := one(t.Context(), func(secret string) (string, error) {
		if err := os.Rename(dir, away); err != nil {
			t.Fatal(err)
		}
		return exchange(secret)
	})
	if err == nil || strings.Contains(err.Error(), "r12") {
		t.Errorf("a secret that was not kept: %v", err)
	}
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	if err := one(t.Context(), exchange); err != nil || uses != 14 {
		t.Errorf("after one that was not kept: %v, %d uses", err, uses)
	}
	text, err := os.ReadFile(file)
	info, statErr := os.Stat(file)
	if string(text) != "r14\n" || errors.Join(err, statErr) != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("kept %q, %v, %v", text, err, info.Mode())
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 2 { // and the lock
		t.Errorf("files are left: %v", left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = alone(t.Context(), file, func() error {
		cancel()
		return one(ctx, exchange)
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, errLocked) {
		t.Errorf("a lock that another process has: %v", err)
	}
}

func TestOnlyAFileRotates(t *testing.T) {
	for name, s := range map[string]Secret{
		"variable": {Env: "P"}, "command": {Command: argv{"p"}}, "no file": {File: "p"}, "no folder": {File: "q/p"},
	} {
		if _, err := s.as("").rotate(origin{dir: t.TempDir()}); err == nil || s.File == "" && !strings.Contains(err.Error(), "want file (a path in a folder that this program can write to)") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
