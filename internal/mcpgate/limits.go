package mcpgate

import "time"

const (
	// defaultWait is how long a call waits for its outcome where nobody says.
	defaultWait = 20 * time.Second
	// maxWait bounds it: clients give up after a minute or so.
	maxWait = 50 * time.Second
	// lookTime bounds the question for the tools behind the gate while a client
	// waits for its own list.
	lookTime = 10 * time.Second
	// passTime bounds a request that is passed to the server behind the gateway.
	// Clients give up after a minute.
	passTime = time.Minute
	// beforeTime bounds the look at a record before the intent of a call is made. A
	// server that does not answer for so long does not answer.
	beforeTime = 20 * time.Second
	// maxArguments bounds the arguments of one call in bytes: an intent has a
	// megabyte, and may carry them twice.
	maxArguments = 400 << 10
)
