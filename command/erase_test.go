package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// An operator erases one record: without --yes nothing happens; with it all that names
// the record is removed from every file of the ledger, the chain signed before still
// verifies, and a repeat of the write gets its outcome and is not sent.
func TestErase(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	first := order("SECRET-1", "")
	write := id(t, p.submit(exitVerified, first))
	other := id(t, p.submit(exitVerified, order("A-2", "")))
	p.want(0, p.run("key", "new", "--out", filepath.Join(p.dir, "audit.pem")))
	p.configure(p.url, "audit:\n  heads:\n    key_file: audit.pem\n    keep: [{file: heads.jsonl}]\n")
	p.want(0, p.run("audit", "seal"))
	verify := []string{"audit", "verify", "--heads", filepath.Join(p.dir, "heads.jsonl"), "--key", filepath.Join(p.dir, "audit.pem.pub")}
	p.want(0, p.run(verify...))
	args := []string{"erase", "--destination", "orders", "--key", `{"order_id":"SECRET-1"}`, "--reason", "request 7", "--by", "ben"}

	says(t, p.want(0, p.run(args...)), "write "+write, "Nothing was erased. --yes erases the contents of 1 writes")
	says(t, p.run("show", write), "SECRET-1")
	says(t, p.want(0, p.run(append(args, "--yes")...)), "erased the contents of 1 writes")
	p.want(0, p.run("audit", "seal"))
	says(t, p.want(0, p.run(verify...)), "the contents of 1 writes and 0 documents", "Nothing was altered")
	files, err := filepath.Glob(filepath.Join(p.dir, "readback.db*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, error %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil || bytes.Contains(content, []byte("SECRET-1")) {
			t.Errorf("%s still names it, error %v", file, err)
		}
	}
	shown := p.want(exitVerified, p.run("show", write))
	says(t, shown, "contents erased")
	if all := shown.out + shown.err; strings.Contains(all, "SECRET-1") {
		t.Errorf("show still names it:\n%s", all)
	}
	says(t, p.run("show", other), "A-2")
	says(t, p.want(0, p.run("erase", "list")), "er_", "ben", "request 7", "finished")

	calls, _ := p.world.Count()
	says(t, p.submit(exitVerified, first), "Its contents were erased.", "an earlier call began it")
	p.calls(calls)
	p.effects(1, "SECRET-1")
	says(t, p.want(0, p.run(append(args, "--yes")...)), "erased the contents of 0 writes", "1 more were erased before")
}

// A legal hold protects its writes from erasure, and is ended with a reason.
func TestHold(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	write := id(t, p.submit(exitVerified, order("A-1", "")))
	says(t, p.want(0, p.run("hold", "list")), "Tenant acme has no legal holds.")
	added := decode(t, p.want(0, p.run("hold", "add", "--destination", "orders", "--key", `{"order_id":"A-1"}`, "--reason", "case 12", "--by", "eve", "--json")))
	hold := added["holds"].([]any)[0].(map[string]any)["id"].(string)
	says(t, p.want(0, p.run("hold", "list")), hold, "active", `one record at orders`, "eve", "case 12")
	args := []string{"erase", "--write", write, "--reason", "request 7"}
	says(t, p.want(exitAttention, p.run(args...)), "legal hold "+hold+" covers it (added by eve at ", "case 12")
	says(t, p.want(exitRefused, p.run(append(args, "--yes")...)), "under a legal hold, nothing was erased", hold, "`readback hold list`")
	says(t, p.run("show", write), "A-1")
	says(t, p.want(0, p.run("hold", "release", hold, "--reason", "closed", "--by", "eve")), "released at", "by eve: closed")
	says(t, p.want(0, p.run(append(args, "--yes")...)), "erased the contents of 1 writes")
}

func TestBadErasing(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitVerified, order("A-1", ""))
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no reason":           {[]string{"erase", "--write", "wr_1"}, exitUsage, "--reason is missing; want why, such as the number of a request"},
		"nothing":             {[]string{"erase", "--reason", "x"}, exitUsage, "the destination or the key is missing; want both, or one write"},
		"no key":              {[]string{"erase", "--destination", "orders", "--reason", "x"}, exitUsage, "the destination or the key is missing; want both, or one write"},
		"both":                {[]string{"erase", "--destination", "orders", "--key", `{"order_id":"A-1"}`, "--write", "wr_1", "--reason", "x"}, exitUsage, "want one of them"},
		"no JSON":             {[]string{"erase", "--destination", "orders", "--key", "A-1", "--reason", "x"}, exitUsage, `--key: it is no JSON object with the fields of the key; want one such as {"email"`},
		"yes and dry":         {[]string{"erase", "--write", "wr_1", "--reason", "x", "--yes", "--dry-run"}, exitUsage, "--yes and --dry-run are given; want one of them"},
		"no such write":       {[]string{"erase", "--write", "wr_1", "--reason", "x"}, exitRefused, "no such write"},
		"a telling reason":    {[]string{"erase", "--destination", "orders", "--key", `{"order_id":"SECRET"}`, "--reason", "Secret asked", "--yes"}, exitFailed, `the reason contains the value of "order_id"`},
		"hold what":           {[]string{"hold"}, exitUsage, "hold what? want add, list or release"},
		"hold nothing":        {[]string{"hold", "add", "--reason", "x"}, exitUsage, "nothing is named; want --destination, --destination with --key, --write, or --all"},
		"hold all and one":    {[]string{"hold", "add", "--all", "--write", "wr_1", "--reason", "x"}, exitUsage, "--all and names are given"},
		"hold a key of what":  {[]string{"hold", "add", "--key", `{"order_id":"A-1"}`, "--reason", "x"}, exitUsage, "--destination is missing; want the one that --key is a key of"},
		"hold for nothing":    {[]string{"hold", "add", "--all"}, exitUsage, "--reason is missing"},
		"hold misspelt":       {[]string{"hold", "add", "--destination", "oders", "--reason", "x"}, exitUsage, `--destination is "oders", which the configuration does not know; it has: orders`},
		"hold no write":       {[]string{"hold", "add", "--write", "wr_1", "--reason", "x"}, exitRefused, "no such write"},
		"release for nothing": {[]string{"hold", "release", "hold_1"}, exitUsage, "--reason is missing; want why it ends"},
		"release what":        {[]string{"hold", "release", "hold_1", "--reason", "x"}, exitRefused, "hold_1"},
	} {
		t.Run(name, func(t *testing.T) { says(t, p.want(c.code, p.run(c.args...)), c.want) })
	}
	says(t, p.want(0, p.run("erase", "list")), "Nothing was erased of tenant acme.")
}
