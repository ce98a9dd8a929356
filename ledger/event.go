package ledger

import (
	"encoding/json"
	"time"
)

// EventKind is what happened.
type EventKind string

// The kinds of events. Apply defines in which states each is legal and what it does.
const (
	EvReserved     EventKind = "reserved"     // the structural key was taken
	EvFreed        EventKind = "freed"        // the write before it in the queue is done
	EvHeld         EventKind = "held"         // waits for approval
	EvAgreed       EventKind = "agreed"       // a reviewer approved it; another one must as well
	EvOverdue      EventKind = "overdue"      // not approved in time; it continues to wait, and other reviewers are notified
	EvApproved     EventKind = "approved"     // a reviewer approved it
	EvDelegated    EventKind = "entrusted"    // its caller may make the write
	EvYielded      EventKind = "yielded"      // an operator released the business operation
	EvRead         EventKind = "read"         // the destination was read, or could not be
	EvAnnounced    EventKind = "announced"    // a send is about to be made
	EvPrepared     EventKind = "prepared"     // the destination made what the announced send needs, such as a draft
	EvSent         EventKind = "sent"         // what became of the send, as far as known
	EvRecovered    EventKind = "recovered"    // announced, and its worker is gone: fate unknown
	EvRestored     EventKind = "restored"     // history is missing in which it may have been sent: fate unknown
	EvDeferred     EventKind = "deferred"     // put back until due
	EvEscalated    EventKind = "escalated"    // handed to a reviewer
	EvDirected     EventKind = "directed"     // a reviewer decided what to do next
	EvCompensating EventKind = "compensating" // a compensating write is registered
	EvSettled      EventKind = "settled"      // done
	EvRechecked    EventKind = "rechecked"    // a pending recheck was made and agrees
	EvLate         EventKind = "late"         // result of a worker that had lost its lease
)

// Event is one thing that happened to a write. The ledger sets Seq, At and Fence.
type Event struct {
	Seq   int64     `json:"seq"`
	At    time.Time `json:"at"`
	Fence int64     `json:"fence"`

	Kind EventKind `json:"kind"`
	// By is the worker or the reviewer; Rule names the rule that decided; Reason is a sentence
	// for people.
	By     string `json:"by,omitempty"`
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Trace is the W3C trace context (traceparent) of the call that caused the event, where that
	// differs from the write's: a reviewer's decision, another worker. Default that of the write.
	Trace string `json:"trace,omitempty"`
	// Ago is how long before it was appended the event happened, on the
	// worker's own clock. Default 0.
	Ago time.Duration `json:"ago,omitempty"`

	// Reserved, approved, freed: the write of the same queue that must be done first. Default
	// none. Drivers set it.
	QueuedBehind ID `json:"behind,omitempty"`
	// Held: how many reviewers must approve. Default one.
	Need int `json:"need,omitempty"`
	// Agreed, approved, settled as denied: the digest that the reviewer saw. Default not given.
	Digest string `json:"digest,omitempty"`
	// Deferred: the read of an answered send is deferred on purpose, and callers need not wait
	// for it. Default false.
	Unverified bool `json:"unverified,omitempty"`
	// Read: the verdict, whether it was the pre-state, how many consecutive reads agreed (default
	// 1), and whether it showed an effect of this write.
	Verdict string `json:"verdict,omitempty"`
	Before  bool   `json:"before,omitempty"`
	Count   int    `json:"count,omitempty"`
	// Read: how many calls to the destination these reads took together. Default: one for each.
	Calls  int  `json:"calls,omitempty"`
	Effect bool `json:"effect,omitempty"`
	// Read: it failed, or proved nothing. Default false.
	Unproven bool `json:"unproven,omitempty"`
	// Announced: the key's generation, how long until the send has surely ended, and whether it
	// makes a late duplicate possible. Recovered: how long after its announcement the send can be
	// in flight, 0 where it is known to be over.
	Generation   int           `json:"generation,omitempty"`
	Conditional  bool          `json:"conditional,omitempty"`
	SendFor      time.Duration `json:"send_for,omitempty"`
	NeedsRecheck bool          `json:"owes_recheck,omitempty"`
	// Announced: the send updates what the destination did not store. Default false.
	Repair bool `json:"repair,omitempty"`
	// Prepared is what the connector built to be sent, on the first announcement only, or what
	// the destination made for it. Default nothing.
	Prepared []byte `json:"prepared,omitempty"`
	// Announced: the write needs no queue, since its key names no record of its own. It leaves
	// the queue. Default false.
	Unordered bool `json:"alone,omitempty"`
	// Sent: its fate ("" is unknown), the destination's code, whether it was refused because
	// something exists or changed, how long the destination asked to wait, and the names that it
	// gave the record.
	Fate       string        `json:"fate,omitempty"`
	Code       string        `json:"code,omitempty"`
	Conflict   bool          `json:"conflict,omitempty"`
	RetryAfter time.Duration `json:"retry_after,omitempty"`
	Ref        string        `json:"ref,omitempty"`
	URL        string        `json:"url,omitempty"`
	Version    string        `json:"version,omitempty"`
	// Sent: the idempotency key on the wire, whether the destination reported a replay of an
	// earlier answer, and its own words: the code and text of a refusal, its request id, and the
	// beginning of its answer, sealed where fields can be sensitive. Default nothing.
	Key       string `json:"key,omitempty"`
	Replayed  bool   `json:"replayed,omitempty"`
	ErrorCode string `json:"error_code,omitempty"`
	Message   string `json:"message,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Answer    []byte `json:"answer,omitempty"`
	// Restored: the ledger lacks the sends that were made from LostFrom until LostUntil.
	LostFrom  time.Time `json:"lost_from,omitzero"`
	LostUntil time.Time `json:"lost_until,omitzero"`
	// In is when the record is due again, counted from the append, for deferred, escalated,
	// settled, rechecked, held (until when it must be approved) and overdue. Default: at once for
	// deferred, never for the others.
	In time.Duration `json:"in,omitempty"`
	// Settled, rechecked: when the last pending recheck is due, counted from the
	// append. Default: none is pending after In.
	Until time.Duration `json:"until,omitempty"`
	// Settled: how. Compensating: by which write. Directed: what to do.
	Settlement Status `json:"settlement,omitempty"`
	Child      ID     `json:"child,omitempty"`
	Directed   string `json:"directed,omitempty"`
	// Rechecked: the later write that has changed the record, if any. Default none, or not known.
	Later ID `json:"later,omitempty"`
	// Evidence is what was observed, Mismatches how it differs, as JSON. Reserved: Evidence is
	// the identity of the write ([Rebuild]).
	Evidence   json.RawMessage `json:"evidence,omitempty"`
	Mismatches json.RawMessage `json:"mismatches,omitempty"`
}

// ReadCalls returns how many calls to the destination a read event stands for.
func (e Event) ReadCalls() int { return max(e.Calls, e.Count, 1) }
