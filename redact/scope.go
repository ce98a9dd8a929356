package redact

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/readback-go/readback/intent"
)

// Scope seals and opens for one write of one tenant, or for another named object, and remembers
// the sensitive values that it has met. It is not safe for concurrent use.
type Scope struct {
	vault         *Vault
	tenant, write string
	paths         []string // the marks
	marks         *mark
	met           literals
	tokens        map[string]string // by JSON text: equal values have one token
}

// Scope returns the scope of one write. Marks are the JSON Pointers of its sensitive fields, one
// list per source. A nil vault has scopes that seal nothing.
func (v *Vault) Scope(tenant, write string, marks ...[]string) *Scope {
	s := &Scope{vault: v, tenant: tenant, write: write, paths: Marks(marks...)}
	s.marks = marked(s.paths)
	return s
}

// Beside is a scope for another write of the tenant. Everything sensitive here is sensitive
// there: by its place, and by having been met.
func (s *Scope) Beside(write string) *Scope {
	return &Scope{vault: s.vault, tenant: s.tenant, write: write, paths: s.paths, marks: s.marks, met: s.met.copied()}
}

// Marks merges the lists, sorted, each path once.
func Marks(lists ...[]string) []string {
	n := 0
	for _, l := range lists {
		n += len(l)
	}
	if n == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(lists...))))
}

// Idle reports whether nothing can be sensitive here: no field is marked, and there is no
// pattern.
func (s *Scope) Idle() bool {
	return len(s.paths) == 0 && (s.vault == nil || len(s.vault.patterns) == 0)
}

// mark is a place that is marked, or an ancestor of one.
type mark struct {
	whole bool
	below map[string]*mark
}

func marked(paths []string) *mark {
	if len(paths) == 0 {
		return nil
	}
	root := &mark{}
	for _, p := range paths {
		at := root
		for name := range intent.Pointer(p).Tokens() {
			if at.below[name] == nil {
				if at.below == nil {
					at.below = map[string]*mark{}
				}
				at.below[name] = &mark{}
			}
			at = at.below[name]
		}
		at.whole = true
	}
	return root
}

// member is the mark of a member, nil for none.
func (m *mark) member(name string) *mark {
	if m == nil {
		return nil
	}
	return m.below[name]
}

func (m *mark) element(i int) *mark {
	if m == nil || len(m.below) == 0 {
		return nil
	}
	return m.below[strconv.Itoa(i)]
}

// at is the mark at a place; everything below a marked place is marked.
func (m *mark) at(place intent.Pointer) *mark {
	for name := range place.Tokens() {
		if m == nil || m.whole {
			return m
		}
		m = m.below[name]
	}
	return m
}

// Learn remembers the sensitive values among the fields of a record, so that they are found in
// sentences and in other values.
func (s *Scope) Learn(fields ...intent.Fields) {
	if s.Idle() {
		return
	}
	for _, f := range fields {
		s.learn(s.marks, map[string]any(f))
	}
}

// LearnIntent remembers the sensitive values of an intent.
func (s *Scope) LearnIntent(w intent.WriteIntent) { s.Learn(w.Key, w.Expect, w.Payload, w.Require) }

func (s *Scope) learn(m *mark, v any) {
	if m != nil && m.whole {
		s.meet(v)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			s.learn(m.member(name), inner)
		}
	case []any:
		for i, inner := range v {
			s.learn(m.element(i), inner)
		}
	case string:
		if s.vault.Matches(v) != "" {
			s.meet(v)
		}
	case json.Number:
		if s.vault.Matches(string(v)) != "" {
			s.meet(v)
		}
	}
}

// meet remembers every value at or below a sensitive one.
func (s *Scope) meet(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			s.meet(inner)
		}
	case []any:
		for _, inner := range v {
			s.meet(inner)
		}
	case nil:
	default:
		s.met.add(v, func() string { return s.Digest(v) })
	}
}

// Digest is the keyed digest of a decoded JSON value, in hex: equal values of one tenant have the
// same, as long as the same key seals. "" without a key.
func (s *Scope) Digest(v any) string {
	text, err := canonical(v)
	if err != nil || s.vault == nil {
		return ""
	}
	return s.vault.keys[0].digest(s.tenant, text)
}

// IntentDigest is the digest of an intent ([intent.WriteIntent.Digest]) as stored next to the
// intent: the plain digest if nothing of the stored intent is sealed, else keyed with the sealing
// key. In all are all digests under which the same intent can have been recorded, as far as the
// keys are here: before the keys were, with other marks, or under an earlier key.
func (s *Scope) IntentDigest(plain string, stored []byte) (kept string, all []string) {
	all = s.vault.digests(s.tenant, plain)
	if len(all) > 1 && Sealed(stored) {
		return all[1], all
	}
	return plain, all
}

// SameIntent reports whether a recorded digest is that of the intent with this plain digest.
func (v *Vault) SameIntent(tenant, plain, recorded string) bool {
	return slices.Contains(v.digests(tenant, plain), recorded)
}

// digests are all forms of a digest, the plain one first, then that of the sealing key.
func (v *Vault) digests(tenant, plain string) []string {
	all := []string{plain}
	if v == nil {
		return all
	}
	for _, k := range v.keys {
		all = append(all, intent.KeyedDigest(k.ID, k.mac("intent digest", tenant, []byte(plain))))
	}
	return all
}

// Named is what replaces a value for display: "redacted:" and the first hex digits of its keyed
// digest. The scope needs a vault.
func (s *Scope) Named(v any) string { return shortened(s.Digest(v)) }

