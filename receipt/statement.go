package receipt

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	attestation "github.com/in-toto/attestation/go/v1"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

// What a receipt calls itself.
const (
	// PayloadType is the type of the payload in the envelope: an in-toto Statement.
	PayloadType = "application/vnd.in-toto+json"
	// MediaType is that of the envelope, in JSON.
	MediaType = "application/vnd.dsse.envelope.v1+json"
	// PredicateType names what a receipt says, and its version. Whatever is added
	// to it makes another version.
	PredicateType = predicates + "v2"
	predicates    = "https://github.com/readback-go/readback/receipt/"
	// firstType is the version before: what was compared, whether a recheck was pending
	// and what a later read found is not said in it. It is read, and not issued.
	firstType = predicates + "v1"
)

// Statement is a receipt: an in-toto Statement, version 1, about one write.
type Statement struct {
	Type string `json:"_type"`
	// Subject is the one write: its name is the write's id, its digest that of the
	// intent.
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// Subject is what a statement is about.
type Subject struct {
	Name   string `json:"name"`
	Digest Digest `json:"digest"`
}

// Digest is a SHA-256 in lower-case hex.
type Digest struct {
	SHA256 string `json:"sha256"`
}

// Predicate is what is said of the write. Times are UTC and on the ledger's
// clock, where nothing else is said.
type Predicate struct {
	Tenant string `json:"tenant"`
	Write  Write  `json:"write"`
	// Settlement is how the write ended, Verdict what the read that ended it was
	// judged to show: verified or vacuous, and of what was not applied absent or
	// stale. Of a write that was undone it is that of the undoing.
	Settlement ledger.Settlement `json:"settlement"`
	Verdict    string            `json:"verdict"`
	// Claim is the same as a sentence. It follows from the two.
	Claim    string   `json:"claim"`
	Observed Observed `json:"observed"`
	// Compared says what of the observation was compared. Not set in version 1.
	Compared *Compared `json:"compared,omitzero"`
	Read     Read      `json:"read"`
	Times    Times     `json:"times"`
	Attempts Attempts  `json:"attempts"`
	By       By        `json:"by"`
	// Undoing is the write that undid this one, and was read back. Set only where
	// Settlement is compensated: Observed, Read and Verdict are then its own.
	Undoing *Subject `json:"undoing,omitzero"`
	// Rechecks are the reads made since. Default none.
	Rechecks *Rechecks `json:"rechecks,omitzero"`
	// Recheck is the read that is still to be made, and may contradict the receipt.
	// Default none is pending; in version 1 it is not said.
	Recheck *Recheck `json:"recheck,omitzero"`
	// Trace is the W3C trace id. Default none.
	Trace  string `json:"trace,omitzero"`
	Ledger Ledger `json:"ledger"`
	// Readback is the version that issued the receipt.
	Readback string `json:"readback"`
}

// Write is what was asked for.
type Write struct {
	Type          intent.WriteType `json:"type"`
	Destination   string           `json:"destination"`
	Kind          string           `json:"kind"`
	StructuralKey string           `json:"structural_key"`
	// BusinessKey is what the record was looked up by.
	BusinessKey Text `json:"business_key"`
}

// Text is a JSON value by its digest. The digest is over its canonical form:
// members sorted, no white space, numbers as they were read, and sensitive values
// replaced by "redacted:" and a keyed digest.
type Text struct {
	Digest Digest `json:"digest"`
	// Value is that form itself, where it was asked for. It is a string, so that
	// its bytes, and with them its digest, stay what they are.
	Value string `json:"value,omitzero"`
}

// Observed is what the read found.
type Observed struct {
	Text
	// Records is how many records it found.
	Records int `json:"records"`
	// Ref and URL name the one record at the destination. Default not known.
	Ref string `json:"ref,omitzero"`
	URL string `json:"url,omitzero"`
}

// Independence says by which way the read that proves a write was made, compared with
// the way by which writes are sent. It is what the connector knew of that very read.
type Independence string

// The ways. What a read does not say of itself is the first.
const (
	// OwnCall: the read was a call of its own of what the destination offers for
	// reading, and answered from nothing that the write was answered with. The same
	// interface of the same destination gave both answers; no second system was asked.
	OwnCall Independence = "own_call"
	// OtherInterface: it was made through an interface that takes no writes, in another
	// protocol: a mailbox by IMAP after a send by SMTP. Nobody here knows whether one
	// provider is behind both.
	OtherInterface Independence = Independence(connectors.OtherInterface)
	// OtherServer: it was answered by a server that could take no writes when it was
	// asked, and was shown to follow the one that takes them: a streaming standby.
	OtherServer Independence = Independence(connectors.OtherServer)
)

// Words are for people.
func (i Independence) Words() string { return connectors.Independence(i).Words() }

// independenceOf is what a receipt says of a read that says this of itself: in a
// receipt nothing goes without saying, and a word that is not known claims nothing.
func independenceOf(i connectors.Independence) Independence {
	if slices.Contains(independences, Independence(i)) {
		return Independence(i)
	}
	return OwnCall
}

var independences = []Independence{OwnCall, OtherInterface, OtherServer}

// Read is how the observation came about.
type Read struct {
	// Strength is "strong" where the read shows all that the destination applied
	// before it began, and "weak" where it may lag behind.
	Strength string `json:"strength"`
	// Path is how it was read ("get", "search"), in the connector's words; By what
	// was asked for ("key", "stamp", "ref"), as far as its profile says.
	Path string   `json:"path,omitzero"`
	By   []string `json:"by,omitzero"`
	// Independent says how independent of the way of writes it was.
	Independent Independence `json:"independent"`
	// BeforeSend says that the write was found fulfilled before anything was sent,
	// and nothing was. Default false: it was read after the last send.
	BeforeSend bool `json:"before_send,omitzero"`
	// At is when the read began, on the clock of the worker that made it.
	At time.Time `json:"at"`
	// Agreeing is how many reads in a row said so, the last of which is this one.
	Agreeing int `json:"agreeing"`
}

// Times are those of the write.
type Times struct {
	Created time.Time `json:"created"`
	// FirstSend is when the first send was announced, LastSend the latest time at
	// which the last one can have ended. Default nothing was sent.
	FirstSend time.Time `json:"first_send,omitzero"`
	LastSend  time.Time `json:"last_send,omitzero"`
	// Seen is when the read had its answer.
	Seen    time.Time `json:"seen"`
	Settled time.Time `json:"settled"`
}

// Attempts count calls over the whole life of the write.
type Attempts struct {
	Sends int `json:"sends"`
	// Unsent are those of them that the destination provably did not take up.
	Unsent int `json:"unsent"`
	Reads  int `json:"reads"`
}

// By is who or what decided.
type By struct {
	// Rule settled it.
	Rule string `json:"rule"`
	// Approved are the people who let it go, Directed is the person who last told
	// the engine what to do with it. Default nobody had to.
	Approved []string `json:"approved,omitzero"`
	Directed string   `json:"directed,omitzero"`
}

// Rechecks are the reads made after the write was settled.
type Rechecks struct {
	Reads int `json:"reads"`
	// Last is when the last one had its answer, and Verdict what it was judged to
	// show of the write: of one that was undone, absent or stale where nothing of it
	// is left. Unavailable: it could not be read. Where it is something else that does
	// not follow from the receipt, the record was changed since, by others or by
	// another write of ours, which takes nothing back of what was seen before.
	Last    time.Time `json:"last"`
	Verdict string    `json:"verdict"`
	// Found is how the record differed in the last read that did not show what was
	// declared. Default none did.
	Found []Difference `json:"found,omitzero"`
	// ChangedBy is the write of this ledger that has changed the record since. Default
	// not known: destinations do not say who changes a record.
	ChangedBy string `json:"changed_by,omitzero"`
}

// Recheck is a read that a settled write still needs.
type Recheck struct {
	// State is "pending", or "overdue" where it was due before the ledger was read for
	// the receipt and had not been made.
	State string `json:"state"`
	// Due is when the next one is due, Until when the last one is.
	Due   time.Time `json:"due"`
	Until time.Time `json:"until"`
}

// The states of a [Recheck].
const (
	RecheckPending = "pending"
	RecheckOverdue = "overdue"
)

// Ledger is how far the ledger was read for the receipt.
type Ledger struct {
	// Event is the number of the last event of the write.
	Event int64 `json:"event"`
	// At is when it was read. Not set in version 1.
	At time.Time `json:"at,omitzero"`
	// Head is the newest signed head of the tenant's chain at the time. Default none.
	Head *Head `json:"head,omitzero"`
}

// Head is a head of the audit log.
type Head struct {
	// Ledger names the ledger, Page is the last page of the chain by then, Digest
	// that page's, At when the head was signed, on the clock of whoever did.
	Ledger string    `json:"ledger"`
	Page   int64     `json:"page"`
	Digest Digest    `json:"digest"`
	At     time.Time `json:"at"`
}

// Payload is the statement as it is signed: canonical JSON (RFC 8785).
func (s Statement) Payload() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	value := jsontext.Value(text)
	if err := value.Canonicalize(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return value, nil
}

// Sign signs the statement, which [Of] made. One that contradicts itself is
// [ErrInvalid].
func (s Statement) Sign(by *signing.Signer) (signing.Envelope, error) {
	if err := s.check(); err != nil {
		return signing.Envelope{}, err
	}
	payload, err := s.Payload()
	if err != nil {
		return signing.Envelope{}, err
	}
	if err := inToto(payload); err != nil {
		return signing.Envelope{}, err
	}
	return by.Sign(PayloadType, payload)
}

// statementType is the version of the frame, as the library has it.
const statementType = attestation.StatementTypeUri

// strengthOf is the word for a strength: in a receipt none goes without saying.
func strengthOf(s connectors.Strength) string {
	if s == connectors.Strong {
		return string(connectors.Strong)
	}
	return weak
}

const weak = "weak"
