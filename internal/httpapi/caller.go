package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/workflow"
)

// Resolver says who sends a request. A [workflow.Error] is answered as it is
// (Unauthorized, Forbidden, BadRequest), any other error as one of ours.
type Resolver func(*http.Request) (workflow.Caller, error)

// callerOf is who sends a request, when they may do what it asks for.
func (a *api) callerOf(r *http.Request, act access.Act) (workflow.Caller, error) {
	if a.who == nil {
		return a.caller(r)
	}
	who, err := a.who.Resolve(r)
	if err == nil {
		err = who.May(act)
	}
	if errors.Is(err, access.ErrInvalid) { // a name that none can be: the contract tells it by its field
		if _, bad := Dev(who.Tenant)(r); bad != nil {
			return workflow.Caller{}, bad
		}
	}
	if err != nil {
		return workflow.Caller{}, &unresolved{err}
	}
	c := workflow.Caller{Tenant: who.Tenant, Name: who.Name, Role: who.Role}
	if c.Name == "" && c.Role == engine.RoleOperator {
		c.Role = "" // whom nobody named is trusted, where nobody need be named
	}
	return c, nil
}

// unresolved is why nobody is known who may do what is asked for.
type unresolved struct{ err error }

func (u *unresolved) Error() string { return u.err.Error() }
func (u *unresolved) Unwrap() error { return u.err }

// refusal is it in the words of the contract, and the headers that it needs.
func (u *unresolved) refusal() (*workflow.Error, http.Header) {
	status, header := access.Refused(u.err)
	code := map[int]workflow.Code{http.StatusUnauthorized: workflow.Unauthorized, http.StatusForbidden: workflow.Forbidden,
		http.StatusTooManyRequests: workflow.TooMany, http.StatusServiceUnavailable: unavailable}[status]
	if code == "" {
		return &workflow.Error{Code: workflow.Internal, Message: internalMessage, Err: u.err}, header
	}
	return &workflow.Error{Code: code, Message: u.Error(), Err: u.err}, header
}

// Dev believes every caller: the tenant is that of X-Tenant-ID, else the one
// given; the name is the user of HTTP Basic, whatever the password, else
// X-User-ID, else none. Roles are not given: everybody may do everything.
func Dev(tenant string) Resolver {
	return func(r *http.Request) (workflow.Caller, error) {
		user, _, _ := r.BasicAuth()
		c := workflow.Caller{
			Tenant: cmp.Or(r.Header.Get("X-Tenant-ID"), tenant),
			Name:   cmp.Or(user, r.Header.Get("X-User-ID")),
		}
		for _, part := range []struct{ field, text string }{{"X-Tenant-ID", c.Tenant}, {"X-User-ID", c.Name}} {
			if !isName(part.text) {
				return workflow.Caller{}, badField(part.field, "is not a name; want at most 255 bytes of UTF-8")
			}
		}
		if strings.ContainsFunc(c.Name, unseen) {
			return workflow.Caller{}, badField("X-User-ID", "holds what cannot be seen; want letters, digits, signs and blanks")
		}
		return c, nil
	}
}

// unseen reports whether a rune leaves no trace, or moves others: with one of
// them a name is another one, and is read as the same.
func unseen(r rune) bool { return !unicode.IsPrint(r) }

// isName reports whether a text can be a name in the ledger.
func isName(text string) bool {
	return len(text) <= maxName && utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}
