// Package mcp is a server of the Model Context Protocol that stores orders and has the faults
// of real ones: lost answers, late commits, false successes, reads that lag, tools that change
// without notice.
//
// Its own store is the oracle: tests read from it what really happened. It does not know the
// connector.
package mcp
