package ledger

import (
	"slices"
	"strings"

	"golang.org/x/text/secure/precis"
)

// SamePerson reports whether two names are one person's: capitals, blanks
// around and between words, and other ways to write one letter do not make two
// people of one (RFC 8266). A name of blanks is nobody's, "".
func SamePerson(a, b string) bool { return personKey(a) == personKey(b) }

// AmongPeople reports whether a name is one of these people's, as [SamePerson]
// has it.
func AmongPeople(names []string, name string) bool {
	return slices.ContainsFunc(names, func(one string) bool { return SamePerson(one, name) })
}

func personKey(name string) string {
	if key, err := precis.Nickname.CompareKey(name); err == nil {
		return key
	}
	// Controls and the like, which have no place in a name: what is left is told
	// apart at least.
	return strings.ToLower(strings.Join(strings.Fields(name), " "))
}
