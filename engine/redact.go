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

// What is sensitive is clear in a task and at its destination alone. It is sealed
// on its way into the ledger, in few places: an intent where it becomes a record
// ([kept]), what was read and what is to be sent where an event is
// made of it, and every sentence and name where an event is noted or reserved. It
// is opened where a task begins.

// sealer seals and opens what the ledger has of a write.
func (e *Engine) sealer(rec ledger.Record) *redact.Scope {
	return e.sealerAt(rec, e.profileOf(rec))
}

// profileOf is the profile of a record's destination, the zero value where it is
// unknown: what is careful then.
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

// newUndoing is the identity, as it is reserved, of what undoes a write, or removes
// a surplus record of it. What was sensitive there is so in it, wherever it stands.
// The digests are those of the intent as it is.
func newUndoing(w intent.WriteIntent, of *redact.Scope) (ledger.Record, error) {
	rec, err := ledger.NewRecord(w)
	if err != nil {
		return rec, err
	}
	return kept(of.Beside(string(rec.ID)), rec, w)
}

// asked is the same for an intent of a caller, in which nothing is sealed.
func (e *Engine) asked(w intent.WriteIntent) (ledger.Record, error) {
	rec, err := ledger.NewRecord(w)
	if err == nil {
		err = redact.CheckClear(rec.Intent)
	}
	if err != nil {
		return rec, err
	}
	p := e.profileOf(rec)
	rec.NotChecked, rec.Proof = e.notChecked(w), p.Proof
	return kept(e.sealerAt(rec, p), rec, w)
}

// notChecked lists what of an intent is sent and never compared.
func (e *Engine) notChecked(w intent.WriteIntent) []string {
	conn, _, err := e.reg.LookupFor(w.Tenant, w.Destination, w.Kind)
	var all []string
	if c, ok := conn.(connectors.NotChecker); err == nil && ok {
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

// kept seals what is sensitive in the intent of a new record.
func kept(s *redact.Scope, rec ledger.Record, w intent.WriteIntent) (ledger.Record, error) {
	if s.Idle() && len(w.Sensitive) == 0 && !redact.Sealed(rec.Intent) {
		return rec, nil
	}
	var err error
	rec.Intent, err = s.SealIntent(w)
	return rec, err
}

// open is what a record keeps of its write. It fails with [redact.ErrNoKey] where
// a key is missing, which another process may have, and with [ledger.ErrCorrupt].
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

// unopened says what could not be opened. A missing key says nothing against what
// is stored.
func unopened(id ledger.ID, what string, err error) error {
	if errors.Is(err, redact.ErrNoKey) {
		return fmt.Errorf("write %s: %s cannot be opened: %w", id, what, err)
	}
	return fmt.Errorf("%w: write %s: %s: %w", ledger.ErrCorrupt, id, what, err)
}

// openInto decodes what was sealed.
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

// openChild is the compensating intent that a record keeps, and what opened it.
func (e *Engine) openChild(parent ledger.Record) (intent.WriteIntent, *redact.Scope, error) {
	s := e.sealer(ledger.Record{Tenant: parent.Tenant, ID: parent.Child, Destination: parent.Destination, Kind: parent.Kind})
	w, err := s.OpenIntent(parent.ChildIntent)
	if err != nil {
		err = unopened(parent.ID, "the stored compensation", err)
	}
	return w, s, err
}

// scope seals for the write of a task.
func (t *task) scope() *redact.Scope {
	if t.seals == nil {
		t.seals = t.e.sealer(t.rec)
		if _, err := t.seals.OpenIntent(t.rec.Intent); err != nil {
			t.log().Debug("what is sensitive in this write is not known here: of what is said of it only what a pattern finds is taken out", "error", err)
		}
	}
	return t.seals
}

// sealed is an event as it may be kept: without what is sensitive in its
// sentences, and with names that tell it sealed. Its documents are sealed where
// they are made.
func (t *task) sealed(ev ledger.Event) ledger.Event {
	s := t.scope()
	for _, text := range []*string{&ev.Reason, &ev.Code, &ev.ErrorCode, &ev.Message, &ev.RequestID} {
		*text = s.Text(*text)
	}
	ev.ErrorCode, ev.Message, ev.RequestID = oneLine(ev.ErrorCode, maxWord), oneLine(ev.Message, maxReason), oneLine(ev.RequestID, maxWord)
	for _, name := range []*string{&ev.Ref, &ev.URL, &ev.Version} {
		if len(*name) > maxName {
			*name = "" // half a name names something else
		}
		*name = s.SealName(*name)
	}
	if len(ev.Code) > maxName {
		ev.Code = ""
	}
	ev.Reason = strings.ToValidUTF8(ev.Reason[:min(len(ev.Reason), maxReason)], "")
	return ev
}

// said adds to a sent event what the destination said in its own words. Its answer
// can hold values that were not declared sensitive: it is sealed as a whole wherever there are
// keys. One that cannot be sealed is not kept where anything can be sensitive.
func (t *task) said(ev *ledger.Event, r connectors.Request, s connectors.Said) {
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

// oneLine is text from outside in one line of at most so many bytes.
func oneLine(text string, most int) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	text = strings.Join(words, " ")
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// ref is the destination's own id of the record.
func (t *task) ref() string {
	plain, err := t.scope().OpenName(t.rec.Ref)
	if err != nil { // it was opened when the task began, or sealed by it
		t.log().Error("the id of the record cannot be opened, and it is looked for without", "error", err)
		return ""
	}
	return plain
}

// receipt is what a send was answered with, in the clear; empty where it cannot be
// opened.
func (t *task) receipt(ref, version string) (*connectors.Receipt, error) {
	r := new(connectors.Receipt)
	var noRef, noVersion error
	r.Ref, noRef = t.scope().OpenName(ref)
	r.Version, noVersion = t.scope().OpenName(version)
	return r, errors.Join(noRef, noVersion)
}

// evidence is an observation as JSON, sealed; one that is too large, or that
// cannot be sealed, is replaced by its digest.
func (t *task) evidence(seen connectors.Observation) json.RawMessage {
	text, err := t.scope().SealObservation(seen)
	if err == nil && len(text) <= maxEvidence {
		return text
	}
	return unkept(t.scope(), encoded(seen))
}

// unkept is what stands for a document that is not kept.
func unkept(s *redact.Scope, text []byte) json.RawMessage {
	if !s.Idle() { // what is left out when its values are known could be guessed
		return encoded(map[string]any{"too_large": len(text), "digest": s.Digest(string(text))})
	}
	sum := sha256.Sum256(text)
	return encoded(map[string]any{"too_large": len(text), "sha256": hex.EncodeToString(sum[:])})
}

// differences are mismatches as JSON, sealed; where the values are too large the
// places and problems must do.
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
			if err != nil { // it looks like a token, and there is no key to seal it with
				sealed = "(cannot be kept)"
			}
			*v = sealed
		}
		all[i].Path = s.SealName(m.Path)
	}
	return all
}

