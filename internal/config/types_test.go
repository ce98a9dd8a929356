package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/config"
)

// settings of each type that has some of its own, good ones.
const (
	jiraText = "ledger: a\ndestinations:\n  x:\n    type: jira\n    url: https://example.atlassian.net\n    user: ada@example.org\n    token_env: T\n    deployment: cloud\n    sample_project: SAND\n    settle: 10m\n"
	mailText = "ledger: a\ndestinations:\n  x:\n    type: mail\n    addr: smtp.example.org:465\n    username: ada@example.org\n    password_env: T\n    from: Ada <ada@example.org>\n    proof: filed\n    imap:\n      addr: imap.example.org:993\n"
	sqlText  = "ledger: a\ndestinations:\n  x:\n    type: postgresql\n    dsn: postgres://app@db.example.org/shop?sslmode=verify-full\n    password_env: T\n    read_dsn: postgres://ro@copy.example.org/shop?sslmode=verify-full\n    tables:\n" +
		"      order:\n        name: orders\n        columns: {number: text, amount: numeric, changed: timestamptz}\n        key: number\n        unique: true\n        volatile: changed\n        stamp: stamp\n        summary: {text: 'order {number}[ for {amount}]', amount: /amount, currency: EUR}\n" +
		"        sample_create: {amount: 12.50}\n        sample_update: {amount: 13}\n"
	s3Text   = "ledger: a\ndestinations:\n  x:\n    type: s3\n    bucket: acme-reports\n    access_key: AKIAEXAMPLE\n    secret_env: T\n"
	restText = "ledger: a\ndestinations:\n  x:\n    type: rest\n    declaration: github-issues\n    parameters: {owner: acme, repo: \"2048\"}\n    secrets:\n      token: {env: T}\n"
)

func TestEveryTypeCanBeConfigured(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		kinds []string
	}{
		"jira":           {jiraText, []string{"comment", "issue"}},
		"mail":           {mailText, []string{"message", "named_message"}},
		"sql":            {sqlText, []string{"order"}},
		"rest":           {restText, []string{"issue"}},
		"s3":             {s3Text, []string{"object"}},
		"rest, a number": {strings.Replace(restText, `"2048"`, "2048", 1), []string{"issue"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := config.Load(write(t, c.text))
			if err != nil {
				t.Fatal(err)
			}
			reg, err := cfg.Registry(environment("T", "secret"))
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range c.kinds {
				if _, p, err := reg.Lookup("x", kind); err != nil || p.Kind != kind {
					t.Errorf("%s: %+v, %v", kind, p, err)
				}
			}
		})
	}
}

func TestErrorsNameThePlaceOfASetting(t *testing.T) {
	swap := func(text, from, to string) string {
		if !strings.Contains(text, from) {
			t.Fatalf("the text has no %q", from)
		}
		return strings.Replace(text, from, to, 1)
	}
	for name, c := range map[string]struct{ text, says string }{
		"jira: deployment":       {swap(jiraText, "cloud", "server"), ":3: destinations.x: deployment: is \"server\"; want cloud, datacenter"},
		"jira: no token":         {swap(jiraText, "    token_env: T\n", ""), "want exactly one of token_env"},
		"jira: a token":          {swap(jiraText, "token_env: T", "token: hunter2"), "destinations.x.token: a secret does not belong into this file"},
		"jira: a password":       {swap(jiraText, "https://", "https://a:hunter2@"), "url: holds a user name or a password"},
		"jira: plain http":       {swap(jiraText, "https://", "http://"), "destinations.x: "},
		"mail: proof":            {swap(mailText, "filed", "sent"), "Proof"},
		"mail: no imap":          {swap(mailText, "    imap:\n      addr: imap.example.org:993\n", ""), "destinations.x: "},
		"mail: a setting within": {mailText + "      port: 993\n", ":12: destinations.x.imap.port: is not known; want one of addr"},
		"mail: a secret within":  {mailText + "      password: hunter2\n", ":12: destinations.x.imap.password: a secret does not belong"},
		"rest: no declaration":   {swap(restText, "github-issues", "github"), "destinations.x: declaration: "},
		"rest: no file":          {swap(restText, "github-issues", "./mine.yaml"), "destinations.x: declaration: open "},
		"rest: no parameter":     {swap(restText, "owner: acme, ", ""), "owner"},
		"rest: a strange one":    {swap(restText, "owner: acme", "owner: 'a/b'"), "owner"},
		"rest: no secret":        {swap(restText, "{env: T}", "{}"), "secrets.token: want exactly one of env"},
		"rest: the secret":       {swap(restText, "{env: T}", "hunter2"), "destinations.x.secrets.token: is a single value"},
		"rest: as a variable":    {swap(restText, "env: T", "env: hunter2-x"), "secrets.token: env: is not the name of an environment variable"},
		"rest: base URL":         {restText + "    base_url: http://api.example.org\n", "destinations.x: "},
		"rest: a password in it": {restText + "    base_url: https://a:hunter2@api.example.org\n", "base_url: holds a user name or a password"},
		"s3: no bucket":          {swap(s3Text, "    bucket: acme-reports\n", ""), "destinations.x: bucket: "},
		"s3: a secret":           {swap(s3Text, "secret_env: T", "secret: hunter2"), "destinations.x.secret: a secret does not belong into this file"},
		"s3: plain http":         {s3Text + "    url: http://s3.example.org\n", "destinations.x: url: "},
		"sql: a password":        {swap(sqlText, "app@", "app:hunter2@"), "destinations.x: "},
		"sql: no TLS":            {swap(sqlText, "?sslmode=verify-full", ""), "without TLS"},
		"sql: a type":            {swap(sqlText, "amount: numeric", "amount: money"), "money"},
		"sql: volatile":          {swap(sqlText, "volatile: changed", "volatile: updated"), "tables.order: volatile: updated: no such column; the columns are amount, changed, number"},
		"sql: no columns":        {swap(sqlText, "        columns: {number: text, amount: numeric, changed: timestamptz}\n", ""), "tables.order: volatile: changed: no such column"},
		"sql: a sample":          {swap(sqlText, "{amount: 13}", "{amount: [1]}"), "sample_update.amount: is a list; want a single value"},
		"sql: a summary":         {swap(sqlText, "order {number}", "order {nr}"), "tables.order: summary: nr: no such column; the columns are amount, changed, number"},
		"sql: misspelt":          {swap(sqlText, "unique:", "uniqe:"), "destinations.x.tables.order.uniqe: is not known; did you mean unique?"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(problems(t, c.text, environment("T", "secret")), "\n")
			if !strings.Contains(got, c.says) || strings.Contains(got, "hunter2") {
				t.Errorf("%q; want %q, and no secret", got, c.says)
			}
		})
	}
	if diff := cmp.Diff([]string(nil), problems(t, sqlText, environment("T", "x"))); diff != "" {
		t.Error(diff)
	}
}
