package sqlite_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// old is a write as version 1 had it: in no line.
func old(t *testing.T, workflow string, events ...ledger.Event) ledger.Record {
	t.Helper()
	res := reservation(t, asked(workflow))
	res.Record.KeyDigest, res.Events = "", events
	rec, _, err := ledger.Begin(res, "", time.Now().Add(-time.Hour))
	must(t, err)
	rec.Passed, rec.LeaseUntil = false, rec.Created
	if rec.Owner == "" {
		rec.LeaseUntil = time.Time{}
	}
	return rec
}

// The words of a life, for files of version 1.
var (
	oldSend   = ledger.Event{Kind: ledger.EvAnnounced, SendFor: time.Second}
	oldSent   = ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered}
	oldRead   = ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(`{"a": 1}`)}
	oldSettle = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified}
)

// A file of version 1 that was left with writes in flight is taken over, and
// each of them goes on.
func TestVersion1(t *testing.T) {
	owed := oldSettle
	owed.In = time.Minute
	recs := map[string]ledger.Record{
		"queued":  old(t, "queued"),
		"orphan":  old(t, "orphan", oldSend),
		"review":  old(t, "review", oldSend, oldSent, oldRead, ledger.Event{Kind: ledger.EvEscalated}),
		"held":    old(t, "held", ledger.Event{Kind: ledger.EvHeld}),
		"owing":   old(t, "owing", oldSend, oldSent, oldRead, owed),
		"settled": old(t, "settled", oldSend, oldSent, oldRead, oldSettle),
	}
	path := file(t)
	var rows []ledger.Record
	for _, name := range []string{"queued", "orphan", "review", "held", "owing", "settled"} {
		rows = append(rows, recs[name])
	}
	must(t, sqlite.Version1(path, rows...))
	l := open(t, path, nil)
	for name, want := range recs {
		got, err := l.Get(context.Background(), "acme", want.ID)
		must(t, err)
		ignore := cmpopts.IgnoreFields(ledger.Record{}, "Now", "LeaseUntil", "Evidence")
		if diff := cmp.Diff(want, got, ignore, cmpopts.EquateApproxTime(0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if _, fresh, err := l.Reserve(context.Background(), reservation(t, asked(name))); fresh || err != nil {
			t.Errorf("%s again: fresh %v, error %v", name, fresh, err)
		}
	}
	lent, err := l.Claim(context.Background(), ledger.Claim{Owner: "new", LeaseFor: time.Minute, Limit: 10})
	must(t, err)
	got := map[string]bool{}
	for _, r := range lent {
		got[r.Workflow] = true
	}
	if diff := cmp.Diff(map[string]bool{"queued": true, "orphan": true, "owing": true}, got); diff != "" {
		t.Errorf("lent (-want +got):\n%s", diff)
	}
	oldGoesOn(t, l, recs)
	version, err := l.Read("SELECT version || ' from ' || compatible_from FROM ledger_meta")
	if err != nil || len(version) != 1 || version[0] != "6 from 4" {
		t.Errorf("version %v, error %v", version, err)
	}
}

// oldGoesOn takes writes of version 1 further.
func oldGoesOn(t *testing.T, l *sqlite.Ledger, recs map[string]ledger.Record) {
	t.Helper()
	ctx := context.Background()
	for name, events := range map[string][]ledger.Event{
		"queued":  {oldSend, oldSent, oldRead, oldSettle},
		"orphan":  {oldSent, oldRead, oldSettle},
		"review":  {{Kind: ledger.EvSettled, Settlement: ledger.Accepted, By: "someone"}},
		"held":    {{Kind: ledger.EvApproved, By: "someone"}, {Kind: ledger.EvDeferred}},
		"owing":   {{Kind: ledger.EvRechecked}},
		"settled": {{Kind: ledger.EvDeferred}},
	} {
		rec, err := l.Get(ctx, "acme", recs[name].ID)
		must(t, err)
		if rec, err = l.Append(ctx, rec.ID, rec.Fence, events...); err != nil || rec.Behind != "" {
			t.Errorf("%s: behind %q, error %v", name, rec.Behind, err)
		}
	}
	another := asked("another about it")
	another.Key = asked("held").Key
	if rec, _, err := l.Reserve(ctx, reservation(t, another)); err != nil || rec.Behind != "" {
		t.Errorf("behind %q, error %v; writes of version 1 are in no line", rec.Behind, err)
	}
	lent, err := l.Claim(ctx, ledger.Claim{Owner: "new", LeaseFor: time.Minute, Limit: 10})
	if err != nil || len(lent) != 2 {
		t.Errorf("%d lent, error %v; want the approved one and the one that was looked at again", len(lent), err)
	}
}

// A newer program may add to a file without stopping the ones that run.
func TestAddition(t *testing.T) {
	path := file(t)
	l := open(t, path, nil)
	rec := reserve(t, l, "w1")
	sql(t, outsider(t, path), "ALTER TABLE ledger_writes ADD COLUMN invented TEXT")
	sql(t, outsider(t, path), "UPDATE ledger_meta SET version = 99")
	if _, err := l.Append(t.Context(), rec.ID, rec.Fence, oldSent, oldRead, oldSettle); err != nil {
		t.Error(err)
	}
	again, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	reserve(t, again, "w2")
	must(t, again.Close())
	if version, err := l.Read("SELECT version FROM ledger_meta"); err != nil || version[0] != "99" {
		t.Errorf("version %v, error %v: it was taken back", version, err)
	}
}

// A file of version 2 is not rewritten when it is taken over, and all the same
// each of its writes blocks whom it has to, and nobody else.
func TestVersion2(t *testing.T) {
	nothing, gaveUp := oldSettle, oldSettle
	nothing.Settlement, gaveUp.Settlement, gaveUp.By = ledger.NotApplied, ledger.Abandoned, "p"
	recs := map[string]struct {
		rec    ledger.Record
		blocks bool
	}{
		"queued":    {old(t, "queued"), true},
		"held":      {old(t, "held", ledger.Event{Kind: ledger.EvHeld}), true},
		"verified":  {old(t, "verified", oldSend, oldSent, oldRead, oldSettle), true},
		"abandoned": {old(t, "abandoned", oldSend, oldSent, oldRead, gaveUp), true},
		"nothing":   {old(t, "nothing", oldSend, oldSent, oldRead, nothing), false},
	}
	path := file(t)
	var rows []ledger.Record
	for _, r := range recs {
		rows = append(rows, r.rec)
	}
	must(t, sqlite.Version2(path, rows...))
	l := open(t, path, nil)
	for name, r := range recs {
		got, err := l.Get(t.Context(), "acme", r.rec.ID)
		must(t, err)
		ignore := cmpopts.IgnoreFields(ledger.Record{}, "Now", "LeaseUntil", "Evidence")
		if diff := cmp.Diff(r.rec, got, ignore, cmpopts.EquateApproxTime(0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if begun, err := l.Operation(t.Context(), "acme", r.rec.Tool, r.rec.IdempotencyKey); err != nil || (len(begun) == 1) != r.blocks {
			t.Errorf("%s: %d have begun it, error %v", name, len(begun), err)
		}
		again := asked(name + " again")
		again.IdempotencyKey = r.rec.IdempotencyKey
		if _, _, err := l.Reserve(t.Context(), reservation(t, again)); errors.Is(err, ledger.ErrBlocked) != r.blocks || !r.blocks && err != nil {
			t.Errorf("%s: the same operation elsewhere: error %v, want blocked %v", name, err, r.blocks)
		}
	}
	if kept, err := l.Read("SELECT count(*) FROM ledger_writes WHERE blocks IS NULL"); err != nil || kept[0] != "5" {
		t.Errorf("%v rows as they were, error %v", kept, err)
	}
	rec, err := l.Append(t.Context(), recs["queued"].rec.ID, recs["queued"].rec.Fence, nothing)
	must(t, err)
	again := asked("queued again")
	again.IdempotencyKey = rec.IdempotencyKey
	if _, _, err := l.Reserve(t.Context(), reservation(t, again)); err != nil {
		t.Errorf("when it had come to nothing: %v", err)
	}
	if _, err := l.File(t.Context(), ledger.Filing{Papers: []ledger.Paper{step("s1")}}); err != nil {
		t.Errorf("a paper: %v", err)
	}
	// A program of version 2, which asks this in every transaction, stops: it
	// would let a held write go when its time is over.
	if needs, err := l.Read("SELECT compatible_from FROM ledger_meta"); err != nil || needs[0] != "4" {
		t.Errorf("a program needs to know version %v, error %v", needs, err)
	}
}
