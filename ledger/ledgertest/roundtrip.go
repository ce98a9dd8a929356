package ledgertest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// awkward is text and JSON that stores and encoders like to improve.
var awkward = struct {
	text string
	raw  json.RawMessage
}{
	"naïve — 日本語 🙂 e\u0301 \u2028 \"quoted\" <b>&amp; \\ ' \t\r\n \x00 \u200b",
	json.RawMessage("{ \"z\": 1.0,\t\"a\" : 1e400, \"a\": -0, \"h\": \"<b>&\", \"n\": \"\\u0000\\u00e9é\",\n \"big\": 12345678901234567890.10 }"),
}

var roundTrips = map[string]scenario{
	"event": {
		"evidence that was touched is none",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent)
			e := ledger.Event{
				Kind: ledger.EvRead, By: awkward.text, Rule: "rule", Reason: awkward.text, Ago: 1234567891,
				Verdict: "mismatched", Count: 3, Unproven: true, Until: 12, Generation: 2, Conditional: true, SendFor: 7, NeedsRecheck: true,
				Fate: "odd", Code: "299", Conflict: true, RetryAfter: 13,
				Key: awkward.text, Replayed: true, ErrorCode: awkward.text, Message: awkward.text, RequestID: awkward.text, Answer: []byte("\x00\xff"),
				Ref: awkward.text, URL: "https://shop.example/?a=1&b=<2>", Version: `W/"7"`, In: 11,
				Need: 3, Digest: "digest", Settlement: "odd", Child: "wr_0", Directed: "odd", Later: "wr_1", Evidence: awkward.raw, Mismatches: awkward.raw,
			}
			rec = h.append(rec, e)
			got := h.events(rec)[rec.Seq-1]
			if diff := cmp.Diff(e, got, cmpopts.IgnoreFields(ledger.Event{}, "Seq", "At", "Fence")); diff != "" {
				h.Errorf("event (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(string(awkward.raw), string(got.Evidence)); diff != "" {
				h.Errorf("evidence (-want +got):\n%s", diff)
			}
		},
	},
	"refusal": {
		"why a destination refused is kept until the next send",
		func(h *harness) {
			refusal := ledger.Refusal{Status: "422", Code: "taken", Message: awkward.text, RequestID: "req_1"}
			rec := h.append(h.fresh(wish("a", "w1"), announced),
				ledger.Event{Kind: ledger.EvSent, Fate: "refused", Code: refusal.Status, ErrorCode: refusal.Code, Message: refusal.Message, RequestID: refusal.RequestID})
			if diff := cmp.Diff(&refusal, h.get(rec).Refusal); diff != "" {
				h.Errorf("refusal (-want +got):\n%s", diff)
			}
			if rec = h.append(rec, announced); h.get(rec).Refusal != nil {
				h.Errorf("after the next send began: %+v, want none", h.get(rec).Refusal)
			}
		},
	},
	"record": {
		"what is asked for comes back byte for byte, and times to the nanosecond",
		func(h *harness) {
			w := named("a", "w1", "facture «7» 🙂")
			w.Step, w.CorrelationID = "étape", "trace"
			w.Call = 7
			w.Expect = intent.Fields{"note": awkward.text, "amount": json.Number("10.00")}
			prepared := announced
			prepared.Prepared = []byte("Date: now\r\n\x00\xff " + awkward.text)
			res := h.reservation(w, ledger.Event{Kind: ledger.EvRead, Before: true, Evidence: awkward.raw}, prepared)
			res.Record.Intent = awkward.raw // not what the engine would store, but it must survive
			h.sleep(1234567891)
			rec := h.reserve(res)
			h.sleep(987654321)
			rec = h.append(rec,
				ledger.Event{Kind: ledger.EvSent, Fate: "answered", Ago: 3, Ref: awkward.text, URL: "https://shop.example/?a=1&b=<2>", Version: `W/"7"`},
				ledger.Event{Kind: ledger.EvRead, Verdict: "mismatched", Evidence: awkward.raw, Mismatches: awkward.raw, Rule: "read", Reason: "what a read found is no decision"},
				ledger.Event{Kind: ledger.EvEscalated, Rule: "rule", Reason: awkward.text, In: 5})
			got := h.get(rec)
			h.same(rec, got)
			for name, raw := range map[string]json.RawMessage{
				"intent": got.Intent, "before": got.Before, "evidence": got.Evidence, "mismatches": got.Mismatches,
			} {
				if diff := cmp.Diff(string(awkward.raw), string(raw)); diff != "" {
					h.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			if diff := cmp.Diff(prepared.Prepared, got.Prepared); diff != "" {
				h.Errorf("prepared (-want +got):\n%s", diff)
			}
			if got.Reason != awkward.text || got.Due.Sub(got.Updated) != 5 || got.LastSend.Sub(got.Updated) != -3 {
				h.Errorf("reason %q, due %s, last send %s, updated %s", got.Reason, got.Due, got.LastSend, got.Updated)
			}
		},
	},
	"compensation": {
		"what undoes a write is done again after a crash, so it must be the same to the byte",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent,
				ledger.Event{Kind: ledger.EvCompensating, Child: "wr_2", Evidence: awkward.raw})
			got := h.get(rec)
			h.same(rec, got)
			if diff := cmp.Diff(string(awkward.raw), string(got.ChildIntent)); diff != "" {
				h.Errorf("intent of the child (-want +got):\n%s", diff)
			}
		},
	},
	"nothing stays nothing": {
		"null, missing and empty are three things",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent, ledger.Event{Kind: ledger.EvRead, Evidence: json.RawMessage("null")})
			got := h.get(rec)
			if got.Before != nil || string(got.Evidence) != "null" || got.Mismatches != nil {
				h.Errorf("before %q, evidence %q, mismatches %q", got.Before, got.Evidence, got.Mismatches)
			}
			for _, e := range h.events(rec)[:3] {
				if e.Evidence != nil && e.Kind != ledger.EvReserved || e.Mismatches != nil {
					h.Errorf("%s: evidence %q, mismatches %q", e.Kind, e.Evidence, e.Mismatches)
				}
			}
		},
	},
	"broken text": {
		"text that is not UTF-8 is mended once, when it comes in, and not differently by each reader",
		func(h *harness) {
			rec := h.append(h.fresh(wish("a", "w1")), ledger.Event{Kind: ledger.EvEscalated, Reason: "caf\xe9"})
			if rec.Reason != "caf\ufffd" {
				h.Errorf("reason %q", rec.Reason)
			}
			h.same(rec, h.get(rec))
		},
	},
	"reused buffers": {
		"a caller that reads the next answer into the same memory must not change the evidence",
		func(h *harness) {
			buffer := []byte(`{"state":"open"}`)
			res := h.reservation(wish("a", "w1"), ledger.Event{Kind: ledger.EvRead, Before: true, Evidence: buffer}, announced)
			res.Record.Intent = buffer
			rec := h.append(h.reserve(res), sent, ledger.Event{Kind: ledger.EvRead, Evidence: buffer, Mismatches: buffer})
			copy(buffer, `{"state":"gone"}`)
			h.append(rec, verified)
			got := h.get(rec)
			life := h.events(rec)
			for name, raw := range map[string]json.RawMessage{
				"intent": got.Intent, "before": got.Before, "evidence": got.Evidence, "mismatches": got.Mismatches,
				"of the event": life[4].Evidence,
			} {
				if string(raw) != `{"state":"open"}` {
					h.Errorf("%s: %s", name, raw)
				}
			}
		},
	},
	"large": {
		"evidence of many pages is stored like any other",
		func(h *harness) {
			big := json.RawMessage(`"` + strings.Repeat("0123456789abcdef", 1<<14) + `"`)
			rec := h.append(h.fresh(wish("a", "w1"), announced), sent, ledger.Event{Kind: ledger.EvRead, Evidence: big})
			if got := h.get(rec); string(got.Evidence) != string(big) {
				h.Errorf("%d bytes, want %d", len(got.Evidence), len(big))
			}
		},
	},
	"far times": {
		"a time beyond what a store can hold is late, not long past",
		func(h *harness) {
			const never = 1<<63 - 1
			rec := h.append(h.fresh(wish("a", "w1")), deferred(never))
			h.nothing(ledger.Claim{Limit: 10})
			if got := h.get(rec); got.Due.Before(got.Now.Add(200 * 365 * 24 * time.Hour)) {
				h.Errorf("due %s", got.Due)
			}
		},
	},
}
