package verify_test

import (
	"testing"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// ruleCase asks whether two values are the same under rules.
type ruleCase struct {
	reason    string
	rules     intent.Comparison
	want, got string // JSON; "" is not there
	same      bool
}

func (c ruleCase) run(t *testing.T) {
	t.Helper()
	got := intent.Fields{}
	if c.got != "" {
		got = fields(t, `{"a":`+c.got+`}`)
	}
	w := intent.WriteIntent{Expect: fields(t, `{"a":`+c.want+`}`), Compare: map[string]intent.Comparison{"/a": c.rules}}
	found := verify.Diff(w, nil, got)
	if same := len(found) == 0; same != c.same {
		t.Errorf("same is %t, want %t: %s: %v", same, c.same, c.reason, describeAll(found))
	}
}

func rule(names ...intent.RuleName) (rules intent.Comparison) {
	for _, n := range names {
		rules = append(rules, intent.Rule{Name: n})
	}
	return rules
}

func within(tolerance string) intent.Comparison {
	return intent.Comparison{{Name: intent.RuleNumeric, Tolerance: tolerance}}
}

func to(precision, zone string) intent.Comparison {
	return intent.Comparison{{Name: intent.RuleTime, Precision: precision, Zone: zone}}
}

func TestTextRules(t *testing.T) {
	for name, c := range map[string]ruleCase{
		"trim":            {"white space at the ends", rule("trim"), `"a b"`, `"\t a b\n"`, true},
		"trim inside":     {"white space inside counts", rule("trim"), `"a b"`, `"a  b"`, false},
		"trim a number":   {"strings only", rule("trim"), `1`, `" 1"`, false},
		"trim an array":   {"element by element", rule("trim"), `["a","b"]`, `["a "," b"]`, true},
		"trim, missing":   {"missing stays missing", rule("trim"), `""`, ``, false},
		"fold":            {"letter case", rule("fold"), `"Ada@Example.ORG"`, `"ada@example.org"`, true},
		"fold, Greek":     {"simple folding: all sigmas are one", rule("fold"), `"ΟΔΟΣ"`, `"οδος"`, true},
		"fold, Kelvin":    {"simple folding: K is k, ſ is s", rule("fold"), `"ſK"`, `"sk"`, true},
		"fold, accents":   {"an accent is not letter case", rule("fold"), `"é"`, `"e"`, false},
		"fold, Turkish":   {"ı is not i, and İ is neither", rule("fold"), `"ıİ"`, `"ii"`, false},
		"fold, other":     {"another letter", rule("fold"), `"a"`, `"b"`, false},
		"crlf":            {"line ends", rule("crlf"), `"a\nb"`, `"a\r\nb"`, true},
		"crlf, lone cr":   {"a lone CR is no line end", rule("crlf"), `"a\nb"`, `"a\rb"`, false},
		"unescape":        {"entities stand for their characters", rule("unescape"), `"Fish & <Chips>"`, `"Fish &amp; &lt;Chips&gt;"`, true},
		"unescape twice":  {"once, not twice", rule("unescape"), `"&"`, `"&amp;amp;"`, false},
		"unescape markup": {"markup counts", rule("unescape"), `"a"`, `"<b>a</b>"`, false},
		"text":            {"markup is dropped, white space runs are one blank", rule("text"), `"Hello big world"`, `"<p>Hello&nbsp;<b>big</b>\n  world</p>"`, true},
		"text, other":     {"words count", rule("text"), `"Hello"`, `"<p>Hallo</p>"`, false},
		"text, words":     {"a tag separates words", rule("text"), `"ab"`, `"a<br>b"`, false},
		"text, less than": {"a bare < hides nothing", rule("text"), `"if a<b then pay 10"`, `"if a<c then pay 99"`, false},
	} {
		t.Run(name, c.run)
	}
}

func TestEmptyAndStringRules(t *testing.T) {
	for name, c := range map[string]ruleCase{
		"empty, missing": {"missing is empty", rule("empty"), `""`, ``, true},
		"empty, null":    {"null is missing", rule("empty"), `null`, ``, true},
		"empty, text":    {"null is empty", rule("empty"), `""`, `null`, true},
		"empty, zero":    {"0, false, [] and {} are not empty", rule("empty"), `null`, `0`, false},
		"empty, false":   {"0, false, [] and {} are not empty", rule("empty"), `null`, `false`, false},
		"empty, array":   {"0, false, [] and {} are not empty", rule("empty"), `null`, `[]`, false},
		"empty, object":  {"0, false, [] and {} are not empty", rule("empty"), `null`, `{}`, false},
		"empty, blank":   {"a blank is not empty", rule("empty"), `""`, `" "`, false},
		"empty, something": {
			"something is not nothing", rule("empty"), `"x"`, ``, false},
		"empty, members":     {"an object is still compared by its members", rule("empty"), `{"x":1}`, `{"x":1,"y":2}`, true},
		"string, number":     {"numbers as they are written", rule("string"), `17`, `"17"`, true},
		"string, back":       {"either way", rule("string"), `"17"`, `17`, true},
		"string, fraction":   {"with no more digits than they need", rule("string"), `"1.5"`, `1.50`, true},
		"string, exponent":   {"without exponent", rule("string"), `"1500"`, `1.5e3`, true},
		"string, small":      {"without exponent", rule("string"), `"0.0015"`, `15e-4`, true},
		"string, numbers":    {"two numbers stay what they denote", rule("string"), `1.5`, `1.50`, true},
		"string, bool":       {"booleans as they are written", rule("string"), `true`, `"true"`, true},
		"string, false":      {"booleans as they are written", rule("string"), `"false"`, `false`, true},
		"string, other bool": {"the other one", rule("string"), `true`, `"false"`, false},
		"string, bool and 1": {"true is not 1", rule("string"), `true`, `1`, false},
		"string, null":       {"null has no written form", rule("string"), `null`, `"null"`, false},
		"string, zeros":      {"the string is not read as a number", rule("string"), `1`, `"1.0"`, false},
	} {
		t.Run(name, c.run)
	}
}

func TestNumericRule(t *testing.T) {
	for name, c := range map[string]ruleCase{
		"numeric":             {"a numeric string is a number", rule("numeric"), `"1.10"`, `1.1`, true},
		"numeric, blanks":     {"white space around it does not count", rule("numeric"), `" 5 "`, `5`, true},
		"numeric, sign":       {"a leading plus", rule("numeric"), `"+5"`, `5`, true},
		"numeric, not zero":   {"without tolerance exactly", rule("numeric"), `1`, `1.0000000001`, false},
		"tolerance":           {"the difference allowed is allowed", within("0.005"), `1`, `1.005`, true},
		"tolerance, below":    {"on both sides", within("0.005"), `1`, `0.995`, true},
		"tolerance, beyond":   {"and no more than that", within("0.005"), `1`, `1.0050001`, false},
		"tolerance, no sense": {"a tolerance that is none allows nothing", within("some"), `1`, `"1"`, false},
		"numeric, text":       {"words are no numbers", rule("numeric"), `1`, `"one"`, false},
		"numeric, both text":  {"the same words are equal as they are", rule("numeric"), `"one"`, `"one"`, true},
		"numeric, null":       {"null is no number", rule("numeric"), `0`, `null`, false},
		"numeric, missing":    {"nothing is no number", rule("numeric"), `0`, ``, false},
		"numeric, bool":       {"a boolean is no number", rule("numeric"), `1`, `true`, false},
		"numeric, empty":      {"an empty string is no number", rule("numeric"), `0`, `""`, false},
		"numeric, hex":        {"Go's other notations are none of JSON's", rule("numeric"), `16`, `"0x10"`, false},
		"numeric, fraction":   {"Go's other notations are none of JSON's", rule("numeric"), `0.5`, `"1/2"`, false},
		"numeric, underscore": {"Go's other notations are none of JSON's", rule("numeric"), `1000`, `"1_000"`, false},
		"numeric, huge":       {"a string cannot make us compute for ever", rule("numeric"), `1`, `"1e999999999"`, false},
		"numeric, no mantissa": {
			"an exponent alone is no number", rule("numeric"), `1`, `"e5"`, false},
	} {
		t.Run(name, c.run)
	}
}

func TestTimeRule(t *testing.T) {
	for name, c := range map[string]ruleCase{
		"time":               {"one moment in two zones", rule("time"), `"2026-03-01T10:00:00Z"`, `"2026-03-01T11:00:00+01:00"`, true},
		"time, no colon":     {"an offset without colon", rule("time"), `"2026-03-01T10:00:00Z"`, `"2026-03-01T10:00:00.000+0000"`, true},
		"time, no zone":      {"UTC where none is named", rule("time"), `"2026-03-01T10:00:00Z"`, `"2026-03-01 10:00:00"`, true},
		"time, date":         {"a date is its midnight", rule("time"), `"2026-03-01"`, `"2026-03-01T00:00:00Z"`, true},
		"time, mail":         {"RFC 1123", rule("time"), `"2026-03-01T10:00:00Z"`, `"Sun, 01 Mar 2026 10:00:00 +0000"`, true},
		"time, nanosecond":   {"to the nanosecond", rule("time"), `"2026-03-01T10:00:00Z"`, `"2026-03-01T10:00:00.000000001Z"`, false},
		"time, zone":         {"the zone of the rule", to("", "Europe/Berlin"), `"2026-03-01T10:00:00Z"`, `"2026-03-01T11:00:00"`, true},
		"time, zone named":   {"a zone in the value wins", to("", "Europe/Berlin"), `"2026-03-01T10:00:00Z"`, `"2026-03-01T11:00:00Z"`, false},
		"time, no such zone": {"an unknown zone compares nothing", to("", "Mars/Olympus"), `"2026-03-01T10:00:00Z"`, `"2026-03-01T10:00:00.0Z"`, false},
		"time, cut":          {"within one unit, whether rounded or cut", to("1s", ""), `"2026-03-01T10:00:00.999Z"`, `"2026-03-01T10:00:00Z"`, true},
		"time, unit":         {"a whole unit is too far", to("1s", ""), `"2026-03-01T10:00:00Z"`, `"2026-03-01T10:00:01Z"`, false},
		"time, bad unit":     {"a precision that is none compares nothing", to("soon", ""), `"2026-03-01T10:00:00Z"`, `"2026-03-01T10:00:00.0Z"`, false},
		"time, number":       {"numbers are no times", rule("time"), `"1970-01-01T00:00:00Z"`, `0`, false},
		"time, words":        {"words are no times", rule("time"), `"2026-03-01"`, `"tomorrow"`, false},
	} {
		t.Run(name, c.run)
	}
}

func TestSetRuleAndOrder(t *testing.T) {
	for name, c := range map[string]ruleCase{
		"set":                {"order and repeats do not count", rule("set"), `["a","b"]`, `["b","a","b"]`, true},
		"set, numbers":       {"elements by value", rule("set"), `[1,2]`, `[2.0,1e0]`, true},
		"set, objects":       {"elements of any type", rule("set"), `[{"x":1,"y":[2]},null]`, `[null,{"y":[2],"x":1}]`, true},
		"set, more":          {"another element", rule("set"), `["a"]`, `["a","b"]`, false},
		"set, less":          {"an element that lacks", rule("set"), `["a","b"]`, `["b"]`, false},
		"set, types":         {"1 is not \"1\"", rule("set"), `[1]`, `["1"]`, false},
		"set, scalar":        {"a scalar is no set", rule("set"), `["a"]`, `"a"`, false},
		"set, missing":       {"nothing is no set", rule("set"), `[]`, ``, false},
		"set, null":          {"null is no set", rule("set"), `[]`, `null`, false},
		"set, too large":     {"numbers that no double holds", rule("set"), `[9007199254740993]`, `[9007199254740992]`, false},
		"in order":           {"rules are applied in the order written", rule("unescape", "trim", "fold"), `"a & b"`, `" A &amp; B&#32;"`, true},
		"another order":      {"trim before unescape leaves the blank", rule("trim", "unescape"), `"x"`, `"x&#32;"`, false},
		"trim and set":       {"elements are brought into form before they are compared", rule("trim", "fold", "set"), `["a","b"]`, `["B ","A"]`, true},
		"string and numeric": {"both", rule("string", "numeric"), `true`, `"true"`, true},
		"empty and trim":     {"empty after trimming", rule("trim", "empty"), `null`, `"  "`, true},
		"unknown rule":       {"an unknown rule allows nothing", rule("soundex"), `"Meier"`, `"Maier"`, false},
	} {
		t.Run(name, c.run)
	}
}

// A mismatch shows the wanted and observed values, not the form in which the rules compared
// them.
func TestMismatchShowsWhatWasSeen(t *testing.T) {
	w := intent.WriteIntent{
		Expect:  fields(t, `{"a":"Ada","b":"x"}`),
		Compare: map[string]intent.Comparison{"/a": {{Name: "fold"}}, "/b": {{Name: "empty"}}},
	}
	found := describeAll(verify.Diff(w, nil, fields(t, `{"a":"BOB"}`)))
	if len(found) != 2 || found[0] != `/a differs: "Ada" > "BOB"` || found[1] != `/b not there: "x"` {
		t.Errorf("%q", found)
	}
}
