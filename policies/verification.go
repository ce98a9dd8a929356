package policies

import (
	"time"

	"github.com/readback-go/readback/intent"
)

// Mode says when an answered write is looked at.
type Mode string

// The modes. The zero value is the careful one.
const (
	Always Mode = ""       // every write, at once
	Sample Mode = "sample" // a part at once, the rest in batches
	Batch  Mode = "batch"  // all in batches
)

// Verification says when the answered writes of a destination are looked at.
// What is not looked at at once is unverified until a batch has looked at it;
// a send that was not answered with yes is always looked at at once.
type Verification struct {
	// Destination, Kind and Risk say which writes; empty means any.
	Destination string
	Kind        string
	Risk        intent.Risk
	Mode        Mode
	// Part is, for Sample, how many of all writes are looked at at once, from 0
	// to 1. The structural key decides, so that a repeat decides the same.
	Part float64
	// Within is how soon the others are looked at. Default one hour.
	Within time.Duration
}
