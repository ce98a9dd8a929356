package engine

// The texts of outcomes and of a reviewer's choices. People and models read them who know nothing of
// the engine: TestWordsOfOutcomes lists words that are not among them.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// waitingWords describe it to callers. They contain no text of a destination or an operator.
var waitingWords = map[Waiting]string{
	WaitsLogin:       "until the destination accepts our login again",
	WaitsBreaker:     "because sends to the destination fail; one is tried from time to time",
	WaitsRate:        "because the destination takes no more sends now",
	WaitsBusy:        "because too many calls of the destination are under way",
	WaitsStopped:     "because an operator stopped sends",
	WaitsDestination: "because the destination could not be reached or throttled the send; it is tried again",
	WaitsRecovery:    "because the process that may have sent it has ended; the destination is read first",
}

// words describe an outcome to a reader and to a model. quotes reports that text has the reason of
// the record, which may contain text of a destination or another actor.
func words(s ledger.Status, r ledger.Record) (text, model string, quotes bool) {
	what, why := subject(r), r.Reason
	switch s {
	case ledger.Verified:
		model = "Done and verified. Do not call again for this operation."
		changed := changedSince(r)
		if changed {
			model = "Done and verified; the record was changed since. Do not call again for this operation."
		}
		switch {
		case r.Sends == 0:
			return fmt.Sprintf("The %s was as requested already; nothing was sent. %s.", what, upper(why)), model, true
		case foundSo(r):
			return fmt.Sprintf("The %s was as requested already; no send was taken up. %s.", what, upper(why)), model, true
		case changed:
			return fmt.Sprintf("The %s was read back and was as requested. A later read found it changed: %s.", what, why), model, true
		}
		return fmt.Sprintf("The %s was read back and is as requested.", what), model, false
	case ledger.NotApplied:
		return fmt.Sprintf("The %s was not written: %s.", what, why),
			"Not done, and known not to be. If it is still wanted and the reason has gone, make a new call.", true
	case ledger.Compensated:
		return fmt.Sprintf("The %s was undone, and that was verified.", what),
			"Undone and verified. Do not assume that the operation took effect.", false
	case ledger.Accepted:
		return fmt.Sprintf("A reviewer accepted the %s as it is: %s.", what, why),
			"A reviewer accepted it as it is. Do not call again for this operation.", true
	case ledger.Abandoned:
		return fmt.Sprintf("A reviewer gave up on the %s; whether it was written stays unknown: %s.", what, why),
			"A reviewer gave it up. Do not call again for this operation unless you are instructed to.", true
	case ledger.StatusReview:
		return fmt.Sprintf("A reviewer must decide about the %s: %s.", what, why),
			fmt.Sprintf("Unclear, and waiting for a reviewer (id %s). Do not call again and do not try another way.", r.ID), true
	case ledger.StatusHeld:
		return fmt.Sprintf("The %s waits for %s; nothing was sent.", what, awaited(r)),
			fmt.Sprintf("Waiting for %s (id %s). Do not call again; ask for its outcome later.", awaited(r), r.ID), false
	case ledger.Denied:
		return fmt.Sprintf("The %s was denied; nothing was sent: %s.", what, why), "A reviewer denied it. Do not call again.", true
	case ledger.Expired:
		return fmt.Sprintf("The approval of the %s expired; nothing was sent: %s.", what, why),
			"Not done: no reviewer approved it in time, and nothing was sent. If it is still wanted, make a new call.", true
	case ledger.StatusDelegated:
		return fmt.Sprintf("The %s is left to step %q of workflow %q, which has not reported it as done.", what, r.Step, r.Workflow),
			fmt.Sprintf("Begun by step %q of workflow %q, which has not reported it as done. Do not do it again.", r.Step, r.Workflow), false
	case ledger.Reported:
		if r.Delegated {
			return fmt.Sprintf("The %s was made by step %q of workflow %q, as its caller reported; not verified.", what, r.Step, r.Workflow),
				fmt.Sprintf("Done by step %q of workflow %q, as it says. Do not do it again.", r.Step, r.Workflow), false
		}
		return fmt.Sprintf("The destination accepted the %s; it cannot be read there, so it is not verified.", what),
			"Sent, and the destination accepted it. Unverified: it cannot be read there. Do not call again for this operation.", false
	case ledger.Unverified:
		return fmt.Sprintf("The destination accepted the %s; it is verified later.", what),
			fmt.Sprintf("Sent, and not verified yet (id %s). Do not call again; where it matters that it took effect, ask for its outcome later.", r.ID), false
	}
	if r.QueuedBehind != "" {
		return fmt.Sprintf("The %s is recorded and waits for write %s of the same record, which comes first; nothing was sent.", what, r.QueuedBehind),
			fmt.Sprintf("Waiting (id %s): write %s of the same record comes first. Do not call again; ask for its outcome later.", r.ID, r.QueuedBehind), false
	}
	if until := waitingWords[waiting(r)]; until != "" {
		return fmt.Sprintf("The %s is recorded and waits %s.", what, until),
			fmt.Sprintf("Recorded (id %s); it waits %s, and is carried out without a further call. Do not call again with other words; ask for its outcome later.", r.ID, until), false
	}
	return fmt.Sprintf("The %s is recorded and under way: it is %s.", what, phaseWords[r.State]),
		fmt.Sprintf("Under way (id %s). Do not call again with other words; ask for its outcome later.", r.ID), false
}

