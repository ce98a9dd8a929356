package imap

import (
	"sync"

	"github.com/readback-go/readback/readbacktest/fault"
)

// Switches are the faults of a test server and the commands they delay.
type Switches struct {
	*fault.Schedule
	held chan struct{}

	mu      sync.Mutex
	stalled []func()
}

// NewSwitches returns switches without faults for a server that has these forms.
func NewSwitches(forms fault.Forms) *Switches {
	return &Switches{Schedule: fault.NewSchedule(forms, 0), held: make(chan struct{}, 100)}
}

// SetFault lets the next so many commands that can meet a fault meet it, [Always]
// all of them, whatever was set of that kind before. It panics where the server has
// no such fault.
func (s *Switches) SetFault(k fault.Kind, times int) {
	s.Clear(k)
	if k == fault.None {
		return
	}
	if err := s.Set(fault.Fault{Kind: k, Times: times}); err != nil {
		panic(err) // the test names a kind that this server lacks
	}
}

// Shows reports whether a fault happens now, and counts it: it is for the server.
func (s *Switches) Shows(k fault.Kind) bool {
	_, met := s.First(fault.Request{Write: !k.OfReads()}, k)
	return met
}

// Held receives a value each time a command is left without an answer.
func (s *Switches) Held() <-chan struct{} { return s.held }

// NoteHeld records that a command is left without an answer: the server calls it.
func (s *Switches) NoteHeld() {
	select {
	case s.held <- struct{}{}:
	default: // no reader of Held
	}
}

// Stall holds back what do does until Release: it is for the server.
func (s *Switches) Stall(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = append(s.stalled, do)
}

// Release executes the stalled commands, waits for that, and returns their number. Their clients
// must have given up.
func (s *Switches) Release() int {
	s.mu.Lock()
	stalled := s.stalled
	s.stalled = nil
	s.mu.Unlock()
	for _, do := range stalled {
		do()
	}
	return len(stalled)
}
