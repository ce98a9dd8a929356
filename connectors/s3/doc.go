// Package s3 is the destination of objects in a bucket of S3, or of a store that speaks its protocol.
//
// A create is a PUT that the store refuses if there is an object (If-None-Match: *), an update and a
// delete are refused unless the object has the ETag that was read (If-Match). So a repeat adds and
// replaces nothing. The stamp is in the object's metadata.
//
// An object is read with GET and never with HEAD: an answer to HEAD has no body, so that a missing
// object, a missing bucket and a page of a proxy look the same.
//
// The library minio-go signs requests and encodes names. It sends none: its client retries by itself,
// which would be a second send that is not announced. Requests go through package httpsend, which sends
// once and follows no redirect.
package s3
