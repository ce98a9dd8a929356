// Package objects keeps the heads of audit chains in an S3-compatible object store, where an
// object lock can stop all actors from changing them.
//
// It does not check whether such a lock is set.
package objects
