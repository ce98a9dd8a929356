// Package restate makes a write a step of a Restate handler, under the key of the object, workflow or
// request. docs/guide/engines.md describes it beside the adapters of other engines.
//
// It knows Restate's SDK and the engine, and nothing of destinations.
package restate
