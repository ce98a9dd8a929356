package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

const (
	ownTrace   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	otherTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// What was known at each event is what the record had then.
func TestKnown(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	r := ledger.Record{ID: "wr_1", Trace: ownTrace, Created: at}
	events := []ledger.Event{
		{Seq: 1, Kind: ledger.EvReserved, Evidence: []byte(`{"id":"wr_1"}`)},
		{Seq: 2, Kind: ledger.EvAnnounced},
		{Seq: 3, Kind: ledger.EvSent, Fate: "not_sent"},
		{Seq: 4, Kind: ledger.EvAnnounced},
		{Seq: 5, Kind: ledger.EvSent},
		{Seq: 6, Kind: ledger.EvRead, Verdict: "absent", Count: 3, Evidence: []byte(`{"records":[]}`)},
		{Seq: 7, Kind: ledger.EvLate, Verdict: "verified"},
		{Seq: 8, Kind: ledger.EvEscalated, Rule: "escalate", Reason: "unknown"},
		{Seq: 9, Kind: ledger.EvDirected, By: "ada", Directed: "retry", Trace: otherTrace},
		{Seq: 10, Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(`{"records":[{}],"strength":"strong"}`)},
		{Seq: 11, Kind: ledger.EvSettled, Settlement: ledger.Verified, Verdict: "verified"},
	}
	var got []Known
	var texts []string
	for _, one := range Shown(r, events) {
		got, texts = append(got, one.Known), append(texts, one.What)
	}
	unsent := Known{Sends: 1, Unsent: 1, Fate: "not_sent", Trace: ownTrace}
	twice := Known{Sends: 2, Unsent: 1, Fate: "unknown", Trace: ownTrace}
	read := Known{Sends: 2, Unsent: 1, Reads: 3, Fate: "unknown", Verdict: "absent", Strength: "weak", Trace: ownTrace}
	directed := read
	directed.Trace = otherTrace
	seen := Known{Sends: 2, Unsent: 1, Reads: 4, Fate: "unknown", Verdict: "verified", Strength: "strong", Records: 1, Trace: ownTrace}
	want := []Known{{Trace: ownTrace}, {Sends: 1, Fate: "unknown", Trace: ownTrace}, unsent, twice, twice, read, read, read, directed, seen, seen}
	for i := range want {
		want[i].Seq = int64(i) + 1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("known (-want +got):\n%s", diff)
	}
	for seq, part := range map[int]string{
		4:  "send 2 announced. Known: 1 send of which 1 not taken up, 0 reads",
		8:  "unknown. Known: absent, by a read that may lag of 0 records, after 2 sends of which 1 not taken up, 3 reads, the last send's fate unknown",
		9:  "a reviewer decided retry. In trace 0af7651916cd43dd8448eb211c80319c",
		11: "settled as verified. Known: verified, by a strong read of 1 record, after 2 sends",
	} {
		if !strings.Contains(texts[seq-1], part) {
			t.Errorf("event %d: %q, want %q in it", seq, texts[seq-1], part)
		}
	}
}

// The trace, the caller and the caller's own metadata are shown with the write.
func TestTimelineNamesTheTrace(t *testing.T) {
	body, err := intent.WriteIntent{Tenant: "acme", Workflow: "w", Step: "s", Tool: "t", Destination: "d", Kind: "k", Write: intent.Create,
		Key: intent.Fields{"id": "1"}, Expect: intent.Fields{"a": "1"}, Sensitive: []string{"/a"},
		Context: map[string]string{"model": "m-1", "run": "r\u202e"}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	r := ledger.Record{ID: "wr_1", State: ledger.Review, Trace: ownTrace, CorrelationID: "req-9", RequestedBy: "crm-agent", Intent: body}
	text := Life(r, nil, engine.OutcomeOf(r), r.Created)
	for _, part := range []string{"4bf92f3577b34da6a3ce929d0e0e4736", "req-9", "crm-agent", "model", "= m-1", `r\u202e`, "/a"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}
