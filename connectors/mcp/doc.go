// Package mcp is a destination behind a server of the Model Context Protocol: a
// contract says which tool writes, which reads, and how records are found in what
// the reading tool answers.
//
// It does not know whether a contract is true, nor what a tool does besides.
package mcp
