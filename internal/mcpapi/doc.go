// Package mcpapi is the door for models: a server of the Model Context Protocol
// with one tool for each kind of write that is configured, so that a model sees
// create_ticket and not a framework.
//
// It never shows what a destination answered, and takes no key from arguments.
package mcpapi
