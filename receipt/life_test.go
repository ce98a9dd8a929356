package receipt_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/redact"
)

// Evidence of reads.
const (
	nothingSeen = `{"records":[],"strength":"strong","at":"2026-01-01T00:00:00Z"}`
	oneSeen     = `{"records":[{"ref":"1","fields":{"order_id":"A-1"}}],"strength":"strong","at":"2026-01-01T00:00:00Z"}`
	// The same by reads that may lag.
	nothingWeakly = `{"records":[],"at":"2026-01-01T00:00:00Z"}`
	oneWeakly     = `{"records":[{"ref":"1","fields":{"order_id":"A-1"}}],"path":"search","at":"2026-01-01T00:00:00Z"}`
)

// lived is a write with these events, one a second, even if an engine would refuse them.
func lived(t *testing.T, delegated bool, events ...ledger.Event) (ledger.Record, []ledger.Event) {
	t.Helper()
	return livedAs(t, order(intent.Create), delegated, events...)
}

// livedAs is lived with a given write.
func livedAs(t *testing.T, w intent.WriteIntent, delegated bool, events ...ledger.Event) (ledger.Record, []ledger.Event) {
	t.Helper()
	rec, err := ledger.NewRecord(w)
	if err != nil {
		t.Fatal(err)
	}
	if rec.Delegated = delegated; delegated {
		rec.KeyDigest = ""
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	res := ledger.Reservation{Record: rec, Owner: "one", LeaseFor: time.Minute}
	if delegated {
		res.Events, events = events[:1], events[1:]
	}
	rec, all, err := ledger.Begin(res, "", at)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		at = at.Add(time.Second)
		next, stamped, err := ledger.Advance(rec, rec.Fence, []ledger.Event{e}, at)
		if err != nil {
			t.Fatal(err)
		}
		rec, all = next, append(all, stamped...)
	}
	return rec, all
}

var (
	announced  = ledger.Event{Kind: ledger.EvAnnounced}
	answered   = ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered}
	unanswered = ledger.Event{Kind: ledger.EvSent}
	sawOne     = ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(oneSeen)}
	sawNothing = ledger.Event{Kind: ledger.EvRead, Verdict: "absent", Evidence: []byte(nothingSeen)}
	verified   = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, Rule: "accept"}
	notApplied = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied, Rule: "not applied"}
	escalated  = ledger.Event{Kind: ledger.EvEscalated, Rule: "recheck"}
)

// sentLate is late evidence of a worker that had lost the write: a send that long ago.
func sentLate(ago time.Duration, fate string) ledger.Event {
	learned, _ := json.Marshal([]ledger.Event{{Kind: ledger.EvSent, Fate: fate, Ago: ago}}) // all of it can be encoded
	return ledger.Event{Kind: ledger.EvLate, Evidence: learned}
}

// saw is a read with a verdict, and its evidence.
func saw(verdict, evidence string) ledger.Event {
	return ledger.Event{Kind: ledger.EvRead, Verdict: verdict, Evidence: []byte(evidence)}
}

