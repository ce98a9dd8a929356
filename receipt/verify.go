package receipt

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	attestation "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/signing"
)

const (
	// maxNames bounds how many reviewers a receipt names. More never approve one write.
	maxNames = 32
	// digestLength is that of a SHA-256 in hex.
	digestLength = 64
)

// Verify checks a receipt, an envelope in JSON, against the trusted public keys, and returns its
// statement. It needs nothing else. It checks the signature first, then the statement's
// consistency. Errors are those of package signing, and [ErrInvalid].
//
// It does not check that the statement still holds, nor whether its key was revoked: leave a
// revoked key out of k.
func Verify(envelope []byte, k signing.Keys) (Statement, error) {
	e, err := signing.ReadEnvelope(envelope)
	if err != nil {
		return Statement{}, err
	}
	payload, _, err := k.Open(e, PayloadType)
	if err != nil {
		return Statement{}, err
	}
	return read(payload)
}

// read reads a payload whose signature was checked.
func read(payload []byte) (Statement, error) {
	var frame struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
	}
	if err := json.Unmarshal(payload, &frame); err != nil {
		return Statement{}, invalid("payload", "a JSON object is wanted: %v", err)
	}
	if err := known(frame.Type, frame.PredicateType); err != nil {
		return Statement{}, err
	}
	var s Statement
	if err := json.Unmarshal(payload, &s, json.RejectUnknownMembers(true)); err != nil {
		return Statement{}, invalid("payload", "%v", err)
	}
	if err := s.check(); err != nil {
		return Statement{}, err
	}
	again, err := s.Payload()
	if err != nil {
		return Statement{}, err
	}
	if !bytes.Equal(again, payload) {
		return Statement{}, invalid("payload", "it is not in the one form that a receipt has (canonical JSON, nothing left out and nothing empty)")
	}
	return s, inToto(payload)
}

// known refuses statements of other types and versions.
func known(frame, predicate string) error {
	switch {
	case frame != statementType:
		return invalid("_type", "%s, and %q is wanted", clip(frame), statementType)
	case predicate == PredicateType || predicate == firstType:
		return nil
	case strings.HasPrefix(predicate, predicates):
		return invalid("predicateType", "%s is another version of receipts than this program reads (%q, and those before)", clip(predicate), PredicateType)
	}
	return invalid("predicateType", "%s is no receipt of readback (%q)", clip(predicate), PredicateType)
}

// inToto asks the in-toto library whether a payload is a statement.
func inToto(payload []byte) error {
	var s attestation.Statement
	if err := protojson.Unmarshal(payload, &s); err != nil {
		return fmt.Errorf("%w: it is no in-toto statement: %w", ErrInvalid, err)
	}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("%w: it is no in-toto statement: %w", ErrInvalid, err)
	}
	return nil
}

// The verdicts that have receipts, or that a recheck may have.
const (
	verdictVerified    = "verified"
	verdictVacuous     = "vacuous"
	verdictAbsent      = "absent"
	verdictStale       = "stale"
	verdictUnavailable = "unavailable"
)

// verdicts are, for each settlement that has receipts, the possible verdicts of the read.
var verdicts = map[ledger.Status][]string{
	ledger.Verified:    {verdictVerified, verdictVacuous},
	ledger.Compensated: {verdictVerified, verdictVacuous},
	ledger.NotApplied:  {verdictAbsent, verdictStale},
}

type claimed struct {
	settlement ledger.Status
	verdict    string
}

// claims are all claims that a receipt can make.
var claims = map[claimed]string{
	{ledger.Verified, verdictVerified}:    "the destination was read, and showed exactly what was declared",
	{ledger.Verified, verdictVacuous}:     "the destination was read before anything was sent, showed what was declared, and nothing was sent",
	{ledger.Compensated, verdictVerified}: "the write was undone by another one, and the destination was read after that and showed it",
	{ledger.Compensated, verdictVacuous}:  "the write was to be undone by another one; the destination was read first, showed that nothing was left to undo, and nothing more was sent",
	{ledger.NotApplied, verdictAbsent}:    "the destination was read after the last send, and showed no record of the write",
	{ledger.NotApplied, verdictStale}:     "the destination was read after the last send, and showed the record as it was before",
}

