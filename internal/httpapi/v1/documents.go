package v1

import (
	"encoding/json"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// Row is a write in a listing: its subject and state, without its intent and its
// evidence.
type Row struct {
	ID             ledger.ID     `json:"id"`
	Status         ledger.Status `json:"status" jsonschema:"what became of it; see Outcome"`
	Phase          string        `json:"phase" jsonschema:"the state in the ledger; of a settled write with how it ended"`
	Text           string        `json:"text" jsonschema:"a sentence for people"`
	Workflow       string        `json:"workflow"`
	Step           string        `json:"step,omitempty"`
	Tool           string        `json:"tool"`
	Call           int           `json:"call,omitempty"`
	Destination    string        `json:"destination"`
	Kind           string        `json:"kind"`
	IdempotencyKey string        `json:"idempotency_key,omitempty"`
	CorrelationID  string        `json:"correlation_id,omitempty"`
	Trace          string        `json:"trace,omitempty" jsonschema:"the W3C trace context (traceparent) that it came with"`
	KeyDigest      string        `json:"key_digest,omitempty" jsonschema:"fingerprint of destination, kind and business key, made with a key of the ledger: writes about one record share it"`
	Digest         string        `json:"digest" jsonschema:"fingerprint of what the intent asks for; a decision may name it"`
	Seq            int64         `json:"seq" jsonschema:"how many events there are; a decision may name it"`
	RequestedBy    string        `json:"requested_by,omitempty"`
	Verdict        string        `json:"verdict,omitempty"`
	Reason         string        `json:"reason,omitempty"`
	Sends          int           `json:"sends"`
	Reads          int           `json:"reads"`
	Created        time.Time     `json:"created"`
	Updated        time.Time     `json:"updated"`
	Settled        time.Time     `json:"settled,omitzero"`
	Due            time.Time     `json:"due,omitzero" jsonschema:"when it wants work, or until when it must be approved"`
	Matched        []string      `json:"matched,omitempty" jsonschema:"with q: what of the write begins with it: id, workflow, idempotency_key, ref, or the place of a value of the business key, such as /key/number"`
}

func rowOf(r ledger.Record) Row {
	out := engine.OutcomeOf(r)
	return Row{ID: r.ID, Status: out.Status, Phase: r.Phase(), Text: out.Text, Workflow: r.Workflow, Step: r.Step, Tool: r.Tool, Call: r.Call,
		Destination: r.Destination, Kind: r.Kind, IdempotencyKey: r.IdempotencyKey, CorrelationID: r.CorrelationID, Trace: r.Trace,
		KeyDigest: r.KeyDigest, Digest: r.Digest, Seq: r.Seq, RequestedBy: r.RequestedBy, Verdict: r.Verdict, Reason: r.Reason,
		Sends: r.Sends, Reads: r.Reads, Created: r.Created, Updated: r.Updated, Settled: r.SettledAt, Due: r.Due}
}

// Writes is a page of writes.
type Writes struct {
	Writes []Row `json:"writes"`
	// Next is given to after for the next page.
	Next   string   `json:"next,omitempty" jsonschema:"give it to after for the next page; it is not there on the last one"`
	Unread []Unread `json:"unread,omitempty" jsonschema:"writes that were left out because their rows cannot be read"`
}

// Unread is a write whose row cannot be read.
type Unread struct {
	ID     ledger.ID `json:"id"`
	Reason string    `json:"reason"`
}

func unreadOf(all []ledger.Unread) []Unread {
	var out []Unread
	for _, u := range all {
		out = append(out, Unread{ID: u.ID, Reason: u.Err.Error()})
	}
	return out
}

// Account is everything about one write, except its events.
type Account struct {
	service.Business
	Write   Row             `json:"write"`
	Outcome engine.Outcome  `json:"outcome"`
	Intent  json.RawMessage `json:"intent,omitempty" jsonschema:"what was declared; it is not there once the write was pruned"`
	// Before, Evidence and Mismatches are what was read at the destination.
	Before     json.RawMessage `json:"before,omitempty" jsonschema:"the pre-state, where it was read"`
	Evidence   json.RawMessage `json:"evidence,omitempty" jsonschema:"what the last read that succeeded found"`
	Mismatches json.RawMessage `json:"mismatches,omitempty" jsonschema:"how that differs from what was declared"`
	Parent     ledger.ID       `json:"parent,omitempty" jsonschema:"the write that this one undoes"`
	Need       int             `json:"approvals_needed,omitempty" jsonschema:"how many people must approve it; 0 is one"`
	Agreed     []string        `json:"approved_by,omitempty" jsonschema:"who has approved it already"`
	Overdue    bool            `json:"overdue,omitempty" jsonschema:"no reviewer approved it in time, and it continues to wait"`
	Yielded    bool            `json:"yielded,omitempty" jsonschema:"its business operation was released"`
	Pruned     bool            `json:"pruned,omitempty" jsonschema:"only its identity and its end are kept"`
	// Choices are the decisions that the caller may make about it now.
	Choices []engine.Choice `json:"choices,omitempty" jsonschema:"what may be decided about it now, and what each would do"`
}

// Event is one event of a write.
type Event struct {
	Seq          int64            `json:"seq"`
	At           time.Time        `json:"at"`
	Kind         ledger.EventKind `json:"kind"`
	By           string           `json:"by,omitempty" jsonschema:"the worker or the person"`
	Rule         string           `json:"rule,omitempty"`
	Reason       string           `json:"reason,omitempty"`
	Trace        string           `json:"trace,omitempty" jsonschema:"the W3C trace context of the call that caused it, where that is not the one of the write"`
	QueuedBehind ledger.ID        `json:"behind,omitempty"`
	Child        ledger.ID        `json:"child,omitempty"`
	Need         int              `json:"approvals_needed,omitempty"`
	Digest       string           `json:"digest,omitempty" jsonschema:"what the person saw"`
	Verdict      string           `json:"verdict,omitempty"`
	Count        int              `json:"count,omitempty" jsonschema:"how many reads in a row had the same result"`
	Effect       bool             `json:"effect,omitempty" jsonschema:"the read showed an effect of this write"`
	Unverified   bool             `json:"unverified,omitempty"`
	Fate         string           `json:"fate,omitempty" jsonschema:"what is known about the send; of a sent event without it: nothing"`
	Code         string           `json:"code,omitempty"`
	Key          string           `json:"key,omitempty" jsonschema:"the idempotency key that went over the wire"`
	Replayed     bool             `json:"replayed,omitempty" jsonschema:"the destination marks the answer as a replay of an earlier one"`
	ErrorCode    string           `json:"error_code,omitempty" jsonschema:"the destination's own code of a refusal"`
	Message      string           `json:"message,omitempty" jsonschema:"the destination's own sentence about it: foreign text"`
	RequestID    string           `json:"request_id,omitempty" jsonschema:"the destination's own id of the request"`
	Conflict     bool             `json:"conflict,omitempty"`
	RetryAfter   float64          `json:"retry_after_seconds,omitempty"`
	Ref          string           `json:"ref,omitempty"`
	URL          string           `json:"url,omitempty"`
	Settlement   string           `json:"settlement,omitempty"`
	Directed     string           `json:"directed,omitempty"`
	Evidence     json.RawMessage  `json:"evidence,omitempty"`
	Mismatches   json.RawMessage  `json:"mismatches,omitempty"`
}

func eventOf(e ledger.Event) Event {
	return Event{Seq: e.Seq, At: e.At, Kind: e.Kind, By: e.By, Rule: e.Rule, Reason: e.Reason, Trace: e.Trace, QueuedBehind: e.QueuedBehind, Child: e.Child,
		Need: e.Need, Digest: e.Digest, Verdict: e.Verdict, Count: e.Count, Effect: e.Effect, Unverified: e.Unverified,
		Fate: e.Fate, Code: e.Code, Conflict: e.Conflict, RetryAfter: e.RetryAfter.Seconds(), Ref: e.Ref, URL: e.URL,
		Key: e.Key, Replayed: e.Replayed, ErrorCode: e.ErrorCode, Message: e.Message, RequestID: e.RequestID,
		Settlement: string(e.Settlement), Directed: e.Directed, Evidence: e.Evidence, Mismatches: e.Mismatches}
}

// Life is the events of one write, in order.
type Life struct {
	ID     ledger.ID `json:"id"`
	Events []Event   `json:"events"`
}

// Sagas is a listing of sagas.
type Sagas struct {
	Sagas []saga.Saga `json:"sagas"`
}

// Stop is a stop, or the record of one that was released.
type Stop struct {
	// Everybody reports that it holds the sends of all tenants.
	Everybody   bool         `json:"everybody,omitempty" jsonschema:"it holds the sends of all tenants, and is released on the command line alone"`
	Destination string       `json:"destination,omitempty" jsonschema:"of this destination; without it of all"`
	Tool        string       `json:"tool,omitempty" jsonschema:"of this tool; without it of all"`
	Active      bool         `json:"active" jsonschema:"it holds sends; else it was released"`
	Damaged     bool         `json:"damaged,omitempty" jsonschema:"its note cannot be read; it holds until its scope is stopped or released anew"`
	Log         []guards.Act `json:"log" jsonschema:"who stopped and released it and why, newest last"`
}

func stopOf(s guards.Stopped) Stop {
	return Stop{Everybody: s.Tenant == "", Destination: s.Destination, Tool: s.Tool, Active: s.Active, Damaged: s.Damaged, Log: append([]guards.Act{}, s.Log...)}
}

// Stops is a listing of stops.
type Stops struct {
	Stops []Stop `json:"stops"`
}

func stopsOf(all []guards.Stopped) Stops {
	s := Stops{Stops: []Stop{}}
	for _, each := range all {
		s.Stops = append(s.Stops, stopOf(each))
	}
	return s
}

// Inbox is what waits for a reviewer.
type Inbox struct {
	Writes []Waiting              `json:"writes" jsonschema:"the riskiest first, of equal ones the oldest"`
	Steps  []gate.PendingApproval `json:"steps" jsonschema:"steps of workflows that wait for approval at the gate"`
	Sagas  []saga.Saga            `json:"sagas" jsonschema:"sagas in review"`
	More   bool                   `json:"more" jsonschema:"more waits than is shown"`
	Unread []Unread               `json:"unread,omitempty" jsonschema:"writes whose rows cannot be read: what they wait for is not known"`
}

// Waiting is a write that waits for a reviewer.
type Waiting struct {
	service.Business
	Write Row    `json:"write"`
	Risk  string `json:"risk,omitempty" jsonschema:"the risk class that was declared"`
	Final bool   `json:"final,omitempty" jsonschema:"what it does, or may have done, cannot be taken back"`
}

// History counts the results of writes over time.
type History struct {
	Since time.Time     `json:"since"`
	Until time.Time     `json:"until"`
	Step  string        `json:"step" jsonschema:"the length of a span, as a duration"`
	Spans []ledger.Span `json:"spans" jsonschema:"oldest first; those in which nothing happened are left out"`
}

// Sent is one event of the stream: an event of a write, and the write's current state.
type Sent struct {
	Write    ledger.ID        `json:"write"`
	Happened ledger.EventKind `json:"happened" jsonschema:"held, agreed, overdue, approved, escalated, directed, deferred, settled or yielded"`
	At       time.Time        `json:"at"`
	Outcome  engine.Outcome   `json:"outcome" jsonschema:"the state of the write when this is sent, which may be later than what happened"`
}
