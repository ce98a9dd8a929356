package webhooks

import "time"

const (
	// every is how often a hook looks for changes that nobody told it of.
	every = time.Second
	// batch is how many changes are looked at before the cursor is kept: what is
	// looked at twice after a crash.
	batch = 100
	// turnFor is how long one process of several sees to a hook without the others:
	// whoever dies is followed by another one after it. Nothing but work depends
	// on it.
	turnFor = 15 * time.Second
	// failedFirst and failedMost bound the pause after the ledger failed, or was
	// full.
	failedFirst = 500 * time.Millisecond
	failedMost  = 30 * time.Second
	// maxText bounds a sentence in a message, in bytes: a message is read by people
	// and put into chats.
	maxText = 1000
)
