package command

import (
	"os"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// completed are the words that the shell is offered.
func (p *place) completed(args ...string) []string {
	p.t.Helper()
	r := p.want(0, p.run(append([]string{"__complete"}, args...)...))
	var words []string
	for line := range strings.Lines(r.out) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); word != "" && word[0] != ':' {
			words = append(words, word)
		}
	}
	if strings.Contains(r.err, "level=") || strings.Contains(r.err, "readback:") {
		p.t.Errorf("a completion says: %s", r.err)
	}
	return words
}

func TestCompletion(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	write := id(t, p.submit(exitVerified, order("A-1", "")))
	says(t, p.want(0, p.run("token", "create", "--role", "agent", "--name", "bot")))
	token := decode(t, p.want(0, p.run("token", "list", "--json")))["tokens"].([]any)[0].(map[string]any)["id"].(string)
	hold := decode(t, p.want(0, p.run("hold", "add", "--destination", "orders", "--reason", "case 7", "--json")))["holds"].([]any)[0].(map[string]any)["id"].(string)
	for name, tt := range map[string]struct {
		args []string
		want string // "" for none
	}{
		"show":             {[]string{"show", ""}, write},
		"a beginning":      {[]string{"show", write[:6]}, write},
		"another":          {[]string{"show", "wr_zz"}, ""},
		"a second":         {[]string{"show", write, ""}, ""},
		"receipt":          {[]string{"receipt", "export", ""}, write},
		"before":           {[]string{"list", "--before", ""}, write},
		"another tenant":   {[]string{"--tenant", "other", "show", ""}, ""},
		"token":            {[]string{"token", "revoke", ""}, token},
		"its token":        {[]string{"--tenant", "other", "token", "revoke", ""}, ""},
		"hold":             {[]string{"hold", "release", ""}, hold},
		"stop":             {[]string{"stop", "--destination", "o"}, "orders"},
		"its destination":  {[]string{"--tenant", "other", "stop", "--destination", ""}, ""},
		"probe":            {[]string{"probe", ""}, "orders"},
		"catalogue":        {[]string{"catalog", "stripe-ref"}, "stripe-refund"},
		"what init writes": {[]string{"init", "--destination", "jira-cloud-i"}, "jira-cloud-issue"},
		"a command":        {[]string{"sho"}, "show"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(p.completed(tt.args...), " "); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	if err := os.WriteFile(p.ledger, []byte("no ledger"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.completed("show", ""); len(got) > 0 {
		t.Errorf("of a ledger that cannot be opened: %v", got)
	}
	p.config += ".not"
	if got := append(p.completed("show", ""), p.completed("probe", "")...); len(got) > 0 {
		t.Errorf("without a configuration: %v", got)
	}
}
