package mcptest

import (
	"slices"
	"time"
)

// Vice is one way in which the server misbehaves, once.
type Vice string

// The vices. Those of connectortest have its names.
const (
	LostAnswer      Vice = "lost-answer"
	DroppedBefore   Vice = "dropped-before"
	BadGateway      Vice = "bad-gateway"
	LateCommit      Vice = "late-commit"
	PhantomSuccess  Vice = "phantom-success"
	DroppedField    Vice = "dropped-field"
	NormalisedField Vice = "normalised-field"
	LaggingRead     Vice = "lagging-read"
	UnreadableRead  Vice = "unreadable-read"
	HangingRead     Vice = "hanging-read"
	Duplicate       Vice = "duplicate-behind-our-back"
	Rollback        Vice = "rollback"
	Unreachable     Vice = "unreachable"
	Refused         Vice = "refused"
	Throttled       Vice = "throttled"
	ProtocolError   Vice = "protocol-error" // write: applies it, answers with an error of the protocol
	AsksBack        Vice = "asks-back"      // write: applies it, answers that it wants further input
)

// Delay is how much later than the answer happens what is late.
const Delay = 50 * time.Millisecond

// Unreadable are the ways in which a read cannot be understood.
func Unreadable() []string {
	return []string{"error", "words", "shape", "keyless", "twice", "image", "cut", "structured twice"}
}

var ofReads = []Vice{LaggingRead, UnreadableRead, HangingRead}

// Arm switches a vice on for the next call that it concerns; how is one of its
// variants, or "".
func (w *World) Arm(v Vice, how string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.vices = append(w.vices, armed{v, how})
}

// Disarm switches all vices off.
func (w *World) Disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.vices = nil
}

// take is the vice that concerns a call, and switches it off.
func (w *World) take(read bool) armed {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, a := range w.vices {
		if slices.Contains(ofReads, a.vice) == read && a.vice != Unreachable {
			w.vices = slices.Delete(w.vices, i, i+1)
			return a
		}
	}
	return armed{}
}

// refuses reports whether the next connection is refused.
func (w *World) refuses() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.vices, func(a armed) bool { return a.vice == Unreachable })
	if i < 0 {
		return false
	}
	w.vices = slices.Delete(w.vices, i, i+1)
	return true
}
