// Package access says who somebody is and what they may do: it checks API
// tokens, logs people in by OIDC, keeps their sessions, and holds the one table
// of roles and acts.
//
// It does not know what the acts do, and trusts no name that a request gives
// itself.
package access
