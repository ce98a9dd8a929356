package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// Sensitive values are in the clear only in a task and at its destination. They are sealed on
// their way into the ledger, in few places: an intent where it becomes a record ([kept]),
// observations and requests where an event is made of them, and every sentence and name where
// an event is noted or reserved. They are opened where a task begins.

// sealer returns the scope that seals and opens the ledger's data of a write.
func (e *Engine) sealer(rec ledger.Record) *redact.Scope {
	return e.sealerAt(rec, e.profileOf(rec))
}

// profileOf returns the profile of a record's destination, or the zero value, which is the
// careful case, where it is unknown.
func (e *Engine) profileOf(rec ledger.Record) connectors.Profile {
	_, p, err := e.reg.Lookup(rec.Destination, rec.Kind)
	if err != nil {
		return connectors.Profile{}
	}
	return p
}

func (e *Engine) sealerAt(rec ledger.Record, p connectors.Profile) *redact.Scope {
	return e.opts.Vault.Scope(rec.Tenant, string(rec.ID), p.Sensitive)
}

// keptFor returns the stored record of a caller's intent, with what its destination declares
// for all such writes.
func (e *Engine) keptFor(rec ledger.Record, w intent.WriteIntent) (ledger.Record, error) {
	p := e.profileOf(rec)
	rec.NotChecked, rec.Proof = e.NotChecked(w), p.Proof
	return kept(e.sealerAt(rec, p), rec, w)
}

// NotChecked lists, as JSON Pointers, the parts of an intent that are sent and never compared.
func (e *Engine) NotChecked(w intent.WriteIntent) []string {
	conn, _, err := e.reg.LookupFor(w.Tenant, w.Destination, w.Kind)
	if err != nil {
		conn = nil
	}
	return notChecked(conn, w)
}

func notChecked(conn connectors.Connector, w intent.WriteIntent) []string {
	var all []string
	if c, ok := conn.(connectors.NotChecker); ok {
		all = c.NotChecked(w)
	} else {
		for name := range w.Payload {
			all = append(all, string(intent.Pointer("").AppendToken(name)))
		}
	}
	all = append(slices.Clone(all), w.Ignore...)
	slices.Sort(all)
	return slices.Compact(all)
}

// kept seals the sensitive parts of a new record's intent, and keys its digest where there are
// any.
func kept(s *redact.Scope, rec ledger.Record, w intent.WriteIntent) (ledger.Record, error) {
	var err error
	if !s.Idle() || len(w.Sensitive) > 0 || redact.Sealed(rec.Intent) {
		rec.Intent, err = s.SealIntent(w)
	}
	rec.Digest, rec.Digests = s.IntentDigest(rec.Digest, rec.Intent)
	return rec, err
}

// open returns what a record stores of its write. It fails with [redact.ErrNoKey] where a key
// is missing, which another process may have, and with [ledger.ErrCorrupt].
func (e *Engine) open(rec ledger.Record) (s storedWrite, err error) {
	s.seals = e.sealer(rec)
	if s.intent, err = s.seals.OpenIntent(rec.Intent); err != nil {
		return s, unopened(rec.ID, "the stored intent", err)
	}
	if !s.seals.Idle() && e.opts.Vault == nil {
		return s, fmt.Errorf("write %s: %w: its intent or its destination marks sensitive fields, and there are no redaction keys", rec.ID, redact.ErrNoKey)
	}
	if len(rec.Before) > 0 {
		s.before = new(connectors.Observation)
		if err := openInto(s.seals, rec.Before, s.before); err != nil {
			return s, unopened(rec.ID, "the stored pre-state", err)
		}
		s.seals.Learn(fieldsOf(*s.before)...)
	}
	if s.prepared, err = s.seals.OpenBytes(rec.Prepared); err != nil {
		return s, unopened(rec.ID, "what is to be sent", err)
	}
	for _, name := range []string{rec.Ref, rec.URL, rec.Version} {
		if _, err := s.seals.OpenName(name); err != nil {
			return s, unopened(rec.ID, "the name of its record", err)
		}
	}
	return s, nil
}

// unopened returns the error for data that could not be opened. A missing key proves nothing
// against the stored data.
func unopened(id ledger.ID, what string, err error) error {
	if errors.Is(err, redact.ErrNoKey) {
		return fmt.Errorf("write %s: %s cannot be opened: %w", id, what, err)
	}
	return fmt.Errorf("%w: write %s: %s: %w", ledger.ErrCorrupt, id, what, err)
}

