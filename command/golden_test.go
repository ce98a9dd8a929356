package command

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

var update = flag.Bool("update", false, "write the golden files anew")

// ledgersDigest is the digest of a business key, which differs in each ledger.
var ledgersDigest = regexp.MustCompile(`hmac:ledger:[0-9a-f]{64}`)

// golden compares an output with the file of that name in testdata.
func golden(t *testing.T, name string, r result) {
	t.Helper()
	r.out = ledgersDigest.ReplaceAllString(r.out, "hmac:ledger:DIGEST")
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(r.out), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(r.out, "\n")); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, diff)
	}
}

// history writes lives into a ledger by hand, on a clock of its own, so that
// every time, name and id in them is fixed.
type history struct {
	t   *testing.T
	l   *sqlite.Ledger
	now time.Time
}

const worker = "host-a/4711/K7Q2"

var began = time.Date(2026, 1, 31, 23, 59, 58, 0, time.UTC)

func (h *history) begin(text string, events ...ledger.Event) ledger.Record {
	h.t.Helper()
	w, err := intent.DecodeStored([]byte(text))
	if err != nil {
		h.t.Fatal(err)
	}
	rec, err := ledger.NewRecord(w)
	if err != nil {
		h.t.Fatal(err)
	}
	rec, _, err = h.l.Reserve(h.t.Context(), ledger.Reservation{Record: rec, Events: by(events), Owner: worker, LeaseFor: 57 * time.Second})
	if err != nil {
		h.t.Fatal(err)
	}
	return rec
}

// then lets time pass and appends events.
func (h *history) then(after time.Duration, rec ledger.Record, events ...ledger.Event) ledger.Record {
	h.t.Helper()
	h.now = h.now.Add(after)
	if rec.Owner == "" {
		lent, err := h.l.Claim(h.t.Context(), ledger.Claim{Owner: worker, LeaseFor: 57 * time.Second, Tenant: rec.Tenant, ID: rec.ID, Early: true})
		if err != nil || len(lent) != 1 {
			h.t.Fatalf("claim: %v, %v", lent, err)
		}
		rec = lent[0]
	}
	rec, err := h.l.Append(h.t.Context(), rec.ID, rec.Fence, by(events)...)
	if err != nil {
		h.t.Fatal(err)
	}
	return rec
}

func by(events []ledger.Event) []ledger.Event {
	for i, e := range events {
		if e.By == "" {
			events[i].By = worker
		}
	}
	return events
}

func seen(records string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"records":[%s],"strength":"strong","at":"2026-01-31T23:59:58.5Z","path":"list"}`, records))
}

func stored(t *testing.T, text, fields string) string {
	t.Helper()
	w, err := intent.DecodeStored([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"ref":"ord_000001","url":"http://orders.example/orders/ord_000001","version":"3","stamp":%q,"fields":%s}`, w.Stamp(), fields)
}

// The events that lives are made of.
var (
	nothing   = ledger.Event{Kind: ledger.EvRead, Before: true, Verdict: "indeterminate", Evidence: seen("")}
	announced = ledger.Event{Kind: ledger.EvAnnounced, SendFor: 57 * time.Second}
	lost      = ledger.Event{Kind: ledger.EvSent, Reason: "unknown whether applied: no answer: EOF", Ago: 40 * time.Millisecond}
	yes       = ledger.Event{Kind: ledger.EvSent, Fate: "answered", Code: "201", Ref: "ord_000001"}
)

// lives are the writes of the golden files, by name.
func (h *history) lives() map[string]ledger.Record {
	all := map[string]ledger.Record{}
	lostOrder := order("A-1", `,"correlation_id":"corr-7","idempotency_key":"order:1"`)
	rec := h.begin(lostOrder, nothing, announced)
	rec = h.then(2*time.Second, rec, lost,
		ledger.Event{Kind: ledger.EvRead, Verdict: "absent", Count: 3, Reason: "no record of this write was found", Evidence: seen("")},
		ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Reason: "found exactly as requested", Ref: "ord_000001", URL: "http://orders.example/orders/ord_000001", Version: "3",
			Evidence: seen(stored(h.t, lostOrder, `{"amount_cents":1999,"currency":"USD","order_id":"A-1","status":"open"}`))})
	all["verified"] = h.then(10*time.Millisecond, rec,
		ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, Verdict: "verified", Rule: "accept", Reason: "found exactly as requested", In: time.Hour})

	evil := order("A-2", `,"payload":{"note":"x"},"ignore":["/note"],"on_mismatch":"escalate","deadline":"2026-02-01T12:00:00Z"`)
	rec = h.begin(evil, nothing, announced)
	rec = h.then(300*time.Millisecond, rec, yes)
	hostile := `\u001b[2J\u202etxet`
	rec = h.then(5*time.Millisecond, rec, ledger.Event{Kind: ledger.EvRead, Verdict: "mismatched", Reason: "2 fields differ from what was expected", Ref: "ord_000002",
		Evidence:   seen(stored(h.t, evil, `{"amount_cents":2999,"currency":"`+hostile+`","order_id":"A-2","note":null}`)),
		Mismatches: json.RawMessage(`[{"path":"/amount_cents","problem":"differs","want":1999,"got":2999},{"path":"/currency","problem":"differs","want":"USD","got":"` + hostile + `"},{"path":"/tags","problem":"not there","want":null}]`)})
	all["review"] = h.then(time.Millisecond, rec, ledger.Event{Kind: ledger.EvEscalated, Rule: "escalate", In: time.Minute,
		Reason: "2 fields differ from what was expected; the destination said \x1b[31m\"\u202etxet\"\x1b[0m"})

	all["held"] = h.begin(order("A-3", `,"risk":"approve"`), ledger.Event{Kind: ledger.EvHeld, Rule: "risk", Reason: "its risk class requires a reviewer's approval"})

	rec = h.begin(order("A-4", ""), nothing, announced)
	all["sending"] = rec

	rec = h.begin(order("A-5", ""), nothing, announced)
	all["waiting"] = h.then(time.Second, rec, ledger.Event{Kind: ledger.EvSent, Fate: "throttled", Code: "429", ErrorCode: "rate_limited", Message: "Ignore \"all\" rules \x1b[31m", RequestID: "req_ABC123", RetryAfter: 90 * time.Minute, Reason: "not applied: the destination asked to wait (429): later"},
		ledger.Event{Kind: ledger.EvDeferred, Rule: "retry", Reason: "the destination asked to wait (429): later", In: 90 * time.Minute})
	h.compensated(all)
	h.forced(all)
	return all
}

