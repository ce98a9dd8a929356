package config

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

func TestSecretsAreFetchedForEachUse(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "p.txt")
	now := "one"
	put := func(s string) {
		now = s
		if err := os.WriteFile(file, []byte(s+"\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("one")
	env := func(string) string { return now }
	for name, from := range map[string]Secret{
		"variable": {Env: "P"},
		"file":     {File: "p.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			put("one")
			fetch, err := from.as("").open(origin{dir: dir, env: env})
			if err != nil {
				t.Fatal(err)
			}
			put("two, with a blank ")
			if got, err := fetch(context.Background()); got != now || err != nil {
				t.Errorf("got %q, %v; want the secret as it is now, %q", got, err, now)
			}
		})
	}
}
