package policies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Prospect is what a person's word would come to, where the look that is made
// first finds what the last one found.
type Prospect struct {
	// Retry is what the table says of another send, Forced of one for which the
	// person vouches.
	Retry, Forced Permit
	// Danger is why the send that would be made could make a second effect. ""
	// where none would be made, or where it is known to be harmless.
	Danger string
	// Kept is why the write would not be undone, "" where it would be.
	Kept string
}

// Foresee says what a person's word would come to. It asks the same rules that
// [Decide] holds the word against, so that nobody is told anything else than
// what then happens.
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

// doubling says why a send that is permitted could make a second effect.
func doubling(c Case, p Permit) string {
	switch p.Row {
	case RowAbsence:
		return "a request that was on its way for longer than the horizon could still land beside it; a later look would find that"
	case RowPerson:
		return "a second send could duplicate, because " + strings.Join(because(c), " and ")
	}
	return ""
}

// because lists what leaves a second send open to doubling the first.
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
		all = append(all, "the destination said yes to an earlier send")
	}
	if slices.Contains(c.Profile.Irreversible, c.Intent.Write) {
		all = append(all, fmt.Sprintf("a %s cannot be taken back", c.Intent.Write))
	}
	return all
}

// Restores says in words what undoing a write does.
func Restores(w intent.WriteType) string {
	switch w {
	case intent.Create:
		return "the record that it made is deleted"
	case intent.Delete:
		return "the record is made again as it was"
	}
	return "the record is brought back to what it was before"
}
