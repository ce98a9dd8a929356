package connectors

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/visible"
)

// Summary is how the records of a kind are named to people: "order A-1 for $29.99". It is for
// display alone: nothing is decided by it. The zero value names a record by its kind and its
// business key.
type Summary struct {
	// Text is the name of a record, with its fields in braces, and then what else is worth
	// reading, each part in brackets: "order {order_id}[ for {amount}][ to {customer}]". A field is
	// {amount}, {subject}, {customer}, or a JSON Pointer without its first slash. A part in
	// brackets is left out where one of its fields has no value.
	Text string
	// Verb is what making one is called, in place of "create": "send".
	Verb string
	// Amount, Subject and Customer are the fields (JSON Pointers) that an approver reads first.
	Amount   string
	Subject  string
	Customer string
	// Currency is the amount's: a JSON Pointer, or a code of ISO 4217 such as EUR. Minor means that
	// the amount is in the currency's smallest unit: 2999 is 29.99 of most.
	Currency string
	Minor    bool
}

// Described is a write or a record in business terms. Each text is one line in which every
// character is visible; it contains text of callers and destinations.
type Described struct {
	Verb    string // "create"
	Name    string // "order A-1"
	Details string // " for $29.99", or ""

	Amount, Subject, Customer string // "" where there is none
}

// String is all of it: "Create order A-1 for $29.99".
func (d Described) String() string {
	text := strings.TrimSpace(d.Verb+" "+d.Name) + d.Details
	return strings.ToUpper(text[:1]) + text[1:]
}

const (
	// maxSummaryValue is how many characters of one value a summary has, maxSummaryName how many
	// a name or the details: a row of a list shows both.
	maxSummaryValue = 80
	maxSummaryName  = 200
	// maxSummaryList is how many elements of a list are named.
	maxSummaryList = 3
	// maxSummaryText is how long the text of a declaration may be.
	maxSummaryText = 300
)

var (
	summaryForm  = regexp.MustCompile(`^[^\[\]]+(\[[^\[\]]+\])*$`)
	summaryField = regexp.MustCompile(`\{[^{}]*\}`)
	verbForm     = regexp.MustCompile(`^[a-z][a-z ]{0,29}$`)
)

// Valid returns an error that names what is wrong, or nil.
func (s Summary) Valid() error {
	if s == (Summary{}) {
		return nil
	}
	rest := summaryField.ReplaceAllString(s.Text, "")
	switch {
	case s.Text == "" || len(s.Text) > maxSummaryText || !summaryForm.MatchString(s.Text) || strings.ContainsAny(rest, "{}") || visible.Text(s.Text) != s.Text:
		return fmt.Errorf("text is %q; want a name and then parts in brackets, such as order {id}[ for {amount}], in at most %d characters", visible.Clip(s.Text, maxSummaryValue), maxSummaryText)
	case s.Verb != "" && !verbForm.MatchString(s.Verb):
		return fmt.Errorf("verb is %q; want a verb in lower case, such as send", visible.Clip(s.Verb, maxSummaryValue))
	case s.Amount == "" && (s.Currency != "" || s.Minor):
		return errors.New("currency and minor are about an amount; want amount, or neither")
	case s.Currency != "" && !strings.HasPrefix(s.Currency, "/") && units[s.Currency] == 0:
		return fmt.Errorf("currency is %q; want a JSON Pointer such as /currency, or a code such as EUR", visible.Clip(s.Currency, maxSummaryValue))
	}
	for _, named := range []struct{ name, path string }{{"amount", s.Amount}, {"subject", s.Subject}, {"customer", s.Customer}} {
		if named.path != "" && !intent.Pointer(named.path).IsValid() {
			return fmt.Errorf("%s is %q; want a JSON Pointer to a field, such as /%s", named.name, visible.Clip(named.path, maxSummaryValue), named.name)
		}
		if named.path == "" && strings.Contains(s.Text, "{"+named.name+"}") {
			return fmt.Errorf("text has {%s}; want %s, the field that it is", named.name, named.name)
		}
	}
	for _, path := range s.Fields() {
		if !intent.Pointer(path).IsValid() || path == "/" {
			return fmt.Errorf("text has {%s}; want the name of a field, such as {id}", visible.Clip(strings.TrimPrefix(path, "/"), maxSummaryValue))
		}
	}
	return nil
}

