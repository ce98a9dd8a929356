package pgtest

import "time"

const (
	// starts is how long a server may take to answer. It needs a fifth of a
	// second; a machine that runs other tests needs more.
	starts = 30 * time.Second
	// stops is how long a server may take to stop before it is killed.
	stops = 10 * time.Second
	// pause lies between two looks at a server that starts or catches up.
	pause = 10 * time.Millisecond
	// maxLog is how much of a server's log an error repeats.
	maxLog = 4 << 10
)
