package ledger

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/readback-go/readback/intent"
)

// Term is a text by which [Search.Query] finds a write.
type Term struct {
	// Field is the field of the write: "id", "workflow", "idempotency_key", "ref", or the JSON
	// Pointer of a value of the business key in the intent, such as "/key/number".
	Field string
	// Value is the text, without regard to case. For a sealed value it is the keyed digest.
	Value  string
	Sealed bool
}

// Terms returns the terms of a write, without its ID. A tombstone has none: what was pruned or
// erased is found by what a tombstone keeps, with the other conditions of a [Search].
func Terms(r Record) []Term {
	if r.Tombstone {
		return nil
	}
	terms := addTerm(nil, "workflow", r.Workflow)
	terms = addTerm(terms, "idempotency_key", r.IdempotencyKey)
	terms = addTerm(terms, "ref", r.Ref)
	return valueTerms(terms, "/key", map[string]any(intent.StoredKey(r.Intent)))
}

// NewTerms returns the terms that a write has after a change and did not have before it: only its
// ref becomes known later.
func NewTerms(before, after Record) []Term {
	if after.Tombstone || after.Ref == before.Ref {
		return nil
	}
	return addTerm(nil, "ref", after.Ref)
}

// Stored returns the term as drivers store it. The first character keeps sealed values apart, so
// that no prefix finds their digests.
func (t Term) Stored() string {
	if t.Sealed {
		return "#" + t.Value
	}
	return "=" + bounded(t.Value)
}

// Spans returns the ranges of stored terms that a search reads: from, included, to, excluded. What
// is in them matches or has the same beginning; [Search.Selects] decides.
func (s Search) Spans() (spans [][2]string) {
	if s.Query == "" {
		return nil
	}
	for _, t := range append([]Term{{Value: folded(s.Query)}}, s.sealed()...) {
		spans = append(spans, span(t.Stored()))
	}
	return spans
}

// IDSpan returns the range of IDs that a search by text reads; "" to "" where the text is too
// short to be one.
func (s Search) IDSpan() [2]string {
	if prefix := folded(s.Query); strings.HasPrefix(prefix, idPrefix) && len(prefix) >= minID {
		return span(prefix)
	}
	return [2]string{}
}

// Matched returns the fields of a write that match the query of a search, as [Term.Field] names
// them.
func (s Search) Matched(r Record) (fields []string) {
	prefix := folded(s.Query)
	if prefix == "" {
		return nil
	}
	if span := s.IDSpan(); span[0] != "" && strings.HasPrefix(string(r.ID), prefix) {
		fields = append(fields, "id")
	}
	for _, t := range Terms(r) {
		if t.Sealed && slices.Contains(s.QueryDigests, t.Value) || !t.Sealed && strings.HasPrefix(t.Value, prefix) {
			fields = append(fields, t.Field)
		}
	}
	return fields
}

func (s Search) sealed() (terms []Term) {
	for _, digest := range s.QueryDigests {
		terms = append(terms, Term{Value: digest, Sealed: true})
	}
	return terms
}

// valueTerms adds the texts and numbers in a value at a place.
func valueTerms(terms []Term, at intent.Pointer, v any) []Term {
	switch v := v.(type) {
	case string:
		return addTerm(terms, string(at), v)
	case json.Number:
		return addTerm(terms, string(at), v.String())
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			terms = valueTerms(terms, at.AppendToken(name), v[name])
		}
	case []any:
		for _, one := range v {
			terms = valueTerms(terms, at, one)
		}
	}
	return terms
}

// addTerm adds a term, unless there are [maxTerms].
func addTerm(terms []Term, field, text string) []Term {
	t := Term{Field: field, Value: folded(text)}
	if digest, sealed := sealedDigest(text); sealed {
		t.Value, t.Sealed = digest, true
	}
	if t.Value == "" || len(terms) == maxTerms {
		return terms
	}
	return append(terms, t)
}

// sealedPrefix begins a sealed value: see redact.Prefix.
const sealedPrefix = "rbs1:"

// sealedDigest returns the keyed digest in a sealed value, as [intent.KeyedDigest] writes it; ""
// where the value only begins like one.
func sealedDigest(text string) (digest string, sealed bool) {
	rest, sealed := strings.CutPrefix(text, sealedPrefix)
	parts := strings.SplitN(rest, ":", 3)
	if sealed && len(parts) == 3 && len(parts[0])+len(parts[1]) < maxTerm && !strings.ContainsFunc(rest, unicode.IsControl) {
		digest = intent.KeyedDigest(parts[0], parts[1])
	}
	return digest, sealed
}

// folded returns a text as it is searched: in lower case, without control characters (of which no
// database stores all) and space around it.
func folded(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return -1
		}
		return unicode.ToLower(r)
	}, text))
}

// bounded returns the beginning of a text that is stored.
func bounded(text string) string {
	if len(text) <= maxTerm {
		return text
	}
	end := maxTerm
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// span returns the range of all texts that begin with a prefix, in the order of their bytes.
func span(prefix string) [2]string {
	end := []rune(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		switch end[i] {
		case unicode.MaxRune:
			continue
		case 0xD7FF: // before the surrogates, which no text has
			end[i] = 0xE000
		default:
			end[i]++
		}
		return [2]string{prefix, string(end[:i+1])}
	}
	return [2]string{} // it is empty
}

const (
	idPrefix = "wr_"
	// minID is the shortest part of an ID that is searched: shorter ones begin thousands.
	minID = len(idPrefix) + 4
	// maxTerm bounds the stored part of a term, in bytes: longer than any number or address that
	// people type.
	maxTerm = 128
	// maxTerms is how many terms a write has: as many as a business key may have members.
	maxTerms = intent.MaxKeyMembers + 3
)

// TermLot is how many writes drivers store the terms of together, so that new ones share few pages.
// A search reads each lot: 245 for a million writes, about a millisecond.
const TermLot = 4096
