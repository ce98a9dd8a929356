package ledger

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
)

// moves is the table of legal moves: for each kind of event, the states in which it is legal and
// the state it leads to ("" keeps the state).
var moves = map[EventKind]struct {
	from []State
	to   State
}{
	EvReserved:     {[]State{""}, Queued},
	EvFreed:        {[]State{Queued}, ""},
	EvHeld:         {[]State{Queued, Checking}, Held},
	EvAgreed:       {[]State{Held}, ""},
	EvOverdue:      {[]State{Held}, ""},
	EvApproved:     {[]State{Held}, Queued},
	EvDelegated:    {[]State{Queued, Delegated}, Delegated},
	EvYielded:      {[]State{Queued, Checking, Delegated, Review, Settled}, ""},
	EvRead:         {[]State{Queued, Delegated, Checking, Compensating, Review, Settled}, ""},
	EvAnnounced:    {[]State{Queued, Checking}, Sending},
	EvPrepared:     {[]State{Sending}, ""},
	EvSent:         {[]State{Sending}, Checking},
	EvRecovered:    {[]State{Sending}, Checking},
	EvRestored:     {[]State{Held, Queued, Checking, Review}, ""},
	EvDeferred:     {[]State{Queued, Checking, Compensating, Review, Settled}, ""},
	EvEscalated:    {[]State{Queued, Delegated, Checking, Compensating, Review, Settled}, Review},
	EvDirected:     {[]State{Review}, Checking},
	EvCompensating: {[]State{Checking, Settled}, Compensating},
	EvSettled:      {[]State{Held, Queued, Delegated, Checking, Compensating, Review}, Settled},
	EvRechecked:    {[]State{Settled}, ""},
	EvLate:         {[]State{Held, Queued, Delegated, Sending, Checking, Compensating, Review, Settled}, ""},
}

// Apply returns the record after one event at the time now. It is pure and defines what every
// event means. An illegal event leaves the record unchanged; its error wraps [ErrIllegalMove].
func Apply(r Record, e Event, now time.Time) (Record, error) {
	m, ok := moves[e.Kind]
	if !ok {
		return r, fmt.Errorf("%w: write %s: unknown kind of event %q", ErrIllegalMove, r.ID, e.Kind)
	}
	if !slices.Contains(m.from, r.State) {
		return r, fmt.Errorf("%w: write %s: %q is not legal when %q", ErrIllegalMove, r.ID, e.Kind, r.Phase())
	}
	if err := cmp.Or(check(r, e), checkApproval(r, e, now)); err != nil {
		return r, fmt.Errorf("%w: write %s: %w", ErrIllegalMove, r.ID, err)
	}
	next := r
	if m.to != "" {
		next.State = m.to
	}
	if e.Kind != EvLate { // evidence of a past lease holder decides nothing
		next = note(next, e)
		next = effect(next, e, now)
	}
	next.Seq++
	next.Updated, next.Now = now, now
	return next, nil
}

