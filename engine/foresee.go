package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// tell says what a word would do to the write.
func (v *chooser) tell(c *Choice) {
	what := subject(v.rec)
	switch c.Word {
	case WordApprove:
		c.Effect, c.Danger = v.letGo(), v.approvalDanger()
	case WordDeny:
		c.Effect = fmt.Sprintf("The %s ends as denied: nothing was sent, and nothing will be.", what)
	case WordAccept:
		c.Effect = fmt.Sprintf("The %s ends as accepted, as it is, on your responsibility: nothing more is sent, undone or looked at, and whoever asked is told that it is done.", what)
		c.Danger = v.endDanger("what differs stays as it is")
	case WordAbandon:
		c.Effect = fmt.Sprintf("The %s is given up: nothing more is sent, undone or looked at, and whoever asked is told that its effect stays unknown.", what)
		c.Danger = v.endDanger("it may be there all the same")
	case WordRetry, WordCompensate:
		v.tellGoingOn(c)
	}
}

// letGo is what an approval does.
func (v *chooser) letGo() string {
	r := v.rec
	what := fmt.Sprintf("One %s is sent to %q, as declared (%s), and read back", orElse(string(v.stored.intent.Write), "write"), r.Destination, v.key())
	if v.profile != nil && v.profile.Blind {
		what = fmt.Sprintf("One %s is sent to %q, as declared (%s); nobody can look there what became of it", orElse(string(v.stored.intent.Write), "write"), r.Destination, v.key())
	}
	switch more := missing(r) - 1; {
	case v.damaged == nil && policies.Late(v.stored.intent, r.Now):
		return "Nothing is sent any more: the deadline that the intent names has passed, and the write ends as not applied."
	case more > 0:
		return fmt.Sprintf("Your approval is kept, and nothing is sent before %d more of %d different people approve. Then: %s.", more, r.Need, lower(what))
	}
	return what + ". Where an earlier write of the same record is open, it waits its turn."
}

func (v *chooser) approvalDanger() string {
	switch {
	case v.profile == nil:
		return ""
	case slices.Contains(v.profile.Irreversible, v.stored.intent.Write):
		return fmt.Sprintf("a %s cannot be taken back at this destination", v.stored.intent.Write)
	case v.profile.Blind:
		return "what becomes of it cannot be read there, so that it can never be verified"
	case v.stored.intent.Write == intent.Delete && v.stored.intent.Reversibility != intent.Compensable:
		return "it deletes, and does not say that it can be undone"
	}
	return ""
}

// endDanger is what is left open by a word that ends the write.
func (v *chooser) endDanger(otherwise string) string {
	switch {
	case v.rec.Sends > v.rec.Unsent && v.rec.Unknown:
		return "the fate of a send is unknown: it may have landed, or may land yet, and nobody looks again"
	case v.rec.Sends > v.rec.Unsent:
		return otherwise + ", and nobody looks again"
	}
	return ""
}

// tellGoingOn is what retry and compensate come to.
func (v *chooser) tellGoingOn(c *Choice) {
	if v.damaged != nil || v.profile == nil || v.rec.Entrusted || v.rec.State != ledger.Review {
		c.Effect = "Nothing: " + orElse(c.Why, "it is not for this write") + "."
		return
	}
	k, assumed := v.foreseen()
	p, first := policies.Foresee(k), "It is looked at once more first. "
	if assumed {
		first = "It is looked at once more first; what follows holds where that shows nothing of it. "
	}
	if v.profile.Blind {
		first = "Nobody can look at the destination first. "
	}
	if c.Word == WordCompensate {
		c.Effect, c.Danger = v.undone(first, p)
		return
	}
	c.Force = !p.Retry.Allowed && p.Forced.Allowed
	c.Danger = p.Danger
	switch {
	case p.Retry.Allowed:
		c.Effect = first + fmt.Sprintf("Then it is sent again, which is harmless: %s.", p.Retry.Reason)
		if p.Danger != "" {
			c.Effect = first + fmt.Sprintf("Then it is sent again: %s.", p.Retry.Reason)
		}
	case c.Force:
		c.Effect = first + fmt.Sprintf("Nothing is sent by itself, and it comes back to a person: %s. With force it is sent again, once, on your word that it is not there.", p.Retry.Reason)
	default:
		c.Effect = first + fmt.Sprintf("Nothing is sent, also with force, and it comes back to a person: %s.", p.Forced.Reason)
	}
}

