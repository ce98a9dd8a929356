// Package kafka makes a write of each record of a Kafka consumer group, under an ID in the record or
// its place in the topic. docs/guide/engines.md describes it beside the adapters of other engines.
//
// It knows the client franz-go and the engine, and nothing of destinations.
package kafka
