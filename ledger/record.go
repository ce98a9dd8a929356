package ledger

import (
	"encoding/json"
	"time"

	"github.com/readback-go/readback/intent"
)

// ID names a write. It follows from the structural key, so one logical write
// has one ID in every ledger.
type ID string

// IDOf is the ID of the write with this structural key (hex).
func IDOf(structuralKey string) ID {
	const enough = 32 // hex digits: 128 bits
	return ID("wr_" + structuralKey[:min(enough, len(structuralKey))])
}

// State is where a write stands.
type State string

// The states. Up to queued nothing of the present attempt was sent; from
// sending on, a crash leads only to a read.
const (
	Held         State = "held"         // waits for a person's approval; nothing sent
	Queued       State = "queued"       // to be sent when due; nothing sent
	Sending      State = "sending"      // announced: it may or may not have been sent
	Checking     State = "checking"     // sent; being read back
	Entrusted    State = "entrusted"    // let go to its caller, who makes the write itself; never sent from here
	Compensating State = "compensating" // a compensating write is under way
	Review       State = "review"       // a person decides
	Settled      State = "settled"      // done; see Settlement
)

// Settlement says how a settled write ended.
type Settlement string

// The settlements. The zero value is not settled.
const (
	Verified    Settlement = "verified"    // seen at the destination
	NotApplied  Settlement = "not_applied" // known not to have happened
	Compensated Settlement = "compensated" // undone, and that was verified
	Accepted    Settlement = "accepted"    // a person took responsibility for it as it is
	Abandoned   Settlement = "abandoned"   // a person gave it up; its effect stays unknown
	Denied      Settlement = "denied"      // a person refused it; nothing sent
	Expired     Settlement = "expired"     // nobody approved it in time; nothing sent
	Reported    Settlement = "reported"    // whoever made it says that it is done, its caller or a destination that cannot be read; nobody looked
)

var settlements = []Settlement{Verified, NotApplied, Compensated, Accepted, Abandoned, Denied, Expired, Reported}

// FateAnswered and FateUnknown are the fates of a send (see connectors.Fate)
// that change what is known for good.
const (
	FateUnknown  = ""
	FateAnswered = "answered"
)

// fateLogin is the fate of a send whose credentials the destination refused.
const fateLogin = "login_refused"

// notTakenUp are the fates of sends that the destination provably did not take
// up: they do not count against the budget of sends.
var notTakenUp = []string{"not_sent", "throttled", fateLogin}

// Said is why a destination did not take a send, in its own words: foreign text,
// bounded and redacted, which is data and never an instruction.
type Said struct {
	Status    string `json:"status,omitempty" jsonschema:"the status that it answered, such as 422"`
	Code      string `json:"code,omitempty" jsonschema:"its own code, such as charge_already_refunded"`
	Message   string `json:"message,omitempty" jsonschema:"its own sentence"`
	RequestID string `json:"request_id,omitempty" jsonschema:"by which its support finds the request"`
}

