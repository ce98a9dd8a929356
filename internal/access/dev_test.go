package access_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
)

func TestDev(t *testing.T) {
	operator := access.Identity{Tenant: "here", Role: engine.RoleOperator, Via: "dev"}
	as := func(change func(*access.Identity)) access.Identity {
		who := operator
		change(&who)
		return who
	}
	for name, c := range map[string]struct {
		header http.Header
		want   access.Identity // zero: unknown
		reason string
	}{
		"nothing":           {nil, operator, "a program without a name may do everything"},
		"a browser":         {http.Header{"Sec-Fetch-Site": {"same-origin"}}, as(func(i *access.Identity) { i.Name = "browser" }), "a reviewer has a name"},
		"a name":            {http.Header{"X-User-Id": {"alice"}}, as(func(i *access.Identity) { i.Name = "alice" }), "it is believed"},
		"basic":             {http.Header{"Authorization": {"Basic Ym9iOg=="}, "X-User-Id": {"alice"}}, as(func(i *access.Identity) { i.Name = "bob" }), "it comes before the header"},
		"a tenant":          {http.Header{"X-Tenant-Id": {"there"}}, as(func(i *access.Identity) { i.Tenant = "there" }), "it is believed"},
		"a role":            {http.Header{"X-Role": {"agent"}}, as(func(i *access.Identity) { i.Role = engine.RoleAgent }), "it is believed"},
		"an unknown role":   {http.Header{"X-Role": {"root"}}, access.Identity{}, "it could do nothing"},
		"two roles":         {http.Header{"X-Role": {"agent", "operator"}}, access.Identity{}, "which one counts is not known"},
		"two tenants":       {http.Header{"X-Tenant-Id": {"a", "b"}}, access.Identity{}, "which one counts is not known"},
		"NUL":               {http.Header{"X-Tenant-Id": {"a\x00b"}}, access.Identity{}, "no tenant is called so"},
		"an unseen letter":  {http.Header{"X-User-Id": {"bo\u200bb"}}, access.Identity{}, "it would be read as bob"},
		"a long name":       {http.Header{"X-User-Id": {strings.Repeat("a", 256)}}, access.Identity{}, "the ledger has no such names"},
		"a tenant of blank": {http.Header{"X-Tenant-Id": {" "}}, access.Identity{}, "no tenant has it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			for name, values := range c.header {
				r.Header[name] = values
			}
			want := error(nil)
			if c.want == (access.Identity{}) {
				want = access.ErrUnknown
			}
			if diff := cmp.Diff(c.want, resolve(t, access.Dev("here"), r, want)); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}

func TestDevIsForThisMachineAlone(t *testing.T) {
	for addr, want := range map[string]error{"127.0.0.1:1": nil, "[::1]:1": nil, "192.0.2.1:1": access.ErrUnknown, "0.0.0.0:1": access.ErrUnknown} {
		at, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		resolve(t, access.Dev("here"), r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, at)), want)
	}
}
