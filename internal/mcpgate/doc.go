// Package mcpgate is a gateway to another server of the Model Context Protocol. Tools
// that read pass through. A tool that writes is replaced by a verified one if a contract
// describes how to read it back.
//
// A tool that is neither declared to read nor has a contract counts as a write: it is
// hidden, or sent once and called unverified. A tool that differs from the one that its
// contract was written for is withdrawn. Keys and results are those of package mcpapi.
//
// It trusts no annotation of the server behind it, and knows nothing of the meaning of
// its tools beyond their contracts.
package mcpgate
