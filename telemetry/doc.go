// Package telemetry reports writes to OpenTelemetry: spans and events by the conventions for
// generative AI as far as they apply, readback's own below "readback.", and metrics. It uses only
// the API; without an SDK it does nothing. It never makes a write fail or wait.
//
// The embedding program decides where the data goes.
package telemetry
