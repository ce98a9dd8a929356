// Package chaos injects the faults of networks and destinations before an HTTP API or a server of the
// Model Context Protocol, and counts the
// effects by what reached it. Package readbacktest offers it to Go tests, and the command chaos to
// those of other languages.
//
// It does not import package testing, and knows neither connectors nor what is written.
package chaos
