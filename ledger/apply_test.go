package ledger_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
)

// at is when the events of these tests happen.
var at = time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)

// legal is the whole table of moves, written a second time: for each kind of event a letter per
// state, in the order none, held, queued, sending, checking, compensating, review, settled. A
// dash is a refused move; the letter is the first of the state that it leads to (M for
// compensating).
var legal = map[ledger.EventKind]string{
	//                     nhqescMrS
	ledger.EvReserved:     "q--------",
	ledger.EvFreed:        "--q------",
	ledger.EvHeld:         "--h------",
	ledger.EvAgreed:       "-h-------",
	ledger.EvOverdue:      "-h-------",
	ledger.EvApproved:     "-q-------",
	ledger.EvDelegated:    "--ee-----",
	ledger.EvYielded:      "--qe-c-rS",
	ledger.EvRead:         "--qe-cMrS",
	ledger.EvAnnounced:    "--s--s---",
	ledger.EvSent:         "----c----",
	ledger.EvRecovered:    "----c----",
	ledger.EvRestored:     "-qc--c-r-",
	ledger.EvDeferred:     "--q--cMrS",
	ledger.EvEscalated:    "--rr-rrrr",
	ledger.EvDirected:     "-------c-",
	ledger.EvCompensating: "-----M--M",
	ledger.EvSettled:      "-SSS-SSS-",
	ledger.EvRechecked:    "--------S",
	ledger.EvLate:         "-hqescMrS",
}

var (
	order   = []ledger.State{"", ledger.Held, ledger.Queued, ledger.Delegated, ledger.Sending, ledger.Checking, ledger.Compensating, ledger.Review, ledger.Settled}
	letters = map[byte]ledger.State{
		'h': ledger.Held, 'q': ledger.Queued, 'e': ledger.Delegated, 's': ledger.Sending, 'c': ledger.Checking,
		'M': ledger.Compensating, 'r': ledger.Review, 'S': ledger.Settled,
	}
)

// inState returns a record that could be in a state.
func inState(s ledger.State) ledger.Record {
	r := ledger.Record{
		ID: "wr_1", Tenant: "a", State: s, Seq: 7, Fence: 3, Owner: "one", LeaseUntil: at.Add(time.Minute), LeaseFor: time.Minute,
		Reads: 1, Created: at.Add(-time.Hour), Updated: at.Add(-time.Minute), Due: at.Add(-time.Hour),
	}
	switch s {
	case "":
		return ledger.Record{ID: "wr_1", Tenant: "a"}
	case ledger.Held:
		r.Due = at.Add(time.Hour)
	case ledger.Delegated:
		r.Delegated = true
	case ledger.Settled:
		r.Settlement, r.SettledAt = ledger.Verified, at.Add(-time.Minute)
	}
	return r
}

// proper returns an event of a kind with all required fields.
func proper(kind ledger.EventKind, s ledger.State) ledger.Event {
	e := ledger.Event{Kind: kind, By: "ann", Reason: "reason", Child: "wr_2", Settlement: ledger.Verified, LostFrom: earlier, LostUntil: at}
	if s == ledger.Held {
		e.Settlement = ledger.Denied
	}
	return e
}

func TestMoves(t *testing.T) {
	for kind, row := range legal {
		for i, s := range order {
			before := inState(s)
			switch kind {
			case ledger.EvDelegated:
				before.Delegated = true
			case ledger.EvAgreed:
				before.Need = 2
			}
			after, err := ledger.Apply(before, proper(kind, s), at)
			if row[i] == '-' {
				if !errors.Is(err, ledger.ErrIllegalMove) {
					t.Errorf("%s when %q: error %v, want an illegal move", kind, s, err)
				}
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("%s when %q was refused and changed the record (-before +after):\n%s", kind, s, diff)
				}
				continue
			}
			if err != nil || after.State != letters[row[i]] {
				t.Errorf("%s when %q: state %q, error %v; want %q", kind, s, after.State, err, letters[row[i]])
			}
			if after.Seq != before.Seq+1 || !after.Updated.Equal(at) || !after.Now.Equal(at) {
				t.Errorf("%s when %q: seq %d, updated %s, now %s", kind, s, after.Seq, after.Updated, after.Now)
			}
		}
	}
	if _, err := ledger.Apply(inState(ledger.Queued), ledger.Event{Kind: "invented"}, at); !errors.Is(err, ledger.ErrIllegalMove) {
		t.Errorf("unknown kind: error %v", err)
	}
}