// phaseWords describe what is done about a write in progress.
var phaseWords = map[ledger.State]string{
	ledger.Queued:       "about to be sent",
	ledger.Sending:      "being sent",
	ledger.Checking:     "being verified",
	ledger.Compensating: "being undone",
}

// changedSince reports whether the last read of a verified write differed from the intent, and
// it was decided to revoke nothing.
func changedSince(r ledger.Record) bool {
	switch verify.ParseVerdict(r.Verdict) {
	case verify.Mismatched, verify.Collateral, verify.Stale, verify.Absent:
		return r.State == ledger.Settled && r.Settlement == ledger.Verified && r.Rule == "recheck"
	}
	return false
}

// foundSo reports whether a record was as wanted before any send was taken up: it is not this write's.
func foundSo(r ledger.Record) bool {
	return r.Sends == r.Unsent && verify.ParseVerdict(r.Verdict) == verify.Vacuous
}

// subject describes what was requested. Less may be known of a delegated write.
func subject(r ledger.Record) string {
	if r.Destination == "" {
		return fmt.Sprintf("operation %q of tool %q", r.IdempotencyKey, r.Tool)
	}
	return fmt.Sprintf("%s at %q", r.Kind, r.Destination)
}

// awaited describes what a held write waits for, and until when.
func awaited(r ledger.Record) string {
	what := "a reviewer's approval"
	switch n := missing(r); {
	case len(r.Agreed) > 0:
		what = fmt.Sprintf("%d more of %d approvals", n, r.Need)
	case n > 1:
		what = fmt.Sprintf("the approval of %d different reviewers", n)
	}
	switch {
	case r.Overdue:
		what += ", which is overdue"
	case !r.Due.IsZero():
		what += " until " + r.Due.UTC().Format(time.RFC3339)
	}
	return what
}

func upper(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:n]) + s[n:]
}

// describe describes what a decision would do to the write.
func (v *chooser) describe(c *Choice) {
	what := subject(v.rec)
	switch c.Word {
	case WordApprove:
		c.Effect, c.Danger = v.approval(), v.approvalDanger()
	case WordDeny:
		c.Effect = fmt.Sprintf("Nothing is sent, and the caller is notified that the %s was denied.", what)
	case WordAccept:
		c.Effect = fmt.Sprintf("The %s counts as done, as it is and on your responsibility: nothing more is sent, undone or read, and the caller is notified that it is done.", what)
		c.Danger = v.endDanger("what differs stays as it is")
	case WordAbandon:
		c.Effect = fmt.Sprintf("The %s is given up: nothing more is sent, undone or read, and the caller is notified that its effect stays unknown.", what)
		c.Danger = v.endDanger("it may be there all the same")
	case WordRetry, WordCompensate:
		v.describeContinuing(c)
	}
}

