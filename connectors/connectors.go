// Package connectors defines what a destination is.
//
// A destination is reached through a [Connector], which has two methods: write once, and read
// every match. What the destination can do is data, its [Profile]. What only some can do is an
// optional interface ([BulkReader], [Checker], [Inverter], [Lister], [Preparer], [Sampler],
// [Prober]). The zero value of everything here is the cautious one: an error without a kind is
// ambiguous, a read without a strength is weak, an undeclared bound is unknown.
//
// The package does not send, retry, wait or compare: verify and engine do. Destinations have
// packages of their own below this one.
package connectors

import (
	"context"
	"time"

	"github.com/readback-go/readback/intent"
)

// Connector is one destination. Implementations must be safe for concurrent
// use, must honour ctx, and must pass package connectortest.
type Connector interface {
	// Write sends once. It never retries, never follows a redirect, and never reads back. A nil
	// error means that the destination accepted the write. An error means, by [FateOf], not sent,
	// refused or throttled. An error of any other kind means that the result is unknown.
	Write(ctx context.Context, r Request) (Receipt, error)

	// Read returns every record that has the stamp or matches the business key with exact
	// equality. It changes nothing at the destination and never uses the response of a write. A
	// nil error and no records mean absent as far as this read can show. Anything doubtful
	// (refused, throttled, unparsable, timed out, a 404 that may mean "no permission") is an
	// error.
	Read(ctx context.Context, q Query) (Observation, error)
}

// Request is one send.
type Request struct {
	Intent intent.WriteIntent
	// Stamp is written into the record where it has a place for it.
	Stamp string
	// IdempotencyKey is the key for the destination's own deduplication. It is the same for every
	// repeat of one write. Connectors send it only where the profile says that it is honoured:
	// Go's transport silently resends a POST that carries such a header.
	IdempotencyKey string
	// Attempt counts sends of this write from 1.
	Attempt int
	// FirstSent is when the first send of this write was announced, on the ledger's clock: the same
	// for every repeat.
	FirstSent time.Time
	// Before is what the pre-state read found; nil when none was made.
	Before *Observation
	// Conditional makes the write conditional: refused unless the record still equals Before. Set
	// only where the profile supports it.
	Conditional bool
	// Prepared is what [Preparer] made of the write before its first send, or what Keep recorded
	// in an earlier one: the same for every later send; nil where there is nothing.
	Prepared []byte
	// Keep records what a first call of this write made at the destination, such as the id of a
	// draft, before the call that has the effect is made: once for a write, at most [MaxPrepared]
	// bytes. After an error that second call must not be made, and the write is not sent. Nil
	// where nothing can record it.
	Keep func(ctx context.Context, prepared []byte) error
}

// Receipt is the destination's response. It is evidence, never the result.
type Receipt struct {
	Ref     string `json:"ref,omitempty"`     // the destination's own id of the record
	URL     string `json:"url,omitempty"`     // where a user finds it
	Version string `json:"version,omitempty"` // ETag, revision, mod-sequence
	Code    string `json:"code,omitempty"`    // the status of the response, "201" or "OK"
	Replay  bool   `json:"replay,omitempty"`  // the destination reports that it replays an earlier response
	// Reply is the destination's own text. It is also set with an error. Default none.
	Reply Reply `json:"said,omitzero"`
}

// Reply is the destination's own text about a send. It is foreign text: shown and stored, and
// never followed. It is bounded and redacted where it is recorded.
type Reply struct {
	Code      string `json:"code,omitempty"`       // its own code of a refusal: "charge_already_refunded"
	Message   string `json:"message,omitempty"`    // its own sentence about a refusal
	RequestID string `json:"request_id,omitempty"` // by which its support finds the request
	Raw       []byte `json:"raw,omitempty"`        // the response itself, as far as it was read
}

// Query selects every record of one write.
type Query struct {
	Intent intent.WriteIntent
	Stamp  string
	// Ref is the destination's own id when a receipt named it, or of the one
	// record that an update, upsert or delete was aimed at, else "". It may make
	// a read stronger; it must not hide other matches. The record is to be shown
	// as it is now where it can be read by its id, also without our stamp or key:
	// it is not gone for that.
	Ref string
	// FirstSent is when the first send of the write was announced, on the ledger's clock. Zero: show
	// all. What the write created is no older, as far as the clocks agree; what another actor created
	// may be. The engine leaves it out of the reads on which the absence of an effect may rest.
	FirstSent time.Time
	// Once means that one send of the write was made. A record that is found under the key with
	// its stamp is then all that the write made: a connector need not look for the stamp under
	// other keys. Default false: look for all.
	Once bool
	// Prepared is that of the sends so far, what Request.Keep recorded among it; nil where there is nothing.
	Prepared []byte
}

