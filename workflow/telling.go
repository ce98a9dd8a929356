package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Telling is one thing that was decided about a step, told to a person. Its texts
// hold what callers and rules said as they said it: whoever shows them makes them fit.
type Telling struct {
	At time.Time
	// By decides: the gate, a person, or the clock.
	By Teller
	// What was decided, and Why, if that was said.
	What, Why string
	// Name is who asked the gate, or the person who decided. Default nobody: it was not
	// kept, or they had no name.
	Name string
	// Rules are the ids of the rules that it goes back to. Default none.
	Rules []string
	// Asked is what was asked of the gate, Known what was known then; "" for what the
	// gate did not decide.
	Asked, Known string
	// Trace is the W3C trace context that it was decided in. Default none.
	Trace string
	// Allowed says that the gate let the step go.
	Allowed bool
}

// Teller is who decides about a step.
type Teller string

// The tellers.
const (
	TheGate  Teller = "gate"
	APerson  Teller = "person"
	TheClock Teller = "clock"
)

// Told is what was decided about the step in words, in order, and how many answers of
// the gate before them are not kept any more.
func (t StepTrace) Told() (all []Telling, untold int) {
	for _, one := range t.Decisions {
		all = append(all, one.telling())
	}
	for _, one := range t.Heard {
		all = append(all, one.telling())
	}
	slices.SortStableFunc(all, func(a, b Telling) int {
		return cmp.Or(a.At.Compare(b.At), first(b.By == TheClock)-first(a.By == TheClock)) // a gate that finds the time over answers behind that
	})
	return all, max(0, t.Gates-len(t.Decisions))
}

func first(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Standing is how the step stands, in a word or two: completed, held, allowed,
// blocked, or not waiting where it was held and its workflow has ended.
func (t StepTrace) Standing() string {
	switch {
	case t.CompletedAt != nil:
		return "completed"
	case t.Waits:
		return "held"
	case t.Decision == Allow:
		return "allowed"
	case t.Decision == Block:
		return "blocked"
	}
	return "not waiting"
}

// Last is the last answer of the gate in words, false where none is kept.
func (t StepTrace) Last() (Telling, bool) {
	if len(t.Decisions) == 0 {
		return Telling{}, false
	}
	return t.Decisions[len(t.Decisions)-1].telling(), true
}

func (d StepDecision) telling() Telling {
	t := Telling{At: d.At, By: TheGate, What: "The gate said " + string(d.Decision), Why: d.Reason, Name: d.By, Rules: d.Rules,
		Asked: d.asked(), Known: d.known(), Trace: d.Trace, Allowed: d.Decision == Allow}
	if d.Ruled == "" {
		t.What += " again, without asking the rules"
	}
	switch d.Lease {
	case LeaseGranted:
		t.What += ", and lent the step to whoever asked"
	case LeaseWithheld:
		t.What += ", and did not lend the step"
	}
	return t
}

// asked is what was asked of the gate, in words.
func (d StepDecision) asked() string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	digest := d.Asked.Digest
	if len(digest) > maxDigestTold {
		digest = digest[:maxDigestTold] + "…"
	}
	add("tool", d.Asked.Tool)
	add("risk class", d.Asked.Risk)
	add("retry policy", d.Asked.RetryPolicy)
	add("digest", digest)
	return strings.Join(parts, ", ")
}

// known is what was known then, in words.
func (d StepDecision) known() string {
	k := d.Known
	text := "it was asked for the first time"
	if k.Gates > 1 {
		text = fmt.Sprintf("it was asked for %d times by then, first %s before", k.Gates, k.Since.Round(time.Second))
	}
	switch k.Prior {
	case PriorCompleted:
		text += ", was reported as completed"
	case PriorNotCompleted:
		text += ", was not reported as completed"
	}
	if k.Gates > 1 && k.Last != "" {
		text += ", had been answered " + string(k.Last)
	}
	if d.Ruled != "" && d.Ruled != d.Decision {
		text += "; the rules alone said " + string(d.Ruled)
	}
	if v := k.Verification; v != nil {
		text += fmt.Sprintf("; at the destination its effect was %s, verdict %s", v.Effect, v.Verdict)
		if v.WriteID != "" {
			text += ", by write " + v.WriteID
		}
		if v.Reason != "" {
			text += ": " + v.Reason
		}
	}
	return text
}

func (h Heard) telling() Telling {
	t := Telling{At: h.At, By: APerson, What: "It was " + string(h.Decision), Why: h.Reason, Name: h.By, Trace: h.Trace}
	switch h.Decision {
	case Pending:
		t.By, t.What, t.Name = TheClock, "It is overdue", ""
	case Expired:
		t.By, t.What, t.Name = TheClock, "Its time was over", ""
	}
	return t
}
