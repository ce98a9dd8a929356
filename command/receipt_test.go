package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/receipt"
)

// withKey is a place whose receipts are signed, and the file of its public key.
func withKey(t *testing.T, o orders.Options) (p *place, public string) {
	t.Helper()
	p = newPlace(t, o)
	file := filepath.Join(p.dir, "receipts.pem")
	p.want(0, p.run("key", "new", "--out", file))
	p.configure(p.url, "receipts: {key_file: receipts.pem}\n")
	return p, file + ".pub"
}

// made is the id of a write that a run submitted.
func made(t *testing.T, r result) string {
	t.Helper()
	var out engine.Outcome
	if err := json.Unmarshal([]byte(r.out), &out); err != nil {
		t.Fatalf("%v\n%s", err, r)
	}
	return string(out.ID)
}

func TestReceiptsOnTheCommandLine(t *testing.T) {
	p, public := withKey(t, orders.Plain.Options())
	id := made(t, p.submit(exitVerified, order("A-1", ""), "--json"))
	exported := p.want(0, p.run("receipt", "export", id)).out
	if strings.Contains(exported, "\n") != strings.HasSuffix(exported, "\n") || strings.Count(exported, "\n") != 1 {
		t.Errorf("not one line: %q", exported)
	}
	says(t, p.want(0, p.runIn(exported, "receipt", "verify", "-", "--key", public)),
		"genuine: signed by key", id, "verified", "showed exactly what was declared", "strong read, a call of its own, at", "1 records, sha256")
	file := filepath.Join(p.dir, "r.json")
	p.want(0, p.run("receipt", "export", id, "--values", "-o", file))
	says(t, p.want(exitUsage, p.run("receipt", "export", id, "-o", file)), "never overwritten")
	r := p.want(0, p.run("receipt", "verify", file, "--key", public, "--json"))
	var checked checkedReceipt
	if err := json.Unmarshal([]byte(r.out), &checked); err != nil || checked.Statement.Predicate.Write.BusinessKey.Value != `{"order_id":"A-1"}` {
		t.Errorf("%v: %s", err, r.out)
	}
	checked.Statement.Predicate.Read.Independent = receipt.OtherServer
	if text := checked.text(); !strings.Contains(text, "strong read, a call to another server than the one that takes writes, at") {
		t.Errorf("of a read at another server it says: %s", text)
	}
	// Neither a configuration nor a ledger is needed, only the key.
	p.config = filepath.Join(p.dir, "none.yaml")
	p.want(0, p.run("receipt", "verify", file, "--key", public))
}

func TestReceiptsThatAreNotGenuine(t *testing.T) {
	p, public := withKey(t, orders.Plain.Options())
	id := made(t, p.submit(exitVerified, order("A-1", ""), "--json"))
	good := p.want(0, p.run("receipt", "export", id)).out
	p.want(0, p.run("key", "new", "--out", filepath.Join(p.dir, "other.pem")))
	other := filepath.Join(p.dir, "other.pem.pub")
	for name, c := range map[string]struct {
		text string
		args []string
		code int
		says string
	}{
		"altered":          {strings.Replace(good, `"payload":"e`, `"payload":"f`, 1), []string{"--key", public}, exitInvalid, "Do not rely on it"},
		"cut off":          {good[:200], []string{"--key", public}, exitInvalid, "payloadType, payload and signatures is wanted"},
		"another key":      {good, []string{"--key", other}, exitInvalid, "which is not trusted here"},
		"one of two keys":  {good, []string{"--key", other, "--key", public}, 0, "genuine"},
		"no key":           {good, nil, exitUsage, "--key is missing"},
		"no such key":      {good, []string{"--key", "nowhere"}, exitUsage, "nowhere"},
		"the private half": {good, []string{"--key", strings.TrimSuffix(public, ".pub")}, exitUsage, "this is a private key, and the public one is wanted"},
		"a key is no key":  {good, []string{"--key", p.config}, exitUsage, "text outside the PEM block"},
	} {
		t.Run(name, func(t *testing.T) {
			says(t, p.want(c.code, p.runIn(c.text, append([]string{"receipt", "verify", "-"}, c.args...)...)), c.says)
		})
	}
	says(t, p.want(exitUsage, p.run("receipt", "verify", filepath.Join(p.dir, "gone"), "--key", public)), "no such file")
}

