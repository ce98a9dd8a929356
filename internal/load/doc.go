// Package load holds a test of the server under many clients: the binary as a
// process of its own, writes over HTTP to several destinations that lose answers,
// and the destinations' own logs as the oracle. It ships nothing.
package load
