package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

func TestBadOperating(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitVerified, order("A-1", ""))
	why := []string{"--reason", "x"}
	tests := map[string]struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		"stop what":              {"a stop of nothing", append([]string{"stop"}, why...), exitUsage, "nothing is named; want --tenant, --destination or --tool with a name, or --all"},
		"stop why":               {"an operator who releases it needs the reason", []string{"stop", "--all"}, exitUsage, "--reason is missing"},
		"stop for no reason":     {"blanks are none", []string{"stop", "--all", "--reason", " "}, exitUsage, "--reason is missing"},
		"all and a tenant":       {"which?", append([]string{"stop", "--all", "--tenant", "acme"}, why...), exitUsage, `--all and tenant "acme" are given; want either everything or names`},
		"all and a tool":         {"which?", append([]string{"release", "--all", "--tool", "t"}, why...), exitUsage, "want either everything or names"},
		"no tenant":              {"a variable of a script is not set", append([]string{"stop", "--tenant", ""}, why...), exitUsage, "--tenant is empty"},
		"unknown destination":    {"a stop of a misspelt name stops nothing", append([]string{"stop", "--destination", "oders"}, why...), exitUsage, `--destination is "oders", which the configuration does not know; it has: orders`},
		"stop with a word":       {"misspelt", append([]string{"stop", "orders"}, why...), exitUsage, `unknown command "orders"`},
		"a long reason":          {"it is kept", []string{"stop", "--all", "--reason", strings.Repeat("x", 3000)}, exitUsage, "want at most"},
		"release what":           {"it is not stopped", append([]string{"release", "--all"}, why...), exitRefused, "not stopped"},
		"release of what is not": {"a destination that is gone can be named", append([]string{"release", "--destination", "gone"}, why...), exitRefused, "`readback stops` lists what is stopped"},
		"keep what":              {"of what?", []string{"prune", "--keep", "30"}, exitUsage, `--keep: "30" is no duration; want one such as 30d or 12h`},
		"keep less than nothing": {"time", []string{"prune", "--keep=-1h"}, exitUsage, `"-1h" is no duration`},
		"keep nothing":           {"time", []string{"prune", "--keep", "0d"}, exitUsage, `"0d" is no duration`},
		"keep unsaid":            {"nothing is guessed", []string{"prune"}, exitUsage, "--keep is missing, and so is retention.keep in the configuration"},
		"remember unsaid":        {"nothing is guessed", []string{"prune", "--keep", "1h"}, exitUsage, "--remember is missing"},
		"remember less":          {"nonsense", []string{"prune", "--keep", "30d", "--remember", "20d"}, exitUsage, "--remember is 480h; want at least --keep, 720h"},
		"remember too short":     {"a repeat would be sent again", []string{"prune", "--keep", "1h", "--remember", "2h"}, exitUsage, "--remember is 2h; want at least 24h, the window of idempotency keys: a repeat within it would be sent again"},
		"grace":                  {"time", []string{"work", "--grace", "-1s"}, exitUsage, "--grace is -1s; want 0 or more"},
		"idle":                   {"a busy loop", []string{"work", "--idle", "1us"}, exitUsage, "want 10ms to 1h"},
		"metrics for all":        {"metrics need no login", []string{"work", "--metrics", "0.0.0.0:9464"}, exitUsage, "--metrics can be reached from other machines"},
		"metrics where":          {"no port", []string{"work", "--metrics", "9464"}, exitUsage, "--metrics is no address; want host:port"},
		"enqueue and wait":       {"for what?", []string{"submit", "-f", "-", "--enqueue", "--wait", "1s"}, exitUsage, "[enqueue wait]"},
		"status of what":         {"misspelt", []string{"status", "now"}, exitUsage, `unknown command "now"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			says(t, p.want(tt.code, p.run(tt.args...)), tt.want)
			failed := decode(t, p.want(tt.code, p.run(append(tt.args, "--json")...)))["error"].(map[string]any)
			if failed["exit"] != float64(tt.code) {
				t.Errorf("%s: exit %v in JSON", tt.reason, failed["exit"])
			}
		})
	}
	says(t, p.want(0, p.run("stops")), "Nothing is stopped.")
	p.calls(1)
}

// A stop holds all senders, and nothing else.
func TestStopAndRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags []string
		holds bool
	}{
		"all": {[]string{"--all"}, true}, "tenant": {[]string{"--tenant", "acme"}, true}, "destination": {[]string{"--destination", "orders"}, true},
		"tool": {[]string{"--tool", "create_order"}, true}, "several": {[]string{"--tenant", "acme", "--tool", "create_order"}, true},
		"another tenant": {[]string{"--tenant", "other"}, false}, "another tool": {[]string{"--tool", "other"}, false},
		"not both": {[]string{"--tenant", "acme", "--tool", "other"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, orders.Plain.Options())
			p.submit(exitVerified, order("A-0", ""))
			says(t, p.want(0, p.run(append([]string{"stop", "--by", "ann", "--reason", "bad batch"}, c.flags...)...)), "Stopped: 1.", "ann", "bad batch")
			code, sent := exitVerified, 1
			if c.holds {
				code, sent = exitInProgress, 0
			}
			write := id(t, p.submit(code, order("A-1", ""), "--wait", "0s"))
			p.effects(sent, "A-1")
			if c.holds {
				says(t, p.run("show", write), "stopped", "ann", "bad batch")
			}
			says(t, p.want(0, p.run(append([]string{"release", "--reason", "looked at"}, c.flags...)...)), "Nothing is stopped.", "released", me())
			stop := decode(t, p.want(0, p.run("stops", "--json")))["stops"].([]any)[0].(map[string]any)
			if stop["active"] != false || stop["by"] != me() || stop["reason"] != "looked at" {
				t.Errorf("%v", stop)
			}
			p.want(exitVerified, p.run("resume", write))
			p.effects(1, "A-1")
		})
	}
}

// A preview counts what a stop would hold, and stops nothing.
func TestStopDryRun(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitInProgress, order("A-1", ""), "--enqueue")
	says(t, p.want(0, p.run("stop", "--destination", "orders", "--dry-run")), "Nothing was stopped.", "1 queued.", "sent after the release", "Workflows with these writes: 1.")
	says(t, p.want(0, p.run("stop", "--tool", "other", "--dry-run")), "No open write.")
	effect := decode(t, p.want(0, p.run("stop", "--all", "--dry-run", "--json")))
	if effect["workflows"] != 1.0 || effect["more"] != false {
		t.Errorf("%v", effect)
	}
	says(t, p.want(0, p.run("stops")), "Nothing is stopped.")
}

func TestEnqueue(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	write := id(t, p.submit(exitInProgress, order("A-1", ""), "--enqueue"))
	p.submit(exitInProgress, order("A-1", ""), "--enqueue") // the same
	p.calls(0)
	second := strings.NewReplacer("step-A-1", "step-A-2").Replace(order("A-1", "")) // another write of the same record
	behind := id(t, p.submit(exitInProgress, second, "--enqueue"))
	says(t, p.want(0, p.run("list")), "queued (behind)")
	says(t, p.want(0, p.run("show", behind)), "to be sent after "+write, "is sent when "+write+" about the same record is done")
	p.want(exitVerified, p.run("resume", write))
	p.submit(exitVerified, order("A-1", ""), "--enqueue") // done meanwhile
	p.want(exitInvalid, p.runIn(order("A-1", ""), "submit", "-f", "-", "--enqueue", "--tenant", "other"))
	p.want(exitRefused, p.runIn(strings.Replace(order("A-1", ""), "1999", "2999", 1), "submit", "-f", "-", "--enqueue"))
	p.effects(1, "A-1")
}

func TestAFullQueue(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	text := fmt.Sprintf("ledger: readback.db\ntenant: acme\nqueue: {waiting: 1}\nlog: json\ndestinations:\n  orders: {type: simulated, url: '%s', class: plain}\n", p.url)
	p.write("readback.yaml", text)
	p.submit(exitInProgress, order("A-1", ""), "--enqueue")
	r := p.submit(exitRefused, order("A-2", ""), "--enqueue")
	says(t, r, "queue full", `destination "orders", at most 1 may`, "Nothing was recorded", "Try again")
	if n := len(p.writes()); n != 1 {
		t.Errorf("%d writes in the ledger", n)
	}
	if r := p.submit(exitInProgress, order("A-1", ""), "--enqueue", "-v"); !strings.HasPrefix(r.err, `{"time":`) {
		t.Errorf("logs are no JSON: %s", r.err)
	}
}

// A destination's own time holds for `readback prune` too, also beside --keep.
func TestPruneOfADestination(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.configure(p.url, "retention: {keep: 400d, tenants: {acme: {keep: 500d}}, destinations: {orders: {keep: 30h}, oders: {keep: 2h}}}\n")
	write := id(t, p.submit(exitVerified, order("A-1", "")))
	p.now = later(29 * time.Hour)
	says(t, p.want(0, p.run("prune", "--keep", "2h")), "made 0 settled writes tombstones")
	p.now = later(31 * time.Hour)
	says(t, p.want(0, p.run("prune")), "made 1 settled writes tombstones and forgot 0 tombstones")
	says(t, p.want(0, p.run("show", write)), "settled (verified), pruned")
	says(t, p.run("doctor"), "settled writes are kept for 9600h", "of destination orders for 30h", "of tenant acme for 12000h", "retention.destinations.oders: no such destination is configured")
	says(t, p.want(exitUsage, p.run("prune", "--remember", "30d")), "--remember is 720h; want at least --keep, 9600h")
	says(t, p.want(exitUsage, p.run("prune", "--keep", "2h", "--remember", "30d")), `keep of tenant "acme" is 12000h0m0s`)
	p.configure(p.url, "retention: {keep: forever}\n")
	says(t, p.want(exitUsage, p.run("prune")), "retention.keep is forever; nothing is pruned")
	says(t, p.run("doctor"), "everything is kept for ever")
}

func TestPrune(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	write := id(t, p.submit(exitVerified, order("A-1", "")))
	p.now = later(48 * time.Hour)
	p.submit(exitVerified, order("A-2", ""))
	dry := decode(t, p.want(0, p.run("prune", "--keep", "30h", "--remember", "30d", "--dry-run", "--json")))
	says(t, p.want(0, p.run("prune", "--keep", "30h", "--remember", "30d", "--dry-run")), "would make 1 settled writes tombstones and forget 0 tombstones: ", "Nothing was deleted.")
	got := decode(t, p.want(0, p.run("prune", "--keep", "30h", "--remember", "30d", "--json")))
	if got["buried"] != dry["buried"] || got["forgotten"] != dry["forgotten"] || dry["bytes"].(float64) < 200 || dry["dry_run"] != true {
		t.Errorf("a dry run counted %v, and pruned were %v", dry, got)
	}
	if got["buried"] != 1.0 || got["forgotten"] != 0.0 {
		t.Errorf("%v", got)
	}
	says(t, p.want(0, p.run("show", write)), "VERIFIED", "settled (verified), pruned", "It was pruned.")
	says(t, p.want(0, p.run("list")), "settled (verified), pruned")
	p.submit(exitVerified, order("A-1", "")) // gets a response
	p.effects(1, "A-1")
	p.now = later(40 * 24 * time.Hour)
	says(t, p.want(0, p.run("prune", "--keep", "30h", "--remember", "30d")), "forgot ")
	p.want(exitRefused, p.run("show", write))
}

// A worker forgets by itself what the configuration does not keep.
func TestWorkerPrunes(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		pruned bool
	}{"as configured": {nil, true}, "not": {[]string{"--no-prune"}, false}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, orders.Plain.Options())
			write := id(t, p.submit(exitVerified, order("A-1", "")))
			p.write("readback.yaml", fmt.Sprintf("ledger: readback.db\ntenant: acme\nretention: {keep: 1h, remember: 30d, every: 10ms}\ndestinations:\n  orders: {type: simulated, url: '%s', class: plain}\n", p.url))
			p.now = later(2 * time.Hour)
			ctx, stop := context.WithCancel(t.Context())
			var out, errs lines
			ended := make(chan int, 1)
			go func() {
				ended <- p.start(ctx, strings.NewReader(""), &out, &errs, append([]string{"work", "-v", "--idle", "10ms"}, c.args...)...)
			}()
			if c.pruned {
				eventually(t, "the pruning", func() bool { return strings.Contains(errs.String(), "msg=pruned") })
			} else {
				eventually(t, "the worker", func() bool { return strings.Contains(errs.String(), "msg=working") })
				says(t, result{err: errs.String()}, "keeps=0s")
			}
			stop()
			if code := <-ended; code != 0 {
				t.Errorf("exit %d\n%s", code, errs.String())
			}
			if got := strings.Contains(p.want(0, p.run("show", write)).out, "pruned"); got != c.pruned {
				t.Errorf("pruned: %t", got)
			}
		})
	}
	p := newPlace(t, orders.Plain.Options())
	p.write("readback.yaml", fmt.Sprintf("ledger: readback.db\nretention: {keep: 1h, remember: 2h}\ndestinations:\n  orders: {type: simulated, url: '%s', class: plain}\n", p.url))
	says(t, p.want(exitConfig, p.run("work")), "retention.remember: is 2h0m0s; want at least 24h0m0s, the window of idempotency keys")
}

// watched ends the program once it has written something for the second time.
type watched struct {
	all bytes.Buffer
	end func()
}

func (w *watched) Write(text []byte) (int, error) {
	n, err := w.all.Write(text)
	if strings.Count(w.all.String(), "Needs attention: ") == 2 {
		w.end()
	}
	return n, err
}

// Watching, the command shows the status again until it is to end, and its exit code is that
// of the last one.
func TestStatusIsWatched(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitReview, order("A-2", `,"risk":"approve"`))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &watched{end: cancel}
	if code := p.start(ctx, nil, out, io.Discard, "status", "--watch"); code != exitAttention {
		t.Errorf("exit code %d\n%s", code, &out.all)
	}
	if n := strings.Count(out.all.String(), "Needs attention: "); n != 2 {
		t.Errorf("shown %d times:\n%s", n, &out.all)
	}
}

func TestStatusAndDoctorOfWhatIsWrong(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	gone := p.url
	p.configure("http://127.0.0.1:1", "")
	p.submit(exitInProgress, order("A-1", ""), "--enqueue")
	p.submit(exitReview, order("A-2", `,"risk":"approve"`))
	p.now = later(time.Hour)
	says(t, p.want(exitAttention, p.run("status")), "1 write is due, and no worker takes them up: the oldest since 1 hour", "Tenant acme: 1 write waits for a reviewer", "readback review --tenant acme")
	says(t, p.want(exitAttention, p.run("doctor")), "failed destination orders", "connection refused", "1 of 8 checks failed")

	p.write("readback.yaml", fmt.Sprintf("ledger: readback.db\ntenant: acme\ndestinations:\n  others: {type: simulated, url: '%s', class: plain}\n", gone))
	says(t, p.want(exitAttention, p.run("status")), `for "orders", which is not in this configuration for tenant acme`)
	says(t, p.want(exitAttention, p.run("doctor")), "failed open writes", `2 open writes are for "orders", which is not in this configuration`, "ok destination others")

	p.spoil("UPDATE ledger_writes SET body = 'x' WHERE state = 'queued'")
	p.run("resume") // finds it, and continues with the others
	r := p.want(exitAttention, p.run("status"))
	says(t, r, "1. The ledger holds 1 write that cannot be read")
	says(t, p.want(exitAttention, p.run("doctor")), "failed ledger contents The ledger holds 1 write that cannot be read")
	var all struct{ Attention []struct{ What, Do string } }
	for _, m := range decode(t, p.run("status", "--json"))["attention"].([]any) {
		all.Attention = append(all.Attention, struct{ What, Do string }{m.(map[string]any)["what"].(string), m.(map[string]any)["do"].(string)})
	}
	if len(all.Attention) < 3 || !strings.Contains(all.Attention[0].What, "cannot be read") || all.Attention[0].Do == "" {
		t.Errorf("what is most urgent comes first: %+v", all.Attention)
	}
}

func TestStatusOfOneTenant(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitInProgress, order("A-1", ""), "--enqueue")
	if got := decode(t, p.want(0, p.run("status", "--json", "--tenant", "other"))); len(got["queues"].([]any)) != 0 {
		t.Errorf("the queues of another tenant: %v", got["queues"])
	}
	if got := decode(t, p.want(0, p.run("status", "--json"))); len(got["queues"].([]any)) != 1 {
		t.Errorf("queues: %v", got["queues"])
	}
}

func TestDoctorOfBadConfigurations(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	good := p.config
	p.config = filepath.Join(p.dir, "nothing.yaml")
	says(t, p.want(exitConfig, p.run("doctor")), "failed configuration", "does not exist", "1 of 1 checks failed.")
	p.config = good
	p.write("readback.yaml", strings.Replace(p.text(), "readback.db", "no/folder/readback.db", 1))
	says(t, p.want(exitUnavailable, p.run("doctor")), "failed ledger", "does not exist, and cannot be made", "Make the folder")
	p.configure(p.url, "")
	says(t, p.want(exitVerified, p.run("doctor")), "ok ledger", "does not exist yet: there are no writes. The first write makes it", "ok destination orders", "Everything is in order.")
	if left, err := os.ReadDir(p.dir); err != nil || len(left) != 1 {
		t.Errorf("doctor left files: %v, %v", left, err)
	}
	p.submit(exitVerified, order("A-1", ""))
	p.configure(p.url, "  mail: {type: imap, addr: imap.example.org:993, username: a, password_env: NOTHING}\n")
	says(t, p.want(exitConfig, p.run("doctor")), "failed configuration", "the environment variable NOTHING is not set", "ok destination orders", "failed destination mail", "ok ledger")
	p.configure(p.url, "retention: {keep: 1h, remember: 2h}\n")
	says(t, p.want(exitAttention, p.run("doctor")), "failed retention", "want at least 24h0m0s", "Give `retention.remember` at least that long.")
	checks := decode(t, p.want(exitAttention, p.run("doctor", "--json")))["checks"].([]any)
	for _, c := range checks {
		if one := c.(map[string]any); one["state"] == "failed" && (one["name"] != "retention" || one["do"] == nil) {
			t.Errorf("%v", one)
		}
	}
	p.calls(1)
}

func TestOperatingOnALedgerThatCannotBeWritten(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root may write any file: a ledger that is full stands in for one that is read-only")
	}
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitVerified, order("A-1", ""))
	for _, name := range []string{p.ledger, p.ledger + "-wal", p.ledger + "-shm"} {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(p.ledger, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"status"}, {"doctor"}, {"stop", "--all", "--reason", "x"}, {"stops"}, {"prune", "--keep", "1h", "--remember", "30d"}, {"work"}} {
		says(t, p.want(exitUnavailable, p.run(args...)), "ledger unavailable")
	}
}

// A night's status, with everything in it that there can be.
func TestGoldenStatus(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	h := &history{t: t, now: began}
	l, err := sqlite.Open(t.Context(), p.ledger, &sqlite.Options{Now: func() time.Time { return h.now }})
	if err != nil {
		t.Fatal(err)
	}
	h.l = l
	h.lives()
	if _, err := l.SetNote(t.Context(), ledger.Note{Name: "guard/breaker/orders/", Value: []byte(`{"destination":"orders","since":"2026-02-02T01:00:00Z","until":"2026-02-02T02:10:00Z","why":"5 sends failed","by":"host-a/1"}`)}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p.now = func() time.Time { return h.now.Add(3 * time.Minute) }
	for name, args := range map[string][]string{"status": {"status"}, "status-json": {"status", "--json"}} {
		r := p.want(exitAttention, p.run(args...))
		r.out = strings.ReplaceAll(r.out, p.dir, "/place")
		golden(t, name, r)
	}
}
