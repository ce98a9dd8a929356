package receipt_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/redact"
)

// Every class of destination, every write, every fault: no receipt contradicts the destination's
// own record, and every verified write gets one.
func TestReceiptsAgreeWithTheWorld(t *testing.T) {
	key := newPair(t)
	kinds := append([]orders.FaultKind{""}, orders.FaultKinds()...)
	for _, class := range orders.Classes() {
		for _, write := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete} {
			for _, kind := range kinds {
				if kind == orders.DuplicateByOthers && class.Options().Unique || kind == orders.Unreachable {
					continue // there is no record, and nothing is sent
				}
				t.Run(strings.Join([]string{string(class), string(write), string(kind)}, "/"), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { aWrite(t, key, class, write, kind) })
				})
			}
		}
	}
}

func aWrite(t *testing.T, key pair, class orders.Class, write intent.WriteType, kind orders.FaultKind) {
	b := newBench(t, class.Options())
	if write == intent.Update || write == intent.Delete {
		b.seed()
		time.Sleep(time.Minute)
	}
	if kind != "" {
		b.set(orders.Fault{Kind: kind, Times: 1})
	}
	out := b.do(order(write))
	s, err := b.receipt(out.ID, receipt.Options{Values: true})
	switch {
	case errors.Is(err, receipt.ErrNotObserved) && out.Status != ledger.Verified:
		return
	case err != nil:
		t.Fatalf("%s: %v", out.Status, err)
	}
	got, err := receipt.Verify(key.signed(t, s), key.keys)
	if diff := cmp.Diff(s, got); err != nil || diff != "" {
		t.Fatalf("issued and verified differ: %v\n%s", err, diff)
	}
	live := b.world.Records("A-1")
	asDeclared := len(live) == 1 && live[0].Fields["currency"] == "USD"
	if write == intent.Delete {
		asDeclared = len(live) == 0
	}
	if p := s.Predicate; asDeclared != (p.Settlement == ledger.Verified) || string(p.Settlement) != string(out.Status) {
		t.Errorf("outcome %s, receipt %s (%s), and the world has %v", out.Status, p.Settlement, p.Verdict, live)
	}
}

func TestWhatAReceiptSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options())
		w := order(intent.Create)
		out := b.do(w)
		bare, err := b.receipt(out.ID, receipt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rec, _ := b.life(out.ID)
		digest, _ := w.Digest()
		if want := (receipt.Subject{Name: string(out.ID), Digest: receipt.IntentDigest{SHA256: digest}}); bare.Subject[0] != want {
			t.Errorf("subject %+v, want %+v", bare.Subject[0], want)
		}
		p := bare.Predicate
		if p.Write.StructuralKey != w.StructuralKey() || p.Write.Destination != "orders" || p.Write.Type != intent.Create || p.Tenant != "acme" {
			t.Errorf("write %+v", p.Write)
		}
		if p.Observed.Records != 1 || p.Observed.Ref != rec.Ref || p.Read.Strength != "strong" || p.Read.BeforeSend || p.Attempts != (receipt.Attempts{Sends: 1, Reads: 1}) {
			t.Errorf("observed %+v, read %+v, attempts %+v", p.Observed, p.Read, p.Attempts)
		}
		if p.Readback != version || p.By.Rule == "" || p.Rechecks != nil || p.Times.Seen.Before(p.Times.FirstSend) {
			t.Errorf("the rest: %+v", p)
		}
		payload, err := bare.Payload()
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range []string{"1999", "USD", "A-1"} {
			if strings.Contains(strings.ReplaceAll(string(payload), p.Observed.Ref, ""), value) {
				t.Errorf("values were not requested, and %q is in %s", value, payload)
			}
		}
		full, err := b.receipt(out.ID, receipt.Options{Values: true})
		if err != nil {
			t.Fatal(err)
		}
		if full.Predicate.Write.BusinessKey.Value != `{"order_id":"A-1"}` || !strings.Contains(full.Predicate.Observed.Value, `"currency":"USD"`) {
			t.Errorf("values: %+v %+v", full.Predicate.Write.BusinessKey, full.Predicate.Observed)
		}
		sum := sha256.Sum256([]byte(full.Predicate.Observed.Value))
		if hex.EncodeToString(sum[:]) != p.Observed.Digest.SHA256 {
			t.Error("the digest of what was observed is not that of its values")
		}
	})
}

func TestWhatWasUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options())
		undone := b.undone()
		s, err := b.receipt(undone.ID, receipt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := s.Predicate
		if p.Settlement != ledger.Compensated || p.Undoing == nil || p.Undoing.Name != string(undone.Undoing) || p.Observed.Records != 0 {
			t.Errorf("%+v", p)
		}
		rec, events := b.life(undone.ID)
		_, err = receipt.Of(rec, events, b.profile, receipt.Options{Version: version})
		if !errors.Is(err, receipt.ErrNotObserved) || !strings.Contains(err.Error(), "is not there to show it") {
			t.Errorf("without its undoing: %v", err)
		}
		_, err = receipt.Of(rec, events, b.profile, receipt.Options{Version: version, Undoing: rec, UndoingEvents: events})
		if !errors.Is(err, receipt.ErrContradiction) {
			t.Errorf("undone by itself: %v", err)
		}
		other := order(intent.Create)
		other.Step = "another"
		o := receipt.Options{Version: version}
		o.Undoing, o.UndoingEvents = b.life(b.do(other).ID)
		if _, err := receipt.Of(rec, events, b.profile, o); !errors.Is(err, receipt.ErrContradiction) || !strings.Contains(err.Error(), "was undone by write") {
			t.Errorf("undone by another write: %v", err)
		}
		if _, err := b.receipt(undone.Undoing, receipt.Options{}); err != nil {
			t.Errorf("the undoing is a write like any other: %v", err)
		}
	})
}

func TestWhatWasSoBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options())
		w := order(intent.Update)
		if _, err := b.world.Seed(intent.Fields{"order_id": "A-1", "amount_cents": w.Expect["amount_cents"], "currency": "USD"}, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		out := b.do(w)
		s, err := b.receipt(out.ID, receipt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := s.Predicate
		if p.Verdict != "vacuous" || !p.Read.BeforeSend || p.Attempts.Sends != 0 || !p.Times.FirstSend.IsZero() || !strings.Contains(p.Claim, "nothing was sent") {
			t.Errorf("%+v", p)
		}
	})
}

func TestWhatCameToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options())
		b.set(orders.Fault{Kind: orders.Refused})
		out := b.do(order(intent.Create))
		s, err := b.receipt(out.ID, receipt.Options{})
		if err != nil || out.Status != ledger.NotApplied {
			t.Fatal(out.Status, err)
		}
		if p := s.Predicate; p.Settlement != ledger.NotApplied || p.Verdict != "absent" || p.Observed.Records != 0 || p.Attempts.Sends != 1 {
			t.Errorf("%+v", p)
		}
		// With a profile that promises less, the same read proves less.
		rec, events := b.life(out.ID)
		both(&rec, &events, strings.Replace(string(read(events).Evidence), `"strength":"strong",`, "", 1))
		b.profile.Settle = b.profile.Horizon
		_, err = receipt.Of(rec, events, b.profile, receipt.Options{Version: version})
		if !errors.Is(err, receipt.ErrNotObserved) || !strings.Contains(err.Error(), "may have lagged") {
			t.Errorf("a weak read in the settle time: %v", err)
		}
	})
}

