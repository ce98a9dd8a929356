package verify

import (
	"encoding/json"
	"html"
	"maps"
	"math/big"
	"strings"
	"time"
	"unicode"

	nethtml "golang.org/x/net/html"

	"github.com/readback-go/readback/intent"
)

const (
	// maxNumberText is the longest number compared by value, in characters. Money and measures
	// have a few dozen digits; a double has at most about 1,100.
	maxNumberText = 1200
	// maxExponentDigits keeps exponents below 1,000: enough for any double (308), and a power
	// of ten that is fast to compute.
	maxExponentDigits = 3
)

// missing represents a member that is not there, which is neither null nor empty.
type missing struct{}

// align normalises the wanted and the observed value under the rules of one field. It reports
// whether a comparing rule (numeric, time, set) found them equal.
func align(rules intent.Comparison, want, got any) (a, b any, same bool) {
	for _, r := range rules {
		switch r.Name {
		case intent.RuleNumeric:
			same = equalNumeric(r, want, got)
		case intent.RuleTime:
			same = equalTime(r, want, got)
		case intent.RuleSet:
			same = equalSet(want, got)
		default:
			want, got = normal(r.Name, want), normal(r.Name, got)
		}
		if same {
			break
		}
	}
	return want, got, same
}

// normal returns a value in the form that the rule compares. Arrays are normalised element by
// element.
func normal(rule intent.RuleName, v any) any {
	if list, ok := v.([]any); ok {
		out := make([]any, len(list))
		for i, item := range list {
			out[i] = normal(rule, item)
		}
		return out
	}
	switch rule {
	case intent.RuleEmpty:
		if _, gone := v.(missing); gone || v == nil || v == "" {
			return ""
		}
		return v
	case intent.RuleString:
		return written(v)
	}
	s, ok := v.(string)
	if !ok {
		return v
	}
	switch rule {
	case intent.RuleTrim:
		return strings.TrimSpace(s)
	case intent.RuleFold:
		return strings.Map(folded, s)
	case intent.RuleCRLF:
		return strings.ReplaceAll(s, "\r\n", "\n")
	case intent.RuleUnescape:
		return html.UnescapeString(s)
	case intent.RuleText:
		return plainText(s)
	}
	return v
}

// folded returns the smallest letter that simple case folding makes the same.
func folded(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}

// written returns the text of a number, without exponent and with no more digits than needed,
// or of a boolean; other values are unchanged.
func written(v any) any {
	switch v := v.(type) {
	case json.Number:
		r, ok := Decimal(v)
		if !ok {
			return string(v)
		}
		digits, _ := r.FloatPrec() // exact: a decimal text has finitely many digits
		return r.FloatString(digits)
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return v
}

// plainText drops markup and folds white space, as a reader would see it.
func plainText(s string) string {
	var b strings.Builder
	z := nethtml.NewTokenizer(strings.NewReader(s))
	for {
		switch z.Next() {
		case nethtml.ErrorToken: // the end: the reader cannot fail otherwise
			b.Write(z.Raw()) // an unclosed tag hides text: "a<b and c"
			return strings.Join(strings.Fields(b.String()), " ")
		case nethtml.TextToken:
			b.WriteString(z.Token().Data)
		default:
			b.WriteByte(' ')
		}
	}
}

// Decimal parses a number, or a numeric string, exactly. It reports false for anything else,
// and for numbers of implausible length, which are compared as text: a destination must not
// make us compute 10^999999999.
func Decimal(v any) (*big.Rat, bool) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = string(v)
	case string:
		text = strings.TrimSpace(v)
	default:
		return nil, false
	}
	if len(text) > maxNumberText || strings.ContainsAny(text, "/_xXpPbBoO") {
		return nil, false
	}
	if mantissa, exponent, ok := strings.Cut(strings.ToLower(text), "e"); ok && (len(mantissa) == 0 || len(strings.TrimLeft(exponent, "+-0")) > maxExponentDigits) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

func equalNumeric(r intent.Rule, want, got any) bool {
	a, okA := Decimal(want)
	b, okB := Decimal(got)
	if !okA || !okB {
		return false
	}
	tolerance := new(big.Rat)
	if r.Tolerance != "" {
		t, ok := Decimal(r.Tolerance)
		if !ok {
			return false
		}
		tolerance = t
	}
	return new(big.Rat).Abs(a.Sub(a, b)).Cmp(tolerance) <= 0
}

func equalNumbers(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, okX := Decimal(a)
	y, okY := Decimal(b)
	return okX && okY && x.Cmp(y) == 0
}

// timeForms are the forms in which destinations write times, in the order tried: RFC 3339, the
// offset without colon, no zone, date alone.
var timeForms = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700",
	"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
	time.DateOnly, time.RFC1123Z,
}

func equalTime(r intent.Rule, want, got any) bool {
	zone := time.UTC
	if r.Zone != "" {
		z, err := time.LoadLocation(r.Zone)
		if err != nil {
			return false
		}
		zone = z
	}
	a, okA := pointInTime(want, zone)
	b, okB := pointInTime(got, zone)
	if !okA || !okB {
		return false
	}
	if r.Precision == "" {
		return a.Equal(b)
	}
	p, err := time.ParseDuration(r.Precision)
	if err != nil || p <= 0 {
		return false
	}
	// Some destinations round, others cut: within one unit both are the same.
	return a.Sub(b).Abs() < p
}

func pointInTime(v any, zone *time.Location) (time.Time, bool) {
	s, ok := v.(string)
	if !ok {
		return time.Time{}, false
	}
	for _, form := range timeForms {
		if t, err := time.ParseInLocation(form, strings.TrimSpace(s), zone); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func equalSet(want, got any) bool {
	a, okA := want.([]any)
	b, okB := got.([]any)
	return okA && okB && maps.Equal(members(a), members(b))
}

// members returns the distinct elements of an array, each by its canonical text.
func members(list []any) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, v := range list {
		text, err := intent.Canonical(v)
		if err != nil { // no double holds the number: its text is used
			text, _ = json.Marshal(v)
		}
		set[string(text)] = true
	}
	return set
}