// check refuses events that contradict themselves or the record. It does not check the state.
func check(r Record, e Event) error {
	switch {
	case r.Erased != "" && e.Kind == EvLate: // it would restore contents
		return fmt.Errorf("its contents were erased, and late evidence is not kept")
	case r.Tombstone && e.Kind != EvLate && e.Kind != EvYielded: // its operation is still taken
		return fmt.Errorf("it was pruned, and what it asked for is no longer known")
	case e.Ago < 0:
		return fmt.Errorf("%q lies in the future (ago %s)", e.Kind, e.Ago)
	case e.Kind == EvSettled && !slices.Contains(settlements, e.Settlement):
		return fmt.Errorf("settled needs a settlement, one of %v, not %q", settlements, e.Settlement)
	case e.Kind == EvHeld && r.State == Checking && r.Restored.IsZero():
		return fmt.Errorf("what may have been sent is not held")
	case e.Kind == EvRestored && (e.LostUntil.IsZero() || e.LostUntil.Before(e.LostFrom)):
		return fmt.Errorf("missing history lasts from a moment until a later one, not from %s until %s", e.LostFrom, e.LostUntil)
	case r.Delegated && slices.Contains([]EventKind{EvAnnounced, EvRestored, EvDirected, EvCompensating, EvDeferred}, e.Kind):
		return fmt.Errorf("its caller makes the write itself; it is never sent or undone from here")
	case e.Kind == EvDelegated && !r.Delegated:
		return fmt.Errorf("only what was reserved for its caller can be delegated to it")
	case e.Kind == EvYielded && (e.By == "" || e.Reason == ""):
		return fmt.Errorf("releasing a business operation needs the operator's name and a reason")
	case e.Kind == EvCompensating && r.State == Settled && (r.Settlement != Verified || e.By == ""):
		return fmt.Errorf("a settled write can be undone only when it is verified, by an actor with a name")
	case e.Kind == EvSettled && e.Settlement == Reported && !reportable(r, e):
		return fmt.Errorf("only a delegated write is settled by the report of its caller, who has a name, and only an answered one by the destination's answer")
	case e.Kind == EvSettled && (e.Settlement == Denied || e.Settlement == Expired) && r.State != Held:
		return fmt.Errorf("only a held write can be denied, or expire")
	case e.Kind == EvSettled && r.State == Held && e.Settlement != Denied && e.Settlement != Expired:
		return fmt.Errorf("a held write can only be approved, denied or expire")
	case e.Kind == EvEscalated && !r.Delegated && (r.Settlement == Denied || r.Settlement == Expired):
		return fmt.Errorf("it was %s; from review it could be sent without the approval that it never had", r.Settlement)
	case e.Kind == EvSettled && e.Settlement == Verified && r.Reads == 0:
		return fmt.Errorf("settled as verified without a read")
	case e.Kind == EvSettled && slices.Contains([]Status{Accepted, Abandoned, Denied}, e.Settlement) && e.By == "":
		return fmt.Errorf("settled as %s needs the reviewer's name", e.Settlement)
	case e.Kind == EvCompensating && e.Child == "":
		return fmt.Errorf("compensating needs the compensating write")
	case e.Kind == EvDirected && (e.By == "" || e.Reason == ""):
		return fmt.Errorf("a reviewer's decision needs a name and a reason")
	case (e.Kind == EvAnnounced || e.Kind == EvRestored || e.Kind == EvEscalated) && r.QueuedBehind != "":
		return fmt.Errorf("it waits behind write %s of the same business key", r.QueuedBehind)
	case e.Unverified && (e.Kind != EvDeferred || r.State != Checking || !r.Answered):
		return fmt.Errorf("only the read after an answered send can be deferred as unverified")
	case e.Repair && (e.Kind != EvAnnounced || r.Sends == 0):
		return fmt.Errorf("only a send after the first can be a repair")
	case e.Kind == EvAnnounced && e.Generation < r.Generation:
		return fmt.Errorf("generation %d after %d", e.Generation, r.Generation)
	case e.Kind == EvPrepared && (len(e.Prepared) == 0 || r.Prepared != nil):
		return fmt.Errorf("what is sent is prepared once, and not empty")
	case e.Prepared != nil && e.Kind != EvPrepared && (e.Kind != EvAnnounced || r.Sends > 0 && (r.Restored.IsZero() || r.Prepared != nil)):
		return fmt.Errorf("what is sent is prepared with the first announcement and never again")
	}
	return nil
}

// reportable reports whether a write can be settled by a report alone: by its caller, which makes
// the write, or by a destination that answered yes and cannot be read.
func reportable(r Record, e Event) bool {
	return e.By != "" && (r.State == Delegated || r.State == Checking && r.Answered)
}

// checkApproval refuses an invalid approval: without an approver, by the requester, by the same
// reviewer twice where two are needed, for another digest, or too late.
func checkApproval(r Record, e Event, now time.Time) error {
	switch {
	case e.Kind != EvApproved && e.Kind != EvAgreed:
		return nil
	case SameName(e.By, ""):
		return fmt.Errorf("an approval needs the reviewer's name")
	case SameName(e.By, r.RequestedBy):
		return fmt.Errorf("%q asked for this write, and another reviewer must approve it", e.By)
	case AmongNames(r.Agreed, e.By):
		return fmt.Errorf("%q has approved it already; %d different reviewers must", e.By, r.Need)
	case e.Digest != "" && e.Digest != r.Digest:
		return fmt.Errorf("the approval is for digest %s, the write has %s", e.Digest, r.Digest)
	case !r.Due.IsZero() && !r.Overdue && !now.Before(r.Due):
		return fmt.Errorf("%w: the time for it was over at %s", ErrExpired, r.Due.UTC().Format(time.RFC3339))
	case e.Kind == EvApproved && len(r.Agreed)+1 < r.Need:
		return fmt.Errorf("%d different reviewers must approve it, and this is number %d", r.Need, len(r.Agreed)+1)
	case e.Kind == EvAgreed && len(r.Agreed)+1 >= max(r.Need, 1):
		return fmt.Errorf("this is the last approval that it needs: it is sent with that")
	}
	return nil
}

