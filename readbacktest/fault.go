package readbacktest

import (
	"testing"

	"github.com/readback-go/readback/internal/chaos"
	"github.com/readback-go/readback/readbacktest/fault"
)

type (
	// Fault is one entry of a script: "the 3rd write loses its answer" is {Kind: LostAnswer, Nth:
	// 3}. A request meets the first fault that matches it.
	//
	// After is, for LateCommit, how many further requests come before it arrives, default 2, or
	// fewer if 10 s have passed since the client gave up; negative: it arrives only with
	// [Log.Release]. For LaggingRead: how many requests the answer is behind, default 3. Delay
	// replaces After if it is set: for LateCommit how long after its request it arrives (before
	// the next request that comes then), for LaggingRead how old the answer is.
	Fault = fault.Fault
	// Kind is one way in which a network or a destination misbehaves.
	Kind = fault.Kind
	// Request is the argument of Fault.Match. Op is [Call].What.
	Request = fault.Request
	// Op is an operation in Fault.Ops.
	Op = fault.Op
)

// Read and Write are for Fault.Ops: all reads, all writes.
const (
	Read  = fault.Read
	Write = fault.Write
)

// The kinds.
const (
	// None is a request without a fault.
	None = fault.None

	LostAnswer     = fault.LostAnswer     // the target applied it, and the connection is cut before the answer arrives
	DroppedBefore  = fault.DroppedBefore  // the connection is cut, and the target never gets the request
	LateCommit     = fault.LateCommit     // no answer comes, and the request arrives after the client gave up (writes)
	PhantomSuccess = fault.PhantomSuccess // answered with 2xx, and the target never gets the request (writes)
	Duplicate      = fault.Duplicate      // the target gets it twice, the client the first answer (writes)
	CutBody        = fault.CutBody        // the target applied it, and the answer is cut in the middle of its body
	BadGateway     = fault.BadGateway     // the target applied it, and 502 comes back
	Unavailable    = fault.Unavailable    // 503, and the target never gets the request
	Throttled      = fault.Throttled      // 429 with Retry-After of a second, and the target never gets the request
	LaggingRead    = fault.LaggingRead    // answered with what the target would have answered a while ago (reads)
	UnreadableRead = fault.UnreadableRead // answered with a failure, Fault.How: a status, or "cut"; 200 is a page that is no record (reads)
	HangingRead    = fault.HangingRead    // no answer comes (reads)
	Refused        = fault.Refused        // 422, and the target never gets the request (writes)
	Unreachable    = fault.Unreachable    // no connection: the dial is refused over [Proxy.Transport], else the connection is cut

	// These need [Options].Field, or a proxy: it changes the request's JSON body, or repeats it.
	DroppedField           = fault.DroppedField           // the target gets the write without the field
	NormalisedField        = fault.NormalisedField        // the target gets the field's text in upper case, or its number plus one
	DuplicateBehindOurBack = fault.DuplicateBehindOurBack // the target gets the write again, Fault.Delay after the answer, default 50 ms

	// ThrottledAfter is a false answer: the target applied it, and answers 429. No client can
	// handle that without a read, so it is in no list.
	ThrottledAfter = fault.ThrottledAfter
)

// Kinds lists the faults of networks that meet writes and reads, without false answers: those for
// Options.Kinds.
func Kinds() []Kind { return append(WriteKinds(), LaggingRead) }

// WriteKinds lists the faults of writes, without false answers.
func WriteKinds() []Kind {
	return []Kind{LostAnswer, DroppedBefore, LateCommit, PhantomSuccess, Duplicate, CutBody, BadGateway, Unavailable, Throttled}
}

// check fails a test with an invalid script.
func check(tb testing.TB, f Fault) {
	tb.Helper()
	if err := chaos.Check(f); err != nil {
		tb.Fatalf("readbacktest: %v", err)
	}
}
