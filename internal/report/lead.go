package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// Lead is what the first sentences about a write are made of.
type Lead struct {
	Record ledger.Record
	Events []ledger.Event
	Intent intent.WriteIntent // zero where its caller makes the write, or nothing is left of it
	// Summary is how its kind is named to people.
	Summary connectors.Summary
	// Maker is the write of this ledger that made the record which the last read found, nil where
	// that is this one or is not known.
	Maker *ledger.Record
}

// maxLead is how many characters the first sentences have: a reason has up to [maxText], what a
// destination answered as many, and the rest has less.
const maxLead = 4 * maxText

// Text describes a write in a few short sentences and in business terms: what was wanted, what is
// there, what was sent, and what comes of it. It needs no knowledge of readback. It says nothing
// that the record of the write does not show.
func (l Lead) Text() string {
	var all []string
	for _, s := range []string{l.wanted(), l.found(), l.sent(), l.result()} {
		if s != "" {
			all = append(all, s)
		}
	}
	return Clip(strings.Join(all, " "), maxLead)
}

// open reports whether the write may still have an effect that it does not have yet.
func (l Lead) open() bool { return l.Record.State != ledger.Settled }

func (l Lead) wanted() string {
	r, verb := l.Record, "wanted"
	if l.open() && r.State != ledger.Review {
		verb = "wants"
	}
	switch {
	case r.Delegated:
		return fmt.Sprintf("Step %q of workflow %q makes this write itself, with the tool %s.", Clip(r.Step, maxName), Clip(r.Workflow, maxName), Clip(r.Tool, maxName))
	case l.Intent.Write == "" && r.Tombstone:
		return fmt.Sprintf("What the agent wanted of %s is not kept any more.", Clip(r.Destination, maxName))
	case l.Intent.Write == "":
		return "What the agent wanted cannot be read."
	}
	d := l.Summary.Write(l.Intent)
	what := d.Verb + " " + d.Name + d.Details
	if r.Parent != "" {
		return fmt.Sprintf("Write %s is to be undone: %s.", r.Parent, what)
	}
	return fmt.Sprintf("The agent %s to %s.", verb, what)
}

// LastRead is the last read of a write that succeeded.
type LastRead struct {
	Evidence, Mismatches json.RawMessage
	Verdict              string
	Before               bool // it was made before anything was sent
	Failed               bool // a later one failed
}

// LastReadOf finds it; its Evidence is empty where there is none.
func LastReadOf(r ledger.Record, events []ledger.Event) (last LastRead) {
	for _, e := range slices.Backward(events) {
		switch {
		case e.Kind != ledger.EvRead:
		case len(e.Evidence) == 0:
			last.Failed = true
		case !e.Before && len(r.Evidence) > 0:
			last.Evidence, last.Mismatches, last.Verdict = r.Evidence, r.Mismatches, e.Verdict
			return last
		case e.Before && r.Sends == r.Unsent: // no send was taken up since
			last.Evidence, last.Mismatches, last.Verdict, last.Before = e.Evidence, e.Mismatches, e.Verdict, true
			return last
		}
	}
	if len(r.Evidence) > 0 { // its events are not kept
		return LastRead{Evidence: r.Evidence, Mismatches: r.Mismatches, Verdict: r.Verdict}
	}
	return LastRead{Failed: last.Failed}
}

// found describes what is there, as far as a read has shown it.
func (l Lead) found() string {
	r := l.Record
	if r.Delegated || l.Intent.Write == "" {
		return ""
	}
	last := LastReadOf(r, l.Events)
	seen, _, there := Seen(last.Evidence)
	switch {
	case !there && last.Failed:
		return "The destination could not be read."
	case !there && r.Sends > r.Unsent && l.open():
		return "The destination was not read back yet."
	case !there && r.Sends > r.Unsent && r.Settlement != ledger.Reported:
		return "The destination was not read back."
	case !there:
		return ""
	}
	text := l.records(last, seen)
	if last.Failed {
		return "The latest read failed; the one before it was at " + l.clock(seen.At) + ". Then: " + text
	}
	return text
}

