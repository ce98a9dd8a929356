package mail

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/mailtext"
)

// maxAddress is the longest address: RFC 5321 gives a path 256 bytes with
// its brackets.
const maxAddress = 254

// addressForm is what both sides of SMTP take without quotes, so that no
// address can be more than one.
var addressForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$")

func isAddress(s string) bool { return len(s) <= maxAddress && addressForm.MatchString(s) }

const wantAddress = `"a@example.org" or "Alice A <a@example.org>", ASCII in the address`

// addressOf checks more of an address than its spelling: no server on the way may read it as
// another one.
func addressOf(v any) (mailtext.Address, *mailtext.Problem) {
	a, p := mailtext.AddressOf(v)
	switch {
	case p != nil:
		p.Want = wantAddress
		return a, p
	case !isAddress(a.Plain) || strings.ContainsFunc(a.Name, mailtext.IsControl) || encoded(a.Name) || long(a.Line):
		return a, &mailtext.Problem{Is: fmt.Sprintf("is %q", mailtext.Clip(a.String())), Want: wantAddress, Value: true, Example: mailtext.ExampleAddress}
	}
	return a, nil
}

// encoded reports whether some programs would decode a name that is meant literally.
func encoded(name string) bool { return strings.Contains(name, "=?") }

func long(value string) bool {
	return slices.ContainsFunc(strings.Split(mailtext.FoldWords(value), "\r\n"), func(l string) bool { return len(l) > mailtext.MaxHeaderText })
}
