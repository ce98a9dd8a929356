package webhook

import "time"

const (
	// DefaultWindow is for how long a receiver is taken to know the ids of the
	// messages that it took. The standard asks for that and names no time; a day is
	// what large senders go on trying.
	DefaultWindow = 24 * time.Hour
	// DefaultSends is how often a message is sent that is not taken. With the
	// pauses between them, which grow to an hour, that lasts ten hours: the night in
	// which nobody mends the receiver.
	DefaultSends = 16
	// DefaultTimeout is how long a receiver may take to answer, as the standard
	// recommends.
	DefaultTimeout = 15 * time.Second
	// maxBody bounds a message, in bytes. Standard Webhooks asks for small ones.
	maxBody = 64 << 10
	// maxAnswer bounds what is read of an answer, in bytes: only its status counts,
	// and a short body lets the connection be used again.
	maxAnswer = 8 << 10
	// minSecret and maxSecret bound the key in a secret, in bytes: those of Standard
	// Webhooks.
	minSecret = 24
	maxSecret = 64
)
