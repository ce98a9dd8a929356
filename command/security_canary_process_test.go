package command

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

var writeID = regexp.MustCompile(`wr_[0-9a-f]{32}`)

// aside runs the program beside the server, reads its output, and stores the id of the
// write that it names.
func (m *mine) aside(name, stdin string, args ...string) {
	m.t.Helper()
	r := m.p.runIn(stdin, args...)
	_, _ = fmt.Fprintln(m.replies, r.out, r.err)
	if m.ids[name] = writeID.FindString(r.out); m.ids[name] == "" {
		m.t.Fatalf("%s: %s%s", name, r.out, r.err)
	}
}

// turned is a configuration whose other key seals.
func (m *mine) turned() string {
	m.t.Helper()
	text, err := os.ReadFile(m.p.config)
	if err != nil {
		m.t.Fatal(err)
	}
	first, second := "    - {id: now, key_env: REDACTION_KEY}\n", "    - {id: before, key_env: REDACTION_KEY_BEFORE}\n"
	turned := strings.Replace(string(text), first+second, second+first, 1)
	if turned == string(text) {
		m.t.Fatal("the configuration has no two keys to turn")
	}
	return m.p.write("turned.yaml", turned)
}

// rotatedStory: a process with another first key submits a write, and the server carries
// it out; both read it.
func (m *mine) rotatedStory() {
	value, mail := m.word("sealed with the other key"), m.mail("sealed with the other key")
	m.sent(value, mail)
	body := strings.Replace(m.write("rotated", "order-rotated", fmt.Sprintf(`"write":"create","expect":{"amount_cents":9,"owner":%q,"contact":"to %s"}`, value, mail), "/owner"), `"tool":"create"`, `"tool":"wire"`, 1)
	turned := m.turned()
	m.aside("rotated", strings.Replace(body, "{", `{"tenant":"acme",`, 1), "--config", turned, "submit", "-f", "-", "--json", "-v")
	if kept := m.ledgerFiles()["the ledger's file again.db"]; !strings.Contains(kept, "rbs1:before:") || !strings.Contains(kept, "rbs1:now:") {
		m.t.Error("one of the keys seals nothing")
	}
	m.decide("rotated", "approve", "for "+value)
	for _, more := range []string{"--json", "-v"} {
		m.aside("rotated", "", "--config", turned, "show", m.ids["rotated"], more)
	}
	if a := m.as("reviewer", own, "GET", "/v1/writes/"+m.ids["rotated"]+"/record", ""); !strings.Contains(a.body, `"verified"`) {
		m.t.Errorf("sealed with the other key: %s", a)
	}
}

// pipeStory: a model's host calls a tool through the standard input and output of
// a process of its own.
func (m *mine) pipeStory() {
	mail := m.mail("argument through a pipe")
	m.sent(mail)
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wire_order","arguments":{"order_id":"by %s","amount_cents":12}}}`, mail)
	stdin, asks := io.Pipe()
	var out, errs lines
	done := make(chan int, 1)
	go func() { done <- m.p.start(m.t.Context(), stdin, &out, &errs, "mcp", "-v") }()
	for _, line := range []string{initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, call} {
		if _, err := io.WriteString(asks, strings.ReplaceAll(line, "\n", " ")+"\n"); err != nil {
			m.t.Fatal(err)
		}
	}
	eventually(m.t, "an answer through the pipe", func() bool { return writeID.MatchString(out.String()) })
	if err := asks.Close(); err != nil {
		m.t.Fatal(err)
	}
	<-done
	_, _ = fmt.Fprintln(m.replies, out.String(), errs.String())
	m.ids["pipe"] = writeID.FindString(out.String())
	m.decide("pipe", "approve", "a tool's call is fine")
}
