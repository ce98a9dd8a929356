package command

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// spoil changes a ledger bypassing its driver.
func (p *place) spoil(statement string, args ...any) {
	p.t.Helper()
	conn, err := sqlite.OpenConn(p.ledger, sqlite.OpenReadWrite)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	conn.SetBusyTimeout(10 * time.Second)
	if err := sqlitex.Execute(conn, statement, &sqlitex.ExecOptions{Args: args}); err != nil {
		p.t.Fatal(err)
	}
}

// digestKey is what the ledger keeps as its digest key.
func (p *place) digestKey() (kept string) {
	p.t.Helper()
	conn, err := sqlite.OpenConn(p.ledger, sqlite.OpenReadOnly)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	conn.SetBusyTimeout(10 * time.Second)
	err = sqlitex.Execute(conn, "SELECT digest_key FROM ledger_meta", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { kept = s.ColumnText(0); return nil }})
	if err != nil {
		p.t.Fatal(err)
	}
	return kept
}

// refused expects a failure of a kind, the same in JSON and as text.
func (p *place) refused(code int, kind string, intent string, pieces ...string) {
	p.t.Helper()
	says(p.t, p.submit(code, intent), pieces...)
	failed := decode(p.t, p.submit(code, intent, "--json"))["error"].(map[string]any)
	if failed["kind"] != kind || failed["exit"] != float64(code) {
		p.t.Errorf("kind %v, exit %v; want %s, %d", failed["kind"], failed["exit"], kind, code)
	}
}

