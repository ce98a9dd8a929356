package redact

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// SealIntent is an intent as the ledger stores it: in the format of [intent.WriteIntent.Encode],
// with a token for each sensitive value, and with all marks of the scope in its list. It is still
// an intent for [intent.DecodeStored]. Sensitive values are removed from its context permanently.
// The scope remembers the values that it met.
//
// It fails with [ErrNoKey] if a field is marked and there is no key. It fails with an
// [intent.InvalidError] for what cannot be sealed: a sensitive value in a name by which the write
// is found (workflow, idempotency key and the like) or in the path of a field, a member's name
// that a pattern matches, and a result that is too large.
func (s *Scope) SealIntent(w intent.WriteIntent) ([]byte, error) {
	if s.Idle() && len(w.Sensitive) == 0 {
		text, err := w.Encode()
		if err == nil {
			err = CheckClear(text)
		}
		if err == nil || s.vault == nil {
			return text, err
		}
	}
	if s.vault == nil {
		return nil, noKeys(w, s.paths)
	}
	s.paths = Marks(s.paths, w.Sensitive)
	s.marks = marked(s.paths)
	s.LearnIntent(w)
	if err := s.checkNames(w); err != nil {
		return nil, err
	}
	seal := sealing{Scope: s}
	for _, part := range []*intent.Fields{&w.Key, &w.Expect, &w.Payload, &w.Require} {
		if *part != nil {
			*part = seal.object(s.marks, *part)
		}
	}
	w.Context, w.Sensitive = s.context(w.Context), s.paths
	text, err := w.Encode()
	if seal.err != nil || err != nil {
		return nil, fmt.Errorf("the intent cannot be sealed: %w", firstOf(seal.err, err))
	}
	if _, err := intent.DecodeStored(text); err != nil { // it has grown
		return nil, fmt.Errorf("with its sensitive values sealed: %w", err)
	}
	return text, nil
}

// SealEntry is an intent as it waits in an outbox, sealed as a whole with the names of its
// fields: the enqueuing process need not know its destination's marks. It refuses what
// [Scope.SealIntent] would refuse. It is for a ledger.Keys.
func (v *Vault) SealEntry(id string, w intent.WriteIntent) ([]byte, error) {
	if v == nil {
		return nil, fmt.Errorf("%w: no redaction keys are configured", ErrNoKey)
	}
	text, err := w.Encode()
	if err == nil {
		err = CheckClear(text)
	}
	if err == nil {
		_, err = v.Scope(w.Tenant, id).SealIntent(w)
	}
	if err != nil {
		return nil, err
	}
	token, err := v.Scope(w.Tenant, entryOf(id)).Seal(json.RawMessage(text))
	if err != nil {
		return nil, err
	}
	return json.Marshal(entry{token})
}

// OpenEntry is what [Vault.SealEntry] was given, in JSON. It fails with [ErrNoKey] or [ErrToken],
// also for the entry of another write.
func (v *Vault) OpenEntry(tenant, id string, sealed []byte) ([]byte, error) {
	var e entry
	if err := json.Unmarshal(sealed, &e); err != nil {
		return nil, fmt.Errorf("%w: what waits in the outbox is no sealed entry", ErrToken)
	}
	return v.open(tenant, entryOf(id), e.Sealed)
}

// SealDigestKey seals the digest key of a ledger, and returns the ID of the key used. It is for a
// ledger.Keys.
func (v *Vault) SealDigestKey(digestKey []byte) (id, sealed string, err error) {
	if v == nil {
		return "", "", fmt.Errorf("%w: no redaction keys are configured", ErrNoKey)
	}
	k := v.keys[0]
	return k.ID, k.seal("", digestKeyName, k.digest("", digestKey), digestKey), nil
}

// OpenDigestKey is what [Vault.SealDigestKey] was given, and whether it would be sealed under the
// same key now. It fails with [ErrNoKey] or [ErrToken].
func (v *Vault) OpenDigestKey(id, sealed string) (digestKey []byte, current bool, err error) {
	k, err := v.key(id)
	if err == nil {
		digestKey, err = v.open("", digestKeyName, sealed)
	}
	return digestKey, err == nil && k.ID == v.keys[0].ID, err
}

