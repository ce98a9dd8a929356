package ledger

import (
	"encoding/json"
	"time"
)

// EventKind says what happened.
type EventKind string

// The kinds of events. Apply says in which states each is legal and what it
// does.
const (
	EvReserved     EventKind = "reserved"     // the structural key was taken
	EvFreed        EventKind = "freed"        // the write before it in line is done
	EvHeld         EventKind = "held"         // waits for approval
	EvAgreed       EventKind = "agreed"       // a person approved it, and another one must as well
	EvOverdue      EventKind = "overdue"      // nobody approved it in time; it goes on waiting, and others are told
	EvApproved     EventKind = "approved"     // a person let it go
	EvEntrusted    EventKind = "entrusted"    // its caller may make the write itself
	EvYielded      EventKind = "yielded"      // a person let the business operation go
	EvRead         EventKind = "read"         // the destination was read, or could not be
	EvAnnounced    EventKind = "announced"    // a send is about to be made
	EvSent         EventKind = "sent"         // what became of the send, as far as known
	EvRecovered    EventKind = "recovered"    // found announced with nobody at work: fate unknown
	EvDeferred     EventKind = "deferred"     // put back until due
	EvEscalated    EventKind = "escalated"    // handed to a person
	EvDirected     EventKind = "directed"     // a person decided what to do next
	EvCompensating EventKind = "compensating" // a compensating write is registered
	EvSettled      EventKind = "settled"      // done
	EvRechecked    EventKind = "rechecked"    // an owed recheck was made and agrees
	EvLate         EventKind = "late"         // result of a worker that had lost its lease
)

// Event is one thing that happened to a write. Seq, At and Fence are given by
// the ledger.
type Event struct {
	Seq   int64     `json:"seq"`
	At    time.Time `json:"at"`
	Fence int64     `json:"fence"`

	Kind EventKind `json:"kind"`
	// By is the worker or the person; Rule names the rule that decided;
	// Reason is a sentence for a person.
	By     string `json:"by,omitempty"`
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Trace is the W3C trace context (traceparent) of the call that caused the
	// event, where that is not the one of the write: a person's decision, another
	// worker. Default that of the write.
	Trace string `json:"trace,omitempty"`
	// Ago is how long before it was appended the event happened, on the
	// worker's own clock. Default 0.
	Ago time.Duration `json:"ago,omitempty"`

	// Reserved, approved, freed: the write of the same line that must be done
	// first. Default none. Drivers give it.
	Behind ID `json:"behind,omitempty"`
	// Held: how many people must approve. Default one.
	Need int `json:"need,omitempty"`
	// Agreed, approved, settled as denied: the digest that the person saw.
	// Default not said.
	Digest string `json:"digest,omitempty"`
	// Deferred: the look that is owed to an answered send is put off on
	// purpose, and callers need not wait for it. Default false.
	Unverified bool `json:"unverified,omitempty"`
	// Read: the verdict, whether it was the pre-state, how many reads in a row
	// said the same (default 1), and whether it showed an effect of ours.
	Verdict string `json:"verdict,omitempty"`
	Before  bool   `json:"before,omitempty"`
	Count   int    `json:"count,omitempty"`
	Effect  bool   `json:"effect,omitempty"`
	// Read: it could not be made, or proved nothing. Default false.
	Unproven bool `json:"unproven,omitempty"`
	// Announced: the key's generation, how long until the send has surely
	// ended, and whether it makes a late double possible. Recovered: how long after
	// its announcement the send can be under way, 0 where it is known to be over.
	Generation  int           `json:"generation,omitempty"`
	Conditional bool          `json:"conditional,omitempty"`
	SendFor     time.Duration `json:"send_for,omitempty"`
	OwesRecheck bool          `json:"owes_recheck,omitempty"`
	// Announced: the send is an update of what the destination did not store.
	// Default false.
	Repair bool `json:"repair,omitempty"`
	// Prepared is what the connector built to be sent, on the first
	// announcement alone. Default nothing.
	Prepared []byte `json:"prepared,omitempty"`
	// Announced: the write needs no place in its line, since its key names no
	// record of its own. It leaves the line. Default false.
	Alone bool `json:"alone,omitempty"`
	// Sent: its fate ("" is unknown), the destination's code, whether it was
	// refused because something exists or changed, how long the destination
	// asked to wait, and the names it gave the record.
	Fate       string        `json:"fate,omitempty"`
	Code       string        `json:"code,omitempty"`
	Conflict   bool          `json:"conflict,omitempty"`
	RetryAfter time.Duration `json:"retry_after,omitempty"`
	Ref        string        `json:"ref,omitempty"`
	URL        string        `json:"url,omitempty"`
	Version    string        `json:"version,omitempty"`
	// Sent: the idempotency key on the wire, whether the destination said that it
	// replays an earlier answer, and what it said in its own words: its code of a
	// refusal, its sentence about it, its id of the request, and the beginning of its
	// answer, sealed where fields can be sensitive. Default nothing.
	Key       string `json:"key,omitempty"`
	Replayed  bool   `json:"replayed,omitempty"`
	ErrorCode string `json:"error_code,omitempty"`
	Message   string `json:"message,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Answer    []byte `json:"answer,omitempty"`
	// In is when the record wants work again, counted from the append, for
	// deferred, escalated, settled, rechecked, held (until when it must be
	// approved) and overdue. Default: at once for deferred, never for the others.
	In time.Duration `json:"in,omitempty"`
	// Settled, rechecked: when the last pending recheck is due, counted from the
	// append. Default: none is pending after In.
	Until time.Duration `json:"until,omitempty"`
	// Settled: how. Compensating: by which write. Directed: what to do.
	Settlement Settlement `json:"settlement,omitempty"`
	Child      ID         `json:"child,omitempty"`
	Directed   string     `json:"directed,omitempty"`
	// Rechecked: the later write that has changed the record, where one has. Default
	// none, or not known.
	Later ID `json:"later,omitempty"`
	// Evidence is what was seen, Mismatches how it differs, as JSON. Reserved:
	// Evidence is which write it is ([Rebuild]).
	Evidence   json.RawMessage `json:"evidence,omitempty"`
	Mismatches json.RawMessage `json:"mismatches,omitempty"`
}
