package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/ledger"
)

func TestApprovals(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	held := ledger.Record{ID: "wr_1", State: ledger.Held, Digest: "d1g"}
	tests := map[string]struct {
		reason string
		change func(*ledger.Record)
		want   []string
	}{
		"one":      {"an old one, without a time", func(*ledger.Record) {}, []string{"approvals\t0 of 1", "digest\td1g"}},
		"two":      {"who has, and how many must", func(r *ledger.Record) { r.Need = 3; r.Agreed = []string{"ann"} }, []string{"approvals\t1 of 3: ann; 2 different reviewers must still approve", "digest\td1g"}},
		"until":    {"how long there is", func(r *ledger.Record) { r.Due = now.Add(3 * time.Hour) }, []string{"approvals\t0 of 1", "until\t2026-01-31 15:00:00.000Z (3 hours from now)", "digest\td1g"}},
		"over":     {"a worker has not seen it yet", func(r *ledger.Record) { r.Due = now.Add(-time.Hour) }, []string{"approvals\t0 of 1", "was until\t2026-01-31 11:00:00.000Z (1 hour ago); it can be approved no more", "digest\td1g"}},
		"overdue":  {"it continues to wait", func(r *ledger.Record) { r.Overdue = true }, []string{"approvals\t0 of 1", "overdue\tno reviewer approved it in time; it continues to wait", "digest\td1g"}},
		"asked by": {"who asked may not approve", func(r *ledger.Record) { r.RequestedBy = "bot\x1b" }, []string{"approvals\t0 of 1", "asked by\tbot\\x1b, who may not approve it", "digest\td1g"}},
		"not held": {"there is nothing to approve", func(r *ledger.Record) { r.State = ledger.Queued }, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := held
			tt.change(&r)
			if d := cmp.Diff(tt.want, approvals(r, now)); d != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, d)
			}
		})
	}
}

func TestWritesOfCallersThemselves(t *testing.T) {
	r := ledger.Record{ID: "wr_1", State: ledger.Delegated, Delegated: true, Tool: "wire", Workflow: "wf_1", Step: "pay", Intent: json.RawMessage(`{"step_input":{"a":1}}`)}
	if got, want := Subject(r), `wire by step "pay" of workflow "wf_1" itself`; got != want {
		t.Errorf("subject %q, want %q", got, want)
	}
	tests := map[ledger.State]string{
		ledger.Delegated: `Step "pay" of workflow "wf_1" makes it and says when it is done; nothing is sent from here.`,
		ledger.Held:      "A person decides:\n  approve or reject step \"pay\" of workflow \"wf_1\" at the gate",
		ledger.Review:    "A person decides:\n  readback review wr_1 accept|abandon --by NAME --reason TEXT",
		ledger.Settled:   "",
	}
	for state, want := range tests {
		r.State = state
		if got := next(r, time.Time{}); got != want {
			t.Errorf("%s: next is %q, want %q", state, got, want)
		}
	}
	if got := asked(r); strings.Contains(got, "cannot be read") || !strings.Contains(got, "step_input") {
		t.Errorf("what it asks for: %q", got)
	}
	f := Found{QueueStats: ledger.QueueStats{Queues: []ledger.Queue{{Tenant: "a", State: ledger.Delegated, Count: 1}, {Tenant: "a", State: ledger.Review, Count: 1}}}}
	if got := unknownDestinations(f); got != nil {
		t.Errorf("a destination is asked for that no step has: %v", got)
	}
}

func TestOperation(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	r := ledger.Record{ID: "wr_1", State: ledger.Delegated, Delegated: true, Tool: "wire", Workflow: "wf_1", Step: "pay", Created: now.Add(-time.Hour)}
	done := r
	done.State, done.Settlement, done.ID = ledger.Settled, ledger.Reported, "wr_2"
	gone := r
	gone.Yielded, gone.ID = true, "wr_3"
	waits, sent := r, r
	waits.State, waits.ID = ledger.Held, "wr_4"
	sent.State, sent.ID, sent.Delegated = ledger.Sending, "wr_5", false
	got := Operation{Tool: "wire", Key: "k\x07", Holders: []Holder{{Record: r, Blocks: true}, {Record: done, Blocks: true, Until: now.Add(time.Hour), Outcome: "It is done."}, {Record: gone}, {Record: waits, Blocks: true}, {Record: sent, Blocks: true}}}.Text(now)
	want := `Operation "k\\x07" of tool "wire"

wr_1  entrusted, begun 1 hour ago
  wire by step "pay" of workflow "wf_1" itself
  workflow      wf_1
  step          pay
  stops others  yes, for as long as it is open
  readback operation release --id wr_1 --by NAME --reason TEXT

wr_2  settled (reported), begun 1 hour ago
  wire by step "pay" of workflow "wf_1" itself
  workflow      wf_1
  step          pay
  outcome       It is done.
  stops others  yes, until 2026-01-31 13:00:00.000Z (1 hour from now)
  readback operation release --id wr_2 --by NAME --reason TEXT

wr_3  entrusted, begun 1 hour ago
  wire by step "pay" of workflow "wf_1" itself
  workflow      wf_1
  step          pay
  stops others  no: an operator released the operation

wr_4  held, begun 1 hour ago
  wire by step "pay" of workflow "wf_1" itself
  workflow      wf_1
  step          pay
  stops others  yes, for as long as it is open
  approve or reject step "pay" of workflow "wf_1" at the gate

wr_5  sending, begun 1 hour ago
   at "" (its intent cannot be read)
  workflow      wf_1
  step          pay
  stops others  yes, for as long as it is open
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if got := (Operation{Tool: "wire", Key: "k"}).Text(now); !strings.HasPrefix(got, "No write has begun") {
		t.Errorf("no operation: %q", got)
	}
}
