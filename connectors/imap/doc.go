// Package imap writes messages to IMAP mailboxes and reads them back.
//
// A create is an APPEND, an update a STORE of flags or keywords, a delete
// \Deleted and UID EXPUNGE of exactly that message. A mailbox cannot
// deduplicate: a repeated APPEND makes a second message. What we have instead is
// the Message-ID, which a create of kind [KindMessage] makes from the stamp, and
// a header of its own, X-Readback-Stamp, that bears the stamp as it is.
//
// A delete whose connection broke before the EXPUNGE is finished by the next send: its
// mark is not shown to a read about a delete, since it would look like a change of
// another actor. Any other flag that was set meanwhile is such a change.
//
// # Business keys
//
//	{"mailbox": "INBOX"}                                       create of kind "message"
//	{"mailbox": "INBOX", "message_id": "<a@b>"}                update, delete; create of kind "named_message"
//	{"mailbox": "INBOX", "uidvalidity": 17, "uid": 4711}       update, delete
//
// The mailbox may be left out where [Options] has a default one. A Message-ID
// is written with its angle brackets and compared byte by byte, since the
// server's own HEADER search matches substrings in any case.
//
// # Fields
//
// A create expects any of from, to, cc, subject, body, date, flags and keywords;
// an update flags, keywords or both, each the exact set. Records show these and
// mailbox, message_id, uid, uidvalidity and size. A header that is missing is
// missing in the record; one that is empty is "". An address is written
// "a@example.org" or "Alice A <a@example.org>". There is a Date only where one
// is expected: no clock of ours is in a message. The payload of a create may have
// further headers, {"headers": {"Reply-To": "b@example.org"}}; nobody verifies
// them.
//
// What the package does not know: whether anybody got the message (a copy in a
// mailbox proves a copy), whether a server rewrites what it stores, and how far
// the search index of a cluster lags behind: that is configuration. It does not
// create mailboxes, move messages or upload attachments.
package imap
