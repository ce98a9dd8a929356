package policies

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Mode says when an answered write is read back.
type Mode string

// The modes. The zero value is the careful one.
const (
	Always Mode = ""       // every write, at once
	Sample Mode = "sample" // a part at once, the rest in batches
	Batch  Mode = "batch"  // all in batches
)

// Verification says when the answered writes of a destination are read back. A write that is
// not read at once is unverified until a batch has read it. A send that was not answered with
// success is always read back at once.
type Verification struct {
	// Destination, Kind and Risk select the writes; empty means any.
	Destination string
	Kind        string
	Risk        intent.Risk
	Mode        Mode
	// Part is, for Sample, the share of all writes to read at once, from 0 to 1. The structural
	// key decides, so that a repeat decides the same.
	Part float64
	// Within is how soon the others are read. Default one hour.
	Within time.Duration
}

// ReadLater reports whether the read of an answered send of this write may be postponed, and
// for how long at most: the first matching rule decides. It is pure, and the same for every
// repeat of one logical write.
//
// Some writes are always read at once, whatever the rules say: those that are irreversible,
// that needed approval, that undo others, and that are to be sent again or undone automatically
// where the record differs: a difference an hour later may be another actor's intention.
func ReadLater(rules []Verification, w intent.WriteIntent, p connectors.Profile) (within time.Duration, later bool) {
	mended := w.OnMismatch != "" && w.OnMismatch != intent.MismatchEscalate
	if mended || w.Risk == intent.RiskApprove || w.Compensates != "" || slices.Contains(p.Irreversible, w.Write) {
		return 0, false
	}
	for _, v := range rules {
		if !v.fits(w) {
			continue
		}
		switch v.Mode {
		case Batch:
			later = true
		case Sample:
			later = !drawn(w.StructuralKey(), v.Part)
		}
		if within = v.Within; within <= 0 {
			within = defaultWithin
		}
		return within, later
	}
	return 0, false
}

func (v Verification) fits(w intent.WriteIntent) bool {
	matches := func(rule, has string) bool { return rule == "" || rule == has }
	return matches(v.Destination, w.Destination) && matches(v.Kind, w.Kind) &&
		matches(string(v.Risk), cmp.Or(string(w.Risk), string(intent.RiskAuto)))
}

// drawn reports whether a structural key is in the share that is read at once. Keys are
// digests, so their first digits are as good as random.
func drawn(structuralKey string, part float64) bool {
	const digits = 13 // 52 bits: what a float64 holds exactly
	n, err := strconv.ParseUint(structuralKey[:min(digits, len(structuralKey))], 16, 64)
	return err != nil || float64(n)/(1<<(4*digits)) < part
}
