package imap

import "github.com/readback-go/readback/connectors"

// Where it is known from.
const (
	here     = "this package"
	gmailExt = "developers.google.com/gmail/imap_extensions"
	gmailOwn = "github.com/edmozley/freeitsm/wiki/Basic-IMAP-Sent-Copy-Developer-Guide"
)

// Sheets returns what is known about mailboxes: of any server, of one with a single store, and of
// Gmail.
func Sheets() []connectors.Sheet {
	single := Options{SingleStore: true, CondStore: true}
	return []connectors.Sheet{
		sheet("imap-message", "IMAP mailbox", KindMessage, Options{}, nil),
		sheet("imap-named-message", "IMAP mailbox", KindNamed, Options{}, nil),
		sheet("imap-single-store-message", "IMAP mailbox on one store (Dovecot, Cyrus)", KindMessage, single, ofSingleStore()),
		sheet("gmail-imap-message", "Gmail over IMAP", KindMessage, Options{}, ofGmail()),
	}
}

// sheet takes for each topic what is known of this system or else of all.
func sheet(name, system, kind string, o Options, own []connectors.Claim) connectors.Sheet {
	c := Connector{o: o}
	s := connectors.Sheet{Name: name, System: system, Kind: kind, Type: "imap", Profile: c.Profiles()[kind]}
	for _, topic := range connectors.Topics() {
		found := on(topic, own)
		if len(found) == 0 {
			found = on(topic, ofIMAP())
		}
		s.Claims = append(s.Claims, found...)
	}
	return s
}

func on(topic connectors.Topic, all []connectors.Claim) []connectors.Claim {
	var found []connectors.Claim
	for _, c := range all {
		if c.About == topic {
			found = append(found, c)
		}
	}
	return found
}

func ofIMAP() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicNative, Says: "None for APPEND: a repeat makes a second message with a new UID. REPLACE, which could serve, is not used.", Source: "RFC 3501 section 6.3.11; RFC 8508"},
		{About: connectors.TopicLookup, Says: "UID SEARCH HEADER by Message-ID and by our own header X-Readback-Stamp. The search matches substrings in any case, so what it finds is fetched and compared exactly.", Source: "RFC 3501 section 6.4.4"},
		{About: connectors.TopicLookup, Says: "By (mailbox, UIDVALIDITY, UID) where the answer to the APPEND named them.", Source: "RFC 4315"},
		{About: connectors.TopicStrong, Says: "None by default: what a cluster's search has not indexed yet it does not find, and absence is what matters.", Source: here},
		{About: connectors.TopicLagging, Says: "UID SEARCH HEADER on clustered stores. No provider publishes by how much.", Source: here, Assumed: true},
		{About: connectors.TopicSettle, Says: "60 s unless configured: no provider publishes a number.", Source: here, Assumed: true},
		{About: connectors.TopicHorizon, Says: "60 s unless configured: no standard limits how long a server may continue an APPEND after its client disconnected.", Source: here, Assumed: true},
		{About: connectors.TopicConditional, Says: "With CONDSTORE: STORE (UNCHANGEDSINCE n) for flags, and so for the mark that precedes a delete. A server that refuses answers OK and lists the message as MODIFIED.", Source: "RFC 7162"},
		{About: connectors.TopicUnique, Says: "Updates and deletes go to a UID, and UIDs are never used again in a mailbox while its UIDVALIDITY stays.", Source: "RFC 3501 section 2.3.1.1; RFC 4315"},
		{About: connectors.TopicUndo, Says: "An APPEND by \\Deleted and UID EXPUNGE of that message alone; flags by setting them back.", Source: "RFC 4315"},
		{About: connectors.TopicIrreversible, Says: "A delete: observations do not keep the whole message. And that a user has downloaded or seen a message.", Source: here},
		{About: connectors.TopicValues, Says: "Flags and keywords are sets whose letter case does not count; some servers write CRLF for LF; times have seconds.", Source: "RFC 3501 sections 2.3.2 and 2.3.3"},
		{About: connectors.TopicLimits, Says: "APPENDLIMIT where the server announces it; line limits bound the sets of UIDs, so 200 are fetched at a time.", Source: "RFC 7889", Assumed: true},
	}
}

func ofSingleStore() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicStrong, Says: "All, as the option SingleStore declares: what one session committed every other session sees that opens the mailbox afterwards.", Source: here},
		{About: connectors.TopicLagging, Says: "None.", Source: here},
		{About: connectors.TopicSettle, Says: "0: there is one store.", Source: here},
	}
}

func ofGmail() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicNative, Says: "None for APPEND. A message that was received twice under one Message-ID may be shown once, so absence in INBOX is no proof.", Source: here, Assumed: true},
		{About: connectors.TopicLookup, Says: "As on other servers. X-GM-MSGID and X-GM-RAW would serve too and are not used. Special mailboxes are found by their attribute: their names are in the user's language.", Source: gmailExt},
		{About: connectors.TopicConditional, Says: "With CONDSTORE, which Gmail reportedly has; Probe checks.", Source: here, Assumed: true},
		{About: connectors.TopicUndo, Says: "An APPEND by \\Deleted and UID EXPUNGE, which by a setting of the account may only take a label away; flags by setting them back.", Source: here, Assumed: true},
		{About: connectors.TopicValues, Says: "One message may be in many mailboxes, one for each label. What SMTP sent is filed by Gmail itself: an APPEND to the sent mailbox makes a second copy.", Source: gmailOwn},
		{About: connectors.TopicLimits, Says: "15 connections of an account at a time.", Source: here, Assumed: true},
	}
}
