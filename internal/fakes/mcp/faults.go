package mcp

import (
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

// Forms are the faults that the server has. Two forms of a bad gateway are the protocol's own:
// after it applied a write, the server answers with an error of the protocol, or requests further
// input.
var Forms = fault.Forms{
	fault.LostAnswer:             nil,
	fault.DroppedBefore:          nil,
	fault.BadGateway:             {"tool", "protocol", "input"},
	fault.LateCommit:             nil,
	fault.PhantomSuccess:         nil,
	fault.DroppedField:           nil,
	fault.NormalisedField:        {"text", "number"},
	fault.LaggingRead:            nil,
	fault.UnreadableRead:         {"error", "words", "shape", "keyless", "twice", "image", "cut", "structured twice"},
	fault.HangingRead:            nil,
	fault.DuplicateBehindOurBack: nil,
	fault.Rollback:               nil,
	fault.Unreachable:            nil,
	fault.Refused:                nil,
	fault.Throttled:              nil,
}

// Delay is how long after the answer a late effect happens.
const Delay = 50 * time.Millisecond

// met is the fault that a call meets. A call comes over a connection, so that it
// cannot meet one that refuses connections.
func (w *World) met(tool string) fault.Fault {
	f, _ := w.First(fault.Request{Op: fault.Op(tool), Write: tool != Get && tool != Find}, Forms.Except(fault.Unreachable)...)
	return f
}

// refuses reports whether the next connection is refused.
func (w *World) refuses() bool {
	_, refused := w.First(fault.Request{Write: true}, fault.Unreachable)
	return refused
}