// note copies what an event records about the write, whatever its kind.
func note(r Record, e Event) Record {
	keep := func(dst *string, src string) {
		if src != "" {
			*dst = src
		}
	}
	keep(&r.Verdict, e.Verdict)
	keep(&r.Ref, e.Ref)
	keep(&r.URL, e.URL)
	keep(&r.Version, e.Version)
	silent := e.Kind == EvRead || e.Kind == EvAgreed || e.Kind == EvYielded // they do not decide how the write continues
	if !silent && (e.Rule != "" || e.Reason != "") {
		r.Rule, r.Reason = e.Rule, e.Reason
	}
	return r
}

// effect applies what the kind of event does beyond the change of state.
func effect(r Record, e Event, now time.Time) Record {
	switch e.Kind {
	case EvReserved:
		r.Created = now
		r = queue(r, e.QueuedBehind, now)
	case EvFreed:
		if r.QueuedBehind = e.QueuedBehind; r.QueuedBehind == "" {
			// The previous write may have changed the record a moment ago.
			r.QueuedAt, r.Due = now, now
		}
	case EvRead:
		r.Reads += e.ReadCalls()
		r.EffectSeen = r.EffectSeen || e.Effect
		r.Unverified = false
		if e.Before {
			r.Before = e.Evidence
		} else {
			if e.Evidence != nil { // a failed read observed nothing and replaces nothing
				r.Evidence, r.Mismatches = e.Evidence, e.Mismatches
			}
			if r.FirstRead.IsZero() {
				r.FirstRead = now.Add(-e.Ago)
			}
			if r.Unproven += max(e.Count, 1); !e.Unproven {
				r.Unproven = 0
			}
		}
	case EvAnnounced:
		r = announced(r, e, now)
	case EvPrepared:
		r.Prepared = e.Prepared
	case EvSent:
		r = sent(r, e, now)
	case EvRecovered:
		r.LastFate, r.Unknown = FateUnknown, true
		r.NeedsRecheck = r.NeedsRecheck || e.NeedsRecheck
		if e.SendFor > 0 {
			// As announced, and no shorter than an earlier send that may still last.
			r.LostSend, r.LostFor = r.LastSend.Add(-e.SendFor), max(e.SendFor, r.LostFor)
		}
	case EvRestored:
		r = restoredRecord(r, e, now)
	case EvDirected:
		r.Directed, r.Due = e.Directed, now
	case EvCompensating:
		r.Child, r.ChildIntent, r.Directed, r.Due = e.Child, e.Evidence, "", now
		r.Settlement, r.SettledAt, r.RecheckUntil = "", time.Time{}, time.Time{}
	case EvApproved:
		r.Agreed = append(slices.Clone(r.Agreed), e.By)
		r = queue(r, e.QueuedBehind, now)
		if r.Delegated { // the requester has to come back for it
			r.State, r.Due, r.Owner, r.LeaseUntil = Delegated, time.Time{}, "", time.Time{}
		}
	case EvDelegated:
		r = release(r, e, now)
		r.Due = time.Time{} // no worker has anything to do for it
	case EvYielded:
		r.Yielded = true
	case EvAgreed:
		due := r.Due
		r.Agreed = append(slices.Clone(r.Agreed), e.By)
		r = release(r, e, now)
		r.Due = due
	case EvOverdue:
		r.Overdue = true
		r = release(r, e, now)
	case EvHeld:
		r.QueuedBehind, r.Need, r.Agreed, r.Overdue, r.Directed = "", e.Need, nil, false, ""
		r = release(r, e, now)
	case EvDeferred, EvRechecked:
		r.Unverified = r.Unverified || e.Unverified
		r = release(r, e, now)
	case EvEscalated:
		r.Unverified = false
		r.Directed, r.Settlement, r.SettledAt = "", "", time.Time{}
		r = release(r, e, now)
	case EvSettled:
		r.Directed, r.Settlement, r.SettledAt = "", e.Settlement, now
		r.LeftQueue, r.QueuedBehind, r.Unverified = true, "", false
		r = release(r, e, now)
	}
	return r
}

