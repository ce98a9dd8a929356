// Package mcpapi is the API for models: a server of the Model Context Protocol with one
// tool for each configured kind of write, so that a model sees create_ticket and not a
// framework.
//
// It never shows a destination's response, and takes no key from arguments.
package mcpapi
