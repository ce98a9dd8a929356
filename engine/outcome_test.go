package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// TestOutcomesMarkWhatOthersWrote: a member that quotes a destination or another actor is
// listed, whatever became of the write; advice for a model never quotes them.
func TestOutcomesMarkWhatOthersWrote(t *testing.T) {
	const foreign = "FOREIGN\u202ewords\u200b"
	records := map[string]ledger.Record{}
	for _, s := range []ledger.Status{ledger.Verified, ledger.NotApplied, ledger.Compensated, ledger.Accepted, ledger.Abandoned, ledger.Denied, ledger.Expired, ledger.Reported} {
		records[string(s)] = ledger.Record{State: ledger.Settled, Settlement: s, Sends: 1}
	}
	for _, s := range []ledger.State{ledger.Held, ledger.Queued, ledger.Sending, ledger.Checking, ledger.Delegated, ledger.Compensating, ledger.Review} {
		records[string(s)] = ledger.Record{State: s}
	}
	records["verified without a send"] = ledger.Record{State: ledger.Settled, Settlement: ledger.Verified}
	records["verified and changed"] = ledger.Record{State: ledger.Settled, Settlement: ledger.Verified, Sends: 1, Rule: "recheck", Verdict: verify.Mismatched.String()}
	for name, r := range records {
		r.ID, r.Destination, r.Kind, r.Reason, r.Created = "wr_1", "orders", "order", foreign, time.Unix(1, 0)
		r.Ref, r.URL, r.Refusal = "FOREIGN-1", "https://example.org/FOREIGN", &ledger.Refusal{Code: foreign, Message: foreign, RequestID: foreign, Status: foreign}
		r.Mismatches = json.RawMessage(fmt.Sprintf(`[{"path":"/a","problem":"differs","want":%q,"got":{%q:[%q]}}]`, "x", foreign, foreign))
		text, err := json.Marshal(engine.OutcomeOf(r))
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]json.RawMessage
		var untrusted []string
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatal(err)
		}
		if len(members["untrusted"]) > 0 && json.Unmarshal(members["untrusted"], &untrusted) != nil {
			t.Fatalf("%s", members["untrusted"])
		}
		for member, v := range members {
			if quotes := strings.Contains(strings.ToUpper(string(v)), "FOREIGN"); quotes != slices.Contains(untrusted, "/"+member) {
				t.Errorf("%s: /%s quotes others: %t, and marked are %q: %s", name, member, quotes, untrusted, v)
			}
		}
		if strings.ContainsAny(string(text), "\u202e\u200b") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestAnErasedWriteEndedAsBefore: erasing the contents of a write changes nothing of its end,
// and its sentence is complete without the reason.
func TestAnErasedWriteEndedAsBefore(t *testing.T) {
	changed := ledger.Record{State: ledger.Settled, Settlement: ledger.Verified, Sends: 1, Rule: "recheck", Verdict: verify.Mismatched.String()}
	refused := ledger.Record{State: ledger.Settled, Settlement: ledger.NotApplied, Sends: 1}
	for want, r := range map[string]ledger.Record{
		"A later read found it changed: the reason was erased. Its contents were erased.": changed,
		"was not written: the reason was erased. Its contents were erased.":               refused,
	} {
		r.ID, r.Destination, r.Kind, r.Reason = "wr_1", "orders", "order", "Ada asked for it"
		before, after := engine.OutcomeOf(r), engine.OutcomeOf(ledger.Erase(r, "er_1"))
		if !strings.HasSuffix(after.Text, want) || after.ForModel != before.ForModel+" Its contents were erased." || after.Status != before.Status {
			t.Errorf("%s\n%s\nwant %q behind:\n%s", after.Text, after.ForModel, want, before.ForModel)
		}
	}
}

// TestOutcomesLeaveOutNamesThatAreNotPlain: the outcome lists the omitted names, and the ledger
// keeps them.
func TestOutcomesLeaveOutNamesThatAreNotPlain(t *testing.T) {
	r := ledger.Record{State: ledger.Settled, Settlement: ledger.Verified, Sends: 1, Ref: "ord 1", URL: "https://example.org/x y"}
	o := engine.OutcomeOf(r)
	if o.Ref != "" || o.URL != "" || cmp.Diff([]string{"/ref", "/url"}, o.LeftOut) != "" || len(o.Untrusted) != 0 {
		t.Errorf("%+v", o)
	}
	r.Ref, r.URL = "ord-1", "https://example.org/x"
	if o := engine.OutcomeOf(r); o.Ref != "ord-1" || o.URL != r.URL || len(o.LeftOut) != 0 {
		t.Errorf("%+v", o)
	}
}

// TestMismatchesOfOutcomesAreBounded: a destination decides how many fields it has, and
// how long they are.
func TestMismatchesOfOutcomesAreBounded(t *testing.T) {
	var all []verify.Mismatch
	for i := range 300 {
		all = append(all, verify.Mismatch{Path: "/" + strings.Repeat("p", 3000), Problem: verify.Changed, Want: i, Got: strings.Repeat("v", 20_000)})
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var shown []verify.Mismatch
	o := engine.OutcomeOf(ledger.Record{State: ledger.Review, Mismatches: text})
	if err := json.Unmarshal(o.Mismatches, &shown); err != nil {
		t.Fatal(err)
	}
	last, got := shown[len(shown)-1], fmt.Sprint(shown[0].Got)
	if len(shown) != 101 || last.Problem != verify.More || len(o.Mismatches) > 200_000 || !strings.HasSuffix(got, "…") || !strings.HasSuffix(shown[0].Path, "…") {
		t.Errorf("%d mismatches in %d bytes, the last %+v", len(shown), len(o.Mismatches), last)
	}
}

// A reason that begins with a letter of several bytes stays readable.
func TestAReasonBeginsWithAnyLetter(t *testing.T) {
	out := engine.OutcomeOf(ledger.Record{Destination: "orders", Kind: "order", State: ledger.Settled, Settlement: ledger.Verified, Reason: "état inchangé"})
	if !strings.HasSuffix(out.Text, " nothing was sent. État inchangé.") {
		t.Errorf("text %q", out.Text)
	}
}
