// Package objects keeps the heads of audit chains in an object store with the
// interface of S3, where a lock on objects can keep everybody from changing them.
//
// It does not know whether such a lock is set.
package objects
