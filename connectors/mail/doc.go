// Package mail sends messages by SMTP submission and reads them back from a
// mailbox.
//
// SMTP has no deduplication and no question that could be asked afterwards. What
// we have instead is a message that is built once, by [Connector.Prepare],
// before anything is sent: its Message-ID is made from the stamp, a header of
// its own (X-Readback-Stamp) bears the stamp as it is, and the ledger keeps the
// bytes with the recipients, so that a repeat is the same message with the same
// date. Whether it was taken is seen in a mailbox, through package imap: the one
// of what was sent, where the provider files it there by itself ([Filed]), or
// one that gets a copy ([Copied]). A relay that gives neither cannot be
// verified, and [New] refuses it.
//
// # Business keys
//
//	{"account": "billing@example.org"}                          kind "message"
//	{"message_id": "<invoice-7721@example.org>"}                kind "named_message"
//
// The account is the one that this connector sends from, so that an intent
// cannot leave through another. Kind [KindMessage] makes the Message-ID from the
// stamp; [KindNamed] takes the caller's, which is looked for before the first
// send. A Message-ID has its angle brackets and is compared byte by byte. Either
// kind takes both fields.
//
// # Fields
//
// A create expects any of from, to, cc, subject and body (the plain text); an
// address is written "a@example.org" or "Alice A <a@example.org>". Records show
// these, account, message_id and what package imap shows besides. The payload
// may have, and nobody verifies it:
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
// Whatever fails before the final dot of the message was not applied, and
// neither was what the server answers with 5yz to the dot. A refused recipient
// stops the whole mail, and a refused login is not repeated. No answer to the
// dot leaves it open, and so does a connection that breaks within a short
// message, which leaves in one piece with its dot, and 4yz, which relays say of
// messages that they have handed on (Options.TrustDeferral believes it): then,
// and after every lie, only the mailbox tells, and since a mail cannot be taken
// back a second one is never sent without a person.
//
// What the package does not know: whether anybody got the mail. A copy in a
// mailbox proves that copy, and neither delivery nor that the other recipients
// were tried. A report that it was not delivered (RFC 3464) is looked for in
// Options.Bounces, by its Message-ID and for an hour, while the copy is there: then a
// reviewer gets the write. It is not authenticated: whoever knows the Message-ID can
// write one. Bounces in other forms, and later ones, are not seen. The package does
// not sign (DKIM), does not deliver to
// other domains' servers by itself, and does not know addresses beyond ASCII.
package mail
