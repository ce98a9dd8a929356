// Package mailtest is a mail account to test against, with the vices of real
// ones: go-smtp's server in memory before the mailboxes of package imaptest
// ([NewServer]), or a real Postfix that delivers into a real Dovecot where they
// are installed ([NewPostfix]).
//
// The vices are in a proxy before the SMTP server, so both have the same ones;
// those of reading are imaptest's. They are switched on and off while it runs
// ([imaptest.Switches.SetVice]). What came in whole is kept to the byte ([Server.Received]),
// and so is what was taken over ([Server.Accepted]): this makes it the oracle of
// a test or a demonstration. [Script] plays a server line by line, for what no
// server should ever say.
//
// The server in memory files what it accepts at once and knows one account; mail
// for anybody else is accepted and gone. The proxy takes one command at a time
// and knows no PIPELINING, CHUNKING or BDAT. Nothing listens beyond the loopback
// address.
package mailtest
