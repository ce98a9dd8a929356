// Package httpapi is the door over HTTP: it decodes, asks, and writes the
// answer. It decides nothing.
package httpapi
