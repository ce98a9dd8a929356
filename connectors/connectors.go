// Package connectors says what a destination is.
//
// A destination is reached through a [Connector], which has two methods: write
// once, and read every match. What the destination can do is data, its
// [Profile]; what only some can do is an optional interface ([BulkReader],
// [Checker], [Inverter], [Lister], [Preparer], [Remover], [Sampler],
// [Prober]). The zero value of everything here is the cautious one:
// an error that says nothing is ambiguous, a read that says nothing is weak, a
// bound that is not declared is unknown.
//
// The package does not send, retry, wait or compare: that is for verify and
// engine. Destinations live in packages of their own below this one.
package connectors

import (
	"context"
	"time"

	"github.com/readback-go/readback/intent"
)

// Connector is one destination. Implementations must be safe for concurrent
// use, must honour ctx, and must pass package connectortest.
type Connector interface {
	// Write sends once. It never retries, never follows a redirect, and never
	// reads back. A nil error means that the destination said yes. An error
	// means, by [FateOf], not sent, refused or throttled; every error that is
	// not one of those kinds means that nobody knows.
	Write(ctx context.Context, r Request) (Receipt, error)

	// Read finds every record that bears the stamp or matches the business
	// key with exact equality. It changes nothing at the destination and never
	// answers from what a write said. A nil error and no records mean absent
	// as far as this read can tell; whatever is doubtful (refused, throttled,
	// unparsable, timed out, a 404 that may mean "no permission") is an error.
	Read(ctx context.Context, q Query) (Observation, error)
}

// Request is one send.
type Request struct {
	Intent intent.WriteIntent
	// Stamp is to be written into the record where it has room.
	Stamp string
	// IdempotencyKey is the key for the destination's own deduplication. The
	// same for every repeat that must be recognised as one. Connectors put it
	// on the wire only where the profile says that it is honoured: Go's
	// transport silently resends a POST that carries such a header.
	IdempotencyKey string
	// Attempt counts sends of this write from 1.
	Attempt int
	// Before is what the pre-state read found; nil when none was made.
	Before *Observation
	// Conditional asks that the write be refused unless the record still is
	// as in Before. Set only where the profile has it.
	Conditional bool
	// Prepared is what [Preparer] made of the write before its first send, the
	// same for every send; nil where the connector is none.
	Prepared []byte
}

// Receipt is what the destination answered. It is evidence, never the result.
type Receipt struct {
	Ref     string `json:"ref,omitempty"`     // the destination's own id of the record
	URL     string `json:"url,omitempty"`     // where a person finds it
	Version string `json:"version,omitempty"` // ETag, revision, mod-sequence
	Code    string `json:"code,omitempty"`    // the status it answered, "201" or "OK"
	Replay  bool   `json:"replay,omitempty"`  // it said that it replays an earlier answer
	// Said is what the destination said in its own words. It is set with an error
	// too. Default nothing.
	Said Said `json:"said,omitzero"`
}

// Said is what a destination said of a send, in its own words: foreign text, which is
// shown and kept, and never followed. It is bounded and redacted where it is recorded.
type Said struct {
	Code      string `json:"code,omitempty"`       // its own code of a refusal: "charge_already_refunded"
	Message   string `json:"message,omitempty"`    // its own sentence about a refusal
	RequestID string `json:"request_id,omitempty"` // by which its support finds the request
	Raw       []byte `json:"raw,omitempty"`        // the answer itself, as far as it was read
}

// Query asks for every record of one write.
type Query struct {
	Intent intent.WriteIntent
	Stamp  string
	// Ref is the destination's own id when a receipt named it, or of the one
	// record that an update, upsert or delete was aimed at, else "". It may make
	// a read stronger; it must not hide other matches. The record is to be shown
	// as it is now where it can be read by its id, also without our stamp or key:
	// it is not gone for that.
	Ref string
}

// Strength is how much a read can be trusted to show the latest state.
type Strength string

// The read strengths. The zero value is weak.
const (
	Weak   Strength = ""       // may lag behind, or come from an index or a replica
	Strong Strength = "strong" // shows everything the destination applied before the read began
)

// Independence is by which way a read sees a record, compared with the way by which
// writes are sent. It says nothing of strength: a copy on another server may lag,
// and an interface beside the one that took the write may show it late.
type Independence string

// The ways. The zero value claims the least, and is true of every connector.
const (
	// OwnCall: a call of its own through the interface that takes writes, answered
	// from nothing that a write was answered with. Another path of one API (a search
	// index beside a look-up) is no more than that.
	OwnCall Independence = ""
	// OtherInterface: an interface that takes none of our writes, in another
	// protocol: a mailbox by IMAP after a send by SMTP. Whether one machine is behind
	// both, nobody here knows.
	OtherInterface Independence = "other_interface"
	// OtherServer: a server that could take no writes when it was asked, and was
	// shown to follow the one that takes them: a streaming standby. What it has came
	// from there.
	OtherServer Independence = "other_server"
)

