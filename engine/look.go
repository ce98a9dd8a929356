package engine

import (
	"encoding/json"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// Effect says whether what an intent declares is at its destination.
type Effect string

// The effects. The zero value is unknown.
const (
	EffectUnknown Effect = ""
	EffectPresent Effect = "present"
	EffectAbsent  Effect = "absent" // conclusively: it will not appear later either
)

// LookCase is what is known about a write that its caller makes itself.
type LookCase struct {
	// Began is the earliest time at which it can have been sent, Ended the latest
	// at which it can have been given up. Zero: it was not begun, and the look is
	// for what is there before.
	Began, Ended time.Time
	// Before is what a look before it found, as [Looked.Seen].
	Before json.RawMessage
}

// Looked is what a look at a destination found.
type Looked struct {
	Effect     Effect
	Verdict    verify.Verdict
	Reason     string
	Mismatches json.RawMessage
	Ref, URL   string
	// Seen is the observation, to be given to a later look as what was there
	// before. Nil when it could not be read or is too large to be kept.
	Seen json.RawMessage
	// Write is the write of this ledger that is about to have, or has, the
	// effect, where there is one: then the ledger answered and not a read.
	Write ledger.ID
	At    time.Time
	// After is when another look can say more. Zero: never, or now.
	After time.Time
}
