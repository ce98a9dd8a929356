// Package access authenticates and authorizes callers: it checks API tokens, logs users
// in by OIDC, keeps their sessions, and holds the one table of roles and acts.
//
// It does not know what the acts do, and trusts no identity that a request claims for
// itself.
package access