// undone is what an undoing comes to.
func (v *chooser) undone(first string, p policies.Prospect) (effect, danger string) {
	if p.Kept != "" {
		return first + fmt.Sprintf("It cannot be undone, and comes back to a person: %s.", p.Kept), ""
	}
	effect = first + fmt.Sprintf("Then %s, by a write of its own that is gated, sent, read back and recorded like any other.", policies.Restores(v.stored.intent.Write))
	if !slices.Contains(v.profile.Conditional, undoneBy(v.stored.intent.Write)) {
		danger = "what somebody else changes between that look and the undoing could be lost with it"
	}
	return effect, danger
}

// undoneBy is the type of the write that undoes one of another type.
func undoneBy(w intent.WriteType) intent.WriteType {
	switch w {
	case intent.Create:
		return intent.Delete
	case intent.Delete:
		return intent.Create
	}
	return intent.Update
}

// foreseen is the case that a decision would meet if the look that is made first
// found what the last one found. Where that is not kept, or there was none, it is
// taken to show nothing of the write.
func (v *chooser) foreseen() (k policies.Case, assumed bool) {
	r, p := v.rec, *v.profile
	k = caseOf(r, v.stored.intent, p, r.Now, &clock{})
	k.Budget, k.Invertible = budget(v.budget, p), slices.Contains(p.Undo, v.stored.intent.Write)
	seen, kept := v.lastSeen()
	if !kept {
		assumed = true
		seen = connectors.Observation{Strength: strongest(p)}
		if v.stored.before != nil {
			seen.Records = v.stored.before.Records
		}
	}
	if p.Blind {
		return k, false // no look is made: nothing is judged
	}
	k.Judgement = verify.Judge(verify.Case{Intent: v.stored.intent, Profile: p, Stamp: v.stored.intent.Stamp(),
		Before: v.stored.before, Seen: seen, Since: k.SinceSend})
	return k, assumed
}

// lastSeen is what the last look found; before anything was sent, the pre-state.
func (v *chooser) lastSeen() (seen connectors.Observation, kept bool) {
	text := v.rec.Evidence
	if len(text) == 0 && v.rec.Sends == 0 {
		text = v.rec.Before
	}
	if len(text) == 0 || tooLarge(text) {
		return seen, false
	}
	if s := v.stored.seals; s != nil {
		kept = openInto(s, text, &seen) == nil
	} else {
		kept = decodeExact(redact.Shown(text), &seen) == nil
	}
	return seen, kept
}

// strongest is how strong a read of the destination can be that needs nothing but
// the stamp or the business key.
func strongest(p connectors.Profile) connectors.Strength {
	for _, path := range p.Reads {
		if path.Strength == connectors.Strong && path.By != "ref" {
			return connectors.Strong
		}
	}
	return connectors.Weak
}

// key is the business key for a sentence.
func (v *chooser) key() string {
	var key any = map[string]any(v.stored.intent.Key)
	if s := v.stored.seals; s != nil {
		sealed, err := s.SealValue("", key)
		if err != nil {
			return "its business key cannot be shown"
		}
		key = sealed
	}
	text, err := json.Marshal(key)
	if text = redact.Shown(text); err != nil || len(text) > maxKeyShown {
		return "its business key is too long to be shown here"
	}
	return string(text)
}

func lower(s string) string {
	if s == "" {
		return s
	}
	return string(s[0]|0x20) + s[1:]
}