func TestRefusals(t *testing.T) {
	with := func(kind ledger.EventKind, change func(*ledger.Event)) ledger.Event {
		e := proper(kind, ledger.Queued)
		change(&e)
		return e
	}
	settle := func(how ledger.Status) ledger.Event {
		return with(ledger.EvSettled, func(e *ledger.Event) { e.Settlement = how })
	}
	for name, c := range map[string]struct {
		reason string
		state  ledger.State
		event  ledger.Event
		says   string
	}{
		"future": {
			"an event that has not happened yet would shorten a horizon", ledger.Sending,
			with(ledger.EvSent, func(e *ledger.Event) { e.Ago = -1 }), "future"},
		"settled without a word": {
			"a forgotten field must never read as success", ledger.Checking, settle(""), "settlement"},
		"settled with another word": {
			"only words that readers know may end a write", ledger.Checking, settle("done"), "settlement"},
		"denied and not held": {
			"denied promises that nothing was sent", ledger.Review, settle(ledger.Denied), "held"},
		"held and verified": {
			"a held write was not sent", ledger.Held, settle(ledger.Verified), "approved, denied or expire"},
		"held and not applied": {
			"expired is not rejected", ledger.Held, settle(ledger.NotApplied), "approved, denied or expire"},
		"accepted without a name": {
			"responsibility has a name", ledger.Review,
			with(ledger.EvSettled, func(e *ledger.Event) { e.Settlement, e.By = ledger.Accepted, "" }), "name"},
		"abandoned without a name": {
			"responsibility has a name", ledger.Review,
			with(ledger.EvSettled, func(e *ledger.Event) { e.Settlement, e.By = ledger.Abandoned, "" }), "name"},
		"approved without a name": {
			"an approval has a name", ledger.Held,
			with(ledger.EvApproved, func(e *ledger.Event) { e.By = "" }), "name"},
		"compensating with nothing": {
			"a parent that waits for no child waits for ever", ledger.Checking,
			with(ledger.EvCompensating, func(e *ledger.Event) { e.Child = "" }), "compensating write"},
		"directed without a name": {
			"a decision has a name", ledger.Review,
			with(ledger.EvDirected, func(e *ledger.Event) { e.By = "" }), "name"},
		"directed without a reason": {
			"a decision has a reason", ledger.Review,
			with(ledger.EvDirected, func(e *ledger.Event) { e.Reason = "" }), "reason"},
		"prepared with another event": {
			"only what is announced is sent", ledger.Queued, with(ledger.EvDeferred, func(e *ledger.Event) { e.Prepared = []byte("x") }), "prepared"},
		"prepared by a second first call": {
			"a repeat sends what the first prepared", ledger.Sending, with(ledger.EvPrepared, func(e *ledger.Event) { e.Prepared = nil }), "prepared once"},
		"prepared again": {
			"every send is the same as the first", ledger.Checking, with(ledger.EvAnnounced, func(e *ledger.Event) { e.Generation, e.Prepared = 2, []byte("x") }), "prepared"},
		"an older generation": {
			"a key once given up is never used again", ledger.Queued,
			with(ledger.EvAnnounced, func(e *ledger.Event) { e.Generation = 1 }), "generation"},
	} {
		before := inState(c.state)
		before.Generation, before.Sends = 2, 1
		after, err := ledger.Apply(before, c.event, at)
		if !errors.Is(err, ledger.ErrIllegalMove) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one about %q; reason: %s", name, err, c.says, c.reason)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s: the record was changed (-before +after):\n%s", name, diff)
		}
	}
	unread := inState(ledger.Checking)
	unread.Reads = 0
	if _, err := ledger.Apply(unread, settle(ledger.Verified), at); !errors.Is(err, ledger.ErrIllegalMove) {
		t.Errorf("verified without a read: error %v; reason: verified means seen", err)
	}
}