// queue gives the write its place in the queue, and a due time when it is first. When it is not
// first, its approver has nothing to do about it.
func queue(r Record, behind ID, now time.Time) Record {
	r.QueuedBehind, r.QueuedAt, r.Due = behind, now, now
	if behind != "" {
		r.Owner, r.LeaseUntil, r.Due = "", time.Time{}, time.Time{}
	}
	return r
}

func sent(r Record, e Event, now time.Time) Record {
	r.LastFate, r.LastConflict, r.RetryAfter, r.LastRefusal, r.Refusal = e.Fate, e.Conflict, e.RetryAfter, "", nil
	r.LastSend = later(now.Add(-e.Ago), r.Updated)
	r.Unknown = r.Unknown || e.Fate == FateUnknown
	r.Answered = r.Answered || e.Fate == FateAnswered
	if e.Fate != FateAnswered {
		r.LastRefusal = e.Reason
		if e.ErrorCode+e.Message+e.RequestID != "" {
			r.Refusal = &Refusal{Status: e.Code, Code: e.ErrorCode, Message: e.Message, RequestID: e.RequestID}
		}
	}
	if slices.Contains(notTakenUp, e.Fate) {
		r.Unsent++
	}
	if e.Fate == fateLogin {
		r.LoginRefused++
		if r.Sends == r.Unsent { // waiting for other credentials is not an attempt
			r.FirstSend, r.KeySend = time.Time{}, time.Time{}
		}
	}
	return r
}

// restoredRecord counts one send of unknown fate in the missing time, whatever was sent in it: the
// first under the present key as early, and the last as late as it can have been.
func restoredRecord(r Record, e Event, now time.Time) Record {
	if r.Restored.Before(e.LostUntil) {
		r.Sends++
		r.Restored = e.LostUntil
	}
	switch r.State {
	case Held: // it may have been approved as well; in its queue it is read, and held again
		r.State, r.Agreed, r.Need = Queued, nil, 0
		r = queue(r, e.QueuedBehind, now)
	case Queued, Checking:
		r.State, r.Due = Checking, now
	}
	r.LastFate, r.Unknown, r.FirstRead, r.Unproven, r.Unverified = FateUnknown, true, time.Time{}, 0, false
	r.LastConflict, r.RetryAfter, r.LastRefusal, r.Refusal = false, 0, "", nil
	for _, first := range []*time.Time{&r.FirstSend, &r.KeySend} {
		if first.IsZero() || first.After(e.LostFrom) {
			*first = e.LostFrom
		}
	}
	r.LastSend = later(r.LastSend, e.LostUntil)
	return r
}

// later returns the later of two times. A send cannot have ended before the event that announced
// it, whatever a worker's clock says.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func announced(r Record, e Event, now time.Time) Record {
	r.Sends++
	r.Unordered = r.Unordered || e.Unordered
	r.Directed, r.LastFate, r.Due = "", FateUnknown, now
	r.LastConflict, r.RetryAfter, r.LastRefusal, r.Refusal, r.FirstRead = false, 0, "", nil, time.Time{}
	r.Unproven = 0
	r.Repaired = e.Repair
	r.NeedsRecheck = r.NeedsRecheck || e.NeedsRecheck
	if e.Prepared != nil {
		r.Prepared = e.Prepared
	}
	if r.FirstSend.IsZero() {
		r.FirstSend = now
	}
	if r.KeySend.IsZero() || e.Generation > r.Generation && r.Restored.IsZero() { // it may be no new key
		r.KeySend = now
	}
	r.Generation = e.Generation
	r.LastSend = now.Add(e.SendFor)
	return r
}

// release ends the lease and sets when the record is due again.
func release(r Record, e Event, now time.Time) Record {
	r.Owner, r.LeaseUntil = "", time.Time{}
	r.Due = time.Time{}
	if r.QueuedBehind == "" && (e.In > 0 || e.Kind == EvDeferred) {
		r.Due = now.Add(e.In)
	}
	switch {
	case r.State != Settled || r.Due.IsZero():
		r.RecheckUntil = time.Time{}
	case e.Kind == EvDeferred:
		r.RecheckUntil = later(r.RecheckUntil, r.Due)
	default:
		r.RecheckUntil = later(now.Add(e.Until), r.Due)
	}
	return r
}

// Begin returns a new record with its first events. It is the pure half of Reserve. Behind is the
// last write in the queue of the same record, or "". If it is set, the write is only queued: the
// events of the reservation, which record what its caller would do first, are dropped with the
// lease, unless the write is to be held. The first event identifies the write ([Rebuild]).
func Begin(res Reservation, behind ID, now time.Time) (Record, []Event, error) {
	return BeginInto(nil, res, behind, now)
}

