// Package metrics counts what the engine does, for Prometheus.
//
// A [Meter] records each send, read and end of a write ([Meter.Observe]). When it is
// scraped it counts open writes in the ledger, at most once in a few seconds. [Start]
// serves it with /healthz and /readyz. Its labels come from short lists: destinations and
// kinds that are registered, and the words of the engine; never a tenant, an id or a
// text. So no caller can make the number of series grow or read in them what another
// tenant does. docs/operate/observe.md lists every name with its meaning.
//
// The package does not know how guards and lags work: the program that wires it supplies
// their state ([Status]). It pushes nothing anywhere.
package metrics
