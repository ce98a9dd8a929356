package intent

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// decimal is a number in the one form that equal numbers share: no leading or trailing zero
// digits, and the exponent of the last digit. Zero has no digits.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// parseDecimal parses a JSON number. It reports false for other text and for exponents beyond a
// billion, which no program means.
func parseDecimal(n json.Number) (decimal, bool) {
	text := string(n)
	if !isNumber(text) {
		return decimal{}, false
	}
	var d decimal
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(digits, "0")
	if d.digits == "" {
		return decimal{}, true
	}
	if hasExponent {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > 1e9 || e < -1e9 {
			return decimal{}, false
		}
		d.exponent = e
	}
	d.exponent += len(digits) - len(d.digits) - len(fraction)
	return d, true
}

func isNumber(text string) bool {
	v := jsontext.Value(text)
	return v.IsValid() && v.Kind() == jsontext.KindNumber && strings.TrimSpace(text) == text
}

// exact reports whether canonical JSON keeps the number: RFC 8785 writes every
// number as the shortest decimal of the nearest IEEE double, and that decimal
// must denote the same value. Otherwise two different amounts would share one
// digest.
func exact(n json.Number) bool {
	if n != "" && len(n) <= 15 && strings.Trim(string(n), "0123456789") == "" {
		return true // a double holds every whole number of 15 digits
	}
	d, ok := parseDecimal(n)
	if !ok {
		return false
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	short, ok := parseDecimal(json.Number(strconv.FormatFloat(f, 'e', -1, 64)))
	return ok && d == short
}
