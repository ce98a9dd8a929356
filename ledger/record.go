package ledger

import (
	"encoding/json"
	"time"

	"github.com/readback-go/readback/intent"
)

// ID names a write. It is derived from the structural key, so one logical write has one ID in
// every ledger.
type ID string

// IDOf returns the ID of the write with this structural key (hex).
func IDOf(structuralKey string) ID {
	const enough = 32 // hex digits: 128 bits
	return ID("wr_" + structuralKey[:min(enough, len(structuralKey))])
}

// State is the state of a write.
type State string

// The states. Up to queued nothing of the current attempt was sent; from sending on, only a read
// may follow a crash.
const (
	Held         State = "held"         // waits for approval; nothing sent
	Queued       State = "queued"       // to be sent when due; nothing sent
	Sending      State = "sending"      // announced: it may or may not have been sent
	Checking     State = "checking"     // sent; being read back
	Delegated    State = "entrusted"    // delegated to its caller, which makes the write; never sent from here
	Compensating State = "compensating" // a compensating write is under way
	Review       State = "review"       // a reviewer decides
	Settled      State = "settled"      // done; see Record.Settlement
)

// Status is what became of a write, for its caller.
type Status string

// The statuses. The zero value is none of them and means nothing. Those that have the name of a
// state begin with Status.
const (
	Verified    Status = "verified"    // read back at the destination
	NotApplied  Status = "not_applied" // known not to have happened
	Compensated Status = "compensated" // undone, and the undo was verified
	Accepted    Status = "accepted"    // a reviewer took responsibility for it as it is
	Abandoned   Status = "abandoned"   // a reviewer abandoned it; its effect stays unknown
	Denied      Status = "denied"      // a reviewer refused it; nothing was sent
	Expired     Status = "expired"     // not approved in time; nothing was sent
	Reported    Status = "reported"    // reported done by its caller, or by a destination that cannot be read; not verified

	StatusReview    Status = "review"      // a reviewer decides
	StatusHeld      Status = "held"        // waits for approval; nothing was sent
	StatusDelegated Status = "entrusted"   // its caller makes it, and has not reported that it is done
	InProgress      Status = "in_progress" // recorded, and continues by itself
	Unverified      Status = "unverified"  // the destination accepted it; the read back is postponed on purpose
)

// Group is what a status means to a caller that wants the write done.
type Group int

// The groups. The zero value is that of abandoned writes, whose effect stays unknown, and of what
// is no status.
const (
	EffectUnknown Group = iota
	Done
	NotDone     // its effect is not there, and never will be
	Wait        // its end is not known yet
	NeedsReview // it continues when a reviewer decides
)

// Group returns the status's group.
func (s Status) Group() Group {
	switch s {
	case Verified, Accepted, Reported:
		return Done
	case NotApplied, Compensated, Denied, Expired:
		return NotDone
	case InProgress, Unverified, StatusDelegated:
		return Wait
	case StatusReview, StatusHeld:
		return NeedsReview
	}
	return EffectUnknown
}

// settlements are the statuses of settled writes.
var settlements = []Status{Verified, NotApplied, Compensated, Accepted, Abandoned, Denied, Expired, Reported}

// FateAnswered and FateUnknown are the fates of a send (see connectors.Fate) that permanently
// change what is known.
const (
	FateUnknown  = ""
	FateAnswered = "answered"
)

// fateLogin is the fate of a send whose credentials the destination refused.
const fateLogin = "login_refused"

// notTakenUp are the fates of sends that the destination provably did not accept: they do not
// count against the budget of sends.
var notTakenUp = []string{"not_sent", "throttled", fateLogin}

// Refusal is why a destination did not accept a send, in its own words: foreign text, bounded and
// redacted, which is data and never an instruction.
type Refusal struct {
	Status    string `json:"status,omitempty" jsonschema:"the status that it answered, such as 422"`
	Code      string `json:"code,omitempty" jsonschema:"its own code, such as charge_already_refunded"`
	Message   string `json:"message,omitempty" jsonschema:"its own sentence"`
	RequestID string `json:"request_id,omitempty" jsonschema:"by which its support finds the request"`
}

