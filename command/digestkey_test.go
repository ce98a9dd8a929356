package command

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// A first start without the variable of a redaction key must not leave a digest key in the
// clear, which backups would keep. A ledger that is there is opened all the same.
func TestALedgerIsNotMadeWithoutItsRedactionKeys(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	const sealed = "redaction: {keys: [{id: a, key_env: SEAL}]}\n"
	p.configure(p.url, sealed)
	inClear := regexp.MustCompile(`[0-9a-f]{64}`)
	token := []string{"token", "create", "--name", "ci", "--role", "agent"}
	for _, run := range []func() result{func() result { return p.submit(exitConfig, order("A-1", "")) }, func() result { return p.want(exitConfig, p.run(token...)) }} {
		says(t, run(), "SEAL is not set")
		files, err := filepath.Glob(filepath.Join(p.dir, "readback.db*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if content, err := os.ReadFile(file); err != nil || inClear.Match(content) {
				t.Errorf("%s has a digest key, error %v", file, err)
			}
		}
	}
	p.configure(p.url, "")
	p.submit(exitVerified, order("A-1", "")) // its digest key is in the clear
	p.configure(p.url, sealed)
	p.want(0, p.run("list"))
	p.want(0, p.run(token...))
	p.variable = map[string]string{"SEAL": strings.Repeat("0123456789abcdef", 4)}
	p.submit(exitVerified, order("A-2", ""))
	p.variable = nil
	p.want(0, p.run("list"))
	p.want(0, p.run(token...))
}

// What cannot be found without the redaction key of the ledger gets an error that names
// the key, and never a claim that nothing is recorded.
func TestABusinessKeyIsNotFoundWithoutTheRedactionKey(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.configure(p.url, "redaction: {keys: [{id: a, key_env: SEAL}]}\n")
	p.variable = map[string]string{"SEAL": strings.Repeat("0123456789abcdef", 4)}
	p.submit(exitVerified, order("A-1", ""))
	p.configure(p.url, "")
	r := p.want(exitUnavailable, p.run("erase", "--destination", "orders", "--key", `{"order_id":"A-9"}`, "--reason", "request 7", "--by", "ben"))
	says(t, r, `"a"`, "`redaction.keys`")
	if strings.Contains(r.err, "The write is recorded") {
		t.Errorf("no write is: %s", r.err)
	}
}

// A command that only reads leaves the digest key sealed under its current redaction key:
// the command's configuration may be older than the server's.
func TestOnlyAWriterSealsTheDigestKeyAgain(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.variable = map[string]string{"A": strings.Repeat("0123456789abcdef", 4), "B": strings.Repeat("fedcba9876543210", 4)}
	p.configure(p.url, "redaction: {keys: [{id: a, key_env: A}]}\n")
	p.submit(exitVerified, order("A-1", ""))
	p.configure(p.url, "redaction: {keys: [{id: b, key_env: B}, {id: a, key_env: A}]}\n")
	p.want(0, p.run("list"))
	says(t, p.run("doctor", "--security"), `sealed under the redaction key "a"`)
	p.submit(exitVerified, order("A-2", ""))
	says(t, p.run("doctor", "--security"), `sealed under the redaction key "b"`)
}

// A command that writes seals the digest key of its ledger under the first redaction key.
// Without that key the writes are still listed, and a new write is refused before it is
// recorded.
func TestTheDigestKeyIsSealed(t *testing.T) {
	const one, two = "redaction: {keys: [{id: a, key_env: SEAL}]}\n", "redaction: {keys: [{id: b, key_env: OTHER}, {id: a, key_env: SEAL}]}\n"
	work := func(p *place) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var errs lines
		ended := make(chan int, 1)
		go func() { ended <- p.start(ctx, strings.NewReader(""), &lines{}, &errs, "work", "--verbose") }()
		eventually(t, "the worker", func() bool { return strings.Contains(errs.String(), "msg=working") })
		stop()
		<-ended
	}
	for name, run := range map[string]func(*place){
		"submit": func(p *place) { p.submit(exitVerified, order("A-2", "")) },
		"work":   work,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, orders.Plain.Options())
			p.variable = map[string]string{"SEAL": strings.Repeat("0123456789abcdef", 4), "OTHER": strings.Repeat("fedcba9876543210", 4)}
			held := id(t, p.submit(exitVerified, order("A-1", "")))
			inClear := p.digestKey()
			says(t, p.run("doctor", "--security"), "ok business keys digests of them are keyed, with a digest key that is kept as it is, as the intents are: there are no redaction keys")
			for i, settings := range []string{one, two} {
				p.configure(p.url, settings)
				run(p)
				first := string("ab"[i])
				if kept := p.digestKey(); !strings.HasPrefix(kept, first+":rbs1:") || strings.Contains(kept, inClear) {
					t.Errorf("the digest key is kept as %q, want it sealed under %s", kept, first)
				}
				says(t, p.run("doctor", "--security"), `ok business keys digests of them are keyed, with a digest key that is sealed under the redaction key "`+first+`"`)
			}
			p.configure(p.url, one) // b, under which it is sealed now, is missing
			says(t, p.run("doctor", "--security"), "failed business keys", `sealed under the redaction key "b"`, "Add the key to redaction.keys, or put it back.")
			says(t, p.want(0, p.run("list")), held[:len("wr_")+8])
			p.refused(exitConfig, "redaction_key", order("A-3", ""), `sealed under the redaction key "b"`, "Nothing was changed, and nothing was sent by this call.")
			p.effects(0, "A-3")
			says(t, p.want(exitUnavailable, p.run("erase", "--destination", "orders", "--key", `{"order_id":"A-1"}`, "--reason", "r", "--yes")),
				`sealed under the redaction key "b"`, "`redaction.keys` in the configuration lists the keys")
		})
	}
}
