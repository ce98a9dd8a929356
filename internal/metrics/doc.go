// Package metrics counts what the engine does, for Prometheus.
//
// A [Meter] is told of each send, read and end of a write ([engine.Meter]), and
// looks up what is open in the ledger when it is scraped, at most once in a few
// seconds. [Start] serves it with /healthz and /readyz. Its labels come from
// short lists: destinations and kinds that are registered, and the words of the
// engine; never a tenant, an id or a text, so that no caller can make the number
// of series grow or read in them what another tenant does. [Table] lists every
// name with its meaning.
//
// The package does not know what guards and lags are made of: whoever wires it
// says what stands ([Standing]). It pushes nothing anywhere.
package metrics
