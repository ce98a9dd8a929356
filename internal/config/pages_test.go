package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/config"
)

// Every part of a configuration that a page shows is a valid one, with the destinations that pages write to.
func TestConfigurationsOfPages(t *testing.T) {
	blocks := regexp.MustCompile("(?ms)^```yaml\n((?:server|retention|redaction|receipts|audit|telemetry|webhooks|risk|gate|queue|mcp|secrets|metrics|destinations|ledger):.*?)^```$")
	found := 0
	err := filepath.WalkDir("../../docs", func(page string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(page) != ".md" {
			return err
		}
		text, err := os.ReadFile(page)
		for _, m := range blocks.FindAllStringSubmatch(string(text), -1) {
			found++
			whole := m[1]
			if !strings.HasPrefix(whole, "destinations:") {
				const like = "{type: simulated, url: http://127.0.0.1:1, class: plain}"
				whole += "destinations: {orders: " + like + ", bank: " + like + "}\n"
			}
			if !strings.HasPrefix(whole, "ledger:") {
				whole += "ledger: readback.db\n"
			}
			if _, err := config.Parse(filepath.Join(t.TempDir(), "readback.yaml"), []byte(whole)); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 10 {
		t.Errorf("only %d were found", found)
	}
}