// BeginInto is Begin that puts the events into an empty buffer, for a driver that keeps none.
func BeginInto(into []Event, res Reservation, behind ID, now time.Time) (Record, []Event, error) {
	r := res.Record.Identity()
	if r.ID != IDOf(r.StructuralKey) || r.Tenant == "" || len(r.Intent) == 0 {
		return r, nil, fmt.Errorf("reserve: a record needs a tenant (%q), an intent (%d bytes) and the id (%q) of its structural key (%q); NewRecord makes one",
			r.Tenant, len(r.Intent), r.ID, r.StructuralKey)
	}
	r.Intent = bytes.Clone(r.Intent)
	if r.Delegated && (r.KeyDigest != "" || len(res.Events) == 0) {
		return r, nil, fmt.Errorf("reserve: write %s is delegated to its caller: it has no key digest, and is held or delegated with its reservation", r.ID)
	}
	who, err := identityOf(r)
	if err != nil {
		return r, nil, err
	}
	taken := mended(Event{Kind: EvReserved, By: res.Owner})
	taken.Evidence = who
	held := len(res.Events) > 0 && res.Events[0].Kind == EvHeld
	if behind != "" && r.KeyDigest != "" && !held {
		r.Fence++
		taken.QueuedBehind = behind
		return advance(r, append(into, taken), now)
	}
	if res.Owner == "" {
		r.Fence++
	} else {
		r = r.Lend(res.Owner, res.LeaseFor, now)
	}
	events := append(slices.Grow(into, 1+len(res.Events)), taken)
	if res.Precheck == nil || !res.Precheck.Contended {
		for _, e := range res.Events {
			events = append(events, mended(e))
		}
	}
	return advance(r, events, now)
}

// Left reports whether a change took the write out of its queue. The write queued behind it must
// then be freed in the same step ([Free]).
func Left(before, after Record) bool { return before.InQueue() && !after.InQueue() }

// Free returns the write that was queued behind one that left the queue. It is the pure half of
// what every Append does that ends a write. Gone is that write as it was before it left. Next now
// waits for the write that gone waited for, if any.
func Free(next, gone Record, now time.Time) (Record, []Event, error) {
	return advanceEach(next, []Event{{Kind: EvFreed, By: string(gone.ID), QueuedBehind: gone.QueuedBehind}}, next.Fence, now)
}

// Joins reports whether events put a recorded write into its queue. The driver must then read the
// last write of that queue and pass it to [QueueBehind].
func Joins(r Record, events []Event) bool {
	return r.KeyDigest != "" && slices.ContainsFunc(events, func(e Event) bool { return joins(r, e) })
}

// joins reports whether an event puts a held write into its queue.
func joins(r Record, e Event) bool {
	return e.Kind == EvApproved || e.Kind == EvRestored && r.State == Held
}

// QueueBehind returns the events with the write that is last in the queue.
func QueueBehind(events []Event, last ID) []Event {
	events = slices.Clone(events)
	for i := range events {
		if events[i].Kind == EvApproved || events[i].Kind == EvRestored {
			events[i].QueuedBehind = last
		}
	}
	return events
}

// Expedite brings forward a deferred read of a write because another write is now queued behind
// it. It reports whether anything changed.
func Expedite(r Record, now time.Time) (Record, []Event, bool) {
	if !r.Unverified || r.State != Checking || r.LeaseUntil.After(now) || !r.Due.After(now) {
		return r, nil, false
	}
	next, events, err := advanceEach(r, []Event{{Kind: EvDeferred, Rule: "line",
		Reason: "another write of the same business key waits for it"}}, r.Fence, now)
	return next, events, err == nil
}

// Advance returns a record after events, in one step. It is the pure half of Append. It checks
// the fence, numbers the events and extends the lease if one is still held.
func Advance(r Record, fence int64, events []Event, now time.Time) (Record, []Event, error) {
	return AdvanceInto(nil, r, fence, events, now)
}

// AdvanceInto is Advance that puts the events into an empty buffer, for a driver that keeps none.
func AdvanceInto(into []Event, r Record, fence int64, events []Event, now time.Time) (Record, []Event, error) {
	late := len(events) == 1 && events[0].Kind == EvLate
	if fence != r.Fence && !late {
		return r, nil, fmt.Errorf("%w: write %s: fence %d, now %d", ErrFenced, r.ID, fence, r.Fence)
	}
	into = slices.Grow(into, len(events))
	for _, e := range events {
		into = append(into, mended(e))
	}
	events = into
	if late {
		return advanceEach(r, events, fence, now)
	}
	return advance(r, events, now)
}

