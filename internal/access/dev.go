package access

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/readback-go/readback/engine"
)

// Dev believes every caller, and is for this machine alone: it accepts no caller from a
// listener that other machines can reach. The tenant is that of X-Tenant-ID, else the one
// given; the role that of X-Role, else operator. The name is the user of HTTP Basic,
// whatever the password, else that of X-User-ID, else "browser" for a browser, else none.
// So a reviewer in a browser can decide about a write that a program without a name
// requested.
func Dev(tenant string) Resolver { return dev{tenant} }

type dev struct{ tenant string }

func (d dev) Resolve(r *http.Request) (Identity, error) {
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && !addr.IP.IsLoopback() {
		return Identity{}, fmt.Errorf("%w: without credentials, only callers on this machine are known", ErrUnknown)
	}
	for _, field := range []string{"X-Tenant-ID", "X-User-ID", "X-Role", "Authorization"} {
		if len(r.Header.Values(field)) > 1 {
			return Identity{}, fmt.Errorf("%w: there is more than one %s header; want one", ErrUnknown, field)
		}
	}
	user, _, _ := r.BasicAuth()
	name := cmp.Or(user, r.Header.Get("X-User-ID"))
	if name == "" && r.Header.Get("Sec-Fetch-Site") != "" { // programs do not send it
		name = "browser"
	}
	who := Identity{
		Tenant: cmp.Or(r.Header.Get("X-Tenant-ID"), d.tenant), Name: name,
		Role: cmp.Or(engine.Role(r.Header.Get("X-Role")), engine.RoleOperator), Via: "dev",
	}
	err := cmp.Or(checkName("X-Tenant-ID", who.Tenant), checkRole("X-Role", who.Role))
	if name != "" {
		err = cmp.Or(err, checkName("X-User-ID", name))
	}
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return who, nil
}

// First asks one resolver after the other, until one finds credentials of its kind. Bad
// ones are not passed over: a caller with an expired token is refused, not resolved as
// another identity.
func First(rs ...Resolver) Resolver { return first(rs) }

type first []Resolver

func (f first) Resolve(r *http.Request) (Identity, error) {
	for _, each := range f {
		if who, err := each.Resolve(r); !errors.Is(err, ErrNoCredentials) {
			return who, err
		}
	}
	return Identity{}, ErrNoCredentials
}
