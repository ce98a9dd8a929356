package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/report"
)

// chained is a place whose events are chained, with its file of heads and its public
// key.
func chained(t *testing.T) (p *place, heads, public string) {
	t.Helper()
	p = newPlace(t, orders.Plain.Options())
	key := filepath.Join(p.dir, "audit.pem")
	p.want(0, p.run("key", "new", "--out", key))
	p.configure(p.url, "audit: {heads: {key_file: audit.pem, keep: [{file: heads.jsonl}]}}\n")
	return p, filepath.Join(p.dir, "heads.jsonl"), key + ".pub"
}

func TestAuditOnTheCommandLine(t *testing.T) {
	p, heads, public := chained(t)
	id := made(t, p.submit(exitVerified, order("A-1", ""), "--json"))
	says(t, p.want(0, p.run("audit", "verify")), "Nothing is chained here")
	says(t, p.want(exitRefused, p.run("audit", "head")), "no head")
	says(t, p.want(0, p.run("audit", "seal")), "signed 1 heads")
	p.submit(exitVerified, order("A-2", ""))
	says(t, p.want(0, p.run("audit", "verify")), "not sealed yet", "proves little")
	says(t, p.want(0, p.run("audit", "seal")), "signed 1 heads")
	says(t, p.want(0, p.run("audit", "verify", "--heads", heads, "--key", public)), "0 not sealed yet", "up to the newest heads")
	head := p.want(0, p.run("audit", "head")).out
	kept, err := os.ReadFile(heads)
	if err != nil || !strings.HasSuffix(string(kept), head) || strings.Count(head, "\n") != 1 {
		t.Errorf("error %v; the newest head is %q, and what is kept is\n%s", err, head, kept)
	}
	// Another machine has the file, the public key and a configuration of one line.
	there := filepath.Join(p.dir, "there.yaml")
	if err := os.WriteFile(there, []byte("ledger: "+filepath.Base(p.ledger)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.config = there
	p.want(0, p.run("audit", "verify", "--heads", filepath.Dir(moved(t, heads)), "--key", public))
	conn, err := sqlite.OpenConn(p.ledger, sqlite.OpenReadWrite)
	if err == nil {
		err = sqlitex.ExecuteScript(conn, "UPDATE ledger_events SET body = json_set(body, '$.reason', 'all is well') WHERE seq = 3", nil)
	}
	if err == nil {
		err = conn.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r := p.want(exitAttention, p.run("audit", "verify", "--json"))
	var found audit.Report
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || len(found.Problems) == 0 ||
		found.Problems[0].Kind != audit.Altered || string(found.Problems[0].Write) != id || found.Problems[0].Seq != 3 {
		t.Errorf("error %v: %s", err, r.out)
	}
	says(t, p.want(exitAttention, p.run("audit", "verify")), "altered: tenant", id, "event 3", "Something is wrong")
}

// moved is a file of heads in a folder of its own.
func moved(t *testing.T, file string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "heads.jsonl")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestAuditRefuses(t *testing.T) {
	p, heads, public := chained(t)
	p.submit(exitVerified, order("A-1", ""))
	p.want(0, p.run("audit", "seal"))
	other := filepath.Join(p.dir, "other.pem")
	p.want(0, p.run("key", "new", "--out", other))
	says(t, p.want(exitUsage, p.run("audit")), "want verify, events, head or seal")
	says(t, p.want(exitUsage, p.run("audit", "verify", "--heads", heads)), "--key is missing")
	says(t, p.want(exitUsage, p.run("audit", "verify", "--heads", filepath.Join(p.dir, "none"), "--key", public)), "--heads", "no such file")
	says(t, p.want(exitUsage, p.run("audit", "verify", "--heads", public, "--key", public)), "--heads", "line 1")
	says(t, p.want(exitUsage, p.run("audit", "verify", "--key", other)), "private")
	says(t, p.want(exitAttention, p.run("audit", "verify", "--heads", heads, "--key", other+".pub")), "bad head", "not trusted")
	p.configure(p.url, "audit: {heads: {key_file: gone.pem}}\n")
	says(t, p.want(exitConfig, p.run("audit", "seal")), "audit.heads", "gone.pem")
}

// A restored ledger sends nothing until an operator has seen to it: what was sent since
// the copy would be sent again.
func TestALedgerThatWasPutBackSendsNothing(t *testing.T) {
	p, heads, _ := chained(t)
	p.submit(exitVerified, order("A-1", ""))
	p.want(0, p.run("audit", "seal"))
	old, err := os.ReadFile(p.ledger)
	if err != nil {
		t.Fatal(err)
	}
	p.submit(exitVerified, order("A-2", ""))
	p.want(0, p.run("audit", "seal"))
	for _, beside := range []string{"-wal", "-shm"} {
		_ = os.Remove(p.ledger + beside) // where it is there
	}
	if err := os.WriteFile(p.ledger, old, 0o600); err != nil {
		t.Fatal(err)
	}
	const older = "The ledger is an older copy"
	says(t, p.want(exitAttention, p.run("status")), older, "an older copy was put back")
	says(t, p.want(exitAttention, p.run("doctor")), older, "find out at the destinations what was sent since")
	if r := p.runIn(order("A-4", ""), "submit", "-f", "-", "--wait", "10ms"); r.code == exitVerified {
		t.Errorf("it was sent: %s", r)
	}
	p.effects(0, "A-4")
	says(t, p.want(exitAttention, p.run("status")), "Stopped: all sends, by readback", "an older copy was put back")
	p.want(0, p.run("release", "--all", "--reason", "nothing was sent since"))
	p.submit(exitVerified, order("A-3", ""))
	p.effects(1, "A-3")
	if err := os.WriteFile(heads, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, p.want(exitAttention, p.run("status")), "Whether the ledger is an older copy is not known", "although it signed some")
}

// The status reports that no sealer runs, how far the chain is, and the key that signed
// its newest head.
func TestStatusOfTheAuditLog(t *testing.T) {
	p, _, _ := chained(t)
	p.submit(exitVerified, order("A-1", ""))
	says(t, p.want(exitAttention, p.run("status")), "No process seals the audit log, which is configured")
	says(t, p.run("doctor"), "No process seals the audit log, which is configured", "1 of 9 checks ended with a warning")
	p.want(0, p.run("audit", "seal"))
	r := p.want(0, p.run("status"))
	says(t, r, "Audit log", "everything is sealed", "newest head signed", "with key ")
	says(t, p.want(0, p.run("doctor")), "audit log", "everything is sealed")
	p.submit(exitVerified, order("A-2", ""))
	var s struct{ Audit *report.Audit }
	r = p.want(0, p.run("status", "--json"))
	if err := json.Unmarshal([]byte(r.out), &s); err != nil || s.Audit == nil || s.Audit.Unsealed == 0 || s.Audit.Oldest.IsZero() || s.Audit.HeadKey == "" || s.Audit.HeadAt.IsZero() {
		t.Errorf("error %v: %s", err, r.out)
	}
	p.configure(p.url, "") // the ledger still remembers what is not sealed
	says(t, p.want(0, p.run("status")), "Audit log", "not sealed")
}

// Heads from outside that were removed are a problem: a check against none of them, or
// against those from before, proves nothing of what came since.
func TestAuditAgainstHeadsThatWereRemoved(t *testing.T) {
	p, heads, public := chained(t)
	p.submit(exitVerified, order("A-1", ""))
	p.want(0, p.run("audit", "seal"))
	p.submit(exitVerified, order("A-2", ""))
	p.want(0, p.run("audit", "seal"))
	all, err := os.ReadFile(heads)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(kept string, args ...string) result {
		if err := os.WriteFile(heads, []byte(kept), 0o600); err != nil {
			t.Fatal(err)
		}
		return p.run(append([]string{"audit", "verify", "--heads", heads, "--key", public}, args...)...)
	}
	first, _, _ := strings.Cut(string(all), "\n")
	says(t, p.want(0, verify(string(all))), "up to the newest heads", "the newest signed at", "before this check", "Not covered by any chain", "feed of changes")
	says(t, p.want(exitAttention, verify("")), "heads end", "an empty file proves nothing")
	says(t, p.want(exitAttention, verify(first+"\n")), "heads end: tenant", "the heads that were given were shortened")
	says(t, p.want(0, verify(first+"\n", "--behind", "1h")), "the newest signed")
	says(t, p.want(exitUsage, verify(first, "--behind", "-1s")), "--behind: is -1s; want 0s or more")
	says(t, p.want(exitUsage, p.run("audit", "verify", "--behind", "1h")), "--behind: is 1h", "want --heads")
}
