// Package nats makes a write of each message of a JetStream consumer, under the message's ID.
// docs/guide/engines.md describes it beside the adapters of other engines.
//
// It knows the client of NATS and the engine, and nothing of destinations.
package nats