// check returns where a statement contradicts itself, or nil.
func (s Statement) check() error {
	if err := known(s.Type, s.PredicateType); err != nil {
		return err
	}
	if len(s.Subject) != 1 {
		return invalid("subject", "there are %d, and one is wanted: the write", len(s.Subject))
	}
	p, subject := s.Predicate, s.Subject[0]
	for _, part := range []error{
		checkSubject("subject/0", subject),
		checkIdentity(p, subject),
		p.checkClaim(),
		checkText("observed", p.Observed.Text),
		checkText("write/business_key", p.Write.BusinessKey),
		p.checkRead(),
		p.checkTimes(),
		p.checkRest(),
		s.checkVersion(),
	} {
		if part != nil {
			return part
		}
	}
	return nil
}

func checkSubject(field string, s Subject) error {
	if !strings.HasPrefix(s.Name, string(ledger.IDOf(""))) || !s.Digest.valid() {
		return invalid(field, "%s with digest %s; the id of a write and either a SHA-256 in hex or an HMAC-SHA-256 with the id of its key are wanted", clip(s.Name), clip(s.Digest.String()))
	}
	return nil
}

func checkIdentity(p Predicate, subject Subject) error {
	w := p.Write
	switch {
	case !isDigest(w.StructuralKey) || string(ledger.IDOf(w.StructuralKey)) != subject.Name:
		return invalid("structural_key", "%s is not that of write %s", clip(w.StructuralKey), clip(subject.Name))
	case p.Tenant == "" || w.Destination == "" || w.Kind == "" || p.Readback == "":
		return invalid("predicate", "tenant, destination, kind and readback are required")
	case !slices.Contains([]intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}, w.Type):
		return invalid("write/type", "%s is none", clip(string(w.Type)))
	}
	return nil
}

func (p Predicate) checkClaim() error {
	switch {
	case !slices.Contains(verdicts[p.Settlement], p.Verdict):
		return invalid("verdict", "there is no receipt of %s with verdict %s", clip(string(p.Settlement)), clip(p.Verdict))
	case p.Claim != claims[claimed{p.Settlement, p.Verdict}]:
		return invalid("claim", "it does not follow from settlement %q and verdict %q", p.Settlement, p.Verdict)
	case (p.Settlement == ledger.Compensated) != (p.Undoing != nil):
		return invalid("undoing", "it is to be there if the settlement is compensated, and only then")
	case p.Undoing != nil:
		return checkSubject("undoing", *p.Undoing)
	}
	return nil
}

func checkText(field string, t Text) error {
	if !isDigest(t.Digest.SHA256) {
		return invalid(field+"/digest", "%s; a SHA-256 in hex is wanted", clip(t.Digest.SHA256))
	}
	if t.Value != "" && sum([]byte(t.Value)) != t.Digest.SHA256 {
		return invalid(field+"/value", "it does not have the digest beside it")
	}
	return nil
}

func (p Predicate) checkRead() error {
	r := p.Read
	switch {
	case r.Strength != string(connectors.Strong) && r.Strength != weak:
		return invalid("read/strength", "%s; strong or weak is wanted", clip(r.Strength))
	case !slices.Contains(independences, r.Independent):
		return invalid("read/independent", "%s; one of %q is wanted", clip(string(r.Independent)), independences)
	case r.Agreeing < 1 || p.Observed.Records < 0:
		return invalid("read", "no read, or less than no record, shows nothing")
	case p.Settlement == ledger.Verified && (p.Write.Type == intent.Delete) != (p.Observed.Records == 0):
		return invalid("observed/records", "%d, which is not how many there are after a %s that was verified", p.Observed.Records, p.Write.Type)
	case p.Verdict == verdictVacuous && !r.BeforeSend:
		return invalid("read/before_send", "a write that was fulfilled before was not sent")
	case r.BeforeSend && p.Settlement == ledger.Verified && p.Attempts.Sends > 0:
		return invalid("read/before_send", "%d sends were made", p.Attempts.Sends)
	case r.BeforeSend && p.Settlement == ledger.NotApplied:
		return invalid("read/before_send", "that a write was not applied is read after its last send")
	}
	return nil
}

