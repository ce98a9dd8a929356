package command

import (
	"fmt"
	"strings"
	"testing"

	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
	"github.com/readback-go/readback/internal/fakes/orders"
)

const letter = `{"tenant":"acme","workflow":"wf-1","tool":"append","destination":"mail","kind":"message","key":{"mailbox":"INBOX"},
	"write":"create","expect":{"from":"a@example.org","to":["b@example.org"],"subject":"Hello","body":"Hi."}}`

// A destination of the configuration that needs a secret.
func TestMailbox(t *testing.T) {
	const password = "s3cret-phrase"
	server := fakeimap.Start(t, fakeimap.Options{Username: "alice", Password: password})
	p := newPlace(t, orders.Plain.Options())
	p.write("readback.yaml", fmt.Sprintf("ledger: readback.db\ntenant: acme\ndestinations:\n  mail:\n    type: imap\n    addr: %s\n    tls: none\n    username: alice\n    password_env: MAIL\n    single_store: true\n    breaker: {open: 1s}\n", server.Direct()))

	r := p.submit(exitConfig, letter)
	says(t, r, "password_env: the environment variable MAIL is not set")

	p.variable = map[string]string{"MAIL": "wrong-phrase"}
	wrong := []result{p.run("destinations", "--probe"), p.submit(exitInProgress, letter, "-v", "--wait", "1s")}
	says(t, p.want(exitUnavailable, wrong[0]), "the server refused the login")

	p.variable = map[string]string{"MAIL": password}
	says(t, p.want(0, p.run("destinations", "--probe")), "mail imap message, named_message ok")
	write := id(t, p.submit(exitVerified, strings.Replace(letter, `"tool"`, `"call":1,"tool"`, 1), "-v"))
	for _, r := range append(wrong, p.run("show", write), p.run("show", write, "--json"), p.run("list", "--json")) {
		if strings.Contains(r.String(), password) || strings.Contains(r.String(), "wrong-phrase") {
			t.Errorf("a password is shown:\n%s", r)
		}
	}
}