// Fields lists the fields that it shows, as JSON Pointers.
func (s Summary) Fields() []string {
	var all []string
	for _, path := range []string{s.Amount, s.Subject, s.Customer, s.Currency} {
		if strings.HasPrefix(path, "/") {
			all = append(all, path)
		}
	}
	for _, hole := range summaryField.FindAllString(s.Text, -1) {
		if name := hole[1 : len(hole)-1]; name != "amount" && name != "subject" && name != "customer" {
			all = append(all, "/"+name)
		}
	}
	return all
}

// Write describes what a write is to do.
func (s Summary) Write(w intent.WriteIntent) Described {
	fields := intent.Fields{}
	for _, part := range []intent.Fields{w.Payload, w.Expect, w.Key} {
		for name, v := range part {
			fields[name] = v
		}
	}
	d := s.Record(w, fields)
	if w.Write == intent.Update {
		d.Details = s.changes(w)
	}
	switch w.Write {
	case intent.Create:
		d.Verb = cmp.Or(s.Verb, "create")
	case intent.Upsert:
		d.Verb = "create or update"
	default:
		d.Verb = string(w.Write)
	}
	return d
}

// Record describes a record of the kind of a write, by its fields.
func (s Summary) Record(w intent.WriteIntent, fields intent.Fields) Described {
	at := func(path string) string {
		v, ok := intent.Lookup(fields, path)
		if !ok || path == "" {
			return ""
		}
		return word(v)
	}
	d := Described{Amount: s.amount(fields), Subject: at(s.Subject), Customer: at(s.Customer)}
	of := func(hole string) string {
		switch name := hole[1 : len(hole)-1]; name {
		case "amount":
			return d.Amount
		case "subject":
			return d.Subject
		case "customer":
			return d.Customer
		default:
			return at("/" + name)
		}
	}
	name, optional, _ := strings.Cut(s.Text, "[")
	if text, whole := filled(name, of); whole && text != "" {
		d.Name = visible.Clip(text, maxSummaryName)
	} else {
		d.Name = keyed(w)
	}
	var details strings.Builder
	for _, part := range strings.Split(strings.TrimSuffix(optional, "]"), "][") {
		if text, whole := filled(part, of); whole {
			details.WriteString(text)
		}
	}
	d.Details = visible.Clip(details.String(), maxSummaryName)
	return d
}

// changes describes what an update sets: ": status to closed, amount to $29.99".
func (s Summary) changes(w intent.WriteIntent) string {
	var all []string
	sets := intent.Fields{}
	maps.Copy(sets, w.Expect)
	maps.Copy(sets, w.Payload)
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		v := word(sets[name])
		if "/"+name == s.Amount {
			v = s.amount(sets)
		}
		if _, inKey := w.Key[name]; !inKey {
			all = append(all, word(name)+" to "+cmp.Or(v, "nothing"))
		}
	}
	for _, path := range w.Absent {
		all = append(all, word(strings.TrimPrefix(path, "/"))+" to nothing")
	}
	if more := len(all) - maxSummaryList; more > 0 {
		all = append(all[:maxSummaryList], fmt.Sprintf("%d more", more))
	}
	if len(all) == 0 {
		return ""
	}
	return visible.Clip(": "+strings.Join(all, ", "), maxSummaryName)
}

// filled puts values into a text, and reports whether each field has one.
func filled(text string, of func(hole string) string) (string, bool) {
	whole := true
	text = summaryField.ReplaceAllStringFunc(text, func(hole string) string {
		v := of(hole)
		whole = whole && v != ""
		return v
	})
	return text, whole
}

// keyed names a record by its kind and its business key.
func keyed(w intent.WriteIntent) string {
	name := strings.NewReplacer("-", " ", "_", " ").Replace(w.Kind)
	for i, member := range slices.Sorted(maps.Keys(w.Key)) {
		if i > 0 {
			name += ","
		}
		if len(w.Key) > 1 {
			name += " " + member
		}
		name += " " + cmp.Or(word(w.Key[member]), `""`)
	}
	return visible.Clip(name, maxSummaryName)
}

