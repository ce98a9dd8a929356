// Package mcp is a destination with a server of the Model Context Protocol: a
// contract defines which tool writes, which reads, and where records are in the
// answer of the reading tool.
//
// [Load] checks a contract and lists every error with its line;
// [New] makes a connector from it. [Contract.Derive] turns the arguments of a call
// into an intent, for a gateway in front of the server. Some contracts come with
// the package ([Shipped]).
//
// # The file
//
// Unknown members, empty values, anchors, aliases and tags are refused. Members in
// brackets are optional.
//
//	contract: 1
//	name: shop                          # lower-case letters, digits, dashes
//	server: Shop server 2.1             # for display
//	[serial: true]                      # the server loses one of two concurrent writes
//	[reads: [get_order, search]]        # tools that only read, besides those below
//	digests: {create_order: sha256:…}   # of every tool that writes or proves; a list for several
//	                                    # builds; unpinned hides the tool until it is pinned
//	kinds:
//	  order:
//	    writes: {create: WRITE, update: WRITE, upsert: WRITE, delete: WRITE}
//	    reads: [READ…]
//	    record: RECORD
//	    [summary: …]                    # how records are named to people, as in package rest
//	    [undo: {create: delete, update: update, upsert: upsert, delete: create}]
//	    [profile: {settle, horizon, recheck, confirm_reads, volatile: [/updated],
//	      compare: {/title: [{rule: trim}]}, irreversible: [create], stamps_updates,
//	      send_timeout, read_timeout}]  # as connectors.Profile; what is left out is not promised
//
// A WRITE is one tool and what its arguments mean:
//
//	tool: create_order
//	key: {order_id: $.order_id}         # the business key: where it is in the arguments
//	expect: {note: $.note}              # what a later read must find
//	[require: {note: {before: note}}]   # what must hold before it is sent
//	[ref: $.id]                         # the argument that takes the record's own id
//	[stamp: $.external_id]              # the argument that takes the stamp
//	[idempotency: {argument: $.key, window: 24h}]
//	[idempotent: true]                  # a repeat is harmless; annotations never set this
//	[made: $.id]                        # the new record's id, in the answer
//	[refused: ['^not allowed']]         # texts of an error after which surely nothing was applied
//	[conflict: [...]] [throttled: ['retry after (\d+) s']]
//	[passes: {argument: $.dryRun, equals: true}]    # then it is a read, and passes through
//	[each: $.orders [within: $.lines]]  # one call writes several records
//
// A value of key, expect and require is a path into the arguments, such as $.title or
// $.texts[0].content (a call with a second text is refused then) (with each,
// into an element; {outer: path} into the one around it), {value: scalar},
// {before: field} of the record before, or {replace: {each: $.edits, old:
// $.oldText, new: $.newText [lines: lf]}}: the text of that field before, with each old
// text that occurs in it exactly once replaced; with lines: lf every CRLF becomes
// LF before.
//
// A READ is one tool and where the records are in its answer:
//
//	tool: find_orders
//	[name: list] [by: key | stamp | ref]
//	[arguments: {query: "{key.order_id}"}]          # {key.x}, {each.x}, {stamp}, {ref}
//	records: $.orders[*] | record: $                # a list, which must be there, or one object
//	[within: $.lines]                               # the records are in a list in each of them
//	[answer: structured | json | text]              # text is {"text": …}
//	[absent: ['no such order']]                     # texts of an error that say it is not there
//	[empty: ['^No results']]                        # texts of an answer that say there is none
//	[limit: 100]                                    # a list of this length may be truncated
//	[newest: 100]                                   # the same, and it begins with the newest: what
//	                                                # it shows counts, and it proves no absence
//	[strength: strong]                              # shows everything applied before; default weak
//	[as: source]                                    # one part of a record in parts
//
// A RECORD is how a record is parsed: {ref, url, version: paths, stamp: FIELD,
// fields: {note: FIELD}}. A FIELD is a JSONPath, or {path, match: regular
// expression with a group}, {outer: path}, or {key: name} where the answer does
// not repeat the query.
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
// that are started again for further input are switched off. Errors contain
// nothing that the server wrote.
//
// What the package does not know: whether a contract is true, what else a tool
// does, and whether a server's reads are true.
package mcp