// openInto decodes sealed data.
func openInto(s *redact.Scope, sealed json.RawMessage, into any) error {
	text, err := s.Open(sealed)
	if err != nil {
		return err
	}
	return decodeExact(text, into)
}

func fieldsOf(seen connectors.Observation) []intent.Fields {
	all := make([]intent.Fields, len(seen.Records))
	for i, r := range seen.Records {
		all[i] = r.Fields
	}
	return all
}

// scope returns the scope that seals for the write of a task.
func (t *task) scope() *redact.Scope {
	if t.seals == nil {
		t.seals = t.e.sealer(t.rec)
		if _, err := t.seals.OpenIntent(t.rec.Intent); err != nil {
			t.log().Debug("the sensitive fields of this write are not known here: its texts are redacted by patterns only", "error", err)
		}
	}
	return t.seals
}

// sealed returns an event as it may be stored: with redacted sentences and sealed names. Its
// documents are sealed where they are made.
func (t *task) sealed(ev ledger.Event) ledger.Event {
	s := t.scope()
	for _, text := range []*string{&ev.Reason, &ev.Code, &ev.ErrorCode, &ev.Message, &ev.RequestID} {
		*text = s.Text(*text)
	}
	ev.ErrorCode, ev.Message, ev.RequestID = oneLine(ev.ErrorCode, maxWord), oneLine(ev.Message, maxReason), oneLine(ev.RequestID, maxWord)
	for _, name := range []*string{&ev.Ref, &ev.URL, &ev.Version} {
		if len(*name) > maxName {
			*name = "" // a truncated name would name another record
		}
		*name = s.SealName(*name)
	}
	if len(ev.Code) > maxName {
		ev.Code = ""
	}
	ev.Reason = strings.ToValidUTF8(ev.Reason[:min(len(ev.Reason), maxReason)], "")
	return ev
}

// setReply adds the destination's own words to a sent event. Its response can hold values that were
// not declared sensitive: it is sealed as a whole wherever there are keys. If it cannot be
// sealed, it is dropped where anything can be sensitive.
func (t *task) setReply(ev *ledger.Event, r connectors.Request, s connectors.Reply) {
	if t.profile.NativeWindow[r.Intent.Write] > 0 {
		ev.Key = r.IdempotencyKey
	}
	ev.ErrorCode, ev.Message, ev.RequestID = s.Code, s.Message, s.RequestID
	answer := s.Raw[:min(len(s.Raw), maxAnswer)]
	if len(answer) > 0 && (t.e.opts.Vault != nil || !t.scope().Idle()) {
		sealed, err := t.scope().Seal(string(answer))
		if err != nil {
			t.log().Debug("an answer is not kept", "reason", err)
		}
		answer = []byte(sealed)
	}
	ev.Answer = answer
}

// oneLine returns foreign text as one line of at most the given number of bytes.
func oneLine(text string, most int) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	text = strings.Join(words, " ")
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// ref returns the destination's own id of the record.
func (t *task) ref() string {
	plain, err := t.scope().OpenName(t.rec.Ref)
	if err != nil { // it was opened when the task began, or sealed by it
		t.log().Error("the id of the record cannot be opened, and the record is read without it", "error", err)
		return ""
	}
	return plain
}

// receipt returns the receipt of a send in the clear. It is empty where it cannot be opened.
func (t *task) receipt(ref, version string) (*connectors.Receipt, error) {
	r := new(connectors.Receipt)
	var noRef, noVersion error
	r.Ref, noRef = t.scope().OpenName(ref)
	r.Version, noVersion = t.scope().OpenName(version)
	return r, errors.Join(noRef, noVersion)
}

// evidence returns an observation as sealed JSON. One that is too large, or that cannot be
// sealed, is replaced by its digest.
func (t *task) evidence(seen connectors.Observation) json.RawMessage {
	text, err := t.scope().SealObservation(seen)
	if err == nil && len(text) <= maxEvidence {
		return text
	}
	return unkept(t.scope(), encoded(seen))
}

// unkept returns the placeholder for a document that is not stored.
func unkept(s *redact.Scope, text []byte) json.RawMessage {
	if !s.Idle() { // a digest would let the omitted values be guessed
		return encoded(map[string]any{"too_large": len(text), "digest": s.Digest(string(text))})
	}
	sum := sha256.Sum256(text)
	return encoded(map[string]any{"too_large": len(text), "sha256": hex.EncodeToString(sum[:])})
}