// earlier is before all of it.
var earlier = at.Add(-time.Hour)

// effect is what an event does beyond the change of state.
type effect struct {
	reason string
	before func(*ledger.Record)
	state  ledger.State
	event  ledger.Event
	want   func(*ledger.Record) // on top of before
}

var effects = map[string]effect{
	"first send": {
		"from the announcement on, the send may be under way until its time is up",
		nil, ledger.Queued, ledger.Event{Kind: ledger.EvAnnounced, SendFor: time.Minute},
		func(r *ledger.Record) {
			r.State, r.Sends, r.Due = ledger.Sending, 1, at
			r.FirstSend, r.KeySend, r.LastSend = at, at, at.Add(time.Minute)
		}},
	"second send, same key": {
		"the window of a key runs from its first send",
		func(r *ledger.Record) {
			r.Sends, r.FirstSend, r.KeySend, r.LastSend = 1, earlier, earlier, earlier
			r.LastFate, r.Directed, r.Answered = ledger.FateAnswered, "retry", true
			r.LastConflict, r.LastRefusal, r.RetryAfter = true, "no", time.Second
		},
		ledger.Checking, ledger.Event{Kind: ledger.EvAnnounced, SendFor: time.Minute, NeedsRecheck: true},
		func(r *ledger.Record) {
			r.State, r.Sends, r.Due, r.Directed, r.LastFate = ledger.Sending, 2, at, "", ledger.FateUnknown
			r.LastConflict, r.LastRefusal, r.RetryAfter = false, "", 0
			r.LastSend, r.NeedsRecheck = at.Add(time.Minute), true
		}},
	"second send, next key": {
		"a new key has a window of its own",
		func(r *ledger.Record) { r.Sends, r.FirstSend, r.KeySend = 1, earlier, earlier },
		ledger.Checking, ledger.Event{Kind: ledger.EvAnnounced, Generation: 1},
		func(r *ledger.Record) {
			r.State, r.Sends, r.Due, r.Generation = ledger.Sending, 2, at, 1
			r.KeySend, r.LastSend = at, at
		}},
	"sent": {
		"when the send ended, the horizon begins; it ended before it was recorded",
		func(r *ledger.Record) { r.LastSend = at.Add(time.Minute) },
		ledger.Sending, ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Ago: 2 * time.Second, Ref: "17", URL: "u", Version: "v"},
		func(r *ledger.Record) {
			r.State, r.LastFate, r.Answered, r.LastSend = ledger.Checking, ledger.FateAnswered, true, at.Add(-2*time.Second)
			r.Ref, r.URL, r.Version = "17", "u", "v"
		}},
	"sent, by a clock that jumped": {
		"a send does not end before it was announced, or the horizon would be over too early",
		nil, ledger.Sending, ledger.Event{Kind: ledger.EvSent, Ago: 24 * time.Hour},
		func(r *ledger.Record) { r.State, r.Unknown, r.LastSend = ledger.Checking, true, r.Updated }},
	"sent, refused after unknown": {
		"a later definite failure does not erase an earlier send of unknown fate",
		func(r *ledger.Record) { r.Unknown = true },
		ledger.Sending, ledger.Event{Kind: ledger.EvSent, Fate: "refused"},
		func(r *ledger.Record) { r.State, r.LastFate, r.LastSend = ledger.Checking, "refused", at }},
	"sent, a conflict": {
		"what the destination answered when it did not accept is kept until the next send",
		nil, ledger.Sending, ledger.Event{Kind: ledger.EvSent, Fate: "refused", Conflict: true, Reason: "409", RetryAfter: time.Second},
		func(r *ledger.Record) {
			r.State, r.LastFate, r.LastSend, r.Reason = ledger.Checking, "refused", at, "409"
			r.LastConflict, r.LastRefusal, r.RetryAfter = true, "409", time.Second
		}},
	"not sent": {
		"a send that was not taken up does not count against the budget of sends, but it was announced",
		func(r *ledger.Record) { r.Sends = 1 }, ledger.Sending, ledger.Event{Kind: ledger.EvSent, Fate: "not_sent"},
		func(r *ledger.Record) { r.State, r.LastFate, r.LastSend, r.Unsent = ledger.Checking, "not_sent", at, 1 }},
	"recovered": {
		"what was announced by a worker that died may have been sent",
		func(r *ledger.Record) { r.LastFate, r.LastSend = "x", at.Add(time.Second) },
		ledger.Sending, ledger.Event{Kind: ledger.EvRecovered},
		func(r *ledger.Record) { r.State, r.LastFate, r.Unknown = ledger.Checking, "", true }},
	"restored": {
		"it may have been sent first when the missing time began, and last when it ended",
		func(r *ledger.Record) { r.LastFate, r.LastConflict, r.Directed = "refused", true, "retry" },
		ledger.Checking, ledger.Event{Kind: ledger.EvRestored, LostFrom: earlier, LostUntil: at.Add(-time.Minute)},
		func(r *ledger.Record) {
			r.Sends, r.Unknown, r.LastFate, r.LastConflict, r.Due = 1, true, "", false, at
			r.FirstSend, r.KeySend, r.LastSend, r.Restored = earlier, earlier, at.Add(-time.Minute), at.Add(-time.Minute)
		}},
	"restored, sent since": {
		"no send is known that the missing time does not precede",
		func(r *ledger.Record) {
			r.Sends, r.FirstSend, r.KeySend, r.LastSend, r.Answered = 1, at.Add(-time.Hour), at.Add(-time.Hour), at.Add(-time.Minute), true
		},
		ledger.Checking, ledger.Event{Kind: ledger.EvRestored, LostFrom: at.Add(-2 * time.Hour), LostUntil: at.Add(-30 * time.Minute)},
		func(r *ledger.Record) {
			r.Sends, r.Unknown, r.Due, r.Restored = 2, true, at, at.Add(-30*time.Minute)
			r.FirstSend, r.KeySend = at.Add(-2*time.Hour), at.Add(-2*time.Hour)
		}},
	"restored again": {
		"one send is counted for one missing time",
		func(r *ledger.Record) {
			r.Sends, r.Unknown, r.FirstSend, r.KeySend, r.LastSend, r.Restored = 1, true, earlier, earlier, at, at
		},
		ledger.Queued, ledger.Event{Kind: ledger.EvRestored, LostFrom: at, LostUntil: at},
		func(r *ledger.Record) { r.State, r.Due = ledger.Checking, at }},
	"restored, held": {
		"approvals are lost with the rest, and it is read in its place in the queue",
		func(r *ledger.Record) { r.Need, r.Agreed = 2, []string{"bob"} },
		ledger.Held, ledger.Event{Kind: ledger.EvRestored, LostFrom: earlier, LostUntil: at, QueuedBehind: "wr_9"},
		func(r *ledger.Record) {
			r.State, r.Need, r.Agreed, r.QueuedBehind, r.QueuedAt, r.Due = ledger.Queued, 0, nil, "wr_9", at, time.Time{}
			r.Owner, r.LeaseUntil = "", time.Time{}
			r.Sends, r.Unknown, r.FirstSend, r.KeySend, r.LastSend, r.Restored = 1, true, earlier, earlier, at, at
		}},
	"restored, a next key": {
		"its window runs from the missing time: it may have been used then",
		func(r *ledger.Record) {
			r.Sends, r.Unknown, r.FirstSend, r.KeySend, r.LastSend, r.Restored = 1, true, earlier, earlier, at, at
		},
		ledger.Checking, ledger.Event{Kind: ledger.EvAnnounced, Generation: 1, Prepared: []byte("p")},
		func(r *ledger.Record) {
			r.State, r.Sends, r.Due, r.Generation, r.Prepared = ledger.Sending, 2, at, 1, []byte("p")
		}},
	"pre-state": {
		"what was there before is kept apart from what was found after",
		nil, ledger.Queued, ledger.Event{Kind: ledger.EvRead, Before: true, Evidence: json.RawMessage("1"), Mismatches: json.RawMessage("2")},
		func(r *ledger.Record) { r.Reads, r.Before = 2, json.RawMessage("1") }},
	"reads in a row": {
		"reads with the same result are one event and count as many",
		nil, ledger.Checking, ledger.Event{Kind: ledger.EvRead, Count: 5, Verdict: "absent", Evidence: json.RawMessage("1"), Mismatches: json.RawMessage("2")},
		func(r *ledger.Record) {
			r.Reads, r.Verdict, r.Evidence, r.Mismatches = 6, "absent", json.RawMessage("1"), json.RawMessage("2")
			r.FirstRead = at
		}},
	"deferred": {
		"a record that is put back has no owner", nil, ledger.Checking, ledger.Event{Kind: ledger.EvDeferred, In: time.Minute, Reason: "wait"},
		func(r *ledger.Record) {
			r.Owner, r.LeaseUntil, r.Due, r.Reason = "", time.Time{}, at.Add(time.Minute), "wait"
		}},
	"deferred at once": {
		"a record put back for no time is due now, not never", nil, ledger.Checking, ledger.Event{Kind: ledger.EvDeferred},
		func(r *ledger.Record) { r.Owner, r.LeaseUntil, r.Due = "", time.Time{}, at }},
	"settled": {
		"a settled write rests", func(r *ledger.Record) { r.Directed = "retry" },
		ledger.Checking, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.NotApplied, Rule: "r"},
		func(r *ledger.Record) {
			r.State, r.Settlement, r.SettledAt, r.Directed, r.Rule, r.LeftQueue = ledger.Settled, ledger.NotApplied, at, "", "r", true
			r.Owner, r.LeaseUntil, r.Due = "", time.Time{}, time.Time{}
		}},
	"settled, recheck pending": {
		"a recheck that is pending has a due time", nil,
		ledger.Checking, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, In: time.Hour},
		func(r *ledger.Record) {
			r.LeftQueue = true
			r.State, r.Settlement, r.SettledAt = ledger.Settled, ledger.Verified, at
			r.Owner, r.LeaseUntil, r.Due = "", time.Time{}, at.Add(time.Hour)
			r.RecheckUntil = at.Add(time.Hour)
		}},
	"settled, two rechecks pending": {
		"it is known until when the outcome can change", nil,
		ledger.Checking, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, In: time.Hour, Until: 24 * time.Hour},
		func(r *ledger.Record) {
			r.LeftQueue = true
			r.State, r.Settlement, r.SettledAt = ledger.Settled, ledger.Verified, at
			r.Owner, r.LeaseUntil, r.Due = "", time.Time{}, at.Add(time.Hour)
			r.RecheckUntil = at.Add(24 * time.Hour)
		}},
	"recheck put off": {
		"the last recheck is as late as the next", func(r *ledger.Record) { r.RecheckUntil = at.Add(time.Minute) },
		ledger.Settled, ledger.Event{Kind: ledger.EvDeferred, In: time.Hour},
		func(r *ledger.Record) {
			r.Owner, r.LeaseUntil, r.Due, r.RecheckUntil = "", time.Time{}, at.Add(time.Hour), at.Add(time.Hour)
		}},
	"read, unproven": {
		"reads that prove nothing are counted", func(r *ledger.Record) { r.Unproven = 2 },
		ledger.Checking, ledger.Event{Kind: ledger.EvRead, Count: 3, Unproven: true},
		func(r *ledger.Record) { r.Reads, r.FirstRead, r.Unproven = 4, at, 5 }},
	"read, proven": {
		"until one proves something", func(r *ledger.Record) { r.Unproven = 2 },
		ledger.Checking, ledger.Event{Kind: ledger.EvRead, Verdict: "absent"},
		func(r *ledger.Record) { r.Reads, r.Verdict, r.FirstRead, r.Unproven = 2, "absent", at, 0 }},
	"rechecked": {
		"a recheck that agrees leaves the settlement alone", nil, ledger.Settled, ledger.Event{Kind: ledger.EvRechecked},
		func(r *ledger.Record) { r.Owner, r.LeaseUntil, r.Due = "", time.Time{}, time.Time{} }},
	"reopened": {
		"a settled write that is doubted is settled no longer", nil, ledger.Settled, ledger.Event{Kind: ledger.EvEscalated},
		func(r *ledger.Record) {
			r.State, r.Settlement, r.SettledAt = ledger.Review, "", time.Time{}
			r.Owner, r.LeaseUntil, r.Due = "", time.Time{}, time.Time{}
		}},
	"directed": {
		"a reviewer's decision is work at once", nil, ledger.Review, ledger.Event{Kind: ledger.EvDirected, By: "p", Reason: "q", Directed: "retry"},
		func(r *ledger.Record) { r.State, r.Directed, r.Due, r.Reason = ledger.Checking, "retry", at, "q" }},
	"compensating": {
		"the parent names its child", func(r *ledger.Record) { r.Directed = "compensate" },
		ledger.Checking, ledger.Event{Kind: ledger.EvCompensating, Child: "wr_2", Evidence: json.RawMessage("1")},
		func(r *ledger.Record) {
			r.State, r.Child, r.ChildIntent, r.Directed, r.Due = ledger.Compensating, "wr_2", json.RawMessage("1"), "", at
		}},
	"late": {
		"evidence of a past holder decides nothing", nil, ledger.Checking,
		ledger.Event{Kind: ledger.EvLate, Fate: ledger.FateAnswered, Verdict: "verified", Ref: "1", Reason: "r", Rule: "r", Evidence: json.RawMessage("1")},
		func(*ledger.Record) {}},
}

