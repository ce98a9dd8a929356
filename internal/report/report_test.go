package report_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

var base = time.Date(2026, 1, 31, 18, 0, 0, 0, time.UTC)

func quoted(s string) json.RawMessage {
	text, _ := json.Marshal(s) // a string always encodes
	return text
}

// evil is a record in which everything that an outsider can set is hostile.
func evil() (ledger.Record, []ledger.Event) {
	mismatches := json.RawMessage(fmt.Sprintf(`[{"path":%s,"problem":%s,"want":%s,"got":{%s:null}}]`, quoted(hostile), quoted(hostile), quoted(hostile), quoted(hostile)))
	seen := json.RawMessage(fmt.Sprintf(`{"records":[{"ref":%s,"url":%s,"version":%s,"stamp":%s,"fields":{%s:%s}}],"at":"2026-01-31T18:00:00Z","path":%s}`,
		quoted(hostile), quoted(hostile), quoted(hostile), quoted(hostile), quoted(hostile), quoted(hostile), quoted(hostile)))
	r := ledger.Record{
		ID: "wr_1", Tenant: hostile, Workflow: hostile, Step: hostile, Tool: hostile, Destination: hostile, Kind: hostile,
		CorrelationID: hostile, IdempotencyKey: hostile, Intent: quoted(hostile), State: ledger.Review, Reason: hostile,
		Verdict: hostile, Rule: hostile, Ref: hostile, URL: hostile, Version: hostile, Owner: hostile,
		Before: seen, Evidence: seen, Mismatches: mismatches, Created: base, Updated: base, Due: base, LeaseUntil: base,
	}
	var events []ledger.Event
	for i, kind := range []ledger.EventKind{
		ledger.EvReserved, ledger.EvFreed, ledger.EvHeld, ledger.EvApproved, ledger.EvRead, ledger.EvAnnounced, ledger.EvSent, ledger.EvRecovered, ledger.EvDeferred,
		ledger.EvRestored, ledger.EvEscalated, ledger.EvDirected, ledger.EvCompensating, ledger.EvSettled, ledger.EvRechecked, ledger.EvLate, ledger.EventKind(hostile),
	} {
		events = append(events, ledger.Event{Seq: int64(i + 1), At: base, Kind: kind, By: hostile, Rule: hostile, Reason: hostile, Verdict: hostile,
			Fate: hostile, Code: hostile, Ref: hostile, Directed: hostile, Settlement: ledger.Status(hostile), Child: ledger.ID(hostile)})
	}
	return r, events
}

func TestNothingHostileReachesTheTerminal(t *testing.T) {
	r, events := evil()
	o := engine.OutcomeOf(r)
	o.Ref, o.URL = hostile, hostile
	for name, text := range map[string]string{
		"life":    report.Life(r, events, o, base),
		"outcome": report.Outcome(o, r, base),
		"list":    report.List([]ledger.Record{r}, false, base),
		"waiting": report.Waiting([]ledger.Record{r}, false, false, base),
	} {
		t.Run(name, func(t *testing.T) {
			for i, c := range text {
				if c != '\n' && !unicode.IsPrint(c) {
					t.Fatalf("%q at %d: …%q…", c, i, text[max(0, i-40):min(len(text), i+40)])
				}
			}
			if !strings.Contains(text, `\u202e`) {
				t.Error("the override is hidden and not shown")
			}
		})
	}
}

