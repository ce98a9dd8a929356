package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/config"
)

func TestChanged(t *testing.T) {
	const before = "ledger: a.db\nrisk:\n  - {name: a, tool: x}\nserver:\n  listen: 127.0.0.1:1\n"
	tests := map[string]struct {
		reason, text string
		want         []string
	}{
		"same":      {"nothing", before, nil},
		"elsewhere": {"lines and comments are no settings", "# new\nserver:\n  # here\n  listen: '127.0.0.1:1'\n\nrisk:\n  - name: a\n    tool: x\nledger: a.db\n", nil},
		"one":       {"another value", "ledger: b.db\nrisk:\n  - {name: a, tool: x}\nserver:\n  listen: 127.0.0.1:1\n", []string{"ledger"}},
		"more":      {"one that is new", before + "  parallel: 3\nlog: json\n", []string{"log", "server.parallel"}},
		"less":      {"one that is gone", "ledger: a.db\nserver:\n  listen: 127.0.0.1:1\n", []string{"risk[0].name", "risk[0].tool"}},
		"a type":    {"a word is no number", "ledger: a.db\nrisk:\n  - {name: a, tool: x}\nserver:\n  listen: 127.0.0.1:1\ntenant: '1'\n", []string{"tenant"}},
	}
	old, err := config.Load(write(t, before))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := config.Load(write(t, test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, c.Changed(old)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}
