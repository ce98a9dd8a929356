// Package httpapi is the door over HTTP: it decodes, asks the step gate, and
// writes the answer in the shapes of the gate's published contract, in both of
// its families of paths.
//
// It decides nothing. It does not know what a workflow is, who may do what
// beyond the role that a [Resolver] gives a caller, nor where anything is kept.
package httpapi