func TestUnreadableEvidenceIsReported(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		change func(*ledger.Record)
		want   string
	}{
		"evidence":   {"no JSON of ours", func(r *ledger.Record) { r.Evidence = json.RawMessage(`[1]`) }, "What was seen cannot be read: [1]"},
		"cut":        {"too large to keep", func(r *ledger.Record) { r.Evidence = json.RawMessage(`{"too_large":300000,"sha256":"ab"}`) }, "300000 bytes, too many to keep (SHA-256 ab)"},
		"cut, keyed": {"too large to keep, and sensitive", func(r *ledger.Record) { r.Evidence = json.RawMessage(`{"too_large":300000,"digest":"redacted:ab"}`) }, "300000 bytes, too many to keep (digest redacted:ab)"},
		"intent":     {"no intent", func(r *ledger.Record) { r.Intent = json.RawMessage(`{}`) }, "its intent cannot be read"},
		"mismatches": {"no list", func(r *ledger.Record) { r.Mismatches = json.RawMessage(`"x"`) }, `differences: "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := ledger.Record{ID: "wr_1", State: ledger.Review, Created: base, Updated: base}
			tt.change(&r)
			if got := report.Life(r, nil, engine.OutcomeOf(r), base); !strings.Contains(got, tt.want) {
				t.Errorf("%s: want %q in\n%s", tt.reason, tt.want, got)
			}
		})
	}
}

// What kept a write from being sent is shown with both values, though no read came
// after a send.
func TestDifferencesOfAReadBeforeTheWrite(t *testing.T) {
	r := ledger.Record{ID: "wr_1", State: ledger.Review, Created: base, Updated: base}
	read := ledger.Event{Seq: 2, Kind: ledger.EvRead, Before: true, Verdict: "mismatched", At: base,
		Mismatches: json.RawMessage(`[{"path":"/currency","problem":"differs","want":"EUR","got":"CHF"}]`)}
	if got := report.Life(r, []ledger.Event{read}, engine.OutcomeOf(r), base); !strings.Contains(got, `"EUR"`) || !strings.Contains(got, `"CHF"`) {
		t.Errorf("want both values in\n%s", got)
	}
}

func TestLongTextIsCutVisibly(t *testing.T) {
	var fields, rows, records []string
	for i := range 200 {
		fields = append(fields, fmt.Sprintf(`"f%03d":%s`, i, quoted(strings.Repeat("x", 500))))
		rows = append(rows, fmt.Sprintf(`{"path":"/f%d","problem":"differs","want":1,"got":2}`, i))
	}
	for range 30 {
		records = append(records, `{"fields":{`+strings.Join(fields, ",")+`}}`)
	}
	r := ledger.Record{ID: "wr_1", State: ledger.Review, Created: base, Updated: base,
		Evidence:   json.RawMessage(`{"records":[` + strings.Join(records, ",") + `],"at":"2026-01-31T18:00:00Z"}`),
		Mismatches: json.RawMessage(`[` + strings.Join(rows, ",") + `]`)}
	got := report.Life(r, nil, engine.OutcomeOf(r), base)
	for want, times := range map[string]int{"and 160 more\n": 11, "and 20 more\n": 1} { // fields of ten records, and differences; records
		if n := strings.Count(got, want); n != times {
			t.Errorf("%q is there %d times, want %d", want, n, times)
		}
	}
	if len(got) > 100_000 {
		t.Errorf("%d bytes for a person", len(got))
	}
}

// Words for what a line, a batch and a prune do to a write.
func TestSpecialStatesAreShown(t *testing.T) {
	const hour = time.Hour
	tests := map[string]struct {
		reason string
		record ledger.Record
		event  ledger.Event
		want   []string
	}{
		"behind": {"who waits wants to know for what", ledger.Record{State: ledger.Queued, QueuedBehind: "wr_0"},
			ledger.Event{Kind: ledger.EvReserved, QueuedBehind: "wr_0"},
			[]string{"queued (behind)", "behind wr_0 (readback show wr_0)", "reserved, to be sent after wr_0 about the same record", "is sent when wr_0 about the same record is done"}},
		"freed": {"the line moved", ledger.Record{State: ledger.Queued, Due: base}, ledger.Event{Kind: ledger.EvFreed, By: "wr_0"},
			[]string{"free to be sent, wr_0 about the same record is done"}},
		"moved up": {"it is still behind another", ledger.Record{State: ledger.Queued, QueuedBehind: "wr_9"}, ledger.Event{Kind: ledger.EvFreed, By: "wr_0", QueuedBehind: "wr_9"},
			[]string{"moved up in the queue, to be sent after wr_9 about the same record"}},
		"approved into a line": {"others came first", ledger.Record{State: ledger.Queued, QueuedBehind: "wr_0"}, ledger.Event{Kind: ledger.EvApproved, QueuedBehind: "wr_0"},
			[]string{"approved, to be sent after wr_0"}},
		"unverified": {"not verified, and nothing is wrong", ledger.Record{State: ledger.Checking, Answered: true, Unverified: true, Due: base.Add(hour)},
			ledger.Event{Kind: ledger.EvDeferred, Unverified: true, In: hour},
			[]string{"checking (unverified)", "left unverified on purpose, to be read back in a batch within 1h", "read back in a batch by `readback work`, 1 hour from now"}},
		"handed over": {"no worker has it", ledger.Record{State: ledger.Queued, Due: base, Owner: ledger.Dispatched, LeaseUntil: base.Add(hour)}, ledger.Event{},
			[]string{"handed over to the scheduler; no worker has taken it up yet", "It is recorded and due now."}},
		"tombstone": {"it is known, and no longer what it was", ledger.Record{State: ledger.Settled, Settlement: ledger.Verified, Tombstone: true, Destination: "orders", Kind: "order"}, ledger.Event{},
			[]string{"settled (verified), pruned", "It was pruned.", `order at "orders"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := tt.record
			r.ID, r.Created, r.Updated = "wr_1", base, base
			tt.event.At = base
			got := report.Life(r, []ledger.Event{tt.event}, engine.OutcomeOf(r), base)
			flat := strings.Join(strings.Fields(got), " ")
			for _, want := range tt.want {
				if !strings.Contains(flat, strings.Join(strings.Fields(want), " ")) {
					t.Errorf("%s: want %q in\n%s", tt.reason, want, got)
				}
			}
			if r.Tombstone && strings.Contains(got, "cannot be read") {
				t.Errorf("%s: taken for damaged\n%s", tt.reason, got)
			}
		})
	}
}

// What a recheck may still contradict is shown with the time until when.
func TestAPendingRecheckIsShown(t *testing.T) {
	r := ledger.Record{ID: "wr_1", State: ledger.Settled, Settlement: ledger.Verified, Sends: 1, Created: base, Updated: base, SettledAt: base,
		Due: base.Add(time.Minute), RecheckUntil: base.Add(24 * time.Hour)}
	o := engine.OutcomeOf(r)
	for name, text := range map[string]string{"life": report.Life(r, nil, o, base), "outcome": report.Outcome(o, r, base)} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), "It is checked again until 2026-02-01T18:00:00Z") {
			t.Errorf("the %s does not say until when a recheck is pending:\n%s", name, text)
		}
	}
}
