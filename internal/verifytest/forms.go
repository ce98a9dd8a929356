package verifytest

import (
	"encoding/json"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// form is a value in another form than the one written.
type form struct {
	name    string
	value   any
	excused bool // the rules of the field make it the same
}

// way is one way to change the form of a value. With one of the excusing rules the value is the
// same, without it the value differs. With one of the unclear rules it depends on the value,
// and the way is skipped.
type way struct {
	name    string
	excuses []intent.RuleName
	unclear []intent.RuleName
	make    func(v any, rules intent.Comparison) (any, bool)
}

// always excuses a form under any rules.
const always intent.RuleName = "always"

var ways = []way{
	{"with blanks around", rules(intent.RuleTrim, intent.RuleText), rules(intent.RuleNumeric, intent.RuleTime), text(func(s string) string { return " " + s + " " })},
	{"in other letters", rules(intent.RuleFold), rules(intent.RuleTime), text(otherLetters)},
	{"with other line ends", rules(intent.RuleCRLF, intent.RuleText), rules(intent.RuleTrim), text(otherLines)},
	{"with entities", rules(intent.RuleUnescape, intent.RuleText), rules(intent.RuleTime, intent.RuleNumeric), text(entities)},
	{"as markup", rules(intent.RuleText), nil, text(markup)},
	{"as text", rules(intent.RuleString, intent.RuleNumeric), nil, asText},
	{"with another text behind", nil, nil, text(func(s string) string { return s + "x" })},
	{"empty", nil, rules(intent.RuleText), text(func(string) string { return "" })},
	{"null", nil, nil, func(v any, _ intent.Comparison) (any, bool) { return nil, v != "" }},
	{"null for empty", rules(intent.RuleEmpty), nil, func(v any, _ intent.Comparison) (any, bool) { return nil, v == "" }},
	{"one more", nil, nil, number(func(n *big.Rat, r intent.Comparison) { n.Add(n, new(big.Rat).Add(big.NewRat(1, 1), tolerance(r))) })},
	{"within the tolerance", rules(intent.RuleNumeric), nil, tolerated},
	{"with a decimal", rules(always), nil, decimal},
	{"the contrary", nil, nil, func(v any, _ intent.Comparison) (any, bool) { b, ok := v.(bool); return !b, ok }},
	{"in another zone", rules(intent.RuleTime), nil, moment(func(t time.Time) time.Time { return t.In(time.FixedZone("", 5*3600+1800)) })},
	{"another day", nil, nil, moment(func(t time.Time) time.Time { return t.Add(48 * time.Hour) })},
	{"in another order", rules(intent.RuleSet), nil, list(reversed)},
	{"with a repeat", rules(intent.RuleSet), nil, list(func(l []any) []any { return append(slices.Clone(l), l[0]) })},
	{"with one more element", nil, nil, list(func(l []any) []any { return append(slices.Clone(l), "verifytest") })},
	{"with one element less", nil, nil, list(lessOne)},
}

func rules(names ...intent.RuleName) []intent.RuleName { return names }

// formsOf lists the forms of a value at a place. In an object each member has its own. One
// declared member less is no difference, one declared member more is.
func formsOf(in intent.WriteIntent, p connectors.Profile, at intent.Pointer, v any) []form {
	ruled, ok := in.Compare[string(at)]
	if !ok {
		ruled = p.Compare[string(at)]
	}
	if object, isObject := v.(map[string]any); isObject && len(ruled) == 0 {
		return formsOfMembers(in, p, at, object)
	}
	var all []form
	for _, w := range ways {
		if has(ruled, w.unclear) {
			continue
		}
		other, ok := w.make(v, ruled)
		if !ok || reflect.DeepEqual(other, v) {
			continue
		}
		excused := slices.Contains(w.excuses, always) || has(ruled, w.excuses)
		if _, isList := v.([]any); isList && !has(ruled, w.excuses, intent.RuleNumeric, intent.RuleTime) {
			excused = slices.Contains(w.excuses, always) // these two ignore lists
		}
		all = append(all, form{w.name, other, excused})
	}
	return all
}

func has(ruled intent.Comparison, names []intent.RuleName, but ...intent.RuleName) bool {
	return slices.ContainsFunc(ruled, func(r intent.Rule) bool {
		return slices.Contains(names, r.Name) && !slices.Contains(but, r.Name)
	})
}

func formsOfMembers(in intent.WriteIntent, p connectors.Profile, at intent.Pointer, object map[string]any) []form {
	with := func(name string, v any) map[string]any {
		other := maps.Clone(object)
		other[name] = v
		return other
	}
	all := []form{{"with a member more", with("verifytest", "x"), false}}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if len(object) > 1 {
			less := maps.Clone(object)
			delete(less, name)
			all = append(all, form{"without the member " + name, less, true})
		}
		for _, f := range formsOf(in, p, at.AppendToken(name), object[name]) {
			all = append(all, form{name + " " + f.name, with(name, f.value), f.excused})
		}
	}
	return all
}

