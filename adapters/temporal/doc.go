// Package temporal makes a write an activity of a Temporal workflow, under the workflow's ID and
// the activity's. docs/guide/engines.md describes it beside the adapters of other engines.
//
// It knows Temporal's SDK and the engine, and nothing of destinations.
package temporal
