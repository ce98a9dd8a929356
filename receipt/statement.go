package receipt

import (
	"context"
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

// The type names of a receipt.
const (
	// PayloadType is the type of the payload in the envelope: an in-toto Statement.
	PayloadType = "application/vnd.in-toto+json"
	// PredicateType names a receipt's content and its version. Any addition makes a new version.
	PredicateType = predicates + "v2"
	predicates    = "https://github.com/readback-go/readback/receipt/"
	// firstType is the previous version. It lacks what was compared, whether a recheck was
	// pending and what a later read observed. It is read, and not issued.
	firstType = predicates + "v1"
)

// Statement is a receipt: an in-toto Statement, version 1, about one write.
type Statement struct {
	Type string `json:"_type"`
	// Subject is the one write: its name is the write's ID, its digest that of the intent.
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// Subject is the write that a statement is about.
type Subject struct {
	Name   string       `json:"name"`
	Digest IntentDigest `json:"digest"`
}

// IntentDigest is the digest of an intent: one of the two.
type IntentDigest struct {
	// SHA256 is that of an intent without sensitive values, in lower-case hex.
	SHA256 string `json:"sha256,omitempty"`
	// HMAC is that of an intent with sensitive values, as stored in the ledger: "hmac:", the ID
	// of the redaction key, a colon, and the hex of an HMAC-SHA-256. Guesses cannot be tested on
	// it without the key.
	HMAC string `json:"hmac_sha256,omitempty"`
}

// digestOf is a record's digest of its intent.
func digestOf(r ledger.Record) IntentDigest {
	if intent.DigestKey(r.Digest) != "" {
		return IntentDigest{HMAC: r.Digest}
	}
	return IntentDigest{SHA256: r.Digest}
}

func (d IntentDigest) String() string { return d.SHA256 + d.HMAC }

// Digest is a SHA-256 in lower-case hex.
type Digest struct {
	SHA256 string `json:"sha256"`
}

// Predicate is the content of a receipt. Times are UTC and on the ledger's clock, unless stated
// otherwise.
type Predicate struct {
	Tenant string `json:"tenant"`
	Write  Write  `json:"write"`
	// Settlement is how the write ended, Verdict the verdict of the deciding read: verified or
	// vacuous, or absent or stale if it was not applied. For a write that was undone it is that
	// of the undoing.
	Settlement ledger.Status `json:"settlement"`
	Verdict    string        `json:"verdict"`
	// Claim is the same as a sentence. It follows from the two.
	Claim    string   `json:"claim"`
	Observed Observed `json:"observed"`
	// Compared lists which fields of the observation were compared. Not set in version 1.
	Compared *Compared `json:"compared,omitzero"`
	Read     Read      `json:"read"`
	Times    Times     `json:"times"`
	Attempts Attempts  `json:"attempts"`
	By       By        `json:"by"`
	// Undoing is the write that undid this one, and was read back. Set only if Settlement is
	// compensated: Observed, Read and Verdict are then its own.
	Undoing *Subject `json:"undoing,omitzero"`
	// Rechecks are the reads made since. Default none.
	Rechecks *Rechecks `json:"rechecks,omitzero"`
	// Recheck is the pending read, which may contradict the receipt. Default: none is pending;
	// version 1 does not state it.
	Recheck *Recheck `json:"recheck,omitzero"`
	// Trace is the W3C trace id. Default none.
	Trace  string `json:"trace,omitzero"`
	Ledger Ledger `json:"ledger"`
	// Readback is the version that issued the receipt.
	Readback string `json:"readback"`
}

// Write is the declared write.
type Write struct {
	Type          intent.WriteType `json:"type"`
	Destination   string           `json:"destination"`
	Kind          string           `json:"kind"`
	StructuralKey string           `json:"structural_key"`
	// BusinessKey is the key by which the record was queried.
	BusinessKey Text `json:"business_key"`
}

// Text is a JSON value by its digest. The digest is over its canonical form: members sorted, no
// white space, numbers as they were read, and sensitive values replaced by "redacted:" and a
// keyed digest.
type Text struct {
	Digest Digest `json:"digest"`
	// Value is that form itself, if requested. It is a string, so that its bytes, and with them
	// its digest, do not change.
	Value string `json:"value,omitzero"`
}

// Observed is the observation.
type Observed struct {
	Text
	// Records is how many records the read returned.
	Records int `json:"records"`
	// Ref and URL name the one record at the destination. Default: not known.
	Ref string `json:"ref,omitzero"`
	URL string `json:"url,omitzero"`
}

// Independence states how the read that proves a write was made, compared with how writes are
// sent. It is what the connector reported of that read.
type Independence string

// The values. A read that reports none has the first.
const (
	// OwnCall: the read was a separate call of the destination's reading interface, and took
	// nothing from the response to the write. The same interface of the same destination gave
	// both answers; no second system was asked.
	OwnCall Independence = "own_call"
	// OtherLogin: it was a call of that same interface, with credentials that were compared with those
	// of writes and are others. Whether they are of another account is not known.
	OtherLogin Independence = Independence(connectors.OtherLogin)
	// OtherInterface: it was made through an interface that takes no writes, in another protocol:
	// a mailbox by IMAP after a send by SMTP. Whether one provider is behind both is not known.
	OtherInterface Independence = Independence(connectors.OtherInterface)
	// OtherServer: a server answered it that could take no writes at the time, and was shown to
	// follow the one that takes them: a streaming standby.
	OtherServer Independence = Independence(connectors.OtherServer)
)

// Words describes it for display.
func (i Independence) Words() string { return connectors.Independence(i).Words() }

// independenceOf maps a read's reported value to the receipt's: a receipt always states one, and
// an unknown value counts as the weakest.
func independenceOf(i connectors.Independence) Independence {
	if slices.Contains(independences, Independence(i)) {
		return Independence(i)
	}
	return OwnCall
}

var independences = []Independence{OwnCall, OtherLogin, OtherInterface, OtherServer}

// Read is how the observation was made.
type Read struct {
	// Strength is "strong" if the read shows all that the destination applied before it began,
	// and "weak" if it may lag behind.
	Strength string `json:"strength"`
	// Path is how it was read ("get", "search"), in the connector's words; By is what it queried
	// by ("key", "stamp", "ref"), if the profile declares it.
	Path string   `json:"path,omitzero"`
	By   []string `json:"by,omitzero"`
	// Independent is how independent of the write's interface it was.
	Independent Independence `json:"independent"`
	// BeforeSend reports that the expected state was there before anything was sent, and nothing
	// was. Default false: it was read after the last send.
	BeforeSend bool `json:"before_send,omitzero"`
	// At is when the read began, on the clock of the worker that made it.
	At time.Time `json:"at"`
	// Agreeing is how many reads in a row gave this result, this one included.
	Agreeing int `json:"agreeing"`
}

// Times are those of the write.
type Times struct {
	Created time.Time `json:"created"`
	// FirstSend is when the first send was announced, LastSend the latest time at which the last
	// one can have ended. Default: nothing was sent.
	FirstSend time.Time `json:"first_send,omitzero"`
	LastSend  time.Time `json:"last_send,omitzero"`
	// Seen is when the read had its answer.
	Seen    time.Time `json:"seen"`
	Settled time.Time `json:"settled"`
}

// Attempts count calls over the whole lifetime of the write.
type Attempts struct {
	Sends int `json:"sends"`
	// Unsent are those of them that the destination provably did not accept.
	Unsent int `json:"unsent"`
	Reads  int `json:"reads"`
}

// By is the actor or rule that decided.
type By struct {
	// Rule settled it.
	Rule string `json:"rule"`
	// Approved are the reviewers who approved the send, Directed is the reviewer whose decision
	// the engine last followed. Default: no decision was needed.
	Approved []string `json:"approved,omitzero"`
	Directed string   `json:"directed,omitzero"`
}

// Rechecks are the reads made after the write was settled.
type Rechecks struct {
	Reads int `json:"reads"`
	// Last is when the last one had its answer, and Verdict its verdict on the write: for one
	// that was undone, absent or stale if none of it is left. Unavailable: it could not be read.
	// Any other verdict that does not follow from the receipt means that the record was changed
	// since, by others or by another write of ours. That does not invalidate what was observed
	// before.
	Last    time.Time `json:"last"`
	Verdict string    `json:"verdict"`
	// Differences is how the record differed in the last read that did not show the declared state.
	// Default: none did.
	Differences []Difference `json:"found,omitzero"`
	// ChangedBy is the write of this ledger that has changed the record since. Default not known:
	// destinations do not report which actor changes a record.
	ChangedBy string `json:"changed_by,omitzero"`
}

// Recheck is a read that a settled write still needs.
type Recheck struct {
	// State is "pending", or "overdue" if it was due before the ledger was read for the receipt
	// and had not been made.
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

// Ledger is the position up to which the ledger was read for the receipt.
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
	// Ledger names the ledger, Page is the last page of the chain by then, Digest that page's, At
	// when the head was signed, on the signer's clock.
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

// Sign signs a statement made by [Of]. One that contradicts itself is [ErrInvalid].
func (s Statement) Sign(ctx context.Context, by *signing.Signer) (signing.Envelope, error) {
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
	return by.Sign(ctx, PayloadType, payload)
}

// statementType is the version of the in-toto Statement, from the library.
const statementType = attestation.StatementTypeUri

// strengthOf is the word for a strength: a receipt always states one.
func strengthOf(s connectors.Strength) string {
	if s == connectors.Strong {
		return string(connectors.Strong)
	}
	return weak
}

const weak = "weak"
