package mail

import (
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// address is one as headers have it, and as SMTP has it.
type address struct{ line, plain string }

// addressForm is what both sides of SMTP take without quotes, so that no
// address can be more than one.
var addressForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$")

func isAddress(s string) bool { return len(s) <= maxAddress && addressForm.MatchString(s) }

const wantAddress = `"a@example.org" or "Alice A <a@example.org>", ASCII in the address`

// addressOf takes an address in the one spelling that a read gives back, since
// another could never be found equal.
func addressOf(path string, v any) (address, error) {
	s, ok := v.(string)
	if !ok || len(s) > maxHeaderText || !utf8.ValidString(s) {
		return address{}, unusable(path, "is not an address", wantAddress)
	}
	name, plain := "", s
	if i := strings.LastIndex(s, " <"); i > 0 && strings.HasSuffix(s, ">") {
		name, plain = s[:i], s[i+2:len(s)-1]
	}
	line := (&mail.Address{Name: name, Address: plain}).String()
	back, err := mail.ParseAddress(line)
	quoted := len(name) > 1 && strings.HasPrefix(name, `"`) && strings.HasSuffix(name, `"`) // as headers write it: they would stand in the name
	control := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
	encoded := strings.Contains(name, "=?") // some would decode it
	long := slices.ContainsFunc(strings.Split(foldWords(line), "\r\n"), func(l string) bool { return len(l) > maxHeaderText })
	if err != nil || quoted || long || control || encoded || !isAddress(plain) || back.Name != name || back.Address != plain {
		return address{}, unusable(path, fmt.Sprintf("is %q", clip(s)), wantAddress)
	}
	return address{line, plain}, nil
}

func addressesOf(path string, v any) ([]address, error) {
	items, ok := v.([]any)
	if !ok || len(items) == 0 || len(items) > maxRecipients {
		return nil, unusable(path, "is not a list of addresses", fmt.Sprintf("1 to %d of them; leave the field out where there is none", maxRecipients))
	}
	all := make([]address, len(items))
	for i, item := range items {
		a, err := addressOf(fmt.Sprintf("%s/%d", path, i), item)
		if err != nil {
			return nil, err
		}
		all[i] = a
	}
	return all, nil
}

func linesOf(all []address) string {
	lines := make([]string, len(all))
	for i, a := range all {
		lines[i] = a.line
	}
	return strings.Join(lines, ",\r\n ")
}
