// Package mcpgate stands in front of another server of the Model Context
// Protocol: its tools that read pass through, and each tool that writes is
// replaced by a verified twin where a contract says how it can be read back.
//
// It trusts no annotation of the server behind it, and does not know what its
// tools mean beyond their contracts.
package mcpgate