func TestBadIntents(t *testing.T) {
	keyless := strings.Replace(order("A-1", ""), `"key":{"order_id":"A-1"},`, "", 1)
	tests := map[string]struct{ reason, intent, kind, want string }{
		"no key":              {"it could not be queried", keyless, "invalid_intent", "/key is missing or empty; want at least one field"},
		"null key":            {"missing and null are two things", order("A-1", `,"key":null`), "invalid_intent", "/key is there twice"},
		"unknown member":      {"a misspelt member must not be overlooked", order("A-1", `,"expects":{}`), "invalid_intent", "/expects is not a known member"},
		"cut short":           {"half an intent", order("A-1", "")[:100], "invalid_intent", "want"},
		"nothing":             {"an empty file", "", "invalid_intent", "ends too early"},
		"two intents":         {"one a file", order("A-1", "") + order("A-2", ""), "invalid_intent", "want"},
		"too large":           {"bounded", order("A-1", `,"payload":{"x":"`+strings.Repeat("x", 2<<20)+`"}`), "invalid_intent", "bytes; want at most"},
		"compensates":         {"the engine's alone", order("A-1", `,"compensates":"wr_1"`), "invalid_intent", "/compensates is set"},
		"unknown destination": {"it could not be sent", strings.Replace(order("A-1", ""), `"destination":"orders"`, `"destination":"oders"`, 1), "unknown_destination", `/destination: unknown destination "oders"; registered: orders`},
		"unknown kind":        {"it could not be sent", strings.Replace(order("A-1", ""), `"kind":"order"`, `"kind":"other"`, 1), "unknown_destination", `/kind: unknown destination: "orders" has no kind "other"; it has: order`},
		"another tenant":      {"nothing crosses tenants", strings.Replace(order("A-1", ""), `"tenant":"acme"`, `"tenant":"evil"`, 1), "invalid_intent", `/tenant is "evil"; want "acme"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, orders.Plain.Options())
			p.refused(exitInvalid, tt.kind, tt.intent, tt.want, "Nothing was recorded, and nothing was sent.")
			p.calls(0)
			if _, err := os.Stat(p.ledger); err == nil && len(p.writes()) != 0 {
				t.Errorf("%s: something was recorded", tt.reason)
			}
		})
	}
}

func TestRepeatsThatAskForSomethingElse(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitVerified, order("A-1", `,"idempotency_key":"order:1"`))
	other := strings.Replace(order("A-1", `,"idempotency_key":"order:1"`), "1999", "2999", 1)
	p.refused(exitRefused, "digest_mismatch", other, "same structural key, another digest", "give a new call number", "nothing was sent")
	duplicate := strings.Replace(order("A-1", `,"idempotency_key":"order:1"`), "wf-1", "wf-2", 1)
	p.refused(exitRefused, "blocked", duplicate, `idempotency key "order:1" was used by write wr_`, `of workflow "wf-1"`, "nothing was sent")
	p.calls(1)
	if n := len(p.writes()); n != 1 {
		t.Errorf("%d writes in the ledger, want 1", n)
	}
}

func TestBadConfiguration(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	mail := "  mail:\n    type: imap\n    addr: imap.example.org:993\n    username: a\n"
	tests := map[string]struct {
		reason, settings, want string
	}{
		"unknown word":    {"with its line", "    clazz: plain\n", "readback.yaml:8: destinations.orders.clazz: is not known"},
		"inline password": {"with its line, without itself", mail + "    password: hunter2\n", "readback.yaml:12: destinations.mail.password: a secret does not belong into this file"},
		"no secret":       {"said before anything is recorded", mail + "    password_env: MAIL\n", "destinations.mail: password_env: the environment variable MAIL is not set"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p.t = t
			p.configure(p.url, tt.settings)
			p.refused(exitConfig, "configuration", order("A-1", ""), tt.want)
			for _, r := range []result{p.run("list"), p.run("list", "--json"), p.run("work"), p.run("destinations")} {
				if strings.Contains(r.String(), "hunter2") {
					t.Errorf("%s: the secret is shown: %s", tt.reason, r)
				}
			}
			p.calls(0)
		})
	}
	t.Run("none", func(t *testing.T) {
		p.t = t
		p.config = "/nonexistent/readback.yaml"
		p.refused(exitConfig, "configuration", order("A-1", ""), "/nonexistent/readback.yaml does not exist", "`readback init` writes one")
	})
}

func TestDestinationDown(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	up := p.url
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	p.configure(gone.URL, "")
	r := p.submit(exitInProgress, order("A-1", ""), "--wait", "0")
	says(t, r, "in progress", "connection refused", "sends 0", "readback resume "+id(t, r), "`readback work`")
	says(t, p.want(0, p.run("show", id(t, r))), "connection refused")
	says(t, p.want(exitUnavailable, p.run("destinations", "--probe")), "connection refused")

	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer locked.Close()
	p.configure(locked.URL, "")
	for name, r := range map[string]result{
		"destinations --probe": p.want(exitUnavailable, p.run("destinations", "--probe")),
		"doctor":               p.run("doctor"),
		"probe":                p.run("probe", "orders"),
	} {
		if text := r.String(); !strings.Contains(text, "the destination refused the login") || strings.Contains(text, "applied") {
			t.Errorf("%s: a probe that fails says something else than that:\n%s", name, text)
		}
	}

	p.configure(up, "")
	p.now = later(time.Minute)
	p.want(exitVerified, p.run("resume", id(t, r)))
	p.effects(1, "A-1")
}

func TestDestinationDownAfterTheSend(t *testing.T) {
	o := orders.Plain.Options()
	o.Faults = []orders.Fault{{Kind: orders.LostAnswer, Times: 1}, {Kind: orders.UnreadableRead, Skip: 1, Times: 1}}
	p := newPlace(t, o)
	r := p.submit(exitInProgress, order("A-1", ""), "--wait", "0")
	says(t, r, "could not be read", "the answer to one is missing")
	p.want(exitVerified, p.run("resume", id(t, r)))
	p.effects(1, "A-1")
	p.calls(1)
}

func TestLedgerThatIsNoLedger(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	says(t, p.want(exitUnavailable, p.run("list")), p.ledger, "does not exist", "`readback submit` or `readback serve` makes it")
	garbage := strings.Repeat("this is no database, but a text of notes.  ", 500)
	p.write("readback.db", garbage)
	p.refused(exitUnavailable, "ledger_corrupt", order("A-1", ""), "ledger corrupt", p.ledger, "Keep the file as it is", "Nothing was sent")
	p.want(exitUnavailable, p.run("list"))
	p.calls(0)
	if text, err := os.ReadFile(p.ledger); err != nil || string(text) != garbage {
		t.Errorf("the file was changed (%v)", err)
	}
}

func TestLedgerThatContradictsItself(t *testing.T) {
	tests := map[string]struct{ reason, statement string }{
		"state":    {"a column says something else than the record", "UPDATE ledger_writes SET state = 'settled' WHERE n = 1"},
		"body":     {"the record cannot be read", "UPDATE ledger_writes SET body = '{' WHERE n = 1"},
		"events":   {"an event is gone", "DELETE FROM ledger_events WHERE seq = 2"},
		"versions": {"no version can read it", "DELETE FROM ledger_meta"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := orders.Plain.Options()
			o.Faults = []orders.Fault{{Kind: orders.DroppedField, Field: "currency"}}
			p := newPlace(t, o)
			write := id(t, p.submit(exitReview, order("A-1", "")))
			p.spoil(tt.statement)
			r := p.want(exitUnavailable, p.run("show", write))
			says(t, r, "ledger corrupt", "Nothing was sent")
			switch name {
			case "events": // which only show reads
			case "versions": // nothing can be asked of it
				p.refused(exitUnavailable, "ledger_corrupt", order("A-1", ""), "ledger corrupt")
			default: // it is there, and may have been sent
				p.refused(exitUnknown, "unknown", order("A-1", ""), "ledger corrupt", "an earlier call may have sent it", "an operator must repair it")
			}
			p.calls(1)
			p.effects(1, "A-1")
		})
	}
}

func TestLedgerThatWasCutShort(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	for i := range 20 {
		p.submit(exitVerified, order(fmt.Sprintf("A-%d", i), ""))
	}
	if err := os.Truncate(p.ledger, 5000); err != nil {
		t.Fatal(err)
	}
	p.refused(exitUnavailable, "ledger_corrupt", order("B-1", ""), "ledger corrupt", p.ledger)
	p.calls(20)
}

func TestLedgerOfANewerVersion(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	write := id(t, p.submit(exitVerified, order("A-1", "")))
	p.spoil("UPDATE ledger_meta SET version = version + 1, compatible_from = version + 1")
	p.refused(exitUnavailable, "ledger_version", order("A-2", ""), "ledger of a newer version", "use the program that upgraded it, or a newer one", "Nothing was sent")
	for _, args := range [][]string{{"show", write}, {"list"}, {"review"}, {"resume"}, {"resume", write}, {"work"}} {
		p.want(exitUnavailable, p.run(args...))
	}
	p.calls(1)
	p.spoil("UPDATE ledger_meta SET version = version - 1, compatible_from = 1")
	p.submit(exitVerified, order("A-2", ""))
	p.want(0, p.run("show", write))
}

// Two engines of different versions on one file: the newer one upgrades it
// while the older one works, and a write of the older one becomes due.
func TestLedgerUpgradedUnderAWorker(t *testing.T) {
	o := orders.Plain.Options()
	o.Faults = []orders.Fault{{Kind: orders.Throttled, Times: 1, Delay: time.Hour, Ops: []orders.Op{orders.OpCreate}}}
	p := newPlace(t, o)
	var ahead atomic.Int64
	p.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	write := id(t, p.submit(exitInProgress, order("A-1", ""), "--wait", "0"))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errs lines
	ended := make(chan int, 1)
	go func() { ended <- p.start(ctx, strings.NewReader(""), &out, &errs, "work", "--verbose") }()
	eventually(t, "the worker", func() bool { return strings.Contains(errs.String(), "msg=working") })
	p.spoil("UPDATE ledger_meta SET version = version + 1, compatible_from = version + 1")
	ahead.Store(int64(2 * time.Hour))
	eventually(t, "the worker to notice", func() bool { return strings.Contains(errs.String(), "ledger of a newer version") })
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("the worker ended with %d\n%s", code, errs.String())
	}
	p.calls(1)
	p.effects(0, "A-1")
	p.spoil("UPDATE ledger_meta SET version = version - 1, compatible_from = 1")
	p.want(exitVerified, p.run("resume", write))
	p.effects(1, "A-1")
}

// The ledger fails after the send, while the API waits for the outcome: unknown must not
// read as "nothing was sent".
func TestLedgerThatFailsBehindAShortWait(t *testing.T) {
	var p *place
	p = newPlaceIn(t, t.TempDir(), orders.Plain.Options(), func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			if r.Method == http.MethodPost {
				p.spoil("UPDATE ledger_meta SET version = version + 1, compatible_from = version + 1")
			}
		})
	})
	r := p.want(exitUnknown, p.runIn(order("A-2", ""), "submit", "-f", "-", "--wait", "0"))
	says(t, r, "ledger of a newer version", "Whether it was applied is not known")
	p.effects(1, "A-2")
}

func TestClockGoingBackwards(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.now = later(2 * time.Hour)
	write := id(t, p.submit(exitVerified, order("A-1", "")))

	p.now = later(2*time.Hour - 20*time.Second)
	p.submit(exitVerified, order("A-2", "")) // the step of a time daemon

	p.now = later(0)
	p.refused(exitUnavailable, "clock", order("A-3", ""), "clock went backwards", "set this machine's clock right", "Nothing was sent", "readback resume --reset-clock")
	p.want(exitUnavailable, p.run("resume"))
	p.calls(2)
	says(t, p.want(0, p.run("show", write)), "VERIFIED") // the recorded events can be read
	if n := len(p.writes()); n != 2 {
		t.Errorf("%d writes in the ledger, want 2", n)
	}

	p.want(0, p.run("resume", "--reset-clock"))
	p.submit(exitVerified, order("A-3", ""))
	p.effects(1, "A-3")
}

func TestErrorsWithoutAnOutcomeSayNothingAboutTheEffect(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitVerified, order("A-1", ""))
	p.spoil("UPDATE ledger_writes SET body = '{' WHERE n = 1")
	r := p.submit(exitUnknown, order("A-1", ""))
	if strings.Contains(r.err, "not applied") || strings.Contains(r.err, "Nothing was sent") {
		t.Errorf("it was applied by an earlier call:\n%s", r)
	}
	if f := explain(fmt.Errorf("x: %w", ledger.ErrUnavailable)); f.Exit != exitUnavailable {
		t.Errorf("exit %d", f.Exit)
	}
}