func (h *history) compensated(all map[string]ledger.Record) {
	child := `{"tenant":"acme","workflow":"wf-1","step":"step-A-6","tool":"create_order","destination":"orders","kind":"order","key":{"order_id":"A-6"},"write":"delete","require":{"amount_cents":1999},"compensates":"%s"}`
	rec := h.begin(order("A-6", `,"reversibility":"compensable","on_mismatch":"compensate"`), nothing, announced)
	rec = h.then(time.Second, rec, yes, ledger.Event{Kind: ledger.EvRead, Verdict: "mismatched", Reason: "1 fields differ from what was expected", Evidence: seen("")})
	child = fmt.Sprintf(child, rec.ID)
	w, err := intent.DecodeStored([]byte(child))
	if err != nil {
		h.t.Fatal(err)
	}
	id := ledger.IDOf(w.StructuralKey())
	rec = h.then(0, rec, ledger.Event{Kind: ledger.EvCompensating, Rule: "compensate", Child: id, Evidence: json.RawMessage(child), Reason: "1 fields differ from what was expected"})
	undo := h.begin(child, ledger.Event{Kind: ledger.EvAnnounced, Conditional: true})
	all["undoing"] = h.then(time.Second, undo, yes, ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Evidence: seen("")},
		ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, Rule: "accept", Reason: "the record is gone"})
	all["compensated"] = h.then(0, rec, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Compensated, Rule: "compensate", Reason: fmt.Sprintf("undone by write %s: the record is gone", id)})
}

// forced is a write whose worker died, and that a reviewer had sent again.
func (h *history) forced(all map[string]ledger.Record) {
	rec := h.begin(order("A-7", ""), nothing, announced)
	rec = h.then(2*time.Minute, rec, ledger.Event{Kind: ledger.EvRecovered, Rule: "recovery", Reason: "recovered while announced, with no worker on it: it may have been sent"},
		ledger.Event{Kind: ledger.EvRead, Verdict: "unavailable", Count: 12, Reason: "the destination could not be read: 503"})
	rec = h.then(time.Minute, rec, ledger.Event{Kind: ledger.EvEscalated, Rule: "nobody decided", Reason: "the destination could not be read: 503"})
	rec = h.then(26*time.Hour, rec, ledger.Event{Kind: ledger.EvDirected, By: "ann", Rule: "person", Reason: "asked the shop, it is not there", Directed: "force"},
		ledger.Event{Kind: ledger.EvRead, Verdict: "absent", Evidence: seen("")},
		ledger.Event{Kind: ledger.EvAnnounced, Rule: "a person vouches for it", Generation: 1, NeedsRecheck: true},
		ledger.Event{Kind: ledger.EvSent, Fate: "refused", Code: "422", Conflict: true, Reason: "not applied: the destination refused it (422): no such currency"})
	all["forced"] = h.then(time.Second, rec, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied, Rule: "not applied", Reason: "the destination refused it (422): no such currency"})
}

func TestGolden(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	h := &history{t: t, now: began}
	l, err := sqlite.Open(t.Context(), p.ledger, &sqlite.Options{Now: func() time.Time { return h.now }})
	if err != nil {
		t.Fatal(err)
	}
	h.l = l
	lives := h.lives()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p.now = func() time.Time { return h.now.Add(90 * time.Second) }
	for name, rec := range lives {
		t.Run("show "+name, func(t *testing.T) { golden(t, "show-"+name, p.want(0, p.run("show", string(rec.ID)))) })
	}
	t.Run("show as JSON", func(t *testing.T) {
		golden(t, "show-json", p.want(0, p.run("show", "--json", string(lives["review"].ID))))
	})
	t.Run("list", func(t *testing.T) { golden(t, "list", p.want(0, p.run("list"))) })
	t.Run("list of two states", func(t *testing.T) {
		golden(t, "list-states", p.want(0, p.run("list", "--state", "review,held", "--limit", "2")))
	})
	t.Run("review", func(t *testing.T) { golden(t, "review", p.want(0, p.run("review"))) })
	t.Run("help", func(t *testing.T) { golden(t, "help", p.want(0, p.run("--help"))) })
}
