// Package imaptest is an IMAP server to test against, with the vices of real
// ones: go-imap's server in memory ([NewServer]), or a real Dovecot where it is
// installed ([NewDovecot]).
//
// The vices are in a proxy before the server, so both have the same ones. They
// are switched on and off while it runs ([Switches.SetVice]). What the server
// holds is asked of it past the proxy ([Server.Count], [Server.Messages]), and
// what it confirmed to clients is counted ([Server.Effects]): this makes it the
// oracle of a test or a demonstration.
//
// The server in memory does not know CONDSTORE or quotas, writes
// all flags in lower case, and forgets everything when it is closed. The proxy
// takes one command at a time and knows no IDLE, COMPRESS or STARTTLS. All of it
// listens on the loopback address alone, or, on request, nowhere: connections
// are carried in memory then.
package imaptest
