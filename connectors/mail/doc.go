// Package mail sends messages by SMTP submission and reads them back from a
// mailbox.
//
// SMTP has no deduplication and no query of an earlier send. Instead, a message is
// built once, by [Connector.Prepare], before anything is sent: its Message-ID is made
// from the stamp, a header of its own (X-Readback-Stamp) contains the stamp unchanged,
// and the ledger stores the bytes with the recipients, so that a repeat is the same
// message with the same date. A mailbox, read through package imap, shows whether the
// message was accepted: the one for sent mail, if the provider files mail there by
// itself ([CommitMark]), or one that gets a copy ([Copied]). A relay with neither cannot
// be verified, and [New] refuses it.
//
// # Business keys
//
//	{"account": "billing@example.org"}                          kind "message"
//	{"message_id": "<invoice-7721@example.org>"}                kind "named_message"
//
// The account is the one that this connector sends from, so that an intent
// cannot leave through another. Kind [KindMessage] makes the Message-ID from the
// stamp; [KindNamed] takes the caller's, which is queried before the first
// send. A Message-ID has its angle brackets and is compared byte by byte. Either
// kind takes both fields.
//
// # Fields
//
// A create expects any of from, to, cc, subject and body (the plain text); an
// address is written "a@example.org" or "Alice A <a@example.org>". Records show
// these, account, message_id and the other fields of package imap. The payload
// may have the following, which are not verified:
//
//	"bcc":         ["c@example.org"]                in no header
//	"html":        "<p>…</p>"                       an alternative to the body
//	"headers":     {"Reply-To": "d@example.org"}    one line of ASCII each
//	"attachments": [{"name": "a.pdf", "type": "application/pdf", "content": "base64…"}]
//
// Only create exists: a mail that was sent is neither changed nor taken back.
//
// # What is certain
//
// A mail that fails before the final dot of the message was not applied, and neither
// was one whose dot the server answers with 5yz. A refused recipient stops the whole
// mail, and a refused login is not repeated. The result is unknown after no answer to the
// dot, after a connection that breaks within a short message (which is sent in one piece
// with its dot), and after 4yz, which relays also send for messages that they have
// forwarded (Options.TrustDeferral trusts it). Then, and after every false answer, only
// the mailbox decides. Since a mail cannot be taken back, a second one is never sent
// without a reviewer.
//
// What the package does not know: whether the mail was received. A copy in a mailbox
// proves that copy, and neither delivery nor that the other recipients were tried. A
// report that it was not delivered (RFC 3464) is searched in Options.Bounces, by its
// Message-ID and for an hour, while the copy exists: then the write goes to review. The
// report is not authenticated: anyone who knows the Message-ID can write one. Bounces in
// other forms, and later ones, are not detected. The package does not sign (DKIM), does
// not deliver to other domains' servers by itself, and does not support addresses beyond
// ASCII.
package mail
