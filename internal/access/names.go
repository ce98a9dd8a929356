package access

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// checkName refuses what cannot be the name of a tenant or of somebody. A name
// with something in it that cannot be seen is another one, and is read as the
// same.
func checkName(field, name string) error {
	switch {
	case len(name) > maxText || !utf8.ValidString(name):
		return fmt.Errorf("%w: %s has %d bytes; want at most %d of UTF-8", ErrInvalid, field, len(name), maxText)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%w: %s holds what cannot be seen; want letters, digits, signs and blanks", ErrInvalid, field)
	case ledger.SamePerson(name, ""):
		return fmt.Errorf("%w: %s is missing; want a name", ErrInvalid, field)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("%w: %s begins or ends with a blank", ErrInvalid, field)
	}
	return nil
}

// checkRole refuses a role that may do nothing.
func checkRole(field string, r engine.Role) error {
	if _, ok := acts[r]; !ok {
		return fmt.Errorf("%w: %s is %q; want %s, %s, %s or %s", ErrInvalid, field, clip(string(r)),
			engine.RoleAgent, engine.RoleReviewer, engine.RoleOperator, engine.RoleAuditor)
	}
	return nil
}

// clip shortens what somebody else wrote, for errors.
func clip(text string) string { return clipTo(text, maxClip) }

func clipTo(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
