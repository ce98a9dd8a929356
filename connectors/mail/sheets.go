package mail

import (
	"cmp"
	"slices"

	"github.com/readback-go/readback/connectors"
)

// Where things are known from.
const (
	rfc5321    = "RFC 5321"
	rfc1047    = "RFC 1047"
	rfc3501    = "RFC 3501"
	rfc3464    = "RFC 3464"
	rfc6154    = "RFC 6154"
	gmailIMAP  = "developers.google.com/gmail/imap_extensions"
	sentCopies = "github.com/edmozley/freeitsm/wiki/Basic-IMAP-Sent-Copy-Developer-Guide"
	here       = "this package"
)

// Sheets are what is known about sending mail and reading it back, for each proof; they need no
// account.
func Sheets() []connectors.Sheet {
	return []connectors.Sheet{
		sheet("smtp-filed-message", "SMTP, seen in the mailbox of what was sent", KindMessage, Filed, filedClaims()),
		sheet("smtp-filed-named-message", "SMTP, seen in the mailbox of what was sent", KindNamed, Filed, append(namedClaims(), filedClaims()...)),
		sheet("smtp-copied-message", "SMTP, seen in a mailbox that gets a copy", KindMessage, Copied, copiedClaims()),
		sheet("gmail-smtp-message", "Gmail by SMTP and IMAP", KindMessage, Filed, gmailClaims()),
	}
}

// sheet puts what is known of this system before what is known of all, topic by
// topic.
func sheet(name, system, kind string, proof Proof, own []connectors.Claim) connectors.Sheet {
	claims := slices.Concat(own, smtpClaims())
	order := connectors.Topics()
	slices.SortStableFunc(claims, func(a, b connectors.Claim) int {
		return cmp.Compare(slices.Index(order, a.About), slices.Index(order, b.About))
	})
	return connectors.Sheet{Name: name, System: system, Kind: kind, Type: "mail",
		Profile: profiles(Options{Proof: proof})[kind], Claims: claims}
}

func namedClaims() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicLookup, Source: here,
			Says: "The Message-ID is the caller's, so that two workflows can mean one mail by it: a mail that has it already, without our stamp, is a conflict for a create."},
	}
}

// smtpClaims hold for every submission server.
func smtpClaims() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicNative, Source: rfc5321,
			Says: "None. The protocol has no key and no later query; no server must recognise a known Message-ID."},
		{About: connectors.TopicNative, Source: rfc5321 + " section 4.2.5",
			Says: "250 after the final dot means that the server accepted the mail, 4yz and 5yz that it did not. A relay or filter that loses its connection to the next server can answer 4yz for an accepted mail. So after 4yz the fate is unknown unless the configuration trusts it, and after 421 always."},
		{About: connectors.TopicNative, Source: rfc1047,
			Says: "An answer to the final dot that is lost leaves it open; mail programs that send again then are where duplicates come from. Here it is read back and never sent again."},
		{About: connectors.TopicLookup, Source: here,
			Says: "The Message-ID is made from the stamp, and the header X-Readback-Stamp has it too, for servers that put a Message-ID of their own."},
		{About: connectors.TopicLookup, Source: rfc3501 + " section 6.4.4",
			Says: "IMAP's SEARCH HEADER finds substrings in any case, so what it finds is compared again."},
		{About: connectors.TopicStrong, Source: here,
			Says: "None. What a server took over comes into a mailbox later, so that nothing found never proves that nothing was taken over."},
		{About: connectors.TopicHorizon, Source: rfc5321 + " section 4.5.3.2.6", Assumed: true,
			Says: "Clients wait ten minutes for the answer to the final dot. A server that holds the whole mail is assumed to need no longer; no standard promises it."},
		{About: connectors.TopicConditional, Source: rfc5321, Says: "None."},
		{About: connectors.TopicUnique, Source: rfc5321, Says: "None: a mail sent twice is two mails, also with one Message-ID."},
		{About: connectors.TopicUndo, Source: rfc5321 + " section 6.1", Says: "None: a server that accepted a mail delivers it or reports that it cannot."},
		{About: connectors.TopicIrreversible, Source: here,
			Says: "Everything. After a send of unknown fate only a reviewer can send again; a mail that is not found goes to review."},
		{About: connectors.TopicIrreversible, Source: here,
			Says: "A copy in a mailbox proves that copy, and outcomes say so. It does not prove that a recipient got the mail: queues hold mail for days."},
		{About: connectors.TopicIrreversible, Source: rfc3464,
			Says: "readback searches the mailbox of bounces (the option bounces; INBOX if the server stores sent mail) for a report of a failed delivery with the Message-ID, with each read and an hour after the send: the write then goes to review. Other forms of bounces, and later ones, are not detected."},
		{About: connectors.TopicValues, Source: here,
			Says: "SMTP ends every text with a line end, and CRLF is its only one: texts are compared without the white space around them. Subjects are compared trimmed; addresses to the letter."},
		{About: connectors.TopicValues, Source: here,
			Says: "Blind copies, HTML, further headers and attachments are sent and not compared: an attachment removed from an otherwise complete mail is not detected. Added plain text is."},
		{About: connectors.TopicLimits, Source: rfc5321 + " section 4.5.3.1",
			Says: "Servers take at least 100 recipients and 64 KB; here a mail has at most 1 MiB as it is sent, since the ledger keeps it, 32 KiB of header and 100 recipients all together."},
		{About: connectors.TopicLimits, Source: here, Assumed: true,
			Says: "Three connections at a time. Providers limit them, and the mails of an hour, and few publish how."},
	}
}

func filedClaims() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicLookup, Source: rfc6154,
			Says: `The mailbox of what was sent is found by its mark, \Sent, since its name is in the language of the account.`},
		{About: connectors.TopicLagging, Source: sentCopies,
			Says: "Some submission servers file what is sent by themselves, others do not: ask yours. The connector never files it: that would prove nothing, and where the server does it too there would be two."},
		{About: connectors.TopicSettle, Source: here, Assumed: true,
			Says: "Five minutes until what was taken over is filed and found. No provider publishes a number."},
	}
}

func copiedClaims() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicLookup, Source: here,
			Says: "The mail goes to one more recipient, whom no header names, and is read there. Everyone who knows that address can write to it, so keep it secret."},
		{About: connectors.TopicLagging, Source: rfc5321 + " section 4.5.4.1",
			Says: "The copy travels as mail does: through queues that may hold it for days, past greylists and filters. One that was filed as spam is not found."},
		{About: connectors.TopicSettle, Source: here, Assumed: true,
			Says: "Thirty minutes for the copy to arrive. A queue that is stuck takes longer; then a reviewer or a later read decides."},
	}
}

func gmailClaims() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicLookup, Source: gmailIMAP,
			Says: `\Sent is marked in every list of mailboxes; its name is localised. Gmail's own message ids are not used: they say nothing of what was sent.`},
		{About: connectors.TopicLagging, Source: sentCopies,
			Says: "Gmail itself puts a copy of each sent mail into the mailbox, so no other program may."},
		{About: connectors.TopicSettle, Source: here, Assumed: true,
			Says: "Five minutes until what was sent is filed and found. Google publishes no number."},
		{About: connectors.TopicValues, Source: here, Assumed: true,
			Says: "A Message-ID that is valid is kept. A sender that is no alias of the account is replaced by the account, which shows as a mismatch where the intent expects a sender."},
		{About: connectors.TopicUnique, Source: gmailIMAP, Assumed: true,
			Says: "A mail to oneself may be shown once where two came with one Message-ID: what INBOX shows is no count. The mailbox of what was sent is read instead."},
	}
}
