// Package imap writes messages to IMAP mailboxes and reads them back.
//
// A create is an APPEND, an update a STORE of flags or keywords, a delete \Deleted and UID
// EXPUNGE of exactly that message. A mailbox cannot deduplicate: a repeated APPEND makes a second
// message. What we have instead is the Message-ID, which a create of kind [KindMessage] makes
// from the stamp, and a header of its own, X-Readback-Stamp, that contains the stamp unchanged.
//
// A delete whose connection broke before the EXPUNGE is finished by the next send. A read about a
// delete does not show its mark, since that would look like a change of another actor. Any other
// flag that was set meanwhile is such a change.
//
// # Business keys
//
//	{"mailbox": "INBOX"}                                       create of kind "message"
//	{"mailbox": "INBOX", "message_id": "<a@b>"}                update, delete; create of kind "named_message"
//	{"mailbox": "INBOX", "uidvalidity": 17, "uid": 4711}       update, delete
//
// The mailbox may be left out if [Options] has a default one. A Message-ID is written with its
// angle brackets and compared byte by byte, since the server's own HEADER search matches
// substrings in any case.
//
// # Fields
//
// A create expects any of from, to, cc, subject, body, date, flags and keywords; an update flags,
// keywords or both, each the exact set. Records show these and mailbox, message_id, uid,
// uidvalidity and size. A missing header is missing in the record; an empty one is "". An address
// is written "a@example.org" or "Alice A <a@example.org>". There is a Date only if one is
// expected: no clock of ours is in a message. The payload of a create may have further headers,
// {"headers": {"Reply-To": "b@example.org"}}, which are not verified.
//
// What the package does not know: whether the message was received (a copy in a mailbox proves a
// copy), whether a server rewrites what it stores, and how far the search index of a cluster
// lags: that is configuration. It does not create mailboxes, move messages or upload attachments.
package imap