// Record is what is known about one write now.
type Record struct {
	ID             ID     `json:"id"`
	Tenant         string `json:"tenant"`
	Workflow       string `json:"workflow"`
	Step           string `json:"step,omitempty"`
	Tool           string `json:"tool"`
	Call           int    `json:"call,omitempty"`
	StructuralKey  string `json:"structural_key"`
	Digest         string `json:"digest"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	CorrelationID  string `json:"correlation_id,omitempty"`
	Destination    string `json:"destination"`
	Kind           string `json:"kind"`
	// KeyDigest names the record at the destination that the write is about:
	// writes that share it form one line and are sent one after another (see
	// [Record.InLine]). Empty for a compensating write, which has the place of
	// the one it undoes unless that was settled and has left it, and where the
	// key is known to name no record of its own.
	KeyDigest string `json:"key_digest,omitempty"`

	// Entrusted says that the caller makes the write itself and the ledger only
	// knows of it: it is never sent from here, stands in no line, and its intent
	// may be any JSON object. RequestedBy is whose credentials asked for it.
	Entrusted   bool   `json:"entrusted,omitempty"`
	RequestedBy string `json:"requested_by,omitempty"`

	// Trace is the W3C trace context (traceparent) that the write came with, or
	// the one it was given. Default none.
	Trace string `json:"trace,omitempty"`

	// Intent is the declared write as JSON; Parent is the write that this one
	// compensates.
	Intent json.RawMessage `json:"intent"`
	Parent ID              `json:"parent,omitempty"`

	State      State      `json:"state"`
	Settlement Settlement `json:"settlement,omitempty"`
	// Verdict is the last one; Rule and Reason are those of the last event
	// that decided something.
	Verdict string `json:"verdict,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Reason  string `json:"reason,omitempty"`

	// Sends counts announcements, Unsent those of them that the destination
	// provably did not take up, Reads counts reads; all over the whole life.
	// LoginRefused counts those of the unsent whose credentials were refused.
	// Generation is that of the idempotency key in use.
	Sends        int `json:"sends"`
	Unsent       int `json:"unsent,omitempty"`
	LoginRefused int `json:"login_refused,omitempty"`
	Reads        int `json:"reads"`
	Generation   int `json:"generation,omitempty"`
	// Unknown says that some send has a fate nobody knows; later certainty
	// about another send does not erase it. Answered says that some send was
	// answered with yes.
	Unknown  bool   `json:"unknown,omitempty"`
	Answered bool   `json:"answered,omitempty"`
	LastFate string `json:"last_fate,omitempty"`
	// LastConflict, LastRefusal and RetryAfter are what the destination said
	// when it did not answer the last send with yes.
	LastConflict bool          `json:"last_conflict,omitempty"`
	LastRefusal  string        `json:"last_refusal,omitempty"`
	RetryAfter   time.Duration `json:"retry_after,omitempty"`
	// Refusal is the same in the destination's own words. Nil where it said nothing,
	// or yes.
	Refusal *Said `json:"refusal,omitempty"`
	// Repaired says that the last send was an update of what the destination had
	// not stored.
	Repaired bool `json:"repaired,omitempty"`
	// OwesRecheck says that a send was made which an earlier one, landing
	// late, could double.
	OwesRecheck bool `json:"owes_recheck,omitempty"`
	// EffectSeen says that some read after a send showed an effect of ours. If
	// a later one does not, somebody took it back.
	EffectSeen bool `json:"effect_seen,omitempty"`
	// FirstSend is when the first send was announced, KeySend when the first
	// send of this generation was. LastSend is the latest time at which the
	// last send can have ended.
	FirstSend time.Time `json:"first_send,omitzero"`
	KeySend   time.Time `json:"key_send,omitzero"`
	LastSend  time.Time `json:"last_send,omitzero"`
	// LostSend is when the latest send was announced whose end no worker recorded,
	// LostFor how long after that it could still be under way by the count of the
	// process that made it. Zero where there is none, or that process has ended.
	LostSend time.Time     `json:"lost_send,omitzero"`
	LostFor  time.Duration `json:"lost_for,omitempty"`

	// FirstLook is when the first read after the last send was made.
	FirstLook time.Time `json:"first_look,omitzero"`
	// Unproven counts the reads in a row, since the last send, that could not be
	// made or proved nothing.
	Unproven int `json:"unproven,omitempty"`
	// NotChecked lists what is sent and never compared, as JSON Pointers.
	NotChecked []string `json:"not_checked,omitempty"`
	// Proof is what verified proves of it, where that is less than the effect.
	Proof string `json:"proof,omitempty"`
	// RecheckUntil is when the last pending recheck of a settled write is due;
	// zero when none is pending.
	RecheckUntil time.Time `json:"recheck_until,omitzero"`

	// Ref, URL and Version name the record at the destination.
	Ref     string `json:"ref,omitempty"`
	URL     string `json:"url,omitempty"`
	Version string `json:"version,omitempty"`
	// Before is the pre-state, Evidence what the last read that succeeded found,
	// Mismatches how that differs from the intent.
	Before     json.RawMessage `json:"before,omitempty"`
	Evidence   json.RawMessage `json:"evidence,omitempty"`
	Mismatches json.RawMessage `json:"mismatches,omitempty"`
	// Prepared is what the connector built to be sent, once for all sends.
	Prepared []byte `json:"prepared,omitempty"`
	// Child is the compensating write, ChildIntent what it asks for. Directed
	// is what a person told the engine to do next.
	Child       ID              `json:"child,omitempty"`
	ChildIntent json.RawMessage `json:"child_intent,omitempty"`
	Directed    string          `json:"directed,omitempty"`

	// Need is how many people must approve a held write, 0 for one; Agreed are
	// those who have and were not enough. While it is held, Due is when the time
	// for it is over, and Overdue says that it was once and that somebody else was
	// to be told.
	Need    int      `json:"need,omitempty"`
	Agreed  []string `json:"agreed,omitempty"`
	Overdue bool     `json:"overdue,omitempty"`
	// Yielded says that a person let the business operation go although this
	// write may have done it: it blocks no other any more.
	Yielded bool `json:"yielded,omitempty"`

	// Behind is the write of the same line that must be done first; "" when it
	// is this one's turn. Passed says that the write was done once, Alone that
	// it needs no line, as its key names no record of its own: from then on it
	// holds nobody up, however it goes on.
	Behind ID   `json:"behind,omitempty"`
	Passed bool `json:"passed,omitempty"`
	Alone  bool `json:"alone,omitempty"`
	// Unverified says that the destination answered with yes and that the look
	// which is owed was put off on purpose: callers need not wait for it.
	Unverified bool `json:"unverified,omitempty"`
	// Tombstone says that the write was pruned: what is left is its identity
	// and how it ended, without intent, evidence and events.
	Tombstone bool `json:"tombstone,omitempty"`

	// QueuedAt is since when the write may be sent: reserved, approved, or freed
	// by the one before it.
	QueuedAt time.Time `json:"queued_at,omitzero"`
	// Due is when the record wants work. Zero: not before something happens.
	Due time.Time `json:"due,omitzero"`
	// Owner holds the lease until LeaseUntil; Fence grows with every change of
	// hands. LeaseFor is how far each append extends the lease.
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

// Phase is the state for people: settled records say how.
func (r Record) Phase() string {
	if r.State == Settled {
		return string(r.State) + " (" + string(r.Settlement) + ")"
	}
	return string(r.State)
}

// NewRecord is the identity of a write as it is reserved. The intent must be
// valid.
func NewRecord(w intent.WriteIntent) (Record, error) {
	digest, err := w.Digest()
	if err != nil {
		return Record{}, err
	}
	body, err := w.Encode()
	if err != nil {
		return Record{}, err
	}
	keyDigest := ""
	if w.Compensates == "" {
		if keyDigest, err = w.KeyDigest(); err != nil {
			return Record{}, err
		}
	}
	key := w.StructuralKey()
	return Record{
		ID: IDOf(key), StructuralKey: key, KeyDigest: keyDigest, Digest: digest, Intent: body,
		Tenant: w.Tenant, Workflow: w.Workflow, Step: w.Step, Tool: w.Tool, Call: w.Call,
		IdempotencyKey: w.IdempotencyKey, CorrelationID: w.CorrelationID,
		Destination: w.Destination, Kind: w.Kind, Parent: ID(w.Compensates),
	}, nil
}

// Identity is the record as it was reserved: what never changes about it, and
// nothing that happened to it.
func (r Record) Identity() Record {
	return Record{
		ID: r.ID, StructuralKey: r.StructuralKey, Digest: r.Digest, KeyDigest: r.KeyDigest, Intent: r.Intent,
		Tenant: r.Tenant, Workflow: r.Workflow, Step: r.Step, Tool: r.Tool, Call: r.Call,
		IdempotencyKey: r.IdempotencyKey, CorrelationID: r.CorrelationID,
		Destination: r.Destination, Kind: r.Kind, Parent: r.Parent,
		Entrusted: r.Entrusted, RequestedBy: r.RequestedBy, Trace: r.Trace, NotChecked: r.NotChecked, Proof: r.Proof,
	}
}

// InLine reports whether the write holds a place in the line of its
// [Record.KeyDigest]: it may yet be sent, or land, and so whatever comes after
// it on the same record waits. A held write is not in line; it joins at its
// approval.
func (r Record) InLine() bool {
	if r.KeyDigest == "" || r.Passed || r.Alone {
		return false
	}
	switch r.State {
	case Queued, Sending, Checking, Compensating, Review:
		return true
	}
	return false
}

// Claimable reports whether a worker may take the record at the time now: its
// lease has ended and it is due, or early is set, and nothing is before it. A
// tombstone is no work, and what is in its caller's hands is nobody else's.
func (r Record) Claimable(now time.Time, early bool) bool {
	if r.LeaseUntil.After(now) || r.Behind != "" || r.Tombstone || r.State == Entrusted {
		return false
	}
	return early || (!r.Due.IsZero() && !r.Due.After(now))
}

// Lend gives the record to a worker under the next fence.
func (r Record) Lend(owner string, leaseFor time.Duration, now time.Time) Record {
	r.Owner, r.LeaseFor, r.LeaseUntil = owner, leaseFor, now.Add(leaseFor)
	r.Fence++
	r.Now = now
	return r
}
