// Package metrics counts what the engine does, for Prometheus.
package metrics
