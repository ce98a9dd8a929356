// Package river makes the writes of River's jobs through readback: a job whose worker ends, or whose
// attempt is repeated, has its effect at the destination once.
//
// [Middleware] makes the writes of existing kinds of jobs: they change by one line, in the
// configuration of the client. [Worker] is a worker whose jobs are writes. [Inserter] inserts a job
// and its write in one transaction. [Wake] makes the job of a write run now, when a reviewer has
// decided.
//
// A write is named by the job's arguments: the name in [intent.WriteIntent.Workflow] is required,
// and stays the same when River repeats the job or a program inserts it again. The job's ID is no
// part of it.
//
// The package does not know when River rescues a job, and changes no job but its own.
package river