// text changes a string that is not empty, or each of a list of them.
func text(change func(s string) string) func(any, intent.Comparison) (any, bool) {
	return func(v any, _ intent.Comparison) (any, bool) {
		switch v := v.(type) {
		case string:
			return change(v), v != ""
		case []any:
			other := slices.Clone(v)
			for i, element := range v {
				if s, ok := element.(string); ok && s != "" {
					other[i] = change(s)
				}
			}
			return other, true
		}
		return nil, false
	}
}

// otherLetters changes only ASCII letters: the case of others depends on the language.
func otherLetters(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, s)
}

func otherLines(s string) string {
	if strings.Contains(s, "\r\n") {
		return strings.ReplaceAll(s, "\r\n", "\n")
	}
	return strings.ReplaceAll(s, "\n", "\r\n")
}

// entities writes the first letter as a character reference.
func entities(s string) string {
	i := strings.IndexFunc(s, func(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' })
	if i < 0 {
		return s
	}
	return s[:i] + "&#" + big.NewInt(int64(s[i])).String() + ";" + s[i+1:]
}

func markup(s string) string {
	if strings.ContainsAny(s, "<&") {
		return s // it contains some already
	}
	return "<p>" + s + "</p>"
}

var plainNumber = regexp.MustCompile(`^-?[0-9]{1,300}(\.[0-9]{1,300})?$`)

func asText(v any, _ intent.Comparison) (any, bool) {
	n, ok := v.(json.Number)
	return string(n), ok && plainNumber.MatchString(string(n))
}

func number(change func(n *big.Rat, r intent.Comparison)) func(any, intent.Comparison) (any, bool) {
	return func(v any, ruled intent.Comparison) (any, bool) {
		n, ok := v.(json.Number)
		if !ok || !plainNumber.MatchString(string(n)) {
			return nil, false
		}
		value, _ := new(big.Rat).SetString(string(n))
		change(value, ruled)
		digits, _ := value.FloatPrec()
		return json.Number(value.FloatString(digits)), true
	}
}

func tolerance(ruled intent.Comparison) *big.Rat {
	for _, r := range ruled {
		if t, ok := new(big.Rat).SetString(r.Tolerance); ok {
			return t
		}
	}
	return new(big.Rat)
}

func tolerated(v any, ruled intent.Comparison) (any, bool) {
	if tolerance(ruled).Sign() == 0 {
		return nil, false
	}
	return number(func(n *big.Rat, r intent.Comparison) { n.Add(n, tolerance(r)) })(v, ruled)
}

func decimal(v any, _ intent.Comparison) (any, bool) {
	n, ok := v.(json.Number)
	return json.Number(string(n) + ".0"), ok && plainNumber.MatchString(string(n)) && !strings.Contains(string(n), ".")
}

// moment changes a time that names its zone.
func moment(change func(t time.Time) time.Time) func(any, intent.Comparison) (any, bool) {
	return func(v any, _ intent.Comparison) (any, bool) {
		s, _ := v.(string)
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return nil, false
		}
		return change(t).Format(time.RFC3339Nano), true
	}
}

func list(change func(l []any) []any) func(any, intent.Comparison) (any, bool) {
	return func(v any, _ intent.Comparison) (any, bool) {
		l, ok := v.([]any)
		if !ok || len(l) == 0 {
			return nil, false
		}
		return change(l), true
	}
}

func reversed(l []any) []any {
	other := slices.Clone(l)
	slices.Reverse(other)
	return other
}

// lessOne removes the last element, unless it occurs twice.
func lessOne(l []any) []any {
	last := l[len(l)-1]
	if slices.ContainsFunc(l[:len(l)-1], func(v any) bool { return reflect.DeepEqual(v, last) }) {
		return l
	}
	return slices.Clone(l[:len(l)-1])
}