func TestEffects(t *testing.T) {
	for _, all := range []map[string]effect{effects, approvalEffects} {
		for name, c := range all {
			before := inState(c.state)
			if c.before != nil {
				c.before(&before)
			}
			want := before
			c.want(&want)
			want.Seq, want.Updated, want.Now = before.Seq+1, at, at
			got, err := ledger.Apply(before, c.event, at)
			if err != nil {
				t.Errorf("%s: %v; reason: %s", name, err, c.reason)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s\nreason: %s", name, diff, c.reason)
			}
		}
	}
}

// What the first call of a send made is kept for all sends, and no worker replaces it.
func TestPreparedOnce(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	event := func(text string) ledger.Event {
		return ledger.Event{Kind: ledger.EvPrepared, Prepared: []byte(text)}
	}
	r, err := ledger.Apply(ledger.Record{ID: "wr_1", State: ledger.Sending, Sends: 1}, event("draft 1"), now)
	if err != nil || r.State != ledger.Sending || string(r.Prepared) != "draft 1" {
		t.Fatalf("%v: %s with %q", err, r.State, r.Prepared)
	}
	if _, err := ledger.Apply(r, event("draft 2"), now); err == nil || !strings.Contains(err.Error(), "prepared once") {
		t.Errorf("%v; want it refused", err)
	}
}

