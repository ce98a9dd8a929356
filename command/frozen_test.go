package command

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// frozen is what a version of November 2026 wrote and signed: a ledger (as SQL) in which
// writes were verified, undone, accepted, approved, refused and erased, heads of its
// chain, and receipts. Its rows were copied into the schema of the first release; from there on
// these files are never rewritten: a later format gets a folder beside them.
const frozen = "testdata/frozen"

// thawed is a place with the frozen ledger and its heads.
func thawed(t *testing.T) *place {
	t.Helper()
	p := newPlace(t, orders.Plain.Options())
	p.now = later(max(0, time.Until(time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)))) // after what is frozen, wherever the tests run
	p.configure(p.url, "audit: {heads: {key_file: audit.pem, keep: [{file: heads.jsonl}]}}\n")
	p.write("heads.jsonl", frozenFile(t, "heads.jsonl"))
	conn, err := sqlite.OpenConn(p.ledger, sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenWAL)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteScript(conn, frozenFile(t, "ledger.sql"), nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return p
}

func frozenFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(frozen, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A later version verifies the chain of an earlier one, and continues it.
func TestAChainOfAnEarlierVersionIsVerified(t *testing.T) {
	p := thawed(t)
	heads, public := filepath.Join(p.dir, "heads.jsonl"), filepath.Join(frozen, "audit.pem.pub")
	says(t, p.want(0, p.run("audit", "verify", "--heads", heads, "--key", public)),
		"49 entries on 3 pages, 49 of them covered by heads from outside", "0 not sealed yet, 26 from before the chain",
		"erasure er_lu4lj7ysehs3b5e6", "the contents of 1 writes and 0 documents", "Nothing was altered, deleted, inserted or reordered up to the newest heads.")
	key := filepath.Join(p.dir, "audit.pem")
	p.want(0, p.run("key", "new", "--out", key))
	p.submit(exitVerified, order("A-7", ""))
	p.want(0, p.run("audit", "seal"))
	says(t, p.want(0, p.run("audit", "verify", "--heads", heads, "--key", public, "--key", key+".pub")), "on 4 pages", "0 not sealed yet")
}

// The writes of an earlier version keep their exit codes, and a repeat of one gets its
// outcome and is not sent.
func TestWritesOfAnEarlierVersionAreAnswered(t *testing.T) {
	p := thawed(t)
	for write, code := range map[string]int{
		"wr_dd5d971030b46074f07e060a4a071f51": 10, // compensated
		"wr_cb80c72a6e8eaab7f2c3637758bf79e0": 11, // accepted
		"wr_21b2916d8e9faa2ae9463c46c498609e": 10, // not applied
		"wr_f815f09f2860d1580ca19b21d53a4add": 0,  // verified
		"wr_ec8ec7dd1f67439e1e3faca4dd27480e": 0,  // approved, then verified
		"wr_327154a500e6ba5d7cdd1dc98befdce4": 0,  // verified, then erased
	} {
		says(t, p.want(code, p.run("resume", write)), write)
	}
	says(t, p.submit(0, frozenFile(t, "intent.json")), "wr_f815f09f2860d1580ca19b21d53a4add", "an earlier call began it")
	p.calls(0)
}

// A receipt of an earlier version is genuine, as it was signed.
func TestReceiptsOfAnEarlierVersionAreGenuine(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	public := filepath.Join(frozen, "receipts.pem.pub")
	for name, write := range map[string]string{
		"verified":    "wr_f815f09f2860d1580ca19b21d53a4add",
		"compensated": "wr_dd5d971030b46074f07e060a4a071f51",
		"not-applied": "wr_21b2916d8e9faa2ae9463c46c498609e",
	} {
		says(t, p.want(0, p.run("receipt", "verify", filepath.Join(frozen, "receipt-"+name+".json"), "--key", public, "--write", write)), "genuine: signed by key", write)
	}
	says(t, p.want(0, p.run("receipt", "verify", filepath.Join(frozen, "receipt-verified.json"), "--key", public, "--intent", filepath.Join(frozen, "intent.json"))),
		"showed exactly what was declared", "bound to the intent that was given", "0 of them not taken up, 2 reads")
}
