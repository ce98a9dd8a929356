// Package contracttest tests the wire format of the step gate without a client: it reads
// files of requests and the responses that the contract demands, sends the requests to a
// server, and compares every response with its file, field by field.
//
// It uses no client of ours and no type of the gate: only what is in the files.
//
// # The files
//
// A file is a conversation, in order, with a tenant of its own (X-Tenant-ID is the file's
// name unless a request names another). The text before the first "###" describes it. A
// line "@needs clock" there names what a server must support, beyond HTTP, for this file.
//
//	### What this exchange shows
//	POST /api/v1/workflows
//	X-User-ID: ana
//
//	{"workflow_name": "invoices"}
//
//	HTTP/1.1 201
//	Content-Type: application/json
//
//	{"workflow_id": "{{workflow_id}}", "created_at": "<timestamp>", ...}
//
// Before the request may come "@wait 61s" (time passes) and "@unchanged {{workflow_id}}"
// (what can be read of that workflow is the same before and after). Named headers of the
// response must be equal; "-" means that there must be none. Its body must have every
// field that is named and no other.
//
// A path that is a whole address goes to a destination, not to the server, and the body
// of its response is not compared.
//
// In a file {{name}} is a value that the server was given ({{orders}}) or a value of an
// earlier response. In a response, where it is the whole of a string and not known yet,
// it takes the actual value. {{x*256}} is 256 times x. Where a value cannot be known the
// file has its form: "<any>", "<string>", "<number>", "<object>", "<list>", "<timestamp>"
// (RFC 3339), "<match REGEXP>", and "<uuid5 NAME>" (in the contract's namespace).
package contracttest
