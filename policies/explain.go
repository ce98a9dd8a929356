package policies

import (
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// Guarantee is what can be promised about one write type at a destination, after a send whose
// response was lost and whose effect is not there.
type Guarantee struct {
	Write intent.WriteType `json:"write"`
	// Row is the row of the second-send table that decides.
	Row string `json:"row"`
	// Repeats says whether the engine may send again by itself. After is the earliest time
	// after the send.
	Repeats bool          `json:"repeats"`
	After   time.Duration `json:"after"`
	// MayDouble says that a request which arrives after the horizon could still make a second
	// effect; the needed recheck then finds it.
	MayDouble bool `json:"may_double"`
	// Text is a sentence for an operator.
	Text string `json:"text"`
}

// Explain returns what the profile's declarations guarantee for a write type. It uses
// [SecondSend] itself, on the case that matters: one send of unknown fate, and a read that
// shows the state from before.
func Explain(p connectors.Profile, w intent.WriteType) Guarantee {
	c := Case{Intent: intent.WriteIntent{Write: w}, Profile: p, Sends: 1, Budget: 2, Unknown: true,
		Judgement: verify.Judgement{Verdict: verify.Stale, Unused: slices.Contains(p.ShowsUnused, w)}}
	if w == intent.Create {
		c.Verdict = verify.Absent
	}
	if p.WriteOnly {
		c.Judgement = verify.Judgement{}
	}
	permit := SecondSend(c)
	after := time.Duration(0)
	if !permit.Allowed && !p.WriteOnly {
		c.Conclusive, after = conclusiveAfter(p)
		c.AsOf, _ = p.Horizon.Declared()
		permit = SecondSend(c)
	}
	g := Guarantee{Write: w, Row: permit.Row, Repeats: permit.Allowed, MayDouble: permit.Row == RowAbsence, Text: promise(permit, p, w, after)}
	if g.Repeats {
		g.After = after
	}
	return g
}

// conclusiveAfter returns whether a read can be conclusive at all, and how long after a send
// one can show everything that may arrive.
func conclusiveAfter(p connectors.Profile) (conclusive bool, after time.Duration) {
	horizon, _ := p.Horizon.Declared()
	for _, path := range p.Reads {
		if path.Strength == connectors.Strong && path.By != "ref" {
			return true, horizon
		}
	}
	settle, declared := p.Settle.Declared()
	return declared, horizon + settle
}

// promise returns the sentence for a permit.
func promise(permit Permit, p connectors.Profile, w intent.WriteType, after time.Duration) string {
	switch permit.Row {
	case RowNativeKey:
		return fmt.Sprintf("a lost answer costs nothing: the %s is sent again under the same key for %s, and the destination makes one effect of all", w, p.NativeWindow[w])
	case RowUnique:
		return fmt.Sprintf("a lost answer costs nothing: a repeated %s meets the one record of its key", w)
	case RowConditional:
		return fmt.Sprintf("a repeated %s is sent only on the condition that the record is as it was before the first one", w)
	case RowAbsence:
		if p.WriteOnly {
			return fmt.Sprintf("an answered %s is reported and never verified, as nothing can be read there; after a lost answer a reviewer decides, and nothing is sent again by itself: %s", w, permit.Reason)
		}
		unused := ""
		if slices.Contains(p.ShowsUnused, w) {
			unused = ", and what was prepared for it is still unused"
		}
		return fmt.Sprintf("after a lost answer the effect of the %s is searched for, and it is sent again if it is still missing after %s%s; a request delayed for longer could still duplicate it, which a later read would show", w, after, unused)
	}
	return fmt.Sprintf("after a lost answer the effect of the %s is searched for; where it is missing a reviewer decides, and nothing is sent again by itself: %s", w, permit.Reason)
}
