package engine

import (
	"context"
	"fmt"
	"slices"
)

// Role is what whoever calls may do.
type Role string

// The roles. The zero value is a caller in this process, who may do everything.
const (
	RoleAgent    Role = "agent"    // declares writes, and never decides about them
	RoleReviewer Role = "reviewer" // decides about writes of others, and asks for none
	RoleOperator Role = "operator" // decides, overrides and stops
	RoleAuditor  Role = "auditor"  // reads everything, and changes nothing
)

// asking are the roles that may ask for writes.
var asking = []Role{"", RoleAgent, RoleOperator}

// asks refuses whoever may ask for no write.
func (p Principal) asks() error {
	if slices.Contains(asking, p.Role) {
		return nil
	}
	return fmt.Errorf("%w: the role of the credentials is %q, which asks for no writes; want %s or %s", ErrForbidden, p.Role, RoleAgent, RoleOperator)
}

// Principal is whose credentials a call came with.
type Principal struct {
	// Name is kept with what the call asks for and decides. "" is not known.
	Name string
	Role Role
}

type principalKey struct{}

// As returns a context whose calls are made by somebody.
func As(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// Caller is who makes the calls of a context.
func Caller(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}
