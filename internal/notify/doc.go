// Package notify writes messages to people about what waits for a reviewer: one for what came
// within a window, not in quiet hours.
//
// A message is a write to a destination of the tenant, like any other: recorded, sent once, and
// verified where the destination can be read. Its structural key is derived from the batch, and a
// note in the ledger has the batch and where it ends, so that each waiting item is in one message,
// however many processes work and whichever of them dies. A message that needs a reviewer itself
// causes no message.
package notify
