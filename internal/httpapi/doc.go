// Package httpapi is the HTTP API of the step gate: it decodes requests, calls the gate,
// and writes responses in the shapes of the gate's published contract, in both of its
// families of paths.
//
// It decides nothing. It does not know what a workflow is, what a caller may do beyond
// the role that a [Resolver] gives, nor where anything is stored.
package httpapi
