package readbacktest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors/connectortest"
)

// Vice is one way in which a network or a destination misbehaves. The names are
// those of the suite that connectors pass.
type Vice = connectortest.Vice

// The vices.
const (
	// NoVice is a request that nothing happens to.
	NoVice Vice = ""

	LostAnswer     = connectortest.LostAnswer     // the target did it, and the connection dies before the answer comes
	DroppedBefore  = connectortest.DroppedBefore  // the connection dies, and the target never hears of it
	LateCommit     = connectortest.LateCommit     // no answer comes, and the request lands after the client gave up (writes)
	PhantomSuccess = connectortest.PhantomSuccess // answered with 2xx, and the target never hears of it (writes)
	BadGateway     = connectortest.BadGateway     // the target did it, and 502 comes back
	Throttled      = connectortest.Throttled      // 429 with Retry-After of a second, and the target never hears of it
	LaggingRead    = connectortest.LaggingRead    // answered with what the target would have said a while ago (reads)

	Duplicate   Vice = "duplicate"   // the target gets it twice, the client the first answer (writes)
	CutBody     Vice = "cut-body"    // the target did it, and the answer breaks off in the middle of its body
	Unavailable Vice = "unavailable" // 503, and the target never hears of it

	// ThrottledAfter is a destination that lies: it did it, and says 429. No
	// client can survive that but by looking, so that it is in no list.
	ThrottledAfter Vice = "throttled-after"
)

// Vices lists what happens to writes and to reads, without lies.
func Vices() []Vice { return append(WriteVices(), LaggingRead) }

// WriteVices lists what happens to writes, without lies.
func WriteVices() []Vice {
	return []Vice{LostAnswer, DroppedBefore, LateCommit, PhantomSuccess, Duplicate, CutBody, BadGateway, Unavailable, Throttled}
}

var (
	onlyWrites = []Vice{LateCommit, PhantomSuccess, Duplicate, ThrottledAfter}
	onlyReads  = []Vice{LaggingRead}
)

// can reports whether a vice can befall a write, or a read.
func can(v Vice, write bool) bool {
	return write && !slices.Contains(onlyReads, v) || !write && !slices.Contains(onlyWrites, v)
}

// Fault is one line of a script: "the 3rd write loses its answer" is
// {Vice: LostAnswer, Nth: 3}. A request meets the first fault that it fits.
type Fault struct {
	// Vice is which. Required.
	Vice Vice
	// Nth is which of the requests that the fault concerns, 1 the first. Default
	// 0: each of them.
	Nth int
	// Reads says that reads are concerned, and not writes. LaggingRead concerns
	// them in any case. Default false.
	Reads bool
	// Match confines the fault to requests for which it returns true; it gets
	// the call as it arrived. Default all.
	Match func(Call) bool
	// After is a number of requests. For LateCommit: how many further ones come
	// before it lands, default 2, or fewer where 10 s have passed since the client
	// gave up; negative: it lands only with [Log.Release]. For LaggingRead: how
	// many the answer is behind, default 3.
	After int
	// Delay takes the place of After where it is set: for LateCommit how long
	// after its arrival it lands (before the next request that comes then), for
	// LaggingRead how old the answer is.
	Delay time.Duration
}

// concerns reports whether the fault is about a call at all.
func (f Fault) concerns(c Call) bool {
	return c.Write == !f.reads() && (f.Match == nil || f.Match(c))
}

func (f Fault) reads() bool { return f.Reads || slices.Contains(onlyReads, f.Vice) }

func (f Fault) behind() int {
	if f.After <= 0 {
		return defaultBehind
	}
	return f.After
}

// String is the fault as a failure names it.
func (f Fault) String() string {
	kind := "write"
	if f.reads() {
		kind = "read"
	}
	if f.Nth == 0 {
		return fmt.Sprintf("%s on each %s", f.Vice, kind)
	}
	return fmt.Sprintf("%s on %s %d", f.Vice, kind, f.Nth)
}

// check fails a test whose script says what cannot be.
func (f Fault) check(tb testing.TB) {
	tb.Helper()
	switch {
	case !slices.Contains(append(Vices(), ThrottledAfter), f.Vice):
		tb.Fatalf("readbacktest: a fault has the vice %q; want one of %q", f.Vice, append(Vices(), ThrottledAfter))
	case f.Nth < 0:
		tb.Fatalf("readbacktest: %s: Nth is %d; want 1 for the first, or 0 for each", f.Vice, f.Nth)
	case f.Delay < 0:
		tb.Fatalf("readbacktest: %s: Delay is %v; want none or more", f.Vice, f.Delay)
	case !can(f.Vice, !f.reads()):
		tb.Fatalf("readbacktest: %s happens to writes only; leave Reads out", f.Vice)
	}
}
