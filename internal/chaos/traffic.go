package chaos

import (
	"sync"
	"time"
)

// Grace is how long a request, or a killed loop, may continue: longer than a call of a destination,
// which some loops wait for.
const Grace = time.Minute

// Traffic counts requests in flight. The zero value is quiet.
type Traffic struct {
	mu    sync.Mutex
	n     int
	quiet chan struct{} // closed when nothing is in flight; nil: no goroutine waits
}

// Begin counts one more.
func (t *Traffic) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
}

// End counts one less.
func (t *Traffic) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.quiet != nil {
		close(t.quiet)
		t.quiet = nil
	}
}

// Wait waits until nothing is in flight, and reports false if that takes longer than [Grace].
func (t *Traffic) Wait() bool {
	t.mu.Lock()
	if t.n == 0 {
		t.mu.Unlock()
		return true
	}
	if t.quiet == nil {
		t.quiet = make(chan struct{})
	}
	quiet := t.quiet
	t.mu.Unlock()
	timer := time.NewTimer(Grace)
	defer timer.Stop()
	select {
	case <-quiet:
		return true
	case <-timer.C:
		return false
	}
}