// approval describes what an approval does.
func (v *chooser) approval() string {
	r := v.rec
	then := "and then read back"
	if v.profile != nil && v.profile.WriteOnly {
		then = "where its effect cannot be read"
	}
	what := fmt.Sprintf("It is sent to %q once (%s), after any earlier write of the same record, %s.", r.Destination, v.key(), then)
	switch more := missing(r) - 1; {
	case v.damaged == nil && policies.Late(v.stored.intent, r.Now):
		return "Nothing is sent: the deadline that the caller gave has passed, and the write ends as not done."
	case more > 0:
		return fmt.Sprintf("Your approval is recorded, and nothing is sent before %d more of %d different reviewers approve. %s", more, r.Need, strings.Replace(what, "It is", "Then it is", 1))
	}
	return what
}

func (v *chooser) approvalDanger() string {
	switch {
	case v.profile == nil:
		return ""
	case slices.Contains(v.profile.Irreversible, v.stored.intent.Write):
		return fmt.Sprintf("a %s cannot be taken back at this destination", v.stored.intent.Write)
	case v.profile.WriteOnly:
		return "its effect cannot be read there, so it can never be verified"
	case v.stored.intent.Write == intent.Delete && v.stored.intent.Reversibility != intent.Compensable:
		return "it deletes, and nothing says that this can be undone"
	}
	return ""
}

// endDanger describes what stays open after a decision that ends the write.
func (v *chooser) endDanger(otherwise string) string {
	switch {
	case v.rec.Sends > v.rec.Unsent && v.rec.Unknown:
		return "whether a send took effect is not known: it may have, or may do so yet, and it is not read again"
	case v.rec.Sends > v.rec.Unsent:
		return otherwise + ", and it is not read again"
	}
	return ""
}

// describeContinuing describes the effect of retry and compensate.
func (v *chooser) describeContinuing(c *Choice) {
	if v.damaged != nil || v.profile == nil || v.rec.Delegated || v.rec.State != ledger.Review {
		c.Effect = "Nothing: " + orElse(c.Why, "it is not for this write") + "."
		return
	}
	k, assumed := v.expected()
	p, first := policies.Foresee(k), "The destination is read once more first. "
	if assumed {
		first = "The destination is read once more first; what follows applies if that read does not show it. "
	}
	if v.profile.WriteOnly {
		first = "The destination cannot be read first. "
	}
	if c.Word == WordCompensate {
		c.Effect, c.Danger = v.undone(first, p)
		c.NoEffect = !assumed && p.Kept != ""
		return
	}
	c.NoEffect = !assumed && !p.Retry.Allowed && !p.Forced.Allowed
	c.Force = !p.Retry.Allowed && p.Forced.Allowed
	c.Danger = p.Danger
	switch {
	case p.Retry.Allowed:
		c.Effect = first + fmt.Sprintf("Then it is sent again, which is safe: %s.", p.Retry.Reason)
		if p.Danger != "" {
			c.Effect = first + fmt.Sprintf("Then it is sent again: %s.", p.Retry.Reason)
		}
	case c.Force:
		c.Effect = first + fmt.Sprintf("Then it is sent again, once, on your word that it is not there; without that nothing is sent: %s.", p.Retry.Reason)
	default:
		c.Effect = first + fmt.Sprintf("Nothing is sent, also on your word, and a reviewer must decide again: %s.", p.Forced.Reason)
	}
}

// undone describes the effect of an undo.
func (v *chooser) undone(first string, p policies.Prospect) (effect, danger string) {
	if p.Kept != "" {
		return first + fmt.Sprintf("It cannot be undone, and a reviewer must decide again: %s.", p.Kept), ""
	}
	effect = first + fmt.Sprintf("Then %s, by a write of its own that is approved, sent and verified like any other.", policies.Restores(v.stored.intent.Write))
	if !slices.Contains(v.profile.Conditional, undoneBy(v.stored.intent.Write)) {
		danger = "a change by another actor between that read and the undo could be lost"
	}
	return effect, danger
}

// undoneBy returns the type of the write that undoes one of another type.
func undoneBy(w intent.WriteType) intent.WriteType {
	switch w {
	case intent.Create:
		return intent.Delete
	case intent.Delete:
		return intent.Create
	}
	return intent.Update
}

// key returns the business key for a sentence.
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