// Seal makes one token of a decoded JSON value, regardless of marks.
func (s *Scope) Seal(v any) (string, error) {
	if s.vault == nil {
		return "", fmt.Errorf("%w: no redaction keys are configured", ErrNoKey)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("what is to be sealed is no JSON value: %w", err)
	}
	if t, ok := s.tokens[string(text)]; ok {
		return t, nil
	}
	t := s.vault.keys[0].seal(s.tenant, s.write, s.Digest(v), text)
	if s.tokens == nil {
		s.tokens = map[string]string{}
	}
	if len(s.tokens) < maxLiterals {
		s.tokens[string(text)] = t
	}
	return t, nil
}

// sealing seals what is sensitive in decoded JSON.
type sealing struct {
	*Scope
	err error
}

func (s *sealing) token(v any) any {
	t, err := s.Seal(v)
	if err != nil && s.err == nil {
		s.err = err
	}
	return t
}

// value is v with everything sensitive sealed. It shares the rest with v.
func (s *sealing) value(m *mark, v any) any {
	if m != nil && m.whole {
		return s.token(v)
	}
	switch v := v.(type) {
	case map[string]any:
		return s.object(m, v)
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = s.value(m.element(i), inner)
		}
		return out
	case string:
		if s.Reveals(v) {
			return s.token(v)
		}
	case json.Number:
		if s.Reveals(string(v)) {
			return s.token(v)
		}
	}
	return v
}

// object seals the members, and their names if they contain a sensitive value: some objects have
// values as member names.
func (s *sealing) object(m *mark, v map[string]any) map[string]any {
	if v == nil {
		return nil
	}
	out := make(map[string]any, len(v))
	for name, inner := range v {
		sealed := s.value(m.member(name), inner)
		if strings.HasPrefix(name, Prefix) || s.member(name) {
			name, _ = s.token(name).(string)
		}
		out[name] = sealed
	}
	return out
}

// Reveals reports whether a text contains a sensitive value: a pattern matches, or it contains a
// value that was met. It also reports an apparent token, which must not be taken for a real one.
func (s *Scope) Reveals(text string) bool {
	if strings.HasPrefix(text, Prefix) {
		return true
	}
	return !s.Idle() && (s.vault.Matches(text) != "" || s.met.in(text))
}

// Names is Reveals for a name that we or callers made: a value of fewer than four letters counts
// only if it is the whole name.
func (s *Scope) Names(name string) bool {
	return s.Reveals(name) || !s.Idle() && s.met.brief(name)
}

// SealName is an external name (an ID, a URL) unchanged, or as one token if it contains a
// sensitive value; "" if it cannot be kept.
func (s *Scope) SealName(name string) string {
	if name == "" || !s.Reveals(name) {
		return name
	}
	t, err := s.Seal(name)
	if err != nil {
		return ""
	}
	return t
}

// OpenName is the name that [Scope.SealName] was given. It fails with [ErrNoKey] or [ErrToken].
func (s *Scope) OpenName(name string) (string, error) {
	if !strings.HasPrefix(name, Prefix) {
		return name, nil
	}
	text, err := s.vault.open(s.tenant, s.write, name)
	if err != nil {
		return "", err
	}
	var plain string
	if err := json.Unmarshal(text, &plain); err != nil {
		return "", fmt.Errorf("%w: it is no name", ErrToken)
	}
	return plain, nil
}

// SealBytes is for data that is not JSON: unchanged, or sealed as a whole if anything of the
// write is sensitive. It fails with [ErrNoKey].
func (s *Scope) SealBytes(b []byte) ([]byte, error) {
	if len(b) == 0 || !s.met.any() && !s.Reveals(string(b)) {
		return b, nil
	}
	if s.vault == nil {
		return nil, fmt.Errorf("%w: no redaction keys are configured", ErrNoKey)
	}
	k := s.vault.keys[0]
	return []byte(k.seal(s.tenant, s.write, k.digest(s.tenant, b), b)), nil
}

// OpenBytes is what [Scope.SealBytes] was given. It fails with [ErrNoKey] or [ErrToken].
func (s *Scope) OpenBytes(b []byte) ([]byte, error) {
	if !strings.HasPrefix(string(b), Prefix) {
		return b, nil
	}
	return s.vault.open(s.tenant, s.write, string(b))
}

// Open is a document with its tokens replaced by their values. It remembers these: a value that
// was sensitive once stays so. It fails with [ErrNoKey] or [ErrToken], and never returns a token.
func (s *Scope) Open(document json.RawMessage) (json.RawMessage, error) {
	if !Sealed(document) {
		return document, nil
	}
	v, err := decoded(document)
	if err != nil {
		return nil, err
	}
	if v, err = s.opened(v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func (s *Scope) opened(v any) (any, error) {
	switch v := v.(type) {
	case string:
		if !strings.HasPrefix(v, Prefix) {
			return v, nil
		}
		text, err := s.vault.open(s.tenant, s.write, v)
		if err != nil {
			return nil, err
		}
		plain, err := decoded(text)
		if err == nil {
			s.meet(plain)
		}
		return plain, err
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(v)) {
			inner, err := s.opened(v[name])
			if err != nil {
				return nil, err
			}
			plain, err := s.OpenName(name)
			if err != nil {
				return nil, err
			}
			delete(v, name)
			v[plain] = inner
		}
	case []any:
		for i, inner := range v {
			plain, err := s.opened(inner)
			if err != nil {
				return nil, err
			}
			v[i] = plain
		}
	}
	return v, nil
}

// decoded is a document with its numbers exact.
func decoded(document []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(document)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("%w: what is sealed is no JSON", ErrToken)
	}
	return v, nil
}
