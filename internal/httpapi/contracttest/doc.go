// Package contracttest speaks the wire of the step gate by hand: it reads files
// of requests and the answers that the contract demands, sends the requests to a
// server, and holds every answer against its file, field by field.
//
// It uses no client of ours and knows no type of the gate: only what stands in
// the files.
//
// # The files
//
// A file is a conversation, in order, with a tenant of its own (X-Tenant-ID is
// the file's name unless a request names another). What stands before the first
// "###" says what it is about; a line "@needs clock" there names what a server
// must be able to do, beyond HTTP, for this file.
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
// Before the request may stand "@wait 61s" (time passes) and "@unchanged
// {{workflow_id}}" (what can be read of that workflow is the same before and
// after). Headers of the answer that are named must be as named; "-" means that
// there must be none. Its body must have every field that is named and no other.
//
// A path that is a whole address goes to a destination, not to the server, and its
// answer's body is not compared.
//
// In a file {{name}} is a value that the server was given ({{orders}}) or a value of an earlier answer; in an answer, where it is
// the whole of a string and not known yet, it takes what is there. {{x*256}} is
// 256 times x. Where an answer cannot be known it says what it must look like:
// "<any>", "<string>", "<number>", "<object>", "<list>", "<timestamp>" (RFC
// 3339), "<match REGEXP>", and "<uuid5 NAME>" (in the contract's namespace).
package contracttest