// digestKeyName is the name of the digest key of a ledger: no tenant, and no write.
const digestKeyName = "ledger\ndigest key"

// entry is an intent that is sealed as a whole.
type entry struct {
	Sealed string `json:"sealed"`
}

// entryOf names the entry of a write, distinct from the write itself: its sealed values open as
// nothing else.
func entryOf(id string) string { return "outbox\n" + id }

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// noKeys names the marked field that cannot be sealed.
func noKeys(w intent.WriteIntent, paths []string) error {
	problem := intent.Problem{Path: "/sensitive", Problem: fmt.Sprintf("marks %q, and there are no redaction keys", firstMark(w.Sensitive)),
		Want: "keys in the configuration, or no sensitive fields"}
	if len(w.Sensitive) == 0 {
		problem.Path = firstMark(paths)
		problem.Problem = "is sensitive at this destination, and there are no redaction keys"
	}
	return fmt.Errorf("%w: %w", ErrNoKey, &intent.InvalidError{Problems: []intent.Problem{problem}})
}

func firstMark(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return paths[0]
}

// checkNames refuses sensitive values where they cannot be sealed.
func (s *Scope) checkNames(w intent.WriteIntent) error {
	var problems []intent.Problem
	for _, n := range []struct{ path, name string }{
		{"/tenant", w.Tenant}, {"/workflow", w.Workflow}, {"/step", w.Step}, {"/tool", w.Tool}, {"/destination", w.Destination},
		{"/kind", w.Kind}, {"/idempotency_key", w.IdempotencyKey}, {"/correlation_id", w.CorrelationID},
	} {
		if w.Compensates == "" && s.names(n.name) { // an undoing has the names of an accepted write
			problems = append(problems, intent.Problem{Path: n.path, Problem: "contains a sensitive value, and is stored in the clear",
				Want: "a name that does not, such as a random one"})
		}
	}
	if w.Compensates == "" {
		s.checkPaths(w, &problems)
	}
	for _, part := range []struct {
		path   intent.Pointer
		fields intent.Fields
	}{{"/key", w.Key}, {"/expect", w.Expect}, {"/payload", w.Payload}, {"/require", w.Require}} {
		s.checkMembers(s.marks, part.path, map[string]any(part.fields), &problems)
	}
	if len(problems) > 0 {
		return &intent.InvalidError{Problems: problems}
	}
	return nil
}

// checkPaths refuses paths of fields that are named by a sensitive value. A plain word reveals no
// more than the names of fields do.
func (s *Scope) checkPaths(w intent.WriteIntent, problems *[]intent.Problem) {
	for _, list := range []struct {
		at    string
		paths []string
	}{{"/absent", w.Absent}, {"/ignore", w.Ignore}, {"/sensitive", w.Sensitive}, {"/compare", slices.Sorted(maps.Keys(w.Compare))}} {
		for _, path := range list.paths {
			for name := range intent.Pointer(path).Tokens() {
				if s.vault.Matches(name) != "" || s.met.words(name, func(one *literal, _ bool) bool { return one.odd() }) {
					*problems = append(*problems, intent.Problem{Path: list.at, Problem: "has a path that contains a sensitive value, and paths are stored in the clear",
						Want: "the path of the object around it"})
					break
				}
			}
		}
	}
}

func (s *Scope) checkMembers(m *mark, at intent.Pointer, v any, problems *[]intent.Problem) {
	if m != nil && m.whole { // sealed with its names
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if p := s.vault.Matches(name); p != "" {
				*problems = append(*problems, intent.Problem{Path: string(at),
					Problem: fmt.Sprintf("has a member whose name the pattern %q is found in, and names are kept in the clear", p),
					Want:    "the value in the place of a value, or its object marked as sensitive"})
				return
			}
			s.checkMembers(m.member(name), at.AppendToken(name), v[name], problems)
		}
	case []any:
		for i, inner := range v {
			s.checkMembers(m.element(i), at, inner, problems)
		}
	}
}

// context is the context without sensitive values. It proves nothing and has no part in the
// digest, so it need not be opened again.
func (s *Scope) context(given map[string]string) map[string]string {
	if len(given) == 0 {
		return given
	}
	clean := make(map[string]string, len(given))
	for name, value := range given {
		clean[s.fit(name, intent.MaxMemberName)] = s.fit(value, intent.MaxContextValue)
	}
	return clean
}

