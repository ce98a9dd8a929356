// Package mail is a mail account to test against, with the faults of real ones: go-smtp's
// server in memory with the mailboxes of package fakes/imap ([NewServer]), or, if installed, a real
// Postfix that delivers into a real Dovecot ([NewPostfix]).
//
// The faults are in a proxy in front of the SMTP server, so both have the same ones; those of
// reading are those of fakes/imap. They are switched on and off while it runs
// ([fakeimap.Switches.SetVice]). Messages that arrived whole are stored byte by byte
// ([Server.Received]), and so are accepted ones ([Server.Accepted]): this makes it the oracle of
// a test or a demonstration. [Script] plays a server line by line, for answers that no server
// should send.
//
// The server in memory files what it accepts at once and has one account; mail for other
// recipients is accepted and dropped. The proxy handles one command at a time and does not
// support PIPELINING, CHUNKING or BDAT. Nothing listens beyond the loopback address.
package mail
