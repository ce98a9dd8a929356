// Package workflow is the step gate: what an orchestrator asks before each step
// of a workflow, and tells after it.
//
// A [Gate] answers whether the step may be carried out (allow, block,
// require_approval), what is known about earlier attempts at it
// ([RetryContext]), and whether the same business operation was begun by
// another workflow. Of several callers that ask for one step at once, one gets
// the lease. Everything it knows is in the ledger, each answer in one commit.
//
// The package does not know HTTP, nor how rules are written ([Decider]), nor
// whether a step was really carried out: its caller says so, and where the step
// declared a WriteIntent, a [Looker] reads the destination.
package workflow