// word is a value as a part of a sentence. What is not one plain word is quoted, so that no value
// reads like a part of the sentence around it. It is "" for null and for an empty text.
func word(v any) string {
	text, isText := v.(string)
	if all, isList := v.([]any); isList {
		var words []string
		for _, one := range all[:min(len(all), maxSummaryList)] {
			words = append(words, word(one))
		}
		if len(all) > maxSummaryList {
			words = append(words, fmt.Sprintf("%d more", len(all)-maxSummaryList))
		}
		return visible.Clip(strings.Join(words, ", "), maxSummaryValue)
	}
	if !isText {
		if v == nil {
			return ""
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		return visible.Clip(string(raw), maxSummaryValue)
	}
	if text = visible.Clip(text, maxSummaryValue); text == "" || plainWord.MatchString(text) {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"`
}

// plainWord is an id, a number, a name of a channel, a mail address.
var plainWord = regexp.MustCompile(`^\+?[\pL\pN#@/][\pL\pN._:/@#+=~-]*$`)

// decimal is a number of which nothing needs to be known to move its point.
var decimal = regexp.MustCompile(`^(-?)([0-9]{1,30})(\.[0-9]{1,30})?$`)

// amount is the amount with its currency: "$29.99", "500 JPY". An amount whose number of decimals is
// not known is shown as it is, and so is one that is no number.
func (s Summary) amount(fields intent.Fields) string {
	v, there := intent.Lookup(fields, s.Amount)
	if !there || s.Amount == "" || v == nil {
		return ""
	}
	currency := s.Currency
	if strings.HasPrefix(currency, "/") {
		of, _ := intent.Lookup(fields, currency)
		if currency, _ = of.(string); len(currency) == 3 {
			currency = strings.ToUpper(currency)
		}
	}
	raw := word(v)
	if text, isText := v.(string); isText {
		raw = visible.Clip(text, maxSummaryValue)
	}
	number := decimal.FindStringSubmatch(raw)
	if _, isList := v.([]any); isList {
		number = nil
	}
	if number == nil {
		raw = word(v)
	}
	digits, known := units[currency]-1, units[currency] > 0
	switch {
	case s.Minor && (number == nil || !known || number[3] != ""):
		if currency == "" {
			return raw + " (in the smallest unit of its currency)"
		}
		return raw + " " + word(currency) + " (in its smallest unit)"
	case number == nil:
		return strings.TrimSpace(raw + " " + word(currency))
	case s.Minor:
		whole := strings.Repeat("0", max(digits+1-len(number[2]), 0)) + number[2]
		number[2], number[3] = whole[:len(whole)-digits], ""
		if digits > 0 {
			number[3] = "." + whole[len(whole)-digits:]
		}
	case known && digits > 0:
		number[3] = "." + strings.TrimPrefix(number[3], ".") + strings.Repeat("0", max(digits-max(len(number[3])-1, 0), 0))
	}
	text := grouped(strings.TrimLeft(number[2][:len(number[2])-1], "0")+number[2][len(number[2])-1:]) + number[3]
	if sign := signs[currency]; sign != "" {
		return number[1] + sign + text
	}
	return strings.TrimSpace(number[1] + text + " " + word(currency))
}

// grouped writes digits in groups of three.
func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// signs are of currencies that one sign names and no other.
var signs = map[string]string{"USD": "$", "EUR": "€", "GBP": "£"}

// units is one more than the number of decimals of a currency (ISO 4217). Currencies on whose
// smallest unit the standard and providers of payments differ are left out: ISK, MGA, MRU, UGX.
var units = func() map[string]int {
	all := map[string]int{}
	for decimals, codes := range []string{
		"BIF CLP DJF GNF JPY KMF KRW PYG RWF VND VUV XAF XOF XPF",
		"",
		"AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC " +
			"CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD " +
			"KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MKD MMK MNT MOP MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR " +
			"NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS " +
			"TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VES WST XCD YER ZAR ZMW",
		"BHD IQD JOD KWD LYD OMR TND",
	} {
		for _, code := range strings.Fields(codes) {
			all[code] = decimals + 1
		}
	}
	return all
}()
