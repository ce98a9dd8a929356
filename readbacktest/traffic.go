package readbacktest

import (
	"sync"
	"time"
)

// traffic counts requests in flight. The zero value is quiet.
type traffic struct {
	mu    sync.Mutex
	n     int
	quiet chan struct{} // closed when nothing is in flight; nil: no goroutine waits
}

func (t *traffic) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
}

func (t *traffic) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.quiet != nil {
		close(t.quiet)
		t.quiet = nil
	}
}

// wait waits until nothing is in flight, and reports false if that takes longer than grace.
func (t *traffic) wait() bool {
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
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-quiet:
		return true
	case <-timer.C:
		return false
	}
}