// A receipt is based on what the events show, whichever actor wrote them.
func TestWhatTheEventsDoNotShow(t *testing.T) {
	before, nothingBefore := sawOne, sawNothing
	before.Before, nothingBefore.Before = true, true
	soon, late := connectors.Profile{Horizon: connectors.Within(time.Second)}, connectors.Profile{Horizon: connectors.Within(time.Hour)}
	lags := connectors.Profile{Horizon: connectors.Within(time.Second), Settle: connectors.Within(time.Second)}
	for name, c := range map[string]struct {
		events    []ledger.Event
		delegated bool
		profile   connectors.Profile
		is        error
		reason    string
	}{
		"seen":                         {[]ledger.Event{announced, answered, sawOne, verified}, false, soon, nil, ""},
		"sent after it was seen":       {[]ledger.Event{announced, answered, sawOne, announced, answered, verified}, false, soon, receipt.ErrContradiction, "not read after its last send"},
		"seen as it was before":        {[]ledger.Event{announced, answered, before, verified}, false, soon, receipt.ErrContradiction, "by a read from before"},
		"judged otherwise":             {[]ledger.Event{announced, answered, sawNothing, verified}, false, soon, receipt.ErrContradiction, `judged "absent"`},
		"nothing came of it":           {[]ledger.Event{announced, unanswered, sawNothing, notApplied}, false, soon, nil, ""},
		"it may still land":            {[]ledger.Event{announced, unanswered, sawNothing, notApplied}, false, late, receipt.ErrNotObserved, "could still have landed"},
		"answered, and may still land": {[]ledger.Event{announced, answered, sawNothing, notApplied}, false, late, receipt.ErrNotObserved, "could still have landed"},
		"it is unknown for how long":   {[]ledger.Event{announced, unanswered, sawNothing, notApplied}, false, connectors.Profile{}, receipt.ErrNotObserved, "could still have landed"},
		"it is unknown how it lags":    {[]ledger.Event{announced, unanswered, saw("absent", nothingWeakly), notApplied}, false, soon, receipt.ErrNotObserved, "may have lagged"},
		"it lags as far as it lands":   {[]ledger.Event{announced, unanswered, saw("absent", nothingWeakly), notApplied}, false, lags, receipt.ErrNotObserved, "could still have landed"},
		"absent, and there":            {[]ledger.Event{announced, unanswered, saw("absent", oneSeen), notApplied}, false, soon, receipt.ErrContradiction, "found 1 records"},
		"not applied, and seen":        {[]ledger.Event{announced, unanswered, sawOne, notApplied}, false, soon, receipt.ErrNotObserved, `judged "verified"`},
		"not there before":             {[]ledger.Event{announced, unanswered, nothingBefore, notApplied}, false, soon, receipt.ErrNotObserved, "was not read after its last send"},
		"not read after":               {[]ledger.Event{announced, unanswered, sawNothing, announced, unanswered, notApplied}, false, soon, receipt.ErrNotObserved, "was not read after its last send"},
		"its caller's own":             {[]ledger.Event{{Kind: ledger.EvDelegated}, sawOne, verified}, true, soon, receipt.ErrNotObserved, "made by its caller"},
		"read later":                   {[]ledger.Event{announced, answered, {Kind: ledger.EvDeferred, Unverified: true, In: time.Hour}}, false, soon, receipt.ErrNotObserved, "is read back later"},
		"reported":                     {[]ledger.Event{announced, answered, {Kind: ledger.EvSettled, Settlement: ledger.Reported, By: "one"}}, false, soon, receipt.ErrNotObserved, "it was not verified"},
		"expired":                      {[]ledger.Event{{Kind: ledger.EvHeld}, {Kind: ledger.EvSettled, Settlement: ledger.Expired}}, false, soon, receipt.ErrNotObserved, "no reviewer approved it in time"},
		"under way":                    {[]ledger.Event{announced, answered, sawOne}, false, soon, receipt.ErrNotObserved, "under way (checking)"},
		"duplicated later":             {[]ledger.Event{announced, answered, sawOne, verified, saw("duplicated", oneSeen), escalated}, false, soon, receipt.ErrNotObserved, "waits for a reviewer"},
		"duplicated later, and accepted so": {[]ledger.Event{announced, answered, sawOne, verified, saw("duplicated", oneSeen), escalated,
			{Kind: ledger.EvSettled, Settlement: ledger.Accepted, By: "ada"}}, false, soon, receipt.ErrNotObserved, "a reviewer accepted it"},
		"gone later, and seen again": {[]ledger.Event{announced, answered, sawOne, verified, sawNothing, escalated, sawOne, verified}, false, soon, nil, ""},
		"sent late by another": {[]ledger.Event{announced, answered, sawOne, verified, sentLate(0, ledger.FateAnswered)}, false, soon,
			receipt.ErrNotObserved, "sent after it was seen, by a worker that had lost it"},
		"given up, and sent late":       {[]ledger.Event{announced, unanswered, sawNothing, notApplied, sentLate(0, "")}, false, soon, receipt.ErrNotObserved, "sent after it was seen"},
		"sent late, before it was seen": {[]ledger.Event{announced, answered, sawOne, verified, sentLate(time.Minute, ledger.FateAnswered)}, false, soon, nil, ""},
		"sent late, and refused":        {[]ledger.Event{announced, answered, sawOne, verified, sentLate(0, "refused")}, false, soon, nil, ""},
		"sent late, and read again":     {[]ledger.Event{announced, answered, sawOne, verified, sentLate(0, ledger.FateAnswered), sawOne, {Kind: ledger.EvRechecked}}, false, soon, nil, ""},
		"learned late, but of no send":  {[]ledger.Event{announced, answered, sawOne, verified, {Kind: ledger.EvLate, Evidence: []byte(`[{"kind":"read"}]`)}}, false, soon, nil, ""},
		"gone later, and not read again": {[]ledger.Event{announced, answered, sawOne, verified, sawNothing, escalated, verified}, false, soon,
			receipt.ErrContradiction, `judged "absent"`},
	} {
		t.Run(name, func(t *testing.T) {
			rec, events := lived(t, c.delegated, c.events...)
			c.profile.Destination, c.profile.Kind = "orders", orders.Kind
			_, err := receipt.Of(rec, events, c.profile, receipt.Options{Version: version})
			if !errors.Is(err, c.is) || err != nil && !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%v\nwant %v with: %s", err, c.is, c.reason)
			}
			c.profile.Destination = "elsewhere"
			if _, other := receipt.Of(rec, events, c.profile, receipt.Options{Version: version}); err == nil && other == nil {
				t.Error("issued with what another destination promises")
			}
		})
	}
}

