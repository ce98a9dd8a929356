//go:build unix

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/config"
)

// The configuration is code: one that another user can change is refused, and so is a
// file that it names.
func TestFilesThatOthersCanChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"nobody else":       {func(string) error { return nil }, ""},
		"every user writes": {func(dir string) error { return os.Chmod(filepath.Join(dir, "readback.yaml"), 0o666) }, "every user can write it (mode 0666)"},
		"in its folder":     {func(dir string) error { return os.Chmod(dir, 0o777) }, "every user can write it (mode 0777)"},
		"a sticky folder":   {func(dir string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }, ""},
		"a secret":          {func(dir string) error { return os.Chmod(filepath.Join(dir, "secret"), 0o602) }, "every user can write it (mode 0602)"},
		"through a link": {func(dir string) error {
			there := filepath.Join(dir, "there")
			if err := os.Mkdir(there, 0o700); err != nil {
				return err
			}
			if err := os.Rename(filepath.Join(dir, "readback.yaml"), filepath.Join(there, "readback.yaml")); err != nil {
				return err
			}
			if err := os.Symlink(filepath.Join(there, "readback.yaml"), filepath.Join(dir, "readback.yaml")); err != nil {
				return err
			}
			return os.Chmod(there, 0o707)
		}, "there: every user can write it (mode 0707)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text := fmt.Sprintf("ledger: a\ndestinations:\n  box: {type: imap, addr: '127.0.0.1:1', tls: none, username: u, password_file: %s}\n", filepath.Join(dir, "secret"))
			for file, text := range map[string]string{"readback.yaml": text, "secret": "x\n"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			loaded, err := config.Load(filepath.Join(dir, "readback.yaml"))
			if err == nil {
				_, err = loaded.Registry(environment())
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "want it to belong to root")) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	t.Run("another user's", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Log("only root can give a file to another user")
			return
		}
		path := write(t, "ledger: a\n")
		if err := os.Chown(path, 4711, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(path); err == nil || !strings.Contains(err.Error(), "it belongs to the user with the number 4711") {
			t.Error(err)
		}
	})
	t.Run("a private key", func(t *testing.T) {
		path := write(t, "-----BEGIN PRIVATE KEY-----\n")
		for mode, want := range map[os.FileMode]bool{0o600: true, 0o640: true, 0o644: false} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			if err := config.Private(path); (err == nil) != want {
				t.Errorf("mode %04o: %v", mode, err)
			}
		}
	})
}
