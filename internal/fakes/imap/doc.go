// Package imap is an IMAP server to test against, with the faults of real ones: go-imap's
// server in memory ([NewServer]), or a real Dovecot if it is installed ([NewDovecot]).
//
// The faults are in a proxy in front of the server, so both have the same ones. They are switched
// on and off while it runs ([Switches.SetVice]). The server's content is read without the proxy
// ([Server.Count], [Server.Messages]), and confirmed effects are counted ([Server.Effects]): this
// makes it the oracle of a test or a demonstration.
//
// The server in memory does not support CONDSTORE or quotas, writes all flags in lower case, and
// forgets everything when it is closed. The proxy handles one command at a time and does not
// support IDLE, COMPRESS or STARTTLS. All of it listens only on the loopback address or, on
// request, nowhere: connections are then carried in memory.
package imap