func TestNothingThatWasNotObserved(t *testing.T) {
	for name, c := range map[string]struct {
		make   func(*bench) ledger.ID
		reason string
	}{
		"never sent": {func(b *bench) ledger.ID {
			w := order(intent.Create)
			w.Deadline = time.Now().Add(-time.Hour)
			return b.do(w).ID
		}, "was never sent"},
		"held": {func(b *bench) ledger.ID { return b.held() }, "waits for approval"},
		"denied": {func(b *bench) ledger.ID {
			return b.decided(b.held(), engine.WordDeny)
		}, "a reviewer refused it"},
		"in review": {func(b *bench) ledger.ID { return b.inReview() }, "waits for a reviewer"},
		"accepted":  {func(b *bench) ledger.ID { return b.decided(b.inReview(), engine.WordAccept) }, "a reviewer accepted it"},
		"abandoned": {func(b *bench) ledger.ID { return b.decided(b.inReview(), engine.WordAbandon) }, "a reviewer gave it up"},
		"read now":  {func(b *bench) ledger.ID { return b.rechecked("absent") }, `was read again and judged "absent"`},
		"found duplicated, and not readable since": {func(b *bench) ledger.ID {
			return b.rechecked("duplicated", notYet, ledger.Event{Kind: ledger.EvRead, Verdict: "unavailable"}, notYet)
		}, `was read again and judged "duplicated"`},
		"undone, and there again": {func(b *bench) ledger.ID {
			out := b.undone()
			return b.appended(out.ID, ledger.Event{Kind: ledger.EvRead, Verdict: "verified"}, notYet)
		}, `was read again and judged "verified"`},
		"undone, and the undoing is in doubt": {func(b *bench) ledger.ID {
			out := b.undone()
			b.appended(out.Undoing, ledger.Event{Kind: ledger.EvRead, Verdict: "mismatched"}, notYet)
			return out.ID
		}, `was read again and judged "mismatched"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options())
				_, err := b.receipt(c.make(b), receipt.Options{})
				if !errors.Is(err, receipt.ErrNotObserved) || !strings.Contains(err.Error(), c.reason) {
					t.Errorf("%v; want no receipt: %s", err, c.reason)
				}
			})
		})
	}
}

func TestReviewersAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options())
		id := b.decided(b.held(), engine.WordApprove)
		s, err := b.receipt(id, receipt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"ada"}, s.Predicate.By.Approved); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRechecksAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options())
		id := b.rechecked("mismatched", ledger.Event{Kind: ledger.EvRechecked, Rule: "recheck"})
		s, err := b.receipt(id, receipt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Predicate.Rechecks; r == nil || r.Reads != 1 || r.Verdict != "mismatched" || s.Predicate.Verdict != "verified" {
			t.Errorf("rechecks %+v of a write that was %s", r, s.Predicate.Verdict)
		}
	})
}

// A receipt states what was compared and what not, what is still to be read, and what a later
// read observed: the field, both values, and which write changed it.
func TestComparedAndRechecked(t *testing.T) {
	w := order(intent.Update)
	w.Expect = intent.Fields{"currency": "USD", "ship": map[string]any{"to": "Oslo"}, "note": "x"}
	w.Payload, w.Ignore, w.Absent = intent.Fields{"secret": 1}, []string{"/note"}, []string{"/closed_at"}
	w.Compare = map[string]intent.Comparison{"/ship/to": {{Name: intent.RuleFold}}}
	prestate := ledger.Event{Kind: ledger.EvRead, Before: true, Verdict: "indeterminate", Evidence: []byte(oneSeen)}
	differs := saw("mismatched", oneSeen)
	differs.Mismatches = []byte(`[{"path":"/currency","problem":"differs","want":"USD","got":"EUR"},{"path":"/ship/to","problem":"not there","want":"Oslo"}]`)
	const later = ledger.ID("wr_00112233445566778899aabbccddeeff")
	again := verified
	again.In, again.Until = time.Hour, 24*time.Hour
	rechecked := ledger.Event{Kind: ledger.EvRechecked, Rule: "recheck", Later: later, In: time.Hour, Until: 2 * time.Hour}
	p := connectors.Profile{Destination: "orders", Kind: orders.Kind, Volatile: []string{"/updated_at"},
		Compare: map[string]intent.Comparison{"/currency": {{Name: intent.RuleTrim}}}}
	of := func(now time.Duration, events ...ledger.Event) receipt.Predicate {
		t.Helper()
		rec, all := livedAs(t, w, false, events...)
		rec.NotChecked = []string{"/note", "/secret"}
		identity := all[0]
		identity.Evidence = bytes.Replace(identity.Evidence, []byte(`{`), []byte(`{"not_checked":["/note","/secret"],`), 1)
		all[0] = identity
		rec.Now = all[len(all)-1].At.Add(now)
		s, err := receipt.Of(rec, all, p, receipt.Options{Version: version, Values: true})
		if err != nil {
			t.Fatal(err)
		}
		key := newPair(t)
		if _, err := receipt.Verify(key.signed(t, s), key.keys); err != nil {
			t.Fatal(err)
		}
		return s.Predicate
	}
	got := of(0, prestate, announced, answered, sawOne, again)
	want := &receipt.Compared{
		Fields: []receipt.Field{{Path: "/currency", Rules: p.Compare["/currency"], From: "destination"}, {Path: "/order_id"},
			{Path: "/ship/to", Rules: w.Compare["/ship/to"], From: "intent"}},
		Absent: []string{"/closed_at"}, Ignored: []string{"/note"}, NotCompared: []string{"/secret", "/updated_at"}, Others: receipt.OthersAsBefore,
	}
	if diff := cmp.Diff(want, got.Compared); diff != "" {
		t.Errorf("compared (-want +got):\n%s", diff)
	}
	if r := got.Recheck; r == nil || r.State != receipt.RecheckPending || r.Until.Sub(r.Due) != 23*time.Hour || got.Rechecks != nil {
		t.Errorf("recheck %+v", r)
	}
	if r := of(2*time.Hour, announced, answered, sawOne, again).Recheck; r == nil || r.State != receipt.RecheckOverdue {
		t.Errorf("recheck %+v, want an overdue one", r)
	}
	if c := of(0, announced, answered, sawOne, again).Compared; c.Others != receipt.OthersNotCompared {
		t.Errorf("without a read from before: %+v", c)
	}
	r := of(0, announced, answered, sawOne, again, differs, rechecked).Rechecks
	if r == nil || r.ChangedBy != string(later) || len(r.Differences) != 2 || r.Differences[0].Path != "/currency" || r.Differences[0].Declared.Value != `"USD"` ||
		r.Differences[0].Observed.Value != `"EUR"` || r.Differences[1].Problem != "not there" || r.Differences[1].Observed != nil {
		t.Errorf("rechecks %+v", r)
	}
	rechecked.Later, rechecked.In, rechecked.Until = "", 0, 0
	if got := of(0, announced, answered, sawOne, again, differs, rechecked); got.Rechecks.ChangedBy != "" || got.Recheck != nil {
		t.Errorf("rechecks %+v, recheck %+v", got.Rechecks, got.Recheck)
	}
	w.Write, w.Expect, w.Payload, w.Ignore, w.Absent, w.Compare = intent.Delete, nil, nil, nil, nil, nil
	if c := of(0, announced, answered, saw("verified", nothingSeen), verified).Compared; c == nil || len(c.Fields) > 0 || c.Others != "" {
		t.Errorf("where there was no record: %+v", c)
	}
}

// A sensitive value that another actor changed is in no receipt, not even with values: neither
// the declared nor the observed one.
func TestSensitiveValuesInRechecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := orders.Unique.Options()
		o.Recheck = connectors.Within(time.Hour)
		b := newBench(t, o)
		vault, err := redact.New([]redact.Key{{ID: "a", Secret: bytes.Repeat([]byte{7}, 32)}}, redact.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var reg connectors.Registry
		if err := reg.Register("orders", b.world.Destination()); err != nil {
			t.Fatal(err)
		}
		b.engine = engine.New(b.ledger, &reg, &engine.Options{Vault: vault})
		defer b.engine.Close()
		w := order(intent.Create)
		w.Expect["currency"], w.Sensitive = "canary-before", []string{"/currency"}
		out := b.do(w)
		if _, err := b.world.Edit(b.world.Records("A-1")[0].ID, intent.Fields{"currency": "canary-after"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		if err := b.engine.Work(ctx, &engine.WorkOptions{Idle: 5 * time.Second}); err != nil {
			t.Error(err)
		}
		for _, values := range []bool{true, false} {
			s, err := b.receipt(out.ID, receipt.Options{Values: values, Vault: vault})
			if err != nil {
				t.Fatal(err)
			}
			payload, err := s.Payload()
			if err != nil {
				t.Fatal(err)
			}
			if r := s.Predicate.Rechecks; r == nil || len(r.Differences) != 1 || r.Differences[0].Path != "/currency" || r.Differences[0].Declared == nil || r.Differences[0].Observed == nil {
				t.Errorf("%+v", r)
			}
			plain := sha256.Sum256([]byte(`"canary-after"`))
			digest, err := w.Digest()
			if text := string(payload); err != nil || strings.Contains(text, "canary") || strings.Contains(text, hex.EncodeToString(plain[:])) || strings.Contains(text, digest) || strings.Contains(text, redact.Prefix) {
				t.Errorf("values %v: %s", values, text)
			}
			otherwise := w
			otherwise.Expect = intent.Fields{"currency": "EUR"}
			for _, c := range []struct {
				w    intent.WriteIntent
				v    *redact.Vault
				want error
			}{{w, vault, nil}, {w, nil, redact.ErrNoKey}, {otherwise, nil, redact.ErrNoKey}, {otherwise, vault, receipt.ErrAnother}} {
				if err := s.About(c.w, c.v); !errors.Is(err, c.want) {
					t.Errorf("about %v: %v, want %v", c.w.Expect, err, c.want)
				}
			}
		}
	})
}

// A receipt is about one intent, even if it is presented for another.
func TestWhichIntentAReceiptIsAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options())
		w := order(intent.Create)
		s, err := b.receipt(b.do(w).ID, receipt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.About(w, nil); err != nil {
			t.Error(err)
		}
		other, otherwise := w, w
		other.Step = "another"
		otherwise.Expect = intent.Fields{"currency": "EUR"}
		for reason, w := range map[string]intent.WriteIntent{"structural key": other, "declared otherwise": otherwise} {
			if err := s.About(w, nil); !errors.Is(err, receipt.ErrAnother) || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %v", reason, err)
			}
		}
	})
}

// For a write that was undone, a later read shows what is left of it.
func TestRechecksOfUndoneWrites(t *testing.T) {
	for _, verdict := range []string{"absent", "stale", "unavailable"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, orders.Plain.Options())
			id := b.appended(b.undone().ID, ledger.Event{Kind: ledger.EvRead, Verdict: verdict}, notYet)
			s, err := b.receipt(id, receipt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r := s.Predicate.Rechecks; r == nil || r.Verdict != verdict || s.Predicate.Verdict != "verified" {
				t.Errorf("rechecks %+v of a write whose undoing was %s", r, s.Predicate.Verdict)
			}
		})
	}
}

func (b *bench) held() ledger.ID {
	w := order(intent.Create)
	w.Risk = intent.RiskApprove
	return b.do(w).ID
}

func (b *bench) inReview() ledger.ID {
	b.seed() // a foreign record
	return b.do(order(intent.Create)).ID
}

func (b *bench) decided(id ledger.ID, word engine.Word) ledger.ID {
	b.t.Helper()
	if _, err := b.engine.Resolve(b.t.Context(), "acme", id, engine.Decision{Word: word, By: "ada", Reason: "it is right so"}); err != nil {
		b.t.Fatal(err)
	}
	return id
}

// notYet postpones the decision about a read.
var notYet = ledger.Event{Kind: ledger.EvDeferred, In: time.Minute}

// undone is a write that was verified and then undone.
func (b *bench) undone() engine.Outcome {
	b.t.Helper()
	w := order(intent.Create)
	w.Reversibility = intent.Compensable
	out, err := b.engine.Undo(b.t.Context(), "acme", b.do(w).ID, engine.Undoing{By: "ada", Reason: "cancelled"})
	if err != nil || out.Status != ledger.Compensated {
		b.t.Fatal(out, err)
	}
	return out
}

// appended is a write with further events.
func (b *bench) appended(id ledger.ID, events ...ledger.Event) ledger.ID {
	b.t.Helper()
	rec, _ := b.life(id)
	if _, err := b.ledger.Append(b.t.Context(), id, rec.Fence, events...); err != nil {
		b.t.Fatal(err)
	}
	return id
}

// rechecked is a verified write that was read once more, with a verdict, and the events of the
// decision about that.
func (b *bench) rechecked(verdict string, then ...ledger.Event) ledger.ID {
	b.t.Helper()
	out := b.do(order(intent.Create))
	_, events := b.life(out.ID)
	read := ledger.Event{Kind: ledger.EvRead, Verdict: verdict, Evidence: events[len(events)-2].Evidence}
	return b.appended(out.ID, append([]ledger.Event{read}, then...)...)
}

// Any alteration in the row of the table of states, in the intent or in the events prevents a
// receipt.
func TestAnAlteredLedgerGivesNoReceipt(t *testing.T) {
	other := order(intent.Create)
	other.Key = intent.Fields{"order_id": "A-2"}
	foreign, _ := other.Encode()
	for name, c := range map[string]struct {
		alter func(*ledger.Record, *[]ledger.Event)
		is    error
	}{
		"the settlement":      {func(r *ledger.Record, _ *[]ledger.Event) { r.Settlement = ledger.NotApplied }, receipt.ErrContradiction},
		"the verdict":         {func(r *ledger.Record, _ *[]ledger.Event) { r.Verdict = "vacuous" }, receipt.ErrContradiction},
		"the name there":      {func(r *ledger.Record, _ *[]ledger.Event) { r.Ref = "another" }, receipt.ErrContradiction},
		"the evidence":        {func(r *ledger.Record, _ *[]ledger.Event) { r.Evidence = []byte(`{"records":[]}`) }, receipt.ErrContradiction},
		"the number of sends": {func(r *ledger.Record, _ *[]ledger.Event) { r.Sends++ }, receipt.ErrContradiction},
		"the digest":          {func(r *ledger.Record, _ *[]ledger.Event) { r.Digest = strings.Repeat("0", 64) }, receipt.ErrContradiction},
		"the destination":     {func(r *ledger.Record, _ *[]ledger.Event) { r.Destination = "other" }, receipt.ErrContradiction},
		"the tenant":          {func(r *ledger.Record, _ *[]ledger.Event) { r.Tenant = "other" }, receipt.ErrContradiction},
		"who approved it":     {func(r *ledger.Record, _ *[]ledger.Event) { r.Agreed = []string{"eve"} }, receipt.ErrContradiction},
		"that no one gave":    {func(r *ledger.Record, _ *[]ledger.Event) { r.Agreed = nil }, receipt.ErrContradiction},
		"who did, as it says": {func(_ *ledger.Record, e *[]ledger.Event) { event(*e, ledger.EvApproved).By = "eve" }, receipt.ErrContradiction},
		"the reason":          {func(r *ledger.Record, _ *[]ledger.Event) { r.Reason = "all is well" }, receipt.ErrContradiction},
		"what differed":       {func(r *ledger.Record, _ *[]ledger.Event) { r.Mismatches = []byte(`[]`) }, receipt.ErrContradiction},
		"the undoing":         {func(r *ledger.Record, _ *[]ledger.Event) { r.ChildIntent = []byte(`{}`) }, receipt.ErrContradiction},
		"the time":            {func(r *ledger.Record, _ *[]ledger.Event) { r.SettledAt = r.SettledAt.Add(-time.Hour) }, receipt.ErrContradiction},
		"the intent":          {func(r *ledger.Record, _ *[]ledger.Event) { r.Intent = foreign }, receipt.ErrContradiction},
		"no intent":           {func(r *ledger.Record, _ *[]ledger.Event) { r.Intent = []byte(`{}`) }, receipt.ErrContradiction},
		"pruned":              {func(r *ledger.Record, _ *[]ledger.Event) { r.Tombstone = true }, receipt.ErrNotObserved},
		"no events":           {func(_ *ledger.Record, e *[]ledger.Event) { *e = nil }, receipt.ErrContradiction},
		"no read":             {func(_ *ledger.Record, e *[]ledger.Event) { *e = slices.Delete(*e, len(*e)-2, len(*e)-1) }, receipt.ErrContradiction},
		"no end":              {func(_ *ledger.Record, e *[]ledger.Event) { *e = (*e)[:len(*e)-1] }, receipt.ErrContradiction},
		"what the event shows": {func(_ *ledger.Record, e *[]ledger.Event) {
			read(*e).Evidence = []byte(`{"records":[],"at":"2000-01-01T00:00:00Z"}`)
		}, receipt.ErrContradiction},
		"how it was judged":     {func(_ *ledger.Record, e *[]ledger.Event) { read(*e).Verdict = "absent" }, receipt.ErrContradiction},
		"how both say it was":   {func(r *ledger.Record, e *[]ledger.Event) { r.Verdict, read(*e).Verdict = "verified", "absent" }, receipt.ErrContradiction},
		"both, with no records": {func(r *ledger.Record, e *[]ledger.Event) { both(r, e, `{"records":[],"at":"2000-01-01T00:00:00Z"}`) }, receipt.ErrContradiction},
		"both, with nothing":    {func(r *ledger.Record, e *[]ledger.Event) { both(r, e, "") }, receipt.ErrNotObserved},
		"both, too large":       {func(r *ledger.Record, e *[]ledger.Event) { both(r, e, `{"too_large":300000,"sha256":"00"}`) }, receipt.ErrNotObserved},
		"both, no observation":  {func(r *ledger.Record, e *[]ledger.Event) { both(r, e, `{"records":3}`) }, receipt.ErrContradiction},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options())
				rec, events := b.life(b.decided(b.held(), engine.WordApprove))
				if _, err := receipt.Of(rec, events, b.profile, receipt.Options{Version: version}); err != nil {
					t.Fatalf("unaltered: %v", err)
				}
				c.alter(&rec, &events)
				if s, err := receipt.Of(rec, events, b.profile, receipt.Options{Version: version}); !errors.Is(err, c.is) {
					t.Errorf("%v, want %v; the receipt would say %+v", err, c.is, s)
				}
			})
		})
	}
}

// read is the last read among events.
func read(events []ledger.Event) *ledger.Event { return event(events, ledger.EvRead) }

// event is the last event of a kind.
func event(events []ledger.Event, kind ledger.EventKind) *ledger.Event {
	for i := range slices.Backward(events) {
		if events[i].Kind == kind {
			return &events[i]
		}
	}
	return new(ledger.Event)
}

func both(r *ledger.Record, events *[]ledger.Event, evidence string) {
	r.Evidence, read(*events).Evidence = []byte(evidence), []byte(evidence)
}