// records describes the records that a read found.
func (l Lead) records(last LastRead, seen connectors.Observation) string {
	w, d := l.Intent, l.Summary.Write(l.Intent)
	// What was seen long ago may be otherwise now.
	is, exists := "is", "exists"
	if !l.open() {
		is, exists = "was", "existed"
	}
	name := upper(d.Name)
	switch n := len(seen.Records); {
	case n == 0 && w.Write == intent.Delete && last.Before, n == 0 && w.Write == intent.Update && last.Before:
		return fmt.Sprintf("%s %s not there.", name, is)
	case n == 0 && w.Write == intent.Delete:
		return fmt.Sprintf("%s %s not there any more.", name, is)
	case n == 0:
		return name + " was not found."
	case n > 1 && w.Write == intent.Delete:
		return fmt.Sprintf("%d such records %s still there.", n, map[bool]string{true: "are", false: "were"}[l.open()])
	case n > 1:
		return fmt.Sprintf("%d such records were found; %s wanted.", n, map[bool]string{true: "1 is", false: fmt.Sprintf("%d are", w.Want())}[w.Want() == 1])
	}
	one := seen.Records[0]
	now := l.Summary.Record(w, one.Fields)
	name, whole, origin := upper(now.Name), upper(now.Name+now.Details), l.origin(last, one)
	switch v := last.Verdict; {
	case w.Write == intent.Delete && !last.Before:
		return fmt.Sprintf("%s %s still there%s.", whole, is, origin)
	case v == verify.Verified.String(), v == verify.Vacuous.String() && w.Write != intent.Create:
		return fmt.Sprintf("%s %s there, as wanted%s.", whole, is, origin)
	case last.Before && w.Write == intent.Create:
		return fmt.Sprintf("%s already %s%s%s.", name, exists, now.Details, origin)
	case v == verify.Stale.String() && !last.Before:
		return fmt.Sprintf("%s %s still as it was before%s.", whole, is, origin)
	case v == verify.Collateral.String():
		return fmt.Sprintf("%s %s there%s, but something that this write does not name has changed%s.", whole, is, origin, fieldsOf(last.Mismatches))
	case v == verify.Mismatched.String() && !last.Before:
		return fmt.Sprintf("%s %s there%s, but not as wanted%s.", whole, is, origin, fieldsOf(last.Mismatches))
	}
	return fmt.Sprintf("%s %s there%s.", whole, is, origin)
}

// origin describes who made a record, where it was not this write.
func (l Lead) origin(last LastRead, r connectors.Record) string {
	if m := l.Maker; m != nil {
		w, err := intent.DecodeStored(m.Intent)
		verb := "written"
		if w.Write == intent.Create {
			verb = "created"
		}
		if err == nil && w.Stamp() == r.Stamp {
			return fmt.Sprintf(", %s at %s by write %s", verb, l.clock(cmp.Or(m.FirstSend, m.Created)), m.ID)
		}
	}
	if hasProblem(last.Mismatches, verify.NotOurs) {
		return ", not made by this write"
	}
	return ""
}

func hasProblem(mismatches json.RawMessage, problem string) bool {
	all, err := verify.Decode(mismatches)
	return err == nil && slices.ContainsFunc(all, func(m verify.Recorded) bool { return m.Problem == problem })
}