func (p Predicate) checkTimes() error {
	t, a := p.Times, p.Attempts
	switch {
	case t.Created.IsZero() || t.Seen.IsZero() || t.Settled.IsZero() || p.Read.At.IsZero():
		return invalid("times", "created, seen, settled and the time of the read are required")
	case t.Seen.After(t.Settled) || t.Created.After(t.Settled):
		return invalid("times", "it was settled before it was there, or seen")
	case a.Unsent < 0 || a.Unsent > a.Sends || a.Reads < 0:
		return invalid("attempts", "%d sends, %d not taken up, %d reads cannot be", a.Sends, a.Unsent, a.Reads)
	case (a.Sends > 0) != !t.FirstSend.IsZero() || (a.Sends > 0) != !t.LastSend.IsZero():
		return invalid("times", "the times of sends are to be there if there are sends, and only then")
	case p.Settlement != ledger.Verified && a.Sends == 0:
		return invalid("attempts", "nothing was sent that could have been undone, or not applied")
	}
	return nil
}

func (p Predicate) checkRest() error {
	switch {
	case p.By.Rule == "":
		return invalid("by/rule", "it is required")
	case len(p.By.Approved) > maxNames:
		return invalid("by/approved", "%d reviewers, at most %d are named", len(p.By.Approved), maxNames)
	case p.Trace != "" && !isHex(p.Trace):
		return invalid("trace", "%s is no trace id", clip(p.Trace))
	case p.Ledger.Event < 1:
		return invalid("ledger/event", "a settled write has events")
	case p.Ledger.Head != nil && (!isDigest(p.Ledger.Head.Digest.SHA256) || p.Ledger.Head.Ledger == "" || p.Ledger.Head.At.IsZero()):
		return invalid("ledger/head", "%s; a ledger, a time and a SHA-256 in hex are wanted", clip(p.Ledger.Head.Digest.SHA256))
	case p.Rechecks != nil && (p.Rechecks.Reads < 1 || p.Rechecks.Last.IsZero() || p.Rechecks.Verdict == ""):
		return invalid("rechecks", "reads, last and verdict are required")
	}
	return nil
}

// checkVersion refuses a receipt with a member that its version lacks, or without one that it
// requires.
func (s Statement) checkVersion() error {
	p := s.Predicate
	r := p.Rechecks
	if s.PredicateType == firstType {
		if p.Compared != nil || p.Recheck != nil || !p.Ledger.At.IsZero() || r != nil && (len(r.Differences) > 0 || r.ChangedBy != "") {
			return invalid("predicateType", "compared, recheck, ledger/at, rechecks/found and rechecks/changed_by do not exist in %q", firstType)
		}
		return nil
	}
	switch {
	case p.Compared == nil || p.Ledger.At.IsZero():
		return invalid("compared", "what was compared, and ledger/at, are required")
	case p.Recheck != nil && (p.Recheck.Due.IsZero() || p.Recheck.Until.Before(p.Recheck.Due)):
		return invalid("recheck", "it ends before it is due")
	case p.Recheck != nil && p.Recheck.State != recheckState(p.Recheck.Due, p.Ledger.At):
		return invalid("recheck/state", "%s does not follow from when it is due and ledger/at", clip(p.Recheck.State))
	}
	if r != nil {
		for i, d := range r.Differences {
			for _, t := range []*Text{d.Declared, d.Observed} {
				if t == nil {
					continue
				}
				if err := checkText(fmt.Sprintf("rechecks/found/%d", i), *t); err != nil {
					return err
				}
			}
			if d.Problem == "" {
				return invalid(fmt.Sprintf("rechecks/found/%d", i), "problem is required")
			}
		}
		if r.ChangedBy != "" && !strings.HasPrefix(r.ChangedBy, string(ledger.IDOf(""))) {
			return invalid("rechecks/changed_by", "%s is no write", clip(r.ChangedBy))
		}
	}
	return p.Compared.check(p.Observed.Records)
}

// valid reports whether exactly one of the two is set, in the issued form.
func (d IntentDigest) valid() bool {
	if d.HMAC == "" {
		return isDigest(d.SHA256)
	}
	key, hex := intent.DigestKey(d.HMAC), d.HMAC[max(0, len(d.HMAC)-digestLength):]
	return d.SHA256 == "" && redact.IsKeyID(key) && isDigest(hex) && d.HMAC == intent.KeyedDigest(key, hex)
}

func isDigest(s string) bool { return len(s) == digestLength && isHex(s) }

func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdef") == ""
}
