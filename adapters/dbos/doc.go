// Package dbos makes the writes of DBOS workflows through readback: a step that is repeated after a
// crash, or in a recovered workflow, has its effect at the destination once.
//
// [Write] makes a write from a workflow and returns its outcome. [EnqueueIn] enqueues it within a
// transaction of the workflow, [Named] names it for one outside. [Wake] resumes a workflow whose
// write a reviewer has decided about.
//
// A write is named by the workflow's ID and by the name that the code gives the step. The number of
// the step is no part of it. A fork of a workflow has the writes of its original, by their names; it
// makes again what ended without its effect.
//
// The package has no queue of its own, and does not know how DBOS recovers a workflow.
package dbos