// fit is a text without sensitive values, cut to most bytes.
func (s *Scope) fit(text string, most int) string {
	clean := text
	if s.Reveals(text) || s.Text(text) != text {
		clean = s.Text(text)
	}
	if clean == withheld || len(clean) > most {
		return s.Named(text)
	}
	return clean
}

// OpenIntent is the intent that [Scope.SealIntent] was given, except for its context and its list
// of sensitive fields. The scope remembers its sensitive values. It fails with [ErrNoKey],
// [ErrToken], or as [intent.DecodeStored] does.
func (s *Scope) OpenIntent(stored []byte) (intent.WriteIntent, error) {
	text, err := s.Open(stored)
	if err != nil {
		return intent.WriteIntent{}, err
	}
	w, err := intent.DecodeStored(text)
	if err != nil {
		return w, err
	}
	if len(w.Sensitive) > 0 {
		s.paths = Marks(s.paths, w.Sensitive)
		s.marks = marked(s.paths)
	}
	s.LearnIntent(w)
	return w, nil
}

// SealObservation is an observation as the ledger stores it. The scope remembers the values that
// it met. It fails with [ErrNoKey].
func (s *Scope) SealObservation(seen connectors.Observation) (json.RawMessage, error) {
	if s.Idle() {
		if text, err := json.Marshal(seen); err != nil || !Sealed(text) {
			return text, err
		}
	}
	records := make([]connectors.Record, len(seen.Records))
	for _, r := range seen.Records {
		s.Learn(r.Fields)
	}
	seal := sealing{Scope: s}
	seen.Failed, seen.Open = s.Text(seen.Failed), s.Text(seen.Open)
	for i, r := range seen.Records {
		r.Ref, r.URL, r.Version, r.Stamp = s.SealName(r.Ref), s.SealName(r.URL), s.SealName(r.Version), s.SealName(r.Stamp)
		if r.Fields != nil {
			r.Fields = seal.object(s.marks, r.Fields)
		}
		records[i] = r
	}
	if seen.Records != nil {
		seen.Records = records
	}
	if seal.err != nil {
		return nil, seal.err
	}
	return json.Marshal(seen)
}

// SealValue is a decoded JSON value at a place of a record with its sensitive parts sealed. It
// fails with [ErrNoKey].
func (s *Scope) SealValue(at intent.Pointer, v any) (any, error) {
	seal := sealing{Scope: s}
	v = seal.value(s.marks.at(at), v)
	return v, seal.err
}

// SealDocument is a document, whose root is that of a record, with its sensitive parts sealed. It
// fails with [ErrNoKey], and for invalid JSON.
func (s *Scope) SealDocument(document json.RawMessage) (json.RawMessage, error) {
	if s.Idle() && !Sealed(document) {
		return document, nil
	}
	v, err := decoded(document)
	if err != nil {
		return nil, err
	}
	s.learn(s.marks, v)
	if v, err = s.SealValue("", v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// CheckClear refuses a caller's document in which a string or a name begins like a token: it
// would be taken for a sealed value. The error is an [intent.InvalidError] that names the place.
// Invalid JSON passes.
func CheckClear(document json.RawMessage) error {
	if !Sealed(document) {
		return nil
	}
	v, err := decoded(document)
	if err != nil {
		return nil //nolint:nilerr // its reader reports it
	}
	if at, found := lookalike("", v); found {
		return &intent.InvalidError{Problems: []intent.Problem{{Path: string(at),
			Problem: fmt.Sprintf("begins with %q, as sealed values do", Prefix), Want: "another text"}}}
	}
	return nil
}

// lookalike is the place of the first text that begins like a token.
func lookalike(at intent.Pointer, v any) (intent.Pointer, bool) {
	switch v := v.(type) {
	case string:
		return at, strings.HasPrefix(v, Prefix)
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if strings.HasPrefix(name, Prefix) {
				return at, true
			}
			if place, found := lookalike(at.AppendToken(name), v[name]); found {
				return place, true
			}
		}
	case []any:
		for i, inner := range v {
			if place, found := lookalike(at.AppendToken(fmt.Sprint(i)), inner); found {
				return place, true
			}
		}
	}
	return "", false
}
