package access

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/readback-go/readback/engine"
)

// Errors of authentication.
var (
	// ErrUnknown: no credentials, or none that are valid (any more).
	ErrUnknown = errors.New("not logged in")
	// ErrForbidden: the role may not do this.
	ErrForbidden = errors.New("forbidden")
	// ErrStepUp is an [ErrForbidden]: the role may decide, and these credentials lack
	// what the configuration asks of decisions.
	ErrStepUp = fmt.Errorf("%w: decisions need a login at the provider with a second factor or whatever else server.oidc.decisions names; log in at /login/provider?step_up=1", ErrForbidden)
)

// Identity is the owner of a request's credentials. The zero value is unknown and may do
// nothing.
type Identity struct {
	Tenant string
	Name   string
	Role   engine.Role
	// Via is the method: "token", "login", "dev".
	Via string
	// ID is the token's or the session's, for logs. Never the secret.
	ID string
	// NeedsStepUp reports that these credentials lack what decisions need here: then
	// [Identity.May] fails with [ErrStepUp] for [Decide].
	NeedsStepUp bool
	// Scope bounds what an agent may write. Nil: all that the role may.
	Scope *engine.Scope
}

// Principal is the caller as the engine knows it.
func (i Identity) Principal() engine.Principal {
	return engine.Principal{Name: i.Name, Role: i.Role, Scope: i.Scope}
}

// Resolver authenticates the sender of a request; it fails with [ErrUnknown] for an
// unknown one.
type Resolver interface {
	Resolve(r *http.Request) (Identity, error)
}

// Act is a kind of action in an API.
type Act string

// The acts.
const (
	Submit  Act = "submit"  // declare writes, begin sagas, ask the gate
	Read    Act = "read"    // outcomes, writes, sagas and destinations of the own tenant
	Trace   Act = "trace"   // intents, evidence and events of others' writes; search, activity
	Decide  Act = "decide"  // about what waits for a reviewer
	Operate Act = "operate" // stop and release, release operations, cancel and close sagas
)

// acts are the acts that each role may do. A role that is not here may do nothing.
var acts = map[engine.Role][]Act{
	engine.RoleAgent:    {Submit, Read},
	engine.RoleReviewer: {Read, Trace, Decide},
	engine.RoleOperator: {Submit, Read, Trace, Decide, Operate},
	engine.RoleAuditor:  {Read, Trace},
}

// May fails with [ErrForbidden], or with [ErrUnknown] for the zero value.
func (i Identity) May(a Act) error {
	if i.Tenant == "" || i.Role == "" {
		return ErrUnknown
	}
	for _, each := range acts[i.Role] {
		if each == a && a == Decide && i.NeedsStepUp {
			return ErrStepUp
		}
		if each == a {
			return nil
		}
	}
	return fmt.Errorf("%w: the role %q may not %s", ErrForbidden, i.Role, a)
}

// Route is one route of an API, and the act that it needs. Each API lists its routes, so
// that a test can call each of them with every role.
type Route struct {
	Method  string
	Pattern string // as in [http.ServeMux], without the method
	Act     Act    // "" for a route open to every caller
}
