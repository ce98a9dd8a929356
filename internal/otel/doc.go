// Package otel makes the OpenTelemetry SDK of the program from its settings:
// exporters, batches, bounds. Exporting that fails or is slow costs data and a
// line in the log, never a write.
//
// It does not know what is exported; packages engine and telemetry do.
package otel