// Words are for people: what a read by this way was.
func (i Independence) Words() string {
	switch i {
	case OtherInterface:
		return "a call through another interface than the one that takes writes"
	case OtherServer:
		return "a call to another server than the one that takes writes"
	}
	return "a call of its own"
}

// Observation is what one read found.
type Observation struct {
	Records  []Record  `json:"records"`
	Strength Strength  `json:"strength,omitempty"`
	At       time.Time `json:"at"`             // when the read was begun
	Path     string    `json:"path,omitempty"` // how it was read ("get", "search"), for people and statistics
	// Independent is by which way this very read was made, as far as the connector
	// knows for sure. It is never more than its profile declares of the path.
	Independent Independence `json:"independent,omitempty"`
	// Failed is why the effect of a record that is as declared came to nothing all
	// the same, as the destination or a system behind it reports: a mail that is in
	// the mailbox of what was sent, and bounced. Foreign text; "" where nothing says
	// so.
	Failed string `json:"failed,omitempty"`
}

// Record is one record as it was read.
type Record struct {
	Ref     string        `json:"ref,omitempty"`
	URL     string        `json:"url,omitempty"`
	Version string        `json:"version,omitempty"`
	Stamp   string        `json:"stamp,omitempty"` // the stamp it bears, "" if none or if it has no room
	Fields  intent.Fields `json:"fields"`          // the key fields included
}

// Inverter is an optional power: the intent that undoes an intent.
type Inverter interface {
	// Invert builds the compensation from what was there before and after.
	// It fills destination, kind, key, write, expect, payload and require;
	// the engine fills the rest. It must not overwrite what somebody else
	// changed since: it requires what after shows. An error means that the
	// write cannot be undone.
	Invert(w intent.WriteIntent, before *Observation, after Observation) (intent.WriteIntent, error)
}

// Remover is an optional power: the intent that removes one of two records that
// a create made.
type Remover interface {
	// Remove builds the delete of surplus, a record that w, a create, made beside
	// another one. It fills destination, kind, key, write and require; the engine
	// fills the rest. The key is the record's own, by which no other one can ever
	// be found, and not the business key that both share. It requires all that was
	// seen of the record that can tell whether somebody worked on it. An error
	// means that the record cannot be addressed, or is not surely as w made it.
	Remove(w intent.WriteIntent, surplus Record) (intent.WriteIntent, error)
}

// BulkReader is an optional power: several reads in one call. The answers
// stand in the order of the questions; one that cannot be answered has Err
// set and spoils no other.
type BulkReader interface {
	ReadMany(ctx context.Context, qs []Query) ([]BulkAnswer, error)
}

// BulkAnswer is one answer of a bulk read.
type BulkAnswer struct {
	Observation Observation
	Err         error
}

// Checker is an optional power: refuse an intent that can never be served, so
// that it is not recorded.
type Checker interface {
	// Check looks at the intent alone, and does no I/O. The error names the
	// field and what would be right. What it lets pass Write may still refuse.
	Check(w intent.WriteIntent) error
}

// NotChecker is an optional power: say what of an intent is sent and never
// compared. Default: its payload.
type NotChecker interface {
	// NotChecked lists it as JSON Pointers, and does no I/O.
	NotChecked(w intent.WriteIntent) []string
}

// Preparer is an optional power: build what is sent once, before the first
// send. The ledger keeps it, so that every later send of the write is the same
// to the byte, whatever clock, process or version of the program makes it.
type Preparer interface {
	// Prepare builds it, at most [MaxPrepared] bytes, without asking the
	// destination. r has neither Attempt nor Before. An error means that the
	// write cannot be sent; nothing was.
	Prepare(ctx context.Context, r Request) ([]byte, error)
}

// MaxPrepared is how many bytes may be prepared for one write, 1 MiB: the
// ledger carries them with the record.
const MaxPrepared = 1 << 20

// Sampler is an optional power: make the intents of records that exist to be
// measured, in a sandbox account.
type Sampler interface {
	// Sample returns an intent of the write type on the sample record of that
	// name (letters and digits): kind, key, write, expect and payload are set.
	// One name always has one business key, two names have two; what a create
	// writes shows a person that it is a sample of readback. An update changes
	// at least one field of the create. An error says what is missing in the
	// configuration, or that the kind has no such write.
	Sample(kind string, w intent.WriteType, name string) (intent.WriteIntent, error)
}

// Prober is an optional power: say whether the destination can be reached and
// the credentials work, without writing.
type Prober interface {
	Probe(ctx context.Context) error
}
