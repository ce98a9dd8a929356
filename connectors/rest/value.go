package rest

import (
	"encoding/json"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
)

const (
	// maxRef limits references, URLs, versions and stamps that are taken from an answer, in
	// bytes. They go into the ledger and into later requests.
	maxRef = 2 << 10
	// maxPlainDigits is how long a whole number may be to be written out in a
	// text; no identifier is longer.
	maxPlainDigits = 40
)

// values are the values of placeholders, by the first word of their names.
type values map[string]any

// get finds the value of a placeholder; false when there is none.
func (v values) get(n hole) (any, bool) {
	at, ok := v[n.path[0]]
	for _, name := range n.path[1:] {
		object, isObject := at.(map[string]any)
		if !ok || !isObject {
			return nil, false
		}
		at, ok = object[name]
	}
	return at, ok
}

// scalarText is a scalar as text for a URL, a header or a text; false for any other value.
func scalarText(v any) (string, bool) {
	if n, ok := v.(json.Number); ok {
		return plainNumber(n), true
	}
	return declared.ScalarText(v)
}

// plainNumber is a number as text: a whole one without point and exponent, since 1.0 and 1 are
// one key, and a lookup of "1.0" would not find 1.
func plainNumber(n json.Number) string {
	r, ok := declared.Rational(n)
	if !ok || !r.IsInt() || len(r.Num().String()) > maxPlainDigits {
		return string(n)
	}
	return r.Num().String()
}

// sameKey reports whether a field of a record matches that of a business key, under the
// declaration's rules for the field. Without rules: exactly.
func sameKey(want, got any, rules intent.Comparison) bool {
	for _, rule := range rules {
		want, got = underRule(want, rule.Name), underRule(got, rule.Name)
	}
	return declared.Same(want, got)
}

// similar reports whether one of two values contains the other, as lookups match that search part
// of a text or ignore case, blanks or entities.
func similar(a, b any) bool {
	x, okX := scalarText(a)
	y, okY := scalarText(b)
	if !okX || !okY {
		return false
	}
	x, y = loose(x), loose(y)
	if x == "" || y == "" {
		return x == y // nothing is in everything
	}
	return strings.Contains(x, y) || strings.Contains(y, x)
}

func loose(s string) string {
	return fold(strings.Join(strings.Fields(html.UnescapeString(s)), ""))
}

// quotes reports whether a value, or anything in it, contains another as a word of its own: order-1 is
// not in order-12, which the first page of everything may show.
func quotes(in, what any) bool {
	word, ok := scalarText(what)
	pattern, err := regexp.Compile(`(^|[^\pL\pN])` + regexp.QuoteMeta(plainWords(word)) + `($|[^\pL\pN])`)
	return ok && strings.TrimSpace(word) != "" && err == nil && anyScalar(in, func(s string) bool { return pattern.MatchString(plainWords(s)) })
}

func plainWords(s string) string {
	return fold(strings.Join(strings.Fields(html.UnescapeString(s)), " "))
}

// anyScalar reports whether one of the scalars in a value is as wanted.
func anyScalar(v any, wanted func(string) bool) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return anyScalar(e, wanted) })
	case map[string]any:
		return anyScalar(slices.Collect(maps.Values(v)), wanted)
	}
	s, ok := scalarText(v)
	return ok && wanted(s)
}

// keyRules are the comparison rules that a business key may have.
var keyRules = []intent.RuleName{intent.RuleTrim, intent.RuleFold, intent.RuleString, intent.RuleUnescape}

func underRule(v any, rule intent.RuleName) any {
	if rule == intent.RuleString {
		if s, ok := scalarText(v); ok {
			return s
		}
		return v
	}
	s, ok := v.(string)
	switch {
	case !ok:
		return v
	case rule == intent.RuleTrim:
		return strings.TrimSpace(s)
	case rule == intent.RuleFold:
		return fold(s)
	case rule == intent.RuleUnescape:
		return html.UnescapeString(s)
	}
	return v
}

// fold makes strings equal that [strings.EqualFold] calls equal.
func fold(s string) string {
	return strings.Map(foldRune, s)
}

// texts visits all strings in a value.
func texts(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, e := range v {
			texts(e, visit)
		}
	case map[string]any:
		for _, e := range v {
			texts(e, visit)
		}
	}
}

// bounded is a text taken from an answer, "" if it is not a text or not fit to be stored.
func bounded(v any) string {
	s, ok := scalarText(v)
	if !ok || len(s) > maxRef || strings.ContainsFunc(s, isControl) {
		return ""
	}
	return s
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// foldRune is the smallest rune that is the same letter in another case.
func foldRune(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}
