package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/access"
)

// maxName bounds names in headers and step ids in paths, in bytes: as the ledger bounds
// names.
const maxName = 255

// Resolver authenticates the sender of a request. A [workflow.Error] is returned as it is
// (Unauthorized, Forbidden, BadRequest), any other error as one of ours.
type Resolver func(*http.Request) (gate.Caller, error)

// callerOf is the sender of a request, if it may make the request.
func (a *api) callerOf(r *http.Request, act access.Act) (gate.Caller, error) {
	if a.who == nil {
		return a.caller(r)
	}
	who, err := a.who.Resolve(r)
	if err == nil {
		err = who.May(act)
	}
	if errors.Is(err, access.ErrInvalid) { // an invalid name: the contract reports it by its field
		if _, bad := Dev(who.Tenant)(r); bad != nil {
			return gate.Caller{}, bad
		}
	}
	if err != nil {
		return gate.Caller{}, &unresolved{err}
	}
	c := gate.Caller{Tenant: who.Tenant, Name: who.Name, Role: who.Role, Scope: who.Scope}
	if c.Name == "" && c.Role == engine.RoleOperator {
		c.Role = "" // a caller without a name is trusted where none is required
	}
	return c, nil
}

// unresolved is why no permitted caller was found.
type unresolved struct{ err error }

func (u *unresolved) Error() string { return u.err.Error() }
func (u *unresolved) Unwrap() error { return u.err }

// refusal returns it in the contract's form, with its headers.
func (u *unresolved) refusal() (*gate.Error, http.Header) {
	status, header := access.Refused(u.err)
	code := map[int]gate.Code{http.StatusUnauthorized: gate.Unauthorized, http.StatusForbidden: gate.Forbidden,
		http.StatusTooManyRequests: gate.TooMany, http.StatusServiceUnavailable: unavailable}[status]
	if code == "" {
		return &gate.Error{Code: gate.Internal, Message: internalMessage, Err: u.err}, header
	}
	return &gate.Error{Code: code, Message: u.Error(), Err: u.err}, header
}

// Dev believes every caller: the tenant is that of X-Tenant-ID, else the one given; the
// name is the user of HTTP Basic, whatever the password, else X-User-ID, else none. It
// gives no roles: every caller may do everything.
func Dev(tenant string) Resolver {
	return func(r *http.Request) (gate.Caller, error) {
		user, _, _ := r.BasicAuth()
		c := gate.Caller{
			Tenant: cmp.Or(r.Header.Get("X-Tenant-ID"), tenant),
			Name:   cmp.Or(user, r.Header.Get("X-User-ID")),
		}
		for _, part := range []struct{ field, text string }{{"X-Tenant-ID", c.Tenant}, {"X-User-ID", c.Name}} {
			if !isName(part.text) {
				return gate.Caller{}, badField(part.field, "is not a name; want at most 255 bytes of UTF-8")
			}
		}
		if strings.ContainsFunc(c.Name, unseen) {
			return gate.Caller{}, badField("X-User-ID", "holds what cannot be seen; want letters, digits, signs and blanks")
		}
		return c, nil
	}
}

// unseen reports whether a rune is invisible, or moves others: with it a name differs,
// and looks the same.
func unseen(r rune) bool { return !unicode.IsPrint(r) }

// isName reports whether a text is a valid name in the ledger.
func isName(text string) bool {
	return len(text) <= maxName && utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}
