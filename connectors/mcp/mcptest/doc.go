// Package mcptest is a server of the Model Context Protocol that keeps orders
// and has the vices of real ones: answers that are lost, commits that come late,
// successes that are none, reads that lag, tools that change under their users.
//
// Its own store is the oracle: tests ask it what really happened. It does not
// know the connector.
package mcptest
