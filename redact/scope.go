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

// Scope seals and opens for one write of one tenant, or for whatever else has a
// name of its own, and remembers which sensitive values it has met. It is not
// safe for concurrent use.
type Scope struct {
	vault         *Vault
	tenant, write string
	paths         []string // the marks
	marks         *mark
	met           literals
	tokens        map[string]string // by JSON text: equal values have one token
}

// Scope is what is about one write. Marks are the JSON Pointers of its sensitive
// fields, in lists by whoever says so. A vault that is nil has scopes that seal
// nothing.
func (v *Vault) Scope(tenant, write string, marks ...[]string) *Scope {
	s := &Scope{vault: v, tenant: tenant, write: write, paths: Marks(marks...)}
	s.marks = marked(s.paths)
	return s
}

// Beside is a scope for another write of the tenant, of which all is sensitive
// that is so here: by its place, and by having been met.
func (s *Scope) Beside(write string) *Scope {
	return &Scope{vault: s.vault, tenant: s.tenant, write: write, paths: s.paths, marks: s.marks, met: s.met.copied()}
}

// Marks is all that several lists mark, sorted, each path once.
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

// Idle reports whether nothing can be sensitive here: no field is marked, and
// there is no pattern.
func (s *Scope) Idle() bool {
	return len(s.paths) == 0 && (s.vault == nil || len(s.vault.patterns) == 0)
}

// mark is a place that is marked, or above one that is.
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

// at is the mark at a place; all below one that is marked is.
func (m *mark) at(place intent.Pointer) *mark {
	for name := range place.Tokens() {
		if m == nil || m.whole {
			return m
		}
		m = m.below[name]
	}
	return m
}

// Learn remembers the sensitive values among the fields of a record, so that they
// are found in sentences and in other values.
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

// Digest is the keyed digest of a decoded JSON value, in hex: equal values of one
// tenant have the same, as long as the same key seals. "" without a key.
func (s *Scope) Digest(v any) string {
	text, err := canonical(v)
	if err != nil || s.vault == nil {
		return ""
	}
	return s.vault.keys[0].digest(s.tenant, text)
}

// Seal makes one token of a decoded JSON value, whatever is marked.
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

// sealing walks decoded JSON and seals what is sensitive in it.
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

// value is v with all that is sensitive sealed. It shares with v what is not.
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
		if s.Tells(v) {
			return s.token(v)
		}
	case json.Number:
		if s.Tells(string(v)) {
			return s.token(v)
		}
	}
	return v
}

// object seals the members, and those of their names that tell a sensitive value:
// a name is not a value, but there are objects whose members are named by one.
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

// Tells reports whether a text tells a sensitive value: a pattern is found in it,
// or a value that was met; or it looks like a token, which must not be taken for
// one of ours.
func (s *Scope) Tells(text string) bool {
	if strings.HasPrefix(text, Prefix) {
		return true
	}
	return !s.Idle() && (s.vault.Matches(text) != "" || s.met.in(text))
}

// Names is Tells for a name that we or callers made: a value of fewer than four
// letters counts where it is all of it.
func (s *Scope) Names(name string) bool {
	return s.Tells(name) || !s.Idle() && s.met.brief(name)
}

// SealName is a name that somebody else gave (an id, a URL), as it is, or as one
// token where it tells something sensitive; "" where it cannot be kept at all.
func (s *Scope) SealName(name string) string {
	if name == "" || !s.Tells(name) {
		return name
	}
	t, err := s.Seal(name)
	if err != nil {
		return ""
	}
	return t
}

// OpenName is the name that [Scope.SealName] was given. It fails with [ErrNoKey]
// or [ErrToken].
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

// SealBytes is what is not JSON: as it is, or sealed as a whole where anything of
// the write is sensitive. It fails with [ErrNoKey].
func (s *Scope) SealBytes(b []byte) ([]byte, error) {
	if len(b) == 0 || !s.met.any() && !s.Tells(string(b)) {
		return b, nil
	}
	if s.vault == nil {
		return nil, fmt.Errorf("%w: no redaction keys are configured", ErrNoKey)
	}
	k := s.vault.keys[0]
	return []byte(k.seal(s.tenant, s.write, k.digest(s.tenant, b), b)), nil
}

// OpenBytes is what [Scope.SealBytes] was given. It fails with [ErrNoKey] or
// [ErrToken].
func (s *Scope) OpenBytes(b []byte) ([]byte, error) {
	if !strings.HasPrefix(string(b), Prefix) {
		return b, nil
	}
	return s.vault.open(s.tenant, s.write, string(b))
}

// Open is a document with what its tokens were made of in their places, which is
// remembered: what was sensitive once stays so. It fails with [ErrNoKey] or
// [ErrToken], and never returns a token.
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
