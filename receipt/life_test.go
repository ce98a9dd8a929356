package receipt_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
)

// Evidence as reads leave it.
const (
	nothingSeen = `{"records":[],"strength":"strong","at":"2026-01-01T00:00:00Z"}`
	oneSeen     = `{"records":[{"ref":"1","fields":{"order_id":"A-1"}}],"strength":"strong","at":"2026-01-01T00:00:00Z"}`
)

// lived is a write with these events, one a second, whatever an engine would say
// to that.
func lived(t *testing.T, entrusted bool, events ...ledger.Event) (ledger.Record, []ledger.Event) {
	t.Helper()
	rec, err := ledger.NewRecord(order(intent.Create))
	if err != nil {
		t.Fatal(err)
	}
	if rec.Entrusted = entrusted; entrusted {
		rec.KeyDigest = ""
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	res := ledger.Reservation{Record: rec, Owner: "one", LeaseFor: time.Minute}
	if entrusted {
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
	nobodyTold = ledger.Event{Kind: ledger.EvSent}
	sawOne     = ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Evidence: []byte(oneSeen)}
	sawNothing = ledger.Event{Kind: ledger.EvRead, Verdict: "absent", Evidence: []byte(nothingSeen)}
	verified   = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, Rule: "accept"}
	notApplied = ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied, Rule: "not applied"}
)

// A receipt rests on what the events show, whoever wrote them.
func TestWhatTheEventsDoNotShow(t *testing.T) {
	before := sawOne
	before.Before = true
	horizon := connectors.Within(time.Second)
	for name, c := range map[string]struct {
		events    []ledger.Event
		entrusted bool
		horizon   connectors.Bound
		is        error
		reason    string
	}{
		"seen":                      {[]ledger.Event{announced, answered, sawOne, verified}, false, horizon, nil, ""},
		"sent after it was seen":    {[]ledger.Event{announced, answered, sawOne, announced, answered, verified}, false, horizon, receipt.ErrContradiction, "not read after its last send"},
		"seen as it was before":     {[]ledger.Event{announced, answered, before, verified}, false, horizon, receipt.ErrContradiction, "by a read from before"},
		"judged otherwise":          {[]ledger.Event{announced, answered, sawNothing, verified}, false, horizon, receipt.ErrContradiction, `judged "absent"`},
		"nothing came of it":        {[]ledger.Event{announced, nobodyTold, sawNothing, notApplied}, false, horizon, nil, ""},
		"it may still land":         {[]ledger.Event{announced, nobodyTold, sawNothing, notApplied}, false, connectors.Within(time.Hour), receipt.ErrNotObserved, "could still have landed"},
		"nobody knows for how long": {[]ledger.Event{announced, nobodyTold, sawNothing, notApplied}, false, connectors.Bound{}, receipt.ErrNotObserved, "could still have landed"},
		"not applied, and seen":     {[]ledger.Event{announced, nobodyTold, sawOne, notApplied}, false, horizon, receipt.ErrNotObserved, `judged "verified"`},
		"not read after":            {[]ledger.Event{announced, nobodyTold, sawNothing, announced, nobodyTold, notApplied}, false, horizon, receipt.ErrNotObserved, "was not read after its last send"},
		"its caller's own":          {[]ledger.Event{{Kind: ledger.EvEntrusted}, sawOne, verified}, true, horizon, receipt.ErrNotObserved, "made by its caller"},
	} {
		t.Run(name, func(t *testing.T) {
			rec, events := lived(t, c.entrusted, c.events...)
			p := connectors.Profile{Destination: "orders", Kind: simulated.Kind, Horizon: c.horizon}
			_, err := receipt.Of(rec, events, p, receipt.Options{Version: version})
			if !errors.Is(err, c.is) || err != nil && !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%v\nwant %v with: %s", err, c.is, c.reason)
			}
		})
	}
}