// The receipt describes the read as its event does, and no further.
func TestReadStatements(t *testing.T) {
	read := saw("verified", oneWeakly)
	read.Count, read.Ago = 3, 300*time.Millisecond
	held := ledger.Event{Kind: ledger.EvHeld, Need: 2}
	by := func(kind ledger.EventKind, who string) ledger.Event { return ledger.Event{Kind: kind, By: who} }
	rec, events := lived(t, false, held, by(ledger.EvAgreed, "ann"), by(ledger.EvApproved, "bob"),
		held, by(ledger.EvAgreed, "cy"), by(ledger.EvApproved, "dan"), announced, answered, read, verified)
	s, err := receipt.Of(rec, events, connectors.Profile{Destination: "orders", Kind: orders.Kind}, receipt.Options{Version: version})
	if err != nil {
		t.Fatal(err)
	}
	p := s.Predicate
	if p.Read.Strength != "weak" || p.Read.Path != "search" || p.Read.Agreeing != 3 || p.Attempts.Reads != 3 {
		t.Errorf("%+v, %+v", p.Read, p.Attempts)
	}
	if lag := p.Times.Settled.Sub(p.Times.Seen); lag != 1300*time.Millisecond {
		t.Errorf("seen %v before it was settled", lag)
	}
	if diff := cmp.Diff([]string{"cy", "dan"}, p.By.Approved); diff != "" {
		t.Errorf("the approvers, after it was held again: %s", diff)
	}
}

// A receipt states the independence that this very read reported, whatever others could have
// been, or were.
func TestByWhichWayItWasRead(t *testing.T) {
	by := func(way string) ledger.Event {
		return saw("verified", strings.Replace(oneSeen, `"strength"`, `"path":"standby","independent":"`+way+`","strength"`, 1))
	}
	standby := connectors.Profile{Reads: []connectors.ReadPath{{Path: "standby", By: "key", Strength: connectors.Strong, Independent: connectors.OtherServer}}}
	silent := saw("verified", strings.Replace(oneSeen, `"strength"`, `"path":"standby","strength"`, 1))
	for name, c := range map[string]struct {
		read    []ledger.Event
		profile connectors.Profile
		want    receipt.Independence
		reason  string
	}{
		"nothing is declared":     {[]ledger.Event{sawOne}, connectors.Profile{}, receipt.OwnCall, "the least is claimed"},
		"another login":           {[]ledger.Event{by("other_login")}, connectors.Profile{}, receipt.OtherLogin, "the read says so"},
		"another interface":       {[]ledger.Event{by("other_interface")}, connectors.Profile{}, receipt.OtherInterface, "the read says so"},
		"another server":          {[]ledger.Event{by("other_server")}, standby, receipt.OtherServer, "the read says so"},
		"no longer configured":    {[]ledger.Event{by("other_server")}, connectors.Profile{}, receipt.OtherServer, "it was so when it was read"},
		"configured, and not so":  {[]ledger.Event{silent}, standby, receipt.OwnCall, "this read does not say so"},
		"another read's":          {[]ledger.Event{by("other_server"), sawOne}, standby, receipt.OwnCall, "the one that settled it was a call of its own"},
		"a word of another's own": {[]ledger.Event{by("satellite")}, standby, receipt.OwnCall, "what is not known claims nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			rec, events := lived(t, false, slices.Concat([]ledger.Event{announced, answered}, c.read, []ledger.Event{verified})...)
			c.profile.Destination, c.profile.Kind = "orders", orders.Kind
			s, err := receipt.Of(rec, events, c.profile, receipt.Options{Version: version})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Predicate.Read.Independent; got != c.want {
				t.Errorf("independent %q, want %q: %s", got, c.want, c.reason)
			}
			key := newPair(t)
			if again, err := receipt.Verify(key.signed(t, s), key.keys); err != nil || again.Predicate.Read.Independent != c.want {
				t.Errorf("it is verified as %q (%v), want %q", again.Predicate.Read.Independent, err, c.want)
			}
		})
	}
}

