// Package mcp is a destination behind a server of the Model Context Protocol: a
// contract says which tool writes, which reads, and how records are found in what
// the reading tool answers.
//
// [Load] checks a contract and lists everything that is wrong with its line;
// [New] makes a connector of it. [Contract.Derive] turns the arguments of a call
// into an intent, for a gateway in front of the server. Some contracts come with
// the package ([Shipped]).
//
// # The file
//
// Unknown members, empty values, anchors, aliases and tags are refused. What is
// in brackets may be left out.
//
//	contract: 1
//	name: shop                          # lower-case letters, digits, dashes
//	server: Shop server 2.1             # for people
//	[serial: true]                      # the server loses one of two writes at a time
//	[reads: [get_order, search]]        # tools that only read, besides those below
//	digests: {create_order: sha256:…}   # of every tool that writes or proves
//	kinds:
//	  order:
//	    writes: {create: WRITE, update: WRITE, upsert: WRITE, delete: WRITE}
//	    reads: [READ…]
//	    record: RECORD
//	    [undo: {create: delete, update: update, upsert: upsert, delete: create}]
//	    [profile: {settle, horizon, recheck, confirm_reads, volatile: [/updated],
//	      compare: {/title: [{rule: trim}]}, irreversible: [create], stamps_updates,
//	      send_timeout, read_timeout}]  # as connectors.Profile; what is left out is not promised
//
// A WRITE is one tool and what its arguments mean:
//
//	tool: create_order
//	key: {order_id: $.order_id}         # the business key: where it stands in the arguments
//	expect: {note: $.note}              # what a later read must find
//	[require: {note: {before: note}}]   # what must hold before it is sent
//	[ref: $.id]                         # the argument that takes the record's own id
//	[stamp: $.external_id]              # the argument that takes the stamp
//	[idempotency: {argument: $.key, window: 24h}]
//	[idempotent: true]                  # a repeat does no harm; annotations never say so
//	[made: $.id]                        # the new record's id, in the answer
//	[refused: ['^not allowed']]         # texts of an error after which surely nothing was applied
//	[conflict: [...]] [throttled: ['retry after (\d+) s']]
//	[passes: {argument: $.dryRun, equals: true}]    # then it is a look, and passes through
//	[each: $.orders [within: $.lines]]  # one call writes several records
//
// A value of key, expect and require is a path into the arguments (with each,
// into an element; {outer: path} into the one around it), {value: scalar},
// {before: field} of the record before, or {replace: {each: $.edits, old:
// $.oldText, new: $.newText [lines: lf]}}: the text of that field before, with each old
// text that stands in it exactly once replaced; with lines: lf every CRLF becomes
// LF before.
//
// A READ is one tool and where the records stand in its answer:
//
//	tool: find_orders
//	[name: list] [by: key | stamp | ref]
//	[arguments: {query: "{key.order_id}"}]          # {key.x}, {each.x}, {stamp}, {ref}
//	records: $.orders[*] | record: $                # a list, which must be there, or one object
//	[within: $.lines]                               # the records stand in a list in each of them
//	[answer: structured | json | text]              # text is {"text": …}
//	[absent: ['no such order']]                     # texts of an error that say it is not there
//	[empty: ['^No results']]                        # texts of an answer that say there is none
//	[limit: 100]                                    # as many are a list that may be cut
//	[strength: strong]                              # shows everything applied before; default weak
//	[as: source]                                    # one part of a record in parts
//
// A RECORD says how one is understood: {ref, url, version: paths, stamp: FIELD,
// fields: {note: FIELD}}. A FIELD is a JSONPath, or {path, match: regular
// expression with a group}, {outer: path}, or {key: name} where the answer does
// not repeat what it was asked for.
//
// With each, one intent is about all records of the call: its key has the one
// field "each", the list of their keys as JSON text, and it expects "records",
// by their keys. With as, the record is always there and has for each part the
// field "NAME.exists" and the fields "NAME.x".
//
// # What is known about a call
//
// It is made once. A failure before anything left us is known as one; an error of
// the tool, of the protocol or of the transport is of unknown fate unless the
// contract lists it. The SDK repeats nothing: reconnecting, redirects and calls
// that are begun anew for further input are switched off. Nothing that the
// server wrote stands in an error.
//
// What the package does not know: whether a contract is true, what a tool does
// besides, and whether a server lies in its reads as well.
package mcp
