package ledger

import "context"

// Chronicler is what a [Ledger] can be besides: it remembers which of its events
// nobody has sealed yet, so that a chain of all events can be made beside the
// work (package audit) and no write waits for it.
type Chronicler interface {
	// Unsealed returns runs of events that nobody has said to have sealed, as
	// they became durable, at most limit (from 1 to 1000). Every event that was
	// committed is in one of them until [Chronicler.Sealed] is told, whatever
	// workers do at the same time, and Prune does not forget one before that.
	Unsealed(ctx context.Context, limit int) ([]Run, error)
	// Sealed forgets runs by their tickets. One that is not there is no error.
	Sealed(ctx context.Context, tickets []int64) error
}

// Run is the events of one commit to one write, oldest first.
type Run struct {
	Ticket int64
	Tenant string
	ID     ID
	Events []Event
}