// differences returns mismatches as sealed JSON. Values that are too large are omitted; places
// and problems stay.
func (t *task) differences(found []verify.Mismatch) json.RawMessage {
	return differences(t.scope(), found)
}

func differences(s *redact.Scope, found []verify.Mismatch) json.RawMessage {
	text := encoded(found)
	if !s.Idle() || redact.Sealed(text) {
		text = encoded(sealedMismatches(s, found))
	}
	if len(text) <= maxEvidence {
		return text
	}
	short := slices.Clone(found)
	for i := range short {
		short[i].Want, short[i].Got, short[i].Path = "(too large)", "(too large)", s.SealName(short[i].Path)
	}
	return encoded(short)
}

func sealedMismatches(s *redact.Scope, found []verify.Mismatch) []verify.Mismatch {
	all := slices.Clone(found)
	for i, m := range all {
		for _, v := range []*any{&all[i].Want, &all[i].Got} {
			sealed, err := s.SealValue(intent.Pointer(m.Path), *v)
			if err != nil { // it may be a token, and there is no key to seal it with
				sealed = "(cannot be kept)"
			}
			*v = sealed
		}
		all[i].Path = s.SealName(m.Path)
	}
	return all
}

// text returns a redacted sentence about a write, for callers without a task.
func (e *Engine) text(rec ledger.Record, sentence string) string {
	if e.opts.Vault == nil {
		return sentence
	}
	s := e.sealer(rec)
	if w, err := s.OpenIntent(rec.Intent); err == nil {
		s.LearnIntent(w)
	}
	return s.Text(sentence)
}

// unnamed returns the redacted names under which a refused intent is logged: the names can be
// the reason for the refusal.
func (e *Engine) unnamed(w intent.WriteIntent) ledger.Record {
	rec := ledger.Record{Tenant: w.Tenant, Workflow: w.Workflow, Step: w.Step, Tool: w.Tool, Destination: w.Destination, Kind: w.Kind,
		CorrelationID: w.CorrelationID}
	s := e.opts.Vault.Scope(w.Tenant, "", e.profileOf(rec).Sensitive, w.Sensitive)
	s.LearnIntent(w)
	for _, name := range []*string{&rec.Tenant, &rec.Workflow, &rec.Step, &rec.Tool, &rec.Destination, &rec.Kind, &rec.CorrelationID} {
		*name = s.Text(*name)
	}
	return rec
}

// Opened returns the original intent of a record, for code that submits it to the engine again.
// It must not be shown. It fails with [redact.ErrNoKey] where the key that sealed it
// is not here, and with [ledger.ErrCorrupt].
func (e *Engine) Opened(rec ledger.Record) (intent.WriteIntent, error) {
	w, err := e.sealer(rec).OpenIntent(rec.Intent)
	if err != nil {
		err = unopened(rec.ID, "the stored intent", err)
	}
	return w, err
}

// keeps configures how a ledger seals the entries that it takes in from an outbox. Without keys
// an entry that marks fields is refused there as everywhere, unless another engine on the
// ledger has keys.
func (e *Engine) keeps(l ledger.Ledger) {
	if e.opts.Vault != nil {
		l.KeepWith(e.SealRecord)
	} else {
		l.KeepByDefault(e.SealRecord)
	}
}

// SealRecord returns the identity of a write that other code reserves, with the sensitive parts
// of its intent sealed, whether that is an intent or any other JSON object. For an outbox entry
// sealed as a whole it returns the identity of the intent in it; without its key it fails with
// [ledger.ErrNoKey].
func (e *Engine) SealRecord(rec ledger.Record) (ledger.Record, error) {
	if ledger.SealedEntry(rec.Intent) && !rec.Delegated {
		text, err := e.opts.Vault.OpenEntry(rec.Tenant, string(rec.ID), rec.Intent)
		if errors.Is(err, redact.ErrNoKey) {
			err = fmt.Errorf("%w: %w", ledger.ErrNoKey, err)
		}
		if err != nil {
			return rec, err
		}
		w, err := intent.Decode(text)
		if err != nil {
			return rec, err
		}
		if rec, err = ledger.NewRecord(w); err != nil {
			return rec, err
		}
		return e.keptFor(rec, w)
	}
	s := e.sealer(rec)
	w, err := intent.DecodeStored(rec.Intent)
	switch {
	case err != nil:
		rec.Intent, err = s.SealDocument(rec.Intent)
		return rec, err
	case rec.Delegated: // its caller makes it, whatever its destination compares
		return kept(s, rec, w)
	}
	return e.keptFor(rec, w)
}
