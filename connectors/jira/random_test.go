package jira_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// lives is how many random lives of a write are lived, a minute of fake time
// to a day each.
const lives = 400

// TestRandomLives: a run of bad luck of any kind makes no second record, and
// what is called verified or not applied is so. Lag and lateness stay within
// what the profile declares; beyond that only a recheck helps.
func TestRandomLives(t *testing.T) {
	statuses := map[ledger.Status]int{}
	for seed := range uint64(lives) {
		synctest.Test(t, func(t *testing.T) {
			statuses[live(t, seed)]++
		})
	}
	t.Logf("%v", statuses)
	if statuses[ledger.Verified] < lives/2 {
		t.Errorf("only %d of %d lives end verified: who always stops makes no mistakes either", statuses[ledger.Verified], lives)
	}
}

func live(t *testing.T, seed uint64) ledger.Status {
	luck := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a test that can be repeated
	dataCenter := luck.IntN(2) == 0
	s := fakejira.New(fakejira.Options{DataCenter: dataCenter, IndexLag: time.Duration(luck.IntN(280)) * time.Second, PageSize: 2 + luck.IntN(3), Projects: []string{"OPS", "DEV"}})
	c := connect(t, s, nil)
	ops := operations()
	n := luck.IntN(len(ops))
	op := ops[n]
	if _, err := s.Seed("OPS", map[string]any{"summary": "the issue of the comments"}); err != nil {
		t.Fatal(err)
	}
	for call, in := range []intent.WriteIntent{issueIntent(intent.Create, 0), commentIntent(intent.Create, 0)} {
		if _, err := c.Write(t.Context(), request(named(in, call), nil)); err != nil {
			t.Fatal(err)
		}
	}
	if luck.IntN(3) == 0 && op.name == "edit" {
		op.in.Key = intent.Fields{"project": "OPS", "reference": "Invoice-000"}
	}
	<-time.After(time.Duration(luck.IntN(600)) * time.Second)
	writes := []fault.Fault{{Kind: fault.LostAnswer}, {Kind: fault.CutBody}, {Kind: fault.DroppedBefore}, {Kind: fault.BadGateway}, {Kind: fault.BadGateway, How: "503"},
		{Kind: fault.BadGateway, How: "409"}, {Kind: fault.Refused, How: "409"}, {Kind: fault.Refused, How: "301"}, {Kind: fault.LateCommit},
		{Kind: fault.PhantomSuccess}, {Kind: fault.Throttled}, {Kind: fault.Unreachable}}
	for range luck.IntN(3) {
		f := writes[luck.IntN(len(writes))]
		f.Delay = time.Duration(1+luck.IntN(240)) * time.Second
		if err := s.Set(f.Once()); err != nil {
			t.Fatal(err)
		}
	}
	for range luck.IntN(4) {
		how := fakejira.Unreadable()[luck.IntN(len(fakejira.Unreadable()))]
		if err := s.Set(fault.Fault{Kind: fault.UnreadableRead, How: how}.Once()); err != nil {
			t.Fatal(err)
		}
	}
	effects := len(s.Effects())
	in := named(op.in, 3)
	out := operate(t, c, in)
	<-time.After(time.Hour) // late sends have arrived
	where := fmt.Sprintf("seed %d: %s (data center %v) ends %s (%s)", seed, op.name, dataCenter, out.Status, out.Text)
	judgeLife(t, where, s, op, out, s.Effects()[effects:])
	return out.Status
}

// judgeLife compares the engine's outcome with the destination's own log.
func judgeLife(t *testing.T, where string, s *fakejira.Site, op operation, out engine.Outcome, made []fakejira.Effect) {
	t.Helper()
	if op.write == intent.Create && len(made) > 1 {
		t.Errorf("%s: %d effects", where, len(made))
	}
	if (out.Status == ledger.NotApplied) != (len(made) == 0) && out.Status != ledger.StatusReview {
		t.Errorf("%s: %d effects", where, len(made))
	}
	if out.Status != ledger.Verified {
		return
	}
	b := bench{t: t, s: s, kind: op.in.Kind}
	issues := s.Issues()
	switch op.name {
	case "create":
		if n := len(b.issues(op.in.Key)); n != 1 {
			t.Errorf("%s: %d issues", where, n)
		}
	case "edit":
		if got := issues[1].Fields["summary"]; got != "Changed" {
			t.Errorf("%s: the summary is %v", where, got)
		}
	case "transition":
		if got := issues[1].Fields["status"].(map[string]any)["name"]; got != fakejira.InProgress {
			t.Errorf("%s: the status is %v", where, got)
		}
	case "delete":
		if len(issues) != 1 {
			t.Errorf("%s: it is there", where)
		}
	default:
		want := map[string]int{"comment": 2, "its edit": 1, "its delete": 0}[op.name]
		if n := len(s.Comments("OPS-1")); n != want || op.in.Kind != jira.KindComment {
			t.Errorf("%s: %d comments, want %d", where, n, want)
		}
	}
}
