package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
)

func TestCheckApproval(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		record func(*ledger.Record) // on top of a held write that "agent" asked for
		event  ledger.Event
		says   string // "": allowed
		is     error
	}{
		"one": {"one reviewer is enough unless more are required",
			nil, ledger.Event{Kind: ledger.EvApproved, By: "ann"}, "", nil},
		"one of one": {"likewise when it is declared",
			func(r *ledger.Record) { r.Need = 1 }, ledger.Event{Kind: ledger.EvApproved, By: "ann"}, "", nil},
		"no name": {"an approval has a name",
			nil, ledger.Event{Kind: ledger.EvApproved}, "name", nil},
		"no name agrees": {"and so has half of one",
			func(r *ledger.Record) { r.Need = 2 }, ledger.Event{Kind: ledger.EvAgreed}, "name", nil},
		"who asked": {"an agent never approves its own write",
			nil, ledger.Event{Kind: ledger.EvApproved, By: "agent"}, "another reviewer", nil},
		"who asked agrees": {"nor is it one of two",
			func(r *ledger.Record) { r.Need = 2 }, ledger.Event{Kind: ledger.EvAgreed, By: "agent"}, "another reviewer", nil},
		"who asked is not known": {"a write without a known requester can be approved by any reviewer",
			func(r *ledger.Record) { r.RequestedBy = "" }, ledger.Event{Kind: ledger.EvApproved, By: "agent"}, "", nil},
		"the first of two": {"two reviewers are two",
			func(r *ledger.Record) { r.Need = 2 }, ledger.Event{Kind: ledger.EvAgreed, By: "ann"}, "", nil},
		"one alone of two": {"one is not enough where two are needed",
			func(r *ledger.Record) { r.Need = 2 }, ledger.Event{Kind: ledger.EvApproved, By: "ann"}, "2 different reviewers", nil},
		"the same twice": {"one reviewer is not two",
			func(r *ledger.Record) { r.Need, r.Agreed = 2, []string{"ann"} }, ledger.Event{Kind: ledger.EvApproved, By: "ann"}, "already", nil},
		"the second of two": {"the second one approves it",
			func(r *ledger.Record) { r.Need, r.Agreed = 2, []string{"ann"} }, ledger.Event{Kind: ledger.EvApproved, By: "bob"}, "", nil},
		"agrees as the last": {"a write must not wait without a reason",
			func(r *ledger.Record) { r.Need, r.Agreed = 2, []string{"ann"} }, ledger.Event{Kind: ledger.EvAgreed, By: "bob"}, "last", nil},
		"agrees alone": {"likewise where one is enough",
			nil, ledger.Event{Kind: ledger.EvAgreed, By: "bob"}, "last", nil},
		"the second of three": {"and so on",
			func(r *ledger.Record) { r.Need, r.Agreed = 3, []string{"ann"} }, ledger.Event{Kind: ledger.EvApproved, By: "bob"}, "number 2", nil},
		"what was seen": {"an approval is for what the reviewer saw",
			nil, ledger.Event{Kind: ledger.EvApproved, By: "ann", Digest: "d1"}, "", nil},
		"something else": {"and for nothing else",
			nil, ledger.Event{Kind: ledger.EvApproved, By: "ann", Digest: "d2"}, "digest d2", nil},
		"in time": {"until the very end",
			func(r *ledger.Record) { r.Due = at.Add(1) }, ledger.Event{Kind: ledger.EvApproved, By: "ann"}, "", nil},
		"too late": {"what was not approved in time is not approved",
			func(r *ledger.Record) { r.Due = at }, ledger.Event{Kind: ledger.EvApproved, By: "ann"}, "over", ledger.ErrExpired},
		"agrees too late": {"half of it neither",
			func(r *ledger.Record) { r.Due, r.Need = at, 2 }, ledger.Event{Kind: ledger.EvAgreed, By: "ann"}, "over", ledger.ErrExpired},
		"without an end": {"a hold without an end never expires",
			func(r *ledger.Record) { r.Due = time.Time{} }, ledger.Event{Kind: ledger.EvApproved, By: "ann"}, "", nil},
		"overdue": {"while it waits it can be approved",
			func(r *ledger.Record) { r.Due, r.Overdue = earlier, true }, ledger.Event{Kind: ledger.EvApproved, By: "ann"}, "", nil},
	} {
		before := inState(ledger.Held)
		before.RequestedBy, before.Digest = "agent", "d1"
		if c.record != nil {
			c.record(&before)
		}
		agreed := slices.Clone(before.Agreed)
		after, err := ledger.Apply(before, c.event, at)
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v; reason: %s", name, err, c.reason)
		case c.says != "" && (!errors.Is(err, ledger.ErrIllegalMove) || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is)):
			t.Errorf("%s: error %v, want an illegal move about %q; reason: %s", name, err, c.says, c.reason)
		case c.says != "" && !cmp.Equal(before, after):
			t.Errorf("%s: the record was changed (-before +after):\n%s", name, cmp.Diff(before, after))
		case !slices.Equal(agreed, before.Agreed):
			t.Errorf("%s: the names of the record as it was were changed", name)
		}
	}
}

