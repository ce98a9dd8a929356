package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Entry is one timeline entry of a step, for reviewers. Its texts quote callers and rules
// verbatim: escape them for display.
type Entry struct {
	At time.Time
	// By decides: the gate, a reviewer, or the clock.
	By Describer
	// What is the decision, Why its reason, if one was given.
	What, Why string
	// Name is the caller of the gate, or the reviewer who decided. Default "": it was not
	// recorded, or they had no name.
	Name string
	// Rules are the IDs of the rules that the decision is based on. Default none.
	Rules []string
	// Asked is the gate request, Known the facts at that time; "" for entries that are not the
	// gate's.
	Asked, Known string
	// Trace is the W3C trace context of the decision. Default none.
	Trace string
	// Allowed reports whether the gate allowed the step.
	Allowed bool
}

// Describer is the actor that decides about a step.
type Describer string

// The actors.
const (
	TheGate   Describer = "gate"
	AReviewer Describer = "person"
	TheClock  Describer = "clock"
)

// Entries returns the decisions about the step in words, in order, and how many earlier answers
// of the gate are no longer kept.
func (t StepTrace) Entries() (all []Entry, omitted int) {
	for _, one := range t.Decisions {
		all = append(all, one.entry())
	}
	for _, one := range t.Reports {
		all = append(all, one.entry())
	}
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(a.At.Compare(b.At), first(b.By == TheClock)-first(a.By == TheClock)) // a gate that finds the deadline passed answers after that
	})
	return all, max(0, t.Gates-len(t.Decisions))
}

func first(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Status is the step's status: completed, held, allowed, blocked, or not waiting if it was held
// and its workflow has ended.
func (t StepTrace) Status() string {
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

// Last is the gate's last answer in words, false if none is kept.
func (t StepTrace) Last() (Entry, bool) {
	if len(t.Decisions) == 0 {
		return Entry{}, false
	}
	return t.Decisions[len(t.Decisions)-1].entry(), true
}

func (d StepDecision) entry() Entry {
	t := Entry{At: d.At, By: TheGate, What: "The gate answered " + string(d.Decision), Why: d.Reason, Name: d.By, Rules: d.Rules,
		Asked: d.asked(), Known: d.known(), Trace: d.Trace, Allowed: d.Decision == Allow}
	if d.Ruled == "" {
		t.What += " again, without asking the rules"
	}
	switch d.Lease {
	case leaseGranted:
		t.What += ", and granted the lease to the caller"
	case leaseWithheld:
		t.What += ", and did not lend the step"
	}
	return t
}

// asked is the gate request, in words.
func (d StepDecision) asked() string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	digest := d.Asked.Digest
	if len(digest) > maxDigestShown {
		digest = digest[:maxDigestShown] + "…"
	}
	add("tool", d.Asked.Tool)
	add("risk class", d.Asked.Risk)
	add("retry policy", d.Asked.RetryPolicy)
	add("digest", digest)
	return strings.Join(parts, ", ")
}

// known is the facts at that time, in words.
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
		text += "; the rules alone gave " + string(d.Ruled)
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

func (h Report) entry() Entry {
	t := Entry{At: h.At, By: AReviewer, What: "It was " + string(h.Decision), Why: h.Reason, Name: h.By, Trace: h.Trace}
	switch h.Decision {
	case Pending:
		t.By, t.What, t.Name = TheClock, "It is overdue", ""
	case Expired:
		t.By, t.What, t.Name = TheClock, "Its time was over", ""
	}
	return t
}
