// Package catalog is what is known about the destinations that readback has connectors or
// declarations for: each one's profile as data, with a source for each claim, and what can be
// promised there. It renders them for a terminal and for docs/reference/destinations.md.
//
// It measures nothing and contacts no system: internal/probe measures what a system does today.
package catalog
