package access

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/readback-go/readback/engine"
)

// Errors of whoever comes in.
var (
	// ErrUnknown: no credentials, or such as are not valid (any more).
	ErrUnknown = errors.New("not logged in")
	// ErrForbidden: the role may not do this.
	ErrForbidden = errors.New("forbidden")
)

// Identity is whose credentials a request came with. The zero value is nobody,
// who may do nothing.
type Identity struct {
	Tenant string
	Name   string
	Role   engine.Role
	// Via is how it was found out: "token", "login", "dev".
	Via string
	// ID is the token's or the session's, for logs. Never the secret.
	ID string
}

// Principal is what the engine is told about whoever calls.
func (i Identity) Principal() engine.Principal {
	return engine.Principal{Name: i.Name, Role: i.Role}
}

// Resolver finds out who sends a request; [ErrUnknown] when nobody who is known.
type Resolver interface {
	Resolve(r *http.Request) (Identity, error)
}

// Act is something that can be done through a door.
type Act string

// The acts.
const (
	Submit  Act = "submit"  // declare writes, begin sagas, ask the gate
	Read    Act = "read"    // outcomes, writes, sagas and destinations of the own tenant
	Trace   Act = "trace"   // intents, evidence and events of others' writes; search, activity
	Decide  Act = "decide"  // about what waits for a person
	Operate Act = "operate" // stop and release, let operations go, cancel and close sagas
)

// acts is who may do what. A role that is not here may do nothing.
var acts = map[engine.Role][]Act{
	engine.RoleAgent:    {Submit, Read},
	engine.RoleReviewer: {Read, Trace, Decide},
	engine.RoleOperator: {Submit, Read, Trace, Decide, Operate},
	engine.RoleAuditor:  {Read, Trace},
}

// May fails with [ErrForbidden], or [ErrUnknown] for nobody.
func (i Identity) May(a Act) error {
	if i.Tenant == "" || i.Role == "" {
		return ErrUnknown
	}
	for _, each := range acts[i.Role] {
		if each == a {
			return nil
		}
	}
	return fmt.Errorf("%w: the role %q may not %s", ErrForbidden, i.Role, a)
}

// Route is one route of a door, and what it takes to ask it. Doors list theirs,
// so that a test can ask each of them as everybody.
type Route struct {
	Method  string
	Pattern string // as in [http.ServeMux], without the method
	Act     Act    // "" for a route that anybody may ask
}
