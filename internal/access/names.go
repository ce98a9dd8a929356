package access

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

// checkName refuses an invalid name of a tenant or user. A name with an invisible
// character is a different one, and looks the same.
func checkName(field, name string) error {
	switch {
	case len(name) > maxText || !utf8.ValidString(name):
		return fmt.Errorf("%w: %s has %d bytes; want at most %d of UTF-8", ErrInvalid, field, len(name), maxText)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%w: %s holds what cannot be seen; want letters, digits, signs and blanks", ErrInvalid, field)
	case ledger.SameName(name, ""):
		return fmt.Errorf("%w: %s is missing; want a name", ErrInvalid, field)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("%w: %s begins or ends with a blank", ErrInvalid, field)
	}
	return nil
}

// checkRole refuses a role without any act.
func checkRole(field string, r engine.Role) error {
	if _, ok := acts[r]; !ok {
		return fmt.Errorf("%w: %s is %q; want %s, %s, %s or %s", ErrInvalid, field, clip(string(r)),
			engine.RoleAgent, engine.RoleReviewer, engine.RoleOperator, engine.RoleAuditor)
	}
	return nil
}

// clip shortens foreign text for errors.
func clip(text string) string { return visible.Cut(text, maxClip) }
