package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// initPlace is a folder without a configuration, before a destination.
func initPlace(t *testing.T) *place {
	t.Helper()
	p := newPlace(t, orders.Plain.Options())
	if err := os.Remove(p.config); err != nil {
		t.Fatal(err)
	}
	p.variable = map[string]string{"JIRA_TOKEN": "x"}
	return p
}

// A configuration of flags, and the same one of answers, pass the doctor.
func TestInitPassesDoctor(t *testing.T) {
	p := initPlace(t)
	says(t, p.want(0, p.run("init", "--destination", "simulated", "--name", "shop", "--set", "url="+p.url, "--set", "class=plain")),
		"Wrote "+p.config+" with the destination shop (simulated).")
	says(t, p.want(0, p.run("doctor")), "ok ledger", "ok destination shop", "Everything is in order.")
	says(t, p.want(0, p.run("config", "check")), "1 destination")
	byFlags := p.text()

	q := initPlace(t)
	q.terminal = true
	says(t, q.want(0, q.runIn("shop\n"+p.url+"\n", "init", "--destination", "simulated", "--set", "class=plain")), "Name by which callers name it [simulated]:", "Address [http://127.0.0.1:8177]:")
	order := strings.NewReplacer("    class: plain\n", "").Replace // flags precede answers
	if order(q.text()) != order(byFlags) {
		t.Errorf("the answers made another file:\n%s", q.text())
	}
}

func TestInitAsks(t *testing.T) {
	for name, tt := range map[string]struct {
		answers string
		code    int
		file    []string // lines; none: no file
		says    string
	}{
		"jira":                 {"jira\ntickets\nhttps://x.example.org\n\nJIRA_TOKEN\n", 0, []string{"  tickets:", "    type: jira", "    token_env: JIRA_TOKEN"}, "API token: an environment variable, or a file (a path with a slash), that has it:"},
		"an unset variable":    {"jira\ntickets\nhttps://x.example.org\nada\nOTHER\n", 0, []string{"    token_env: OTHER", "    user: ada"}, "The environment variable OTHER is not set"},
		"a required answer":    {"jira\n\n\n\nhttps://x.example.org\n\nJIRA_TOKEN\n", 0, []string{"  jira:"}, "Address"},
		"a declaration":        {"github-issues\n\nacme\nshop\nGITHUB_TOKEN\n", 0, []string{"    declaration: github-issues", "      owner: acme", "        env: GITHUB_TOKEN"}, "GITHUB_TOKEN is not set"},
		"the one to try out":   {"\n", 0, []string{"  orders:", "    - name: create_order"}, "readback submit -f intent.json"},
		"the end":              {"jira\n", exitUsage, nil, "nothing was written"},
		"a secret":             {"jira\ntickets\nhttps://x.example.org\n\nsk_live_6789\n", exitUsage, nil, "want its name, never the secret itself"},
		"a secret in a URL":    {"jira\ntickets\nhttps://ada:pass@x.example.org\n\nJIRA_TOKEN\n", exitConfig, nil, "holds a user name or a password"},
		"a file that is not":   {"jira\ntickets\nhttps://x.example.org\n\n./nothing\n", exitConfig, nil, "token_file: open"},
		"what is not there":    {"fax\n", exitUsage, nil, `no destination is called "fax"`},
		"several declarations": {"github\n", exitUsage, nil, "can mean github-changes, github-files, github-issues"},
	} {
		t.Run(name, func(t *testing.T) {
			p := initPlace(t)
			p.terminal = true
			r := p.want(tt.code, p.runIn(tt.answers, "init"))
			says(t, r, tt.says)
			if strings.Contains(r.String(), "6789") {
				t.Errorf("a secret is shown:\n%s", r)
			}
			if tt.file == nil {
				if _, err := os.Stat(p.config); err == nil {
					t.Error("a file was written")
				}
				return
			}
			for _, line := range tt.file {
				if !strings.Contains(p.text(), "\n"+line+"\n") {
					t.Errorf("no %q in\n%s", line, p.text())
				}
			}
			says(t, p.want(0, p.run("config", "check")), "1 destination")
			says(t, p.want(exitUsage, p.run("init")), "is there already") // before a question is asked
		})
	}
}

func TestInitByFlags(t *testing.T) {
	jira := []string{"init", "--destination", "jira", "--set", "url=https://x.example.org", "--set", "token_env=JIRA_TOKEN"}
	for name, tt := range map[string]struct {
		args []string
		code int
		says string
	}{
		"whole":               {jira, 0, "with the destination jira (jira)"},
		"a part":              {jira[:5], exitUsage, "--set token_env=VARIABLE (or token_file=PATH)"},
		"unknown":             {append(jira, "--set", "colour=red"), exitConfig, "destinations.jira.colour: is not known"},
		"a secret":            {append(jira[:5:5], "--set", "token_env=sk_live_6789"), exitUsage, "never the secret itself"},
		"no value":            {append(jira, "--set", "user"), exitUsage, "want NAME=VALUE"},
		"no name":             {append(jira, "--set", "a b=c"), exitUsage, "is no setting"},
		"no YAML":             {append(jira, "--set", "user={"), exitUsage, "is no YAML"},
		"another destination": {append(jira, "--set", "user=x\n  other: {type: jira}"), exitUsage, "is no YAML"},
		"no destination":      {[]string{"init", "--name", "x"}, exitUsage, "--destination is missing"},
		"no type":             {[]string{"init", "--destination", "sql-table"}, exitUsage, "no destination is called"},
		"a word of YAML":      {append(jira, "--name", "true"), 0, "with the destination true"},
	} {
		t.Run(name, func(t *testing.T) {
			p := initPlace(t)
			r := p.want(tt.code, p.run(tt.args...))
			says(t, r, tt.says)
			if strings.Contains(r.String(), "6789") {
				t.Errorf("a secret is shown:\n%s", r)
			}
			if _, err := os.Stat(p.config); (err == nil) != (tt.code == 0) {
				t.Errorf("exit %d, and the file: %v", tt.code, err)
			}
		})
	}
}

// Each included destination can be named, and init knows what to ask.
func TestInitKnowsWhatIsIncluded(t *testing.T) {
	names := append(rest.Shipped(), config.Types()...)
	for _, c := range mcp.Shipped() {
		names = append(names, "mcp-"+c)
	}
	for _, name := range names {
		if name == "rest" || name == "mcp" { // a declaration or contract is named instead
			continue
		}
		b, wanted, err := destinationOf(name, ".")
		if err != nil || b == nil || len(wanted) == 0 && name != "shop" { // another test adds the type shop, which has no settings
			t.Errorf("%s: %v, %d questions", name, err, len(wanted))
		}
	}
}

// A declaration of one's own is found from the folder of the configuration.
func TestInitWithADeclaration(t *testing.T) {
	p := initPlace(t)
	text, err := rest.ShippedText("github-issues")
	if err != nil {
		t.Fatal(err)
	}
	file := p.write("mine.yaml", string(text))
	p.want(0, p.run("init", "--destination", file, "--set", "parameters={owner: acme, repo: shop}", "--set", "secrets.token.env=JIRA_TOKEN"))
	says(t, p.want(0, p.run("config", "check", "--env")), "1 destination")
	if want := "declaration: " + filepath.ToSlash(file); !strings.Contains(p.text(), want) {
		t.Errorf("no %q in\n%s", want, p.text())
	}
}