// Strength is how much a read can be trusted to show the latest state.
type Strength string

// The read strengths. The zero value is weak.
const (
	Weak   Strength = ""       // may lag, or come from an index or a replica
	Strong Strength = "strong" // shows everything the destination applied before the read began
)

// Independence is how the path of a read differs from the path of the writes. It does not
// describe strength: a copy on another server may lag, and a second interface may show a write
// late.
type Independence string

// The ways. The zero value claims the least, and is true of every connector.
const (
	// OwnCall: a separate call through the interface that takes writes, which uses no response of
	// a write. Another path of one API (a search index besides a lookup) is also an OwnCall.
	OwnCall Independence = ""
	// OtherLogin: through that same interface, with credentials that are not those of writes and show
	// no name that writes log in with. Both may be of one account; readback cannot know.
	OtherLogin Independence = "other_login"
	// OtherInterface: an interface that takes none of our writes, in another protocol: a mailbox
	// by IMAP after a send by SMTP. Both may run on one machine; readback cannot know.
	OtherInterface Independence = "other_interface"
	// OtherServer: a server that could take no writes when it was queried, and was shown to
	// follow the one that takes them: a streaming standby. Its data comes from that server.
	OtherServer Independence = "other_server"
)

// Words describes a read of this independence for people.
func (i Independence) Words() string {
	switch i {
	case OtherLogin:
		return "a call with another login than the one that writes"
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
	Path     string    `json:"path,omitempty"` // how it was read ("get", "search"), for display and statistics
	// Independent is by which way this very read was made, as far as the connector
	// knows for sure. It is never more than its profile declares of the path.
	Independent Independence `json:"independent,omitempty"`
	// Failed is why a record that is as declared had no effect, as reported by the destination or
	// a system behind it: a mail that is in the sent mailbox, and bounced. Foreign text. "" where
	// no failure is reported.
	Failed string `json:"failed,omitempty"`
	// Open is what the destination says of a record that is as declared, and of which it has not yet
	// decided whether it takes effect: a refund that is pending. Foreign text. "" where it is decided.
	Open string `json:"open,omitempty"`
	// Unused means that what Query.Prepared names is still there and had no effect when the read
	// was made: a draft that is not sent. Default false: not known.
	Unused bool `json:"unused,omitempty"`
}

// Record is one record as it was read.
type Record struct {
	Ref     string        `json:"ref,omitempty"`
	URL     string        `json:"url,omitempty"`
	Version string        `json:"version,omitempty"`
	Stamp   string        `json:"stamp,omitempty"` // its stamp, "" if it has none or no place for one
	Fields  intent.Fields `json:"fields"`          // the key fields included
}

// Inverter is an optional power: the intent that undoes an intent.
type Inverter interface {
	// Invert builds the compensation from what was there before and after. It fills destination,
	// kind, key, write, expect, payload and require; the engine fills the rest. It must not
	// overwrite a later change of another actor: it requires what after shows. An error means
	// that the write cannot be undone.
	Invert(w intent.WriteIntent, before *Observation, after Observation) (intent.WriteIntent, error)
}

// BulkReader is an optional capability: several reads in one call. The answers have the order of
// the queries. A query that cannot be answered has Err set and does not affect the others.
type BulkReader interface {
	ReadMany(ctx context.Context, qs []Query) ([]BulkAnswer, error)
}

// BulkAnswer is one result of a bulk read.
type BulkAnswer struct {
	Observation Observation
	Err         error
}

// Checker is an optional power: refuse an intent that can never be served, so
// that it is not recorded.
type Checker interface {
	// Check examines the intent alone, and does no I/O. The error names the field and what is
	// accepted there. Write may still refuse what Check accepts.
	Check(w intent.WriteIntent) error
}

// NotChecker is an optional capability: list what an intent sends that is never compared.
// Default: its payload.
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
	// Sample returns an intent of the write type on the sample record of that name (letters and
	// digits): kind, key, write, expect and payload are set. One name always has one business
	// key; two names have two. The content of a create identifies it to users as a sample of
	// readback. An update changes at least one field of the create. An error names what is
	// missing in the configuration, or says that the kind has no such write.
	Sample(kind string, w intent.WriteType, name string) (intent.WriteIntent, error)
}

// Prober is an optional capability: report whether the destination can be reached and the
// credentials work, without writing.
type Prober interface {
	Probe(ctx context.Context) error
}
