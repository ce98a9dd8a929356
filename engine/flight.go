package engine

import (
	"errors"
	"fmt"

	"github.com/readback-go/readback/ledger"
)

// flight is one write that this process works on now.
type flight struct {
	digest string
	kept   chan struct{} // closed when the write is in the ledger, or the work has stopped
	done   chan struct{} // closed when the work has stopped, for whatever reason
	fresh  bool          // it began the write; read after kept
	first  ledger.Record // the write as it was reserved, where this reserved it; read after kept
	last   ledger.Record // the write as it left it, where it began it; read after done
	err    error         // why it stopped, when it failed; read after done
}

// failed reports whether the flight came to nothing. One that was fenced did
// not: another worker carries the write on.
func (f *flight) failed() bool {
	return f.err != nil && !errors.Is(f.err, ledger.ErrFenced)
}

// keep says that the write is in the ledger. Only whoever began the flight
// calls it.
func (f *flight) keep() {
	select {
	case <-f.kept:
	default:
		close(f.kept)
	}
}

// board joins the flight of a write, or begins one; kept says that the write is
// in the ledger already. The caller that begins it must end it with land.
func (e *Engine) board(id ledger.ID, digest string, kept bool) (f *flight, began bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, false, ErrClosed
	}
	if f, ok := e.flights[id]; ok {
		return f, false, nil
	}
	f = &flight{digest: digest, kept: make(chan struct{}), done: make(chan struct{})}
	if kept {
		f.keep()
	}
	e.flights[id] = f
	e.wg.Add(1)
	return f, true, nil
}

func (e *Engine) land(id ledger.ID, f *flight, err error) {
	e.mu.Lock()
	delete(e.flights, id)
	e.mu.Unlock()
	f.err = err
	close(f.done)
	f.keep()
	e.wg.Done()
}

// guarded works on one write. What panics in a connector or a hook must not
// take the process, and all other writes with it; this one is continued from
// the ledger when its lease has ended.
func guarded(id ledger.ID, work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{ID: id, Known: KnownNothing, Err: fmt.Errorf("the work on it panicked: %.*v", maxReason, p)}
		}
	}()
	return work()
}