// A genuine receipt of another write does not pass for the one that is meant.
func TestReceiptsAreBoundToAnIntent(t *testing.T) {
	p, public := withKey(t, orders.Plain.Options())
	first := made(t, p.submit(exitVerified, order("A-1", ""), "--json"))
	second := made(t, p.submit(exitVerified, order("A-2", ""), "--json"))
	file := p.write("r.json", p.want(0, p.run("receipt", "export", first)).out)
	mine := p.write("mine.json", order("A-1", ""))
	verify := func(code int, args ...string) result {
		t.Helper()
		return p.want(code, p.run(append([]string{"receipt", "verify", file, "--key", public}, args...)...))
	}
	says(t, verify(0, "--intent", mine, "--write", first), "bound to the write and the intent that was given", "compared /amount_cents, /currency, /order_id", "other fields not compared", "none pending")
	says(t, verify(exitInvalid, "--write", second), "it is about write "+first, "It is genuine")
	says(t, verify(exitInvalid, "--intent", p.write("other.json", order("A-2", ""))), "its structural key is")
	says(t, verify(exitInvalid, "--intent", p.write("otherwise.json", order("A-1", `,"risk":"log"`))), "declared otherwise")
	says(t, verify(exitInvalid, "--intent", p.write("bad.json", `{"tenant":"acme"}`)), "/destination")
	says(t, verify(exitUsage, "--intent", filepath.Join(p.dir, "gone")), "no such file")
	for _, flag := range []string{"--intent", "--write"} { // a variable that a script did not set is no receipt of anything
		says(t, verify(exitUsage, flag, ""), flag+" is empty; want the ")
	}
	says(t, p.want(exitUsage, p.run("receipt", "verify", "-", "--key", public, "--intent", "-")), "both standard input")
}

// A caller that asks for the final receipt gets none while a recheck is pending.
func TestTheFinalReceiptWaitsForRechecks(t *testing.T) {
	p, public := withKey(t, orders.Plain.Options())
	p.configure(p.url, "    recheck: 1h\nreceipts: {key_file: receipts.pem}\n")
	began := time.Now()
	at := began
	p.now = func() time.Time { return at }
	id := made(t, p.submit(exitVerified, order("A-1", ""), "--json"))
	says(t, p.want(0, p.runIn(p.want(0, p.run("receipt", "export", id)).out, "receipt", "verify", "-", "--key", public)), "recheck pending: due")
	says(t, p.want(exitRefused, p.run("receipt", "export", id, "--final", "--wait", "1ms")), "a recheck of write "+id+" is pending until", "Nothing was signed")
	at = began.Add(3 * time.Hour)
	says(t, p.want(0, p.runIn(p.want(0, p.run("receipt", "export", id)).out, "receipt", "verify", "-", "--key", public)), "recheck overdue: due")
	says(t, p.want(0, p.runIn(p.want(0, p.run("receipt", "export", id, "--final", "--wait", "1m")).out, "receipt", "verify", "-", "--key", public)), "since 1 reads", "none pending")
	says(t, p.want(exitUsage, p.run("receipt", "export", id, "--final", "--wait", "-1s")), "--wait is -1s")
}

func TestReceiptsThatAreNotIssued(t *testing.T) {
	p, _ := withKey(t, orders.Plain.Options())
	held := made(t, p.submit(exitReview, order("A-1", `,"risk":"approve"`), "--json"))
	says(t, p.want(exitRefused, p.run("receipt", "export", held)), "waits for approval", "Nothing was signed")
	says(t, p.want(exitRefused, p.run("receipt", "export", "wr_none")), "wr_none")
	says(t, p.want(exitRefused, p.run("--tenant", "other", "receipt", "export", held)), held)
	file := filepath.Join(p.dir, "r.json")
	p.want(exitRefused, p.run("receipt", "export", held, "-o", file))
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a file of what was not issued: %v", err)
	}
	p.configure(p.url, "")
	says(t, p.want(exitConfig, p.run("receipt", "export", held)), "receipts.key_file", "readback key new")
	p.configure(p.url, "receipts: {key_file: receipts.pem.pub}\n")
	says(t, p.want(exitConfig, p.run("receipt", "export", held)), "this is a public key, and the private one is wanted")
}

func TestKeys(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	file := filepath.Join(p.dir, "k.pem")
	p.want(0, p.run("key", "new", "--out", file))
	for name, want := range map[string]os.FileMode{file: 0o600, file + ".pub": 0o644} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want mode %v", name, info, err, want)
		}
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	says(t, p.want(exitUsage, p.run("key", "new", "--out", file)), "exists already, and is never overwritten")
	if err := os.Remove(file + ".pub"); err != nil {
		t.Fatal(err)
	}
	p.want(exitUsage, p.run("key", "new", "--out", file))
	if _, err := os.Stat(file + ".pub"); !os.IsNotExist(err) {
		t.Errorf("a public half without its private one was left: %v", err)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the key has changed: %v", err)
	}
	shown := p.want(0, p.run("key", "show", file))
	public := p.write("again.pub", shown.out[strings.Index(shown.out, "-----BEGIN"):])
	if again := p.want(0, p.run("key", "show", public)); again.out != shown.out || strings.Contains(shown.out, "PRIVATE") {
		t.Errorf("shown from the private half\n%sand from the public one\n%s", shown.out, again.out)
	}
	says(t, p.want(exitUsage, p.run("key", "new")), "--out is missing")
	says(t, p.want(exitUsage, p.run("key", "show", p.config)), "text outside the PEM block")
	says(t, p.want(exitUsage, p.run("key")), "want new or show")
	says(t, p.want(exitUsage, p.run("receipt")), "want export or verify")
	var all struct{ Keys []struct{ ID string } }
	if err := json.Unmarshal([]byte(p.want(0, p.run("key", "show", file, "--json")).out), &all); err != nil || len(all.Keys) != 1 || len(all.Keys[0].ID) != 64 {
		t.Errorf("%+v, %v", all, err)
	}
}

