// Package readbacktest is for the tests of programs that write: it puts the
// vices of networks and destinations before any HTTP API or connector, kills and
// replays a caller at chosen points, and counts the effects.
//
// Everything follows from a seed. It knows nothing of what is written.
package readbacktest