// The ledger reads the queue once per append, for a write that was held before it.
func TestPlaceOfAWriteHeldByThisAppend(t *testing.T) {
	rec, _, err := ledger.Begin(ledger.Reservation{Record: ledger.Record{ID: ledger.IDOf(strings.Repeat("0", 64)), StructuralKey: strings.Repeat("0", 64), KeyDigest: "d", Tenant: "a", Intent: []byte("{}")}}, "", at)
	if err != nil {
		t.Fatal(err)
	}
	held := ledger.Event{Kind: ledger.EvHeld, Need: 1}
	for _, join := range []ledger.Event{
		{Kind: ledger.EvApproved, By: "ada"},
		{Kind: ledger.EvRestored, LostFrom: at, LostUntil: at},
	} {
		if after, _, err := ledger.Advance(rec, rec.Fence, []ledger.Event{held, join}, at); !errors.Is(err, ledger.ErrIllegalMove) {
			t.Errorf("held and %s in one append: %s, %v", join.Kind, after.State, err)
		}
		one, _, err := ledger.Advance(rec, rec.Fence, []ledger.Event{held}, at)
		if err != nil {
			t.Fatal(err)
		}
		if two, _, err := ledger.Advance(one, one.Fence, []ledger.Event{join}, at); err != nil || !two.InQueue() {
			t.Errorf("held, then %s: %s, %v", join.Kind, two.State, err)
		}
	}
}
