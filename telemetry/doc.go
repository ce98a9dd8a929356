// Package telemetry tells OpenTelemetry what happens to writes: spans and events
// by the conventions for generative AI as far as they go, everything of our own
// below "readback.", and metrics. It uses the API alone; without an SDK it does
// nothing, and it never makes a write fail or wait.
//
// It does not decide where the data goes; the program that embeds it does.
package telemetry
