package imaptest

import "sync"

// Switches are the vices of a test server: how often each is still to show, and
// what they hold back. V is the server's own list of vices.
type Switches[V ~string] struct {
	held chan struct{}

	mu      sync.Mutex
	left    map[V]int
	stalled []func()
}

// NewSwitches returns switches that are all off.
func NewSwitches[V ~string]() *Switches[V] {
	return &Switches[V]{held: make(chan struct{}, 100), left: map[V]int{}}
}

// SetVice switches a vice on for the next so many commands that it can meet;
// [Always] for all of them, [Off] for none.
func (s *Switches[V]) SetVice(v V, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[v] = times
}

// Left is how often a vice is still to show: a test that wants it to have shown
// looks for 0.
func (s *Switches[V]) Left(v V) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left[v]
}

// Shows reports whether the vice shows now, and counts it: it is for the server.
func (s *Switches[V]) Shows(v V) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left[v] > 0 {
		s.left[v]--
		return true
	}
	return s.left[v] < 0
}

// Held receives a value each time a command is left without an answer.
func (s *Switches[V]) Held() <-chan struct{} { return s.held }

// NoteHeld says that a command is left without an answer: it is for the server.
func (s *Switches[V]) NoteHeld() {
	select {
	case s.held <- struct{}{}:
	default: // nobody counts
	}
}

// Stall holds back what do does until Release: it is for the server.
func (s *Switches[V]) Stall(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = append(s.stalled, do)
}

// Release has the commands done that are stalled, waits for that, and returns
// how many they were. Their clients must have given up.
func (s *Switches[V]) Release() int {
	s.mu.Lock()
	stalled := s.stalled
	s.stalled = nil
	s.mu.Unlock()
	for _, do := range stalled {
		do()
	}
	return len(stalled)
}