// approvalEffects are those of approvals, of delegated writes and of operations.
var approvalEffects = map[string]effect{
	"held": {
		"a hold has an end, and says how many must agree",
		func(r *ledger.Record) { r.QueuedBehind, r.Agreed, r.Overdue = "wr_0", []string{"old"}, true },
		ledger.Queued, ledger.Event{Kind: ledger.EvHeld, Need: 2, In: time.Hour, Rule: "risk", Reason: "dear"},
		func(r *ledger.Record) {
			r.State, r.Need, r.Due, r.QueuedBehind, r.Agreed, r.Overdue = ledger.Held, 2, at.Add(time.Hour), "", nil, false
			r.Owner, r.LeaseUntil, r.Rule, r.Reason = "", time.Time{}, "risk", "dear"
		}},
	"held for ever": {
		"without an end no worker is woken", nil, ledger.Queued, ledger.Event{Kind: ledger.EvHeld},
		func(r *ledger.Record) {
			r.State, r.Due, r.Owner, r.LeaseUntil = ledger.Held, time.Time{}, "", time.Time{}
		}},
	"agreed": {
		"one of several does not approve it, does not begin the time anew, and is not why it is held",
		func(r *ledger.Record) { r.Need, r.Agreed, r.Rule, r.Reason = 3, []string{"ann"}, "risk", "dear" },
		ledger.Held, ledger.Event{Kind: ledger.EvAgreed, By: "bob", Reason: "fine", Rule: "x"},
		func(r *ledger.Record) { r.Agreed, r.Owner, r.LeaseUntil = []string{"ann", "bob"}, "", time.Time{} }},
	"approved": {
		"it is work at once, and the names are kept", nil, ledger.Held, ledger.Event{Kind: ledger.EvApproved, By: "ann", Reason: "fine"},
		func(r *ledger.Record) {
			r.State, r.Agreed, r.QueuedAt, r.Due, r.Reason = ledger.Queued, []string{"ann"}, at, at, "fine"
		}},
	"approved, delegated": {
		"its caller has to ask again: it is no worker's work",
		func(r *ledger.Record) { r.Delegated = true }, ledger.Held, ledger.Event{Kind: ledger.EvApproved, By: "ann"},
		func(r *ledger.Record) {
			r.State, r.Agreed, r.QueuedAt, r.Due = ledger.Delegated, []string{"ann"}, at, time.Time{}
			r.Owner, r.LeaseUntil = "", time.Time{}
		}},
	"overdue": {
		"it waits for ever unless the event has a time", nil, ledger.Held, ledger.Event{Kind: ledger.EvOverdue, Reason: "told"},
		func(r *ledger.Record) {
			r.Overdue, r.Due, r.Owner, r.LeaseUntil, r.Reason = true, time.Time{}, "", time.Time{}, "told"
		}},
	"overdue again": {
		"and it is due again at the time of the event", nil, ledger.Held, ledger.Event{Kind: ledger.EvOverdue, In: time.Hour},
		func(r *ledger.Record) {
			r.Overdue, r.Due, r.Owner, r.LeaseUntil = true, at.Add(time.Hour), "", time.Time{}
		}},
	"expired": {
		"an end of its own: nothing was sent, and no reviewer refused it", nil, ledger.Held,
		ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Expired},
		func(r *ledger.Record) {
			r.State, r.Settlement, r.SettledAt, r.LeftQueue = ledger.Settled, ledger.Expired, at, true
			r.Due, r.Owner, r.LeaseUntil = time.Time{}, "", time.Time{}
		}},
	"delegated": {
		"it has no owner, and it is never due",
		func(r *ledger.Record) { r.Delegated = true }, ledger.Queued, ledger.Event{Kind: ledger.EvDelegated, By: "agent"},
		func(r *ledger.Record) {
			r.State, r.Due, r.Owner, r.LeaseUntil = ledger.Delegated, time.Time{}, "", time.Time{}
		}},
	"reported": {
		"its caller reports it as done", nil, ledger.Delegated,
		ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Reported, By: "agent"},
		func(r *ledger.Record) {
			r.State, r.Settlement, r.SettledAt, r.LeftQueue = ledger.Settled, ledger.Reported, at, true
			r.Due, r.Owner, r.LeaseUntil = time.Time{}, "", time.Time{}
		}},
	"yielded": {
		"letting the operation go changes nothing else about the write: not why it is in review, not who works on it",
		func(r *ledger.Record) { r.Rule, r.Reason = "horizon", "it is unknown" }, ledger.Review,
		ledger.Event{Kind: ledger.EvYielded, By: "ann", Rule: "override", Reason: "made by hand"},
		func(r *ledger.Record) { r.Yielded = true }},
	"undone later": {
		"a settled write that is undone is open again, and delays no other write in its queue",
		func(r *ledger.Record) { r.LeftQueue, r.KeyDigest, r.Due = true, "k", time.Time{} }, ledger.Settled,
		ledger.Event{Kind: ledger.EvCompensating, By: "ann", Child: "wr_2", Evidence: []byte("1")},
		func(r *ledger.Record) {
			r.State, r.Settlement, r.SettledAt, r.Child, r.ChildIntent, r.Due = ledger.Compensating, "", time.Time{}, "wr_2", []byte("1"), at
		}},
}

func TestDelegatedRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		record func(*ledger.Record)
		state  ledger.State
		event  ledger.Event
		says   string
	}{
		"announced": {"what its caller makes is never sent from here",
			func(r *ledger.Record) { r.Delegated = true }, ledger.Queued, ledger.Event{Kind: ledger.EvAnnounced}, "never sent"},
		"put back": {"nor is it any worker's work",
			func(r *ledger.Record) { r.Delegated = true }, ledger.Review, ledger.Event{Kind: ledger.EvDeferred}, "never sent"},
		"directed": {"nor can a reviewer have it sent",
			func(r *ledger.Record) { r.Delegated = true }, ledger.Review, ledger.Event{Kind: ledger.EvDirected, By: "p", Reason: "r"}, "never sent"},
		"undone": {"nor to undo it",
			func(r *ledger.Record) { r.Delegated = true }, ledger.Settled, ledger.Event{Kind: ledger.EvCompensating, By: "p", Child: "wr_2"}, "undone from here"},
		"released": {"a write of ours is not its caller's",
			nil, ledger.Queued, ledger.Event{Kind: ledger.EvDelegated}, "reserved for its caller"},
		"reported": {"nor does what a caller says settle it",
			nil, ledger.Checking, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Reported, By: "agent"}, "delegated"},
		"reported in review": {"what a reviewer has before them is not settled by the caller's word",
			func(r *ledger.Record) { r.Delegated = true }, ledger.Review, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Reported, By: "agent"}, "delegated"},
		"reported without a name": {"a reporter has a name",
			nil, ledger.Delegated, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Reported}, "name"},
		"expired when it was sent": {"expired promises that nothing was sent",
			nil, ledger.Checking, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Expired}, "held"},
		"expired when delegated": {"or made",
			nil, ledger.Delegated, ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Expired}, "held"},
		"yielded without a name": {"an override has a name",
			nil, ledger.Review, ledger.Event{Kind: ledger.EvYielded, Reason: "r"}, "name"},
		"yielded without a reason": {"and a reason",
			nil, ledger.Review, ledger.Event{Kind: ledger.EvYielded, By: "p"}, "reason"},
		"undone without a name": {"an undo has a name",
			nil, ledger.Settled, ledger.Event{Kind: ledger.EvCompensating, Child: "wr_2"}, "name"},
		"undone and never verified": {"what is not known to have been done cannot be undone",
			func(r *ledger.Record) { r.Settlement = ledger.Accepted }, ledger.Settled, ledger.Event{Kind: ledger.EvCompensating, By: "p", Child: "wr_2"}, "verified"},
	} {
		before := inState(c.state)
		if c.record != nil {
			c.record(&before)
		}
		after, err := ledger.Apply(before, c.event, at)
		if !errors.Is(err, ledger.ErrIllegalMove) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one about %q; reason: %s", name, err, c.says, c.reason)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s: the record was changed (-before +after):\n%s", name, diff)
		}
	}
}

// Two decisions about one record as it was read do not write into each other's names.
func TestAgreedIsNotShared(t *testing.T) {
	held := inState(ledger.Held)
	held.Need, held.Agreed = 3, append(make([]string, 0, 8), "ann")
	first, err := ledger.Apply(held, ledger.Event{Kind: ledger.EvAgreed, By: "bob"}, at)
	if err != nil {
		t.Fatal(err)
	}
	held.Need = 2
	for _, by := range []string{"carl", "dora"} {
		last, err := ledger.Apply(held, ledger.Event{Kind: ledger.EvApproved, By: by}, at)
		if err != nil || !slices.Equal(first.Agreed, []string{"ann", "bob"}) || !slices.Equal(last.Agreed, []string{"ann", by}) {
			t.Errorf("error %v: %v, then %v", err, first.Agreed, last.Agreed)
		}
	}
	one, _ := ledger.Apply(held, ledger.Event{Kind: ledger.EvApproved, By: "one"}, at)
	_, _ = ledger.Apply(held, ledger.Event{Kind: ledger.EvApproved, By: "two"}, at)
	if !slices.Equal(one.Agreed, []string{"ann", "one"}) {
		t.Errorf("agreed %v: it contains another actor's name", one.Agreed)
	}
}
