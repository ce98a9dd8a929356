package sqlite

import (
	"context"

	"github.com/readback-go/readback/ledger"
)

var _ ledger.Waker = (*Ledger)(nil)

// Woken implements [ledger.Waker] for what this process did. Work of other
// processes, and what was enqueued, is found at the next look.
func (l *Ledger) Woken(ctx context.Context) <-chan struct{} { return l.writer.bell.Woken(ctx) }
