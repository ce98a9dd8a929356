package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Prospect predicts the effect of a reviewer's decisions if the first read shows what the last
// one showed.
type Prospect struct {
	// Retry is the table's permit for another send, Forced the permit if the reviewer vouches
	// for it.
	Retry, Forced Permit
	// Danger is why the send could make a second effect. It is "" where no send would be made,
	// or where it is known to be harmless.
	Danger string
	// Kept is why the write would not be undone, "" where it would be.
	Kept string
}

// Foresee predicts the effect of a reviewer's decisions. It applies the rules that [Decide]
// applies to them, so that the prediction matches what then happens.
func Foresee(c Case) Prospect {
	with := func(directed string) Case { c.Directed = directed; return c }
	p := Prospect{
		Retry: SecondSend(with(DirectRetry)), Forced: SecondSend(with(DirectForce)),
		Kept: notUndoable(with(DirectCompensate)),
	}
	switch {
	case p.Retry.Allowed:
		p.Danger = doubling(c, p.Retry)
	case p.Forced.Allowed:
		p.Danger = doubling(c, p.Forced)
	}
	return p
}

// doubling describes why a permitted send could make a second effect.
func doubling(c Case, p Permit) string {
	switch p.Row {
	case RowAbsence:
		return "a request that was delayed for unusually long could still arrive and duplicate it; a later read would show that"
	case rowReviewer:
		return "a second send could duplicate, because " + strings.Join(because(c), " and ")
	}
	return ""
}

// because lists the reasons why a second send could double the first.
func because(c Case) []string {
	var all []string
	switch window := c.Profile.NativeWindow[c.Intent.Write]; {
	case window <= 0:
		all = append(all, "the destination does not deduplicate by our key")
	case burnt(c):
		all = append(all, "it would go under another key, since the destination has answered the present one")
	default:
		all = append(all, fmt.Sprintf("the %s for which the destination deduplicates by our key may be over", window))
	}
	switch {
	case c.Unknown:
		all = append(all, "the fate of an earlier send is unknown")
	case c.Last == connectors.FateAnswered, c.Answered:
		all = append(all, "the destination accepted an earlier send")
	}
	if slices.Contains(c.Profile.Irreversible, c.Intent.Write) {
		all = append(all, fmt.Sprintf("a %s cannot be taken back", c.Intent.Write))
	}
	return all
}

// Restores describes what undoing a write does.
func Restores(w intent.WriteType) string {
	switch w {
	case intent.Create:
		return "the record that it made is deleted"
	case intent.Delete:
		return "the record is made again as it was"
	}
	return "the record is brought back to what it was before"
}