// fieldsOf names the first fields of mismatches: " (amount, status)".
func fieldsOf(mismatches json.RawMessage) string {
	all, err := verify.Decode(mismatches)
	var names []string
	for _, m := range all {
		if name := Clip(strings.TrimPrefix(m.Path, "/"), maxName); err == nil && name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n > maxLeadFields:
		return fmt.Sprintf(" (%s and %d more)", strings.Join(names[:maxLeadFields], ", "), n-maxLeadFields)
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// maxLeadFields is how many fields a sentence names.
const maxLeadFields = 3

// sent describes what was sent, and what is known of it.
func (l Lead) sent() string {
	r := l.Record
	// Unsent are those that the destination provably did not accept.
	accepted := r.Sends - r.Unsent
	times := map[int]string{1: "once", 2: "twice"}[accepted]
	if times == "" {
		times = fmt.Sprintf("%d times", accepted)
	}
	switch {
	case r.Delegated:
		return ""
	case r.State == ledger.Sending && r.InHand(r.Now):
		return "It is being sent now."
	case r.Sends == 0:
		return "Nothing was sent."
	case accepted <= 0:
		return "Nothing took effect: " + cmp.Or(lastTries[connectors.Fate(r.LastFate)], "the destination did not take it") + l.refusal()
	case r.State == ledger.Sending:
		return "It may have been sent " + times + ": the process that sent it ended before it knew."
	case accepted == 1 && r.Unknown && !r.Answered && r.Status() == ledger.Verified:
		return "It was sent once, and no response arrived."
	case r.Status() == ledger.Verified, r.Status() == ledger.Compensated:
		return "It was sent " + times + "."
	case r.Unknown:
		return "It was sent " + times + "; whether that took effect is not known from the response."
	case r.Answered:
		return "It was sent " + times + ", and the destination accepted it."
	case connectors.Fate(r.LastFate) == connectors.FateRefused:
		if r.Refusal != nil && r.Refusal.Message != "" {
			return fmt.Sprintf("It was sent %s. The destination answered %q.", times, Clip(r.Refusal.Message, maxText))
		}
		return "It was sent " + times + "." // the reason says how it was refused
	}
	return "It was sent " + times + "; the response is not known."
}

// lastTries describe a send that had no effect.
var lastTries = map[connectors.Fate]string{
	connectors.FateNotSent:   "the destination could not be reached",
	connectors.FateRefused:   "the destination refused it",
	connectors.FateThrottled: "the destination takes no more requests at the moment",
	connectors.FateLogin:     "the destination refused the login",
}

// refusal quotes the destination.
func (l Lead) refusal() string {
	if r := l.Record.Refusal; r != nil && r.Message != "" {
		return fmt.Sprintf(". It answered %q.", Clip(r.Message, maxText))
	}
	return "."
}

// result describes how the write ended, or what it waits for.
func (l Lead) result() string {
	r, why := l.Record, strings.TrimSuffix(Clip(l.Record.Reason, maxText), ".")
	if r.Erased != "" {
		why = ""
	}
	because := func(text string) string {
		if why == "" {
			return text + "."
		}
		return Sentence(text + ": " + why)
	}
	switch r.Status() {
	case ledger.StatusHeld:
		text := "It waits for approval"
		if n := max(r.Need, 1) - len(r.Agreed); n > 1 || len(r.Agreed) > 0 {
			text = fmt.Sprintf("It waits for %d more of %d approvals", n, max(r.Need, 1))
		}
		switch {
		case r.Overdue:
			return text + ", which is overdue."
		case !r.Due.IsZero() && !r.Due.After(r.Now):
			return text + ", whose time is over."
		case !r.Due.IsZero():
			return text + " until " + l.clock(r.Due) + "."
		}
		return text + "."
	case ledger.StatusReview:
		return because("A reviewer must decide")
	case ledger.Verified:
		switch v := verify.ParseVerdict(r.Verdict); {
		case r.Sends == 0, r.Sends == r.Unsent && v == verify.Vacuous:
			return "There was nothing to do."
		case v == verify.Mismatched, v == verify.Collateral, v == verify.Stale, v == verify.Absent:
			return "It was verified earlier, and the record was changed since."
		}
		return "That is verified."
	case ledger.NotApplied:
		return because("It was not done")
	case ledger.Compensated:
		return "It was undone" + by(r.Child) + ", and that was verified."
	case ledger.Accepted:
		return because("A reviewer accepted it as it is")
	case ledger.Abandoned:
		return because("A reviewer gave it up, and whether it took effect stays unknown")
	case ledger.Denied:
		return because("A reviewer denied it")
	case ledger.Expired:
		return "No reviewer approved it in time, so it is not sent."
	case ledger.StatusDelegated:
		return "The step has not reported that it is done."
	case ledger.Reported:
		if r.Delegated {
			return "The step reported that it is done. That was not verified."
		}
		return "The destination cannot be read, so that is not verified."
	case ledger.Unverified:
		return "It is verified later."
	}
	switch {
	case r.State == ledger.Compensating:
		return "It is being undone" + by(r.Child) + "."
	case r.QueuedBehind != "":
		return fmt.Sprintf("Write %s about the same record comes first.", r.QueuedBehind)
	case r.State == ledger.Queued:
		return "It is queued to be sent; no decision is needed."
	}
	return "It continues; no decision is needed."
}

// by names the write that did something, if it is known.
func by(id ledger.ID) string {
	if id == "" {
		return ""
	}
	return fmt.Sprintf(" by write %s", id)
}

// clock is a time of today as its hour, and any other with its day.
func (l Lead) clock(t time.Time) string {
	if t, now := t.UTC(), l.Record.Now.UTC(); t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04") + " UTC"
	}
	return t.UTC().Format("2006-01-02 15:04") + " UTC"
}
