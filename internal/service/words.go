package service

import (
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// What callers choose from, in the order in which the APIs list it.
var (
	// States are the states of a write.
	States = []ledger.State{ledger.Held, ledger.Queued, ledger.Sending, ledger.Checking, ledger.Delegated, ledger.Compensating, ledger.Review, ledger.Settled}
	// Settlements are the statuses of a settled write.
	Settlements = []ledger.Status{ledger.Verified, ledger.NotApplied, ledger.Compensated, ledger.Accepted, ledger.Abandoned, ledger.Denied, ledger.Expired, ledger.Reported}
	// SagaStates are the states of a saga.
	SagaStates = []saga.State{saga.Running, saga.Undoing, saga.Done, saga.Undone, saga.Review, saga.Closed}
	// Decisions are what a reviewer can decide about a write.
	Decisions = []engine.Word{engine.WordAccept, engine.WordRetry, engine.WordCompensate, engine.WordAbandon, engine.WordApprove, engine.WordDeny}
)