func TestAsManyAsWereDeclared(t *testing.T) {
	const twoSeen = `{"records":[{"ref":"1","fields":{}},{"ref":"2","fields":{}}],"strength":"strong","at":"2026-01-01T00:00:00Z"}`
	w := order(intent.Update)
	w.Count = 2
	for evidence, want := range map[string]error{twoSeen: nil, oneSeen: receipt.ErrContradiction} {
		rec, events := livedAs(t, w, false, announced, answered, saw("verified", evidence), verified)
		_, err := receipt.Of(rec, events, connectors.Profile{Destination: "orders", Kind: orders.Kind}, receipt.Options{Version: version})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", evidence, err, want)
		}
	}
}

// An undoing counts if it is the one that was requested, and was observed.
func TestUndoingsThatDoNotCount(t *testing.T) {
	undoing := func(parent ledger.ID) intent.WriteIntent {
		w := order(intent.Delete)
		w.Tool, w.Compensates = order(intent.Create).Tool, string(parent)
		return w
	}
	parent, _ := lived(t, false)
	other := undoing(parent.ID)
	other.Key = intent.Fields{"order_id": "A-2"}
	for name, c := range map[string]struct {
		asked  intent.WriteIntent
		events []ledger.Event
		is     error
		reason string
	}{
		"seen":            {undoing(parent.ID), []ledger.Event{announced, answered, saw("verified", nothingSeen), verified}, nil, ""},
		"of another":      {other, []ledger.Event{announced, answered, saw("verified", nothingSeen), verified}, receipt.ErrContradiction, "by another intent"},
		"not applied":     {undoing(parent.ID), []ledger.Event{announced, unanswered, saw("stale", oneSeen), notApplied}, receipt.ErrNotObserved, "settled (not_applied)"},
		"with a reviewer": {undoing(parent.ID), []ledger.Event{announced, unanswered, {Kind: ledger.EvEscalated}}, receipt.ErrNotObserved, "waits for a reviewer"},
		"and still there": {undoing(parent.ID), []ledger.Event{announced, answered, saw("verified", oneSeen), verified}, receipt.ErrContradiction, "its read found 1"},
	} {
		t.Run(name, func(t *testing.T) {
			child, since := livedAs(t, undoing(parent.ID), false, c.events...)
			asked, err := c.asked.Encode()
			if err != nil {
				t.Fatal(err)
			}
			rec, events := lived(t, false, announced, answered, sawOne, verified,
				ledger.Event{Kind: ledger.EvCompensating, By: "ada", Child: child.ID, Evidence: asked},
				ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Compensated, Rule: "compensate"})
			_, err = receipt.Of(rec, events, connectors.Profile{Destination: "orders", Kind: orders.Kind},
				receipt.Options{Version: version, Undoing: child, UndoingEvents: since})
			if !errors.Is(err, c.is) || err != nil && !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%v\nwant %v with: %s", err, c.is, c.reason)
			}
		})
	}
}

// Sensitive names at the destination, and sensitive values, appear only as digests.
func TestSealedNamesAndValues(t *testing.T) {
	vault, err := redact.New([]redact.Key{{ID: "a", Secret: bytes.Repeat([]byte{7}, 32)}}, redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := order(intent.Create)
	w.Key = intent.Fields{"order_id": "canary-7721"}
	w.Sensitive = []string{"/order_id"}
	seals := vault.Scope(w.Tenant, string(ledger.IDOf(w.StructuralKey())), w.Sensitive)
	seals.LearnIntent(w)
	seen, err := seals.SealObservation(connectors.Observation{Strength: connectors.Strong, At: time.Unix(1, 0),
		Records: []connectors.Record{{Ref: "orders/canary-7721", Fields: w.Key}}})
	if err != nil {
		t.Fatal(err)
	}
	read := saw("verified", string(seen))
	read.Ref, read.URL = seals.SealName("orders/canary-7721"), seals.SealName("https://example.org/canary-7721")
	rec, events := livedAs(t, w, false, announced, answered, read, verified)
	if rec.Intent, err = seals.SealIntent(w); err != nil {
		t.Fatal(err)
	}
	s, err := receipt.Of(rec, events, connectors.Profile{Destination: "orders", Kind: orders.Kind}, receipt.Options{Version: version, Values: true, Vault: vault})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := s.Payload()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(payload), "canary") || strings.Contains(string(payload), redact.Prefix) || strings.Count(string(payload), redact.ShownPrefix) < 4 {
		t.Errorf("%s", payload)
	}
}