// text is a sentence about a write without what is sensitive in it, for whoever
// has no task.
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

// unnamed is what an intent that was refused is told under: its names without what
// is sensitive in them, which can be why.
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

// Opened is the intent of a record as it was asked for, for what gives it to the
// engine again: nobody must be shown it. It fails with [redact.ErrNoKey] where the
// key that sealed it is not here, and with [ledger.ErrCorrupt].
func (e *Engine) Opened(rec ledger.Record) (intent.WriteIntent, error) {
	w, err := e.sealer(rec).OpenIntent(rec.Intent)
	if err != nil {
		err = unopened(rec.ID, "the stored intent", err)
	}
	return w, err
}

// SealIntent is an intent of a caller as the ledger would keep it, for whoever
// keeps one elsewhere until it is asked for. It fails as [Engine.Check] does where
// something cannot be sealed.
func (e *Engine) SealIntent(w intent.WriteIntent) (json.RawMessage, error) {
	rec, err := e.asked(w)
	return rec.Intent, err
}

// OpenIntent is the intent that [Engine.SealIntent] was given. It fails with
// [redact.ErrNoKey] and [ledger.ErrCorrupt].
func (e *Engine) OpenIntent(sealed json.RawMessage) (intent.WriteIntent, error) {
	shut, err := intent.DecodeStored(sealed)
	if err != nil {
		return shut, fmt.Errorf("%w: a sealed intent: %w", ledger.ErrCorrupt, err)
	}
	return e.Opened(ledger.Record{ID: ledger.IDOf(shut.StructuralKey()), Tenant: shut.Tenant, Destination: shut.Destination, Kind: shut.Kind, Intent: sealed})
}

// keeps tells a ledger how to keep what it takes in from an outbox. Without keys
// what marks fields is refused there as it is everywhere, unless another engine on
// the ledger has keys.
func (e *Engine) keeps(l ledger.Ledger) {
	keeper, ok := l.(ledger.Keeper)
	switch {
	case !ok:
	case e.opts.Vault != nil:
		keeper.KeepWith(e.SealRecord)
	default:
		keeper.KeepUnlessTold(e.SealRecord)
	}
}

// SealRecord is the identity of a write that somebody else reserves, with what is
// sensitive in its intent sealed, be that an intent or any other JSON object.
func (e *Engine) SealRecord(rec ledger.Record) (ledger.Record, error) {
	s := e.sealer(rec)
	w, err := intent.DecodeStored(rec.Intent)
	if err != nil {
		rec.Intent, err = s.SealDocument(rec.Intent)
		return rec, err
	}
	return kept(s, rec, w)
}
