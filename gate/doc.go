// Package workflow is the step gate. An orchestrator asks it before each step of a workflow, and
// reports to it afterwards.
//
// A [Gate] answers whether the step may be carried out (allow, block, require_approval), what is
// known about earlier attempts at it ([RetryContext]), and whether another workflow began the
// same business operation. Of several callers that ask for one step at once, one gets the lease.
// All of its state is in the ledger, each answer in one commit.
//
// The package does not know HTTP, nor how rules are written ([Decider]), nor whether a step was
// really carried out: its caller reports that. If the step declared a WriteIntent, a [Reader]
// reads the destination.
package gate
