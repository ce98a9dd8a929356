// Package mcpgate stands in front of another server of the Model Context
// Protocol: its tools that read pass through, and each tool that writes is
// replaced by a verified twin where a contract says how it can be read back.
//
// What is neither declared to read nor has a contract counts as a write: it is
// hidden, or sent once and called unverified. A tool that is no longer the one
// that its contract was written for is withdrawn. Keys and results are those of
// package mcpapi.
//
// It trusts no annotation of the server behind it, and does not know what its
// tools mean beyond their contracts.
package mcpgate
