//go:build unix

package main

import (
	"fmt"
	"strings"
)

// guarantee is what the documentation of a system says about one external call.
type guarantee struct{ system, durable, repeats, reads, unknown string }

// guarantees were read from each project's documentation in the version that is measured.
// docs/performance.md repeats the table; a test compares the two.
var guarantees = []guarantee{
	{
		"readback",
		"the intent before the first send, the outcome before the caller has it ([promises](reference/guarantees.md#the-promises))",
		"no send without a read that shows that it is harmless, or a key that makes it so ([when a write is sent again](reference/guarantees.md#when-a-write-is-sent-again))",
		"after every write; it compares the declared fields",
		"a later read, else a reviewer; never a repeat",
	},
	{
		"DBOS",
		"the input before the workflow, the result after each step ([how workflows work](https://docs.dbos.dev/explanations/how-workflows-work)); on SQLite it chooses `synchronous=NORMAL`, which can lose the last commits with the power",
		"a step without a stored result runs again: at least once ([concurrent executions](https://docs.dbos.dev/explanations/concurrent-executions))",
		"no; a step can do it",
		"after a crash recovery runs the step again; an error goes to the workflow's code, and the step is repeated only if it sets retries ([steps](https://docs.dbos.dev/golang/tutorials/step-tutorial))",
	},
	{
		"River",
		"the job before it is worked, its end after it, in batches or in a transaction of the worker ([transactional completion](https://riverqueue.com/docs/transactional-job-completion))",
		"a job without a stored end is worked again: at least once ([reliable workers](https://riverqueue.com/docs/reliable-workers))",
		"no; a worker can do it",
		"the job is retried, by default up to 25 times ([retries](https://riverqueue.com/docs/job-retries)); the worker must be idempotent",
	},
	{
		"Temporal",
		"each step's start and end, as events in the workflow's history ([event history](https://docs.temporal.io/workflow-execution/event))",
		"an activity without a recorded end runs again, unless its retries are limited to one attempt ([idempotency](https://docs.temporal.io/activity-definition#idempotency))",
		"no; an activity can do it",
		"the retry policy, by default again without a limit ([retry policies](https://docs.temporal.io/encyclopedia/retry-policies)); with one attempt, the workflow's code",
	},
	{
		"Restate",
		"the request before it is acknowledged, the result after each step, in its log ([durable steps](https://docs.restate.dev/develop/go/durable-steps))",
		"a step without a stored result runs again ([durable steps](https://docs.restate.dev/develop/go/durable-steps)); requests with the same idempotency key are one",
		"no; a step can do it",
		"the retry policy: again, unless it ends or the step returns a terminal error ([error handling](https://docs.restate.dev/guides/error-handling))",
	},
	{
		"bare pair",
		"a row before the call and its outcome after it",
		"as the program decides",
		"no",
		"the program that finds a row without an outcome",
	},
}

// guaranteesTable is the table in Markdown.
func guaranteesTable() string {
	var b strings.Builder
	b.WriteString("| | durable | sends after a crash | reads the destination | who decides when the result is unknown |\n|---|---|---|---|---|\n")
	for _, g := range guarantees {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", g.system, g.durable, g.repeats, g.reads, g.unknown)
	}
	return b.String()
}
