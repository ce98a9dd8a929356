package httpsend

import "time"

const (
	// DefaultMaxBody is how many bytes of an answer are read. A record and a
	// page of records fit in it many times over; a destination (or whatever
	// stands in its place) that streams without end must not fill our memory.
	DefaultMaxBody = 4 << 20

	// DefaultTimeout bounds a call whose context has no deadline, since a
	// destination that hangs must not hold a worker for ever. It is the
	// default send timeout of a profile.
	DefaultTimeout = 30 * time.Second

	// MaxIdleConns is how many idle connections to one host the default
	// transport keeps. A worker carries 64 writes at once; of fewer connections
	// the rest would be closed after each call and dialled anew, with a new
	// handshake, for each send and each read. They are closed when unused for as
	// long as net/http does by default.
	MaxIdleConns = 64

	// maxDetails is how deep the details of an error are looked into for texts.
	maxDetails = 4

	// MaxRetryAfter is the longest wait that a destination can ask for. A date
	// in the far future is a mistake or an attack, and a record that waits for
	// it is as good as lost.
	MaxRetryAfter = 24 * time.Hour
)