// statement is the statement of a receipt that passes.
func (p *place) statement(text, public string) receipt.Statement {
	p.t.Helper()
	var c checkedReceipt
	if err := json.Unmarshal([]byte(p.want(0, p.runIn(text, "receipt", "verify", "-", "--key", public, "--json")).out), &c); err != nil {
		p.t.Fatal(err)
	}
	return c.Statement
}

func TestReceiptsNameTheHead(t *testing.T) {
	p, public := withKey(t, orders.Plain.Options())
	p.want(0, p.run("key", "new", "--out", filepath.Join(p.dir, "heads.pem")))
	p.configure(p.url, "receipts: {key_file: receipts.pem}\naudit: {heads: {every: 1m, key_file: heads.pem}}\n")
	id := made(t, p.submit(exitVerified, order("A-1", ""), "--json"))
	if head := p.statement(p.want(0, p.run("receipt", "export", id)).out, public).Predicate.Ledger.Head; head != nil {
		t.Errorf("a head before there is one: %+v", head)
	}
	p.want(0, p.run("audit", "seal"))
	head := p.statement(p.want(0, p.run("receipt", "export", id)).out, public).Predicate.Ledger.Head
	if head == nil || len(head.Digest.SHA256) != 64 || head.Ledger == "" || head.At.IsZero() {
		t.Errorf("the head: %+v", head)
	}
}

func TestReceiptsContainNothingSensitive(t *testing.T) {
	p, public := withKey(t, orders.Plain.Options())
	p.variable = map[string]string{"SEAL": strings.Repeat("0123456789abcdef", 4)}
	const sealed = "receipts: {key_file: receipts.pem}\nredaction: {keys: [{id: a, key_env: SEAL}]}\n"
	p.configure(p.url, sealed)
	secretly := strings.Replace(order("canary-7721", `,"sensitive":["/order_id","/amount_cents"]`), "step-canary-7721", "step-1", 1)
	id := made(t, p.submit(exitVerified, secretly, "--json"))
	for _, args := range [][]string{nil, {"--values"}} {
		text := p.want(0, p.run(append([]string{"receipt", "export", id}, args...)...)).out
		s := p.statement(text, public)
		payload, err := s.Payload()
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"canary", "7721", "1999"} {
			if strings.Contains(string(payload), secret) {
				t.Errorf("%v: %q is in %s", args, secret, payload)
			}
		}
		if values := s.Predicate.Observed.Value; args != nil && (!strings.Contains(values, "redacted:") || !strings.Contains(values, "USD")) {
			t.Errorf("what was seen: %s", values)
		}
	}
	file := p.write("r.json", p.want(0, p.run("receipt", "export", id)).out)
	mine := p.write("mine.json", secretly)
	verify := func(code int, intent string) result {
		t.Helper()
		return p.want(code, p.run("receipt", "verify", file, "--key", public, "--intent", intent))
	}
	says(t, verify(0, mine), "bound to the intent that was given", "hmac:a:")
	says(t, verify(exitInvalid, p.write("otherwise.json", strings.Replace(secretly, "1999", "2000", 1))), "declared otherwise")
	p.configure(p.url, "receipts: {key_file: receipts.pem}\n")
	says(t, p.want(exitRefused, p.run("receipt", "export", id)), "there is no key here that opens them")
	says(t, verify(exitConfig, mine), `made with the redaction key "a"`, "--config")
	p.want(0, p.run("receipt", "verify", file, "--key", public))
}

// A database returns values, not their original texts: a receipt compares them all the
// same.
func TestReceiptsFromPostgres(t *testing.T) {
	p, _ := newPlaceInPostgres(t, orders.Plain.Options())
	file := filepath.Join(p.dir, "receipts.pem")
	p.want(0, p.run("key", "new", "--out", file))
	config, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	p.write("readback.yaml", string(config)+"receipts: {key_file: receipts.pem}\n")
	approved := made(t, p.submit(exitReview, order("A-1", `,"risk":"approve"`), "--json"))
	p.want(exitVerified, p.run("review", approved, "approve", "--by", "ann", "--reason", "agreed"))
	// Exponents, escapes and nothing: what a database writes differently.
	odd := `,"payload":{"note":"\u00e9 \u0026 <b>","factor":1.50e2,"none":null}`
	for name, id := range map[string]string{
		"approved": approved,
		"odd":      made(t, p.submit(exitVerified, order("A-2", odd), "--json")),
		"vacuous":  made(t, p.submit(exitVerified, strings.Replace(strings.Replace(order("A-1", ""), "step-A-1", "again", 1), `"create"`, `"update"`, 1), "--json")),
	} {
		text := p.want(0, p.run("receipt", "export", id, "--values")).out
		if s := p.statement(text, file+".pub"); s.Subject[0].Name != id || s.Predicate.Observed.Value == "" {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