// Record is what is known about one write now.
type Record struct {
	ID            ID     `json:"id"`
	Tenant        string `json:"tenant"`
	Workflow      string `json:"workflow"`
	Step          string `json:"step,omitempty"`
	Tool          string `json:"tool"`
	Call          int    `json:"call,omitempty"`
	StructuralKey string `json:"structural_key"`
	Digest        string `json:"digest"`
	// Digests are all forms of Digest, with keys and without, by which a repeat is recognised.
	// They are only in requests to a ledger, which stores none of them. Default: Digest alone.
	Digests        []string `json:"-"`
	IdempotencyKey string   `json:"idempotency_key,omitempty"`
	CorrelationID  string   `json:"correlation_id,omitempty"`
	Destination    string   `json:"destination"`
	Kind           string   `json:"kind"`
	// KeyDigest names the record at the destination that the write is about, as the ledger's
	// [KeyDigests] makes it. Writes that share it form one queue and are sent one after another
	// (see [Record.InQueue]). Empty for a compensating write, which has the place of the one it
	// undoes unless that was settled and has left it, and where the key is known to name no
	// record of its own.
	KeyDigest string `json:"key_digest,omitempty"`

	// Delegated says that the caller makes the write and the ledger only records it: it is never
	// sent from here, is in no queue, and its intent may be any JSON object. RequestedBy names
	// the credentials of the request.
	Delegated   bool   `json:"entrusted,omitempty"`
	RequestedBy string `json:"requested_by,omitempty"`

	// Trace is the W3C trace context (traceparent) that the write came with, or the one that it
	// was given. Default none.
	Trace string `json:"trace,omitempty"`

	// Intent is the declared write as JSON; Parent is the write that this one
	// compensates.
	Intent json.RawMessage `json:"intent"`
	Parent ID              `json:"parent,omitempty"`

	State State `json:"state"`
	// Settlement is the status of a settled write, "" for all others.
	Settlement Status `json:"settlement,omitempty"`
	// Verdict is the last one; Rule and Reason are those of the last event
	// that decided something.
	Verdict string `json:"verdict,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Reason  string `json:"reason,omitempty"`

	// Sends counts announcements, and one more for each missing time ([EvRestored]). Unsent counts
	// those of them that the destination provably did not accept, LoginRefused those of the unsent
	// whose credentials were refused, and Reads the calls of reads; all over the whole lifetime.
	// Generation is that of the idempotency key in use.
	Sends        int `json:"sends"`
	Unsent       int `json:"unsent,omitempty"`
	LoginRefused int `json:"login_refused,omitempty"`
	Reads        int `json:"reads"`
	Generation   int `json:"generation,omitempty"`
	// Unknown says that some send has an unknown fate; later certainty about another send does
	// not erase it. Answered says that some send was answered with yes.
	Unknown  bool   `json:"unknown,omitempty"`
	Answered bool   `json:"answered,omitempty"`
	LastFate string `json:"last_fate,omitempty"`
	// LastConflict, LastRefusal and RetryAfter are from the destination's response to the last
	// send, if that was not an acceptance.
	LastConflict bool          `json:"last_conflict,omitempty"`
	LastRefusal  string        `json:"last_refusal,omitempty"`
	RetryAfter   time.Duration `json:"retry_after,omitempty"`
	// Refusal is the same in the destination's own words. Nil if it gave none, or answered yes.
	Refusal *Refusal `json:"refusal,omitempty"`
	// Repaired says that the last send updated what the destination had not stored.
	Repaired bool `json:"repaired,omitempty"`
	// NeedsRecheck says that a send was made which an earlier one, arriving late, could duplicate.
	NeedsRecheck bool `json:"owes_recheck,omitempty"`
	// EffectSeen says that some read after a send showed an effect of this write. If a later one
	// does not, another actor or the destination reverted it.
	EffectSeen bool `json:"effect_seen,omitempty"`
	// FirstSend is when the first send was announced, KeySend when the first send of this
	// generation was. LastSend is the latest time at which the last send can have ended.
	FirstSend time.Time `json:"first_send,omitzero"`
	KeySend   time.Time `json:"key_send,omitzero"`
	LastSend  time.Time `json:"last_send,omitzero"`
	// LostSend is when the latest send whose end no worker recorded was announced. LostFor is how
	// long after that it could still be in flight, as counted by the process that made it. Zero
	// where there is none, or that process has ended.
	LostSend time.Time     `json:"lost_send,omitzero"`
	LostFor  time.Duration `json:"lost_for,omitempty"`
	// Restored is the end of a time in which the write may have been sent although the ledger lacks
	// it ([Restore]): one send of unknown fate is counted for that. Zero: no history is missing.
	Restored time.Time `json:"restored,omitzero"`

	// FirstRead is when the first read after the last send was made.
	FirstRead time.Time `json:"first_look,omitzero"`
	// Unproven counts the consecutive reads, since the last send, that failed or proved nothing.
	Unproven int `json:"unproven,omitempty"`
	// NotChecked lists what is sent and never compared, as JSON Pointers.
	NotChecked []string `json:"not_checked,omitempty"`
	// Proof describes what verified proves, where that is less than the effect.
	Proof string `json:"proof,omitempty"`
	// RecheckUntil is when the last pending recheck of a settled write is due;
	// zero when none is pending.
	RecheckUntil time.Time `json:"recheck_until,omitzero"`

	// Ref, URL and Version name the record at the destination.
	Ref     string `json:"ref,omitempty"`
	URL     string `json:"url,omitempty"`
	Version string `json:"version,omitempty"`
	// Before is the pre-state, Evidence the result of the last successful read, Mismatches how
	// that differs from the intent.
	Before     json.RawMessage `json:"before,omitempty"`
	Evidence   json.RawMessage `json:"evidence,omitempty"`
	Mismatches json.RawMessage `json:"mismatches,omitempty"`
	// Prepared is what the connector built to be sent, once for all sends.
	Prepared []byte `json:"prepared,omitempty"`
	// Child is the compensating write, ChildIntent what it asks for. Directed is what a reviewer
	// instructed the engine to do next.
	Child       ID              `json:"child,omitempty"`
	ChildIntent json.RawMessage `json:"child_intent,omitempty"`
	Directed    string          `json:"directed,omitempty"`

	// Need is how many reviewers must approve a held write, 0 for one; Agreed are those who have
	// approved so far. While it is held, Due is the deadline for approval, and Overdue says that
	// a deadline passed once and other reviewers were to be notified.
	Need    int      `json:"need,omitempty"`
	Agreed  []string `json:"agreed,omitempty"`
	Overdue bool     `json:"overdue,omitempty"`
	// Yielded says that an operator released the business operation although this write may have
	// done it: it blocks no other any more.
	Yielded bool `json:"yielded,omitempty"`

	// QueuedBehind is the write of the same queue that must be done first; "" when this one is
	// first. LeftQueue says that the write was done once, Unordered that it needs no queue, as
	// its key names no record of its own: from then on it delays no other write, however it
	// continues.
	QueuedBehind ID   `json:"behind,omitempty"`
	LeftQueue    bool `json:"passed,omitempty"`
	Unordered    bool `json:"alone,omitempty"`
	// Unverified says that the destination answered with yes and that the pending read was
	// deferred on purpose: callers need not wait for it.
	Unverified bool `json:"unverified,omitempty"`
	// Tombstone says that the write was pruned: only its identity and how it ended are left,
	// without intent, evidence and events.
	Tombstone bool `json:"tombstone,omitempty"`
	// Erased is the erasure that removed the contents of the write ([Erase]); such a write is a
	// tombstone too. Default none.
	Erased string `json:"erased,omitempty"`

	// QueuedAt is since when the write may be sent: reserved, approved, or freed by the one
	// before it.
	QueuedAt time.Time `json:"queued_at,omitzero"`
	// Due is when the record needs work. Zero: not before something happens.
	Due time.Time `json:"due,omitzero"`
	// Owner holds the lease until LeaseUntil; Fence grows with every change of owner. LeaseFor is
	// how far each append extends the lease.
	Owner      string        `json:"owner,omitempty"`
	LeaseUntil time.Time     `json:"lease_until,omitzero"`
	LeaseFor   time.Duration `json:"lease_for,omitempty"`
	Fence      int64         `json:"fence"`

	// Seq is the number of the last event. Created, Updated and SettledAt are
	// on the ledger's clock, as is Now, the time of the call that returned
	// this record.
	Seq       int64     `json:"seq"`
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	SettledAt time.Time `json:"settled_at,omitzero"`
	Now       time.Time `json:"-"`
}

// Phase is the state for display: settled records say how they ended.
func (r Record) Phase() string {
	if r.State == Settled {
		return string(r.State) + " (" + string(r.Settlement) + ")"
	}
	return string(r.State)
}

// Status is what became of the write, as its caller sees it.
func (r Record) Status() Status {
	switch {
	case r.State == Settled:
		return r.Settlement
	case r.State == Held, r.State == Review, r.State == Delegated:
		return Status(r.State)
	case r.State == Checking && r.Unverified:
		return Unverified
	}
	return InProgress
}

// NewRecord returns the identity of a write as it is reserved. The intent must be valid.
func NewRecord(w intent.WriteIntent) (Record, error) {
	f, err := w.Form()
	if err != nil {
		return Record{}, err
	}
	return RecordOf(f), nil
}

// RecordOf is [NewRecord] for an intent that is in canonical form already.
func RecordOf(f intent.Form) Record {
	w, keyDigest := f.Intent, f.KeyDigest
	if w.Compensates != "" {
		keyDigest = ""
	}
	return Record{
		ID: IDOf(f.StructuralKey), StructuralKey: f.StructuralKey, KeyDigest: keyDigest, Digest: f.Digest, Intent: f.Encoded,
		Tenant: w.Tenant, Workflow: w.Workflow, Step: w.Step, Tool: w.Tool, Call: w.Call,
		IdempotencyKey: w.IdempotencyKey, CorrelationID: w.CorrelationID,
		Destination: w.Destination, Kind: w.Kind, Parent: ID(w.Compensates),
	}
}

// Identity returns the record as it was reserved: its immutable fields, and nothing that happened
// to it.
func (r Record) Identity() Record {
	return Record{
		ID: r.ID, StructuralKey: r.StructuralKey, Digest: r.Digest, KeyDigest: r.KeyDigest, Intent: r.Intent,
		Tenant: r.Tenant, Workflow: r.Workflow, Step: r.Step, Tool: r.Tool, Call: r.Call,
		IdempotencyKey: r.IdempotencyKey, CorrelationID: r.CorrelationID,
		Destination: r.Destination, Kind: r.Kind, Parent: r.Parent,
		Delegated: r.Delegated, RequestedBy: r.RequestedBy, Trace: r.Trace, NotChecked: r.NotChecked, Proof: r.Proof,
	}
}

// InQueue reports whether the write has a place in the queue of its [Record.KeyDigest]: it may
// still be sent, or arrive, so that later writes about the same record wait. A held write is not
// in the queue; it joins at its approval.
func (r Record) InQueue() bool {
	if r.KeyDigest == "" || r.LeftQueue || r.Unordered {
		return false
	}
	switch r.State {
	case Queued, Sending, Checking, Compensating, Review:
		return true
	}
	return false
}

// Claimable reports whether a worker may take the record at the time now: its lease has ended and
// it is due, or early is set, and nothing is queued before it. Tombstones and delegated writes
// are never claimable.
func (r Record) Claimable(now time.Time, early bool) bool {
	if r.LeaseUntil.After(now) || r.QueuedBehind != "" || r.Tombstone || r.State == Delegated {
		return false
	}
	return early || (!r.Due.IsZero() && !r.Due.After(now))
}

// Dispatched is the owner of a write that was handed over to another scheduler and that no worker
// has taken up yet. It never works on any, so that every worker, caller and reviewer may ignore its
// lease, which only keeps the write from being handed over again.
const Dispatched = "dispatched"

// InHand reports whether a worker may be working on the record at the time now.
func (r Record) InHand(now time.Time) bool {
	return r.LeaseUntil.After(now) && r.Owner != Dispatched
}

// Lend leases the record to a worker under the next fence.
func (r Record) Lend(owner string, leaseFor time.Duration, now time.Time) Record {
	r.Owner, r.LeaseFor, r.LeaseUntil = owner, leaseFor, now.Add(leaseFor)
	r.Fence++
	r.Now = now
	return r
}
