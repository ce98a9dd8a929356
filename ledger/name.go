package ledger

import (
	"slices"
	"strings"

	"golang.org/x/text/secure/precis"
)

// SameName reports whether two names belong to one person. Case, blanks around and between
// words, and other spellings of one letter do not matter (RFC 8266). A name of blanks equals "",
// which is no name.
func SameName(a, b string) bool { return nameKey(a) == nameKey(b) }

// AmongNames reports whether a name is one of these, as [SameName] compares them.
func AmongNames(names []string, name string) bool {
	return slices.ContainsFunc(names, func(one string) bool { return SameName(one, name) })
}

func nameKey(name string) string {
	if key, err := precis.Nickname.CompareKey(name); err == nil {
		return key
	}
	// Control characters and the like, which do not belong in a name: the rest is still compared.
	return strings.ToLower(strings.Join(strings.Fields(name), " "))
}