// advance stamps the events in place.
func advance(r Record, events []Event, now time.Time) (Record, []Event, error) {
	if err := orderly(r, events); err != nil {
		return r, nil, fmt.Errorf("%w: write %s: %w", ErrIllegalMove, r.ID, err)
	}
	next, stamped, err := advanceEach(r, events, r.Fence, now)
	if err == nil {
		next.Now = now // also where only the lease is renewed: the caller counts time by it
	}
	if err == nil && next.Owner != "" {
		next.LeaseUntil = now.Add(next.LeaseFor)
	}
	return next, stamped, err
}

// orderly refuses events of a caller that would break a queue. Only the ledger assigns and frees
// places in it, and it reads the queue once per append.
func orderly(r Record, events []Event) error {
	held := false // by this append
	for _, e := range events {
		held = held || e.Kind == EvHeld
		switch {
		case e.Kind == EvFreed:
			return fmt.Errorf("only the ledger itself frees a write, when the one before it leaves the queue")
		case e.Kind == EvApproved && r.State != Held:
			return fmt.Errorf("%q is for a write that was held before this append", e.Kind)
		case e.Kind == EvRestored && held:
			return fmt.Errorf("%q is not for a write that this append holds", e.Kind)
		}
	}
	return nil
}

func advanceEach(r Record, events []Event, fence int64, now time.Time) (Record, []Event, error) {
	next := r
	for i := range events {
		e := &events[i]
		var err error
		if next, err = Apply(next, *e, now); err != nil {
			return r, nil, err
		}
		e.Seq, e.At, e.Fence = next.Seq, now, fence
	}
	return next, events, nil
}

// mended returns an event in storable form: all text is valid UTF-8, so that every ledger keeps
// it unchanged (destinations and models send arbitrary bytes), and the evidence is a copy, so
// that the caller may reuse its buffer.
func mended(e Event) Event {
	e.Evidence, e.Mismatches, e.Answer = bytes.Clone(e.Evidence), bytes.Clone(e.Mismatches), bytes.Clone(e.Answer)
	const unreadable = "\ufffd"
	for _, text := range []*string{
		&e.By, &e.Rule, &e.Reason, &e.Verdict, &e.Fate, &e.Code, &e.Ref, &e.URL, &e.Version, &e.Directed,
		&e.Key, &e.ErrorCode, &e.Message, &e.RequestID,
	} {
		*text = strings.ToValidUTF8(*text, unreadable)
	}
	return e
}

// Same reports whether a reservation repeats a recorded write: nil, a [DigestMismatchError], or
// [ErrNoKey] where that cannot be known.
func Same(recorded Record, res Reservation) error {
	if recorded.StructuralKey != res.Record.StructuralKey || recorded.Tenant != res.Record.Tenant {
		return fmt.Errorf("%w: write %s belongs to another structural key or tenant than the one that asks", ErrCorrupt, recorded.ID)
	}
	received, err := res.Record.digestLike(recorded)
	if err == nil && received != recorded.Digest {
		err = &DigestMismatchError{ID: recorded.ID, Recorded: recorded.Digest, Received: received}
	}
	return err
}

// digestLike returns the digest of a record in the form of a recorded one. It fails with
// [ErrNoKey] where the key of the recorded one is not available.
func (r Record) digestLike(recorded Record) (string, error) {
	key := intent.DigestKey(recorded.Digest)
	all := append([]string{r.Digest}, r.Digests...)
	if slices.Contains(all, recorded.Digest) {
		return recorded.Digest, nil
	}
	if key == "" { // the digest as it would be recorded, which reveals nothing
		return r.Digest, nil
	}
	same := slices.IndexFunc(all, func(d string) bool { return intent.DigestKey(d) == key })
	if same < 0 {
		return "", fmt.Errorf("%w: the digest of write %s, with key %q; add it to the redaction keys, or ask for the write by its id", ErrNoKey, recorded.ID, key)
	}
	return all[same], nil
}

// BlockedBy returns the refusal of a reservation that names the business operation of another
// write.
func BlockedBy(prior Record, res Reservation) *BlockedError {
	received, err := res.Record.digestLike(prior)
	if err != nil { // whether it asks for the same is unknown
		received = ""
	}
	return &BlockedError{Prior: prior, Received: received}
}
