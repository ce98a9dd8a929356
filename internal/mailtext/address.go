package mailtext

import (
	"fmt"
	"net/mail"
	"strings"
	"unicode/utf8"
)

// Address is one address.
type Address struct {
	Line  string // as headers have it
	Name  string // "" for none
	Plain string // a@example.org
}

// String is the address as records show it, and as it was taken.
func (a Address) String() string { return Shown(&mail.Address{Name: a.Name, Address: a.Plain}) }

// Shown is an address as records show it.
func Shown(a *mail.Address) string {
	if a.Name == "" {
		return a.Address
	}
	return a.Name + " <" + a.Address + ">"
}

// ExampleAddress is an address that is right everywhere.
const ExampleAddress = "a@example.org"

// AddressOf takes an address in the one spelling that a read gives back, since
// another could never be found equal.
func AddressOf(v any) (Address, *Problem) {
	const want = `"a@example.org" or "Alice A <a@example.org>"`
	s, ok := v.(string)
	if !ok || len(s) > MaxHeaderText || !utf8.ValidString(s) {
		return Address{}, &Problem{Is: "is not an address", Want: want, Value: ok, Example: ExampleAddress}
	}
	a := Address{Plain: s}
	if i := strings.LastIndex(s, " <"); i > 0 && strings.HasSuffix(s, ">") {
		a.Name, a.Plain = s[:i], s[i+2:len(s)-1]
	}
	a.Line = (&mail.Address{Name: a.Name, Address: a.Plain}).String()
	back, err := mail.ParseAddress(a.Line)
	quoted := len(a.Name) > 1 && strings.HasPrefix(a.Name, `"`) && strings.HasSuffix(a.Name, `"`) // as headers write it: they would stand in the name
	if err != nil || quoted || Shown(back) != s || strings.ContainsFunc(s, EndsLine) {
		return Address{}, &Problem{Is: fmt.Sprintf("is %q", Clip(s)), Want: want, Value: true, Example: ExampleAddress}
	}
	return a, nil
}

// Addresses takes a list of 1 to most addresses, each as one takes it:
// [AddressOf], or what asks for more.
func Addresses(v any, most int, one func(any) (Address, *Problem)) ([]Address, *Problem) {
	items, ok := v.([]any)
	if !ok || len(items) == 0 || len(items) > most {
		return nil, &Problem{Is: "is not a list of addresses", Want: fmt.Sprintf("1 to %d of them; leave the field out where there is none", most), Value: ok, Example: []any{ExampleAddress}}
	}
	all := make([]Address, len(items))
	for i, item := range items {
		a, p := one(item)
		if p != nil {
			return nil, p.Below(fmt.Sprintf("/%d", i))
		}
		all[i] = a
	}
	return all, nil
}

// Joined is addresses as one header has them, each on a line of its own.
func Joined(all []Address) string {
	lines := make([]string, len(all))
	for i, a := range all {
		lines[i] = a.Line
	}
	return strings.Join(lines, ",\r\n ")
}
