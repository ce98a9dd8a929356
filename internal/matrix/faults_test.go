package matrix

import (
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// faultCase is one fault of the destination during a write, and the expected result.
type faultCase struct {
	name string
	// faults are what the destination does.
	faults []orders.Fault
	// spare lets the read of the state before pass, where the plan has one.
	spare bool
	// options and intent change the destination and the intent. Default: as
	// they are.
	options func(*orders.Options)
	intent  func(*intent.WriteIntent)
	// can is in which cells the fault is possible. Default all.
	can func(cell) bool
	// want is the expected result.
	want func(powers) verdict
	// proven means that the intent requests something that may only be done to an effect of its
	// own.
	proven bool
	// once means that one send is enough if nothing fails.
	once bool
	// liar marks a destination with a false declaration: what it promised not to do cannot be
	// undone, only found by a later read.
	liar bool
}

// verdict is a possible result of a cell, and why it needs a reviewer.
type verdict struct {
	may []ledger.Status
	why string // of a review
}

const (
	verified    = ledger.Verified
	notApplied  = ledger.NotApplied
	compensated = ledger.Compensated
	review      = ledger.StatusReview
)

// The reasons for a review.
const (
	whyFate       = "the write may have been applied; nothing shows that it was, or that a repeat is harmless"
	whyLag        = "reads may lag, and without a settle time they prove little about the earlier state"
	whyDiffers    = "the record is there and differs from what was declared"
	whyBased      = "the record differs, and the pre-state was read with a lag: an undo could take back another actor's change"
	whyDouble     = "the destination has more records than declared"
	whyGone       = "the destination took the effect back"
	whyUnread     = "it was sent, and the destination cannot be read"
	whyLate       = "the destination is wrong about itself: a send arrived after its horizon"
	whyStale      = "the destination is wrong about itself: its reads lag by more than its settle time"
	whyLostAnswer = "a process died with the response of a send that may have been applied"
	whyWhose      = "the record differs, and a process died with the response that would prove whose effect it is"
)

func must(s ledger.Status) func(powers) verdict {
	return func(powers) verdict { return verdict{may: []ledger.Status{s}} }
}

func aReviewer(why string) func(powers) verdict {
	return func(powers) verdict { return verdict{[]ledger.Status{review}, why} }
}

// there: the effect is at the destination, exactly as declared.
func there(p powers) verdict {
	if p.shows {
		return must(verified)(p)
	}
	return aReviewer(whyLag)(p)
}

// missing: a send of unknown fate failed; a repeat works.
func missing(p powers) verdict {
	if p.repeatable() {
		return there(p)
	}
	return aReviewer(whyFate)(p)
}

// phantom: an answered send had no effect; a repeat works, but not under the key that was
// answered.
func phantom(p powers) verdict {
	if p.conclusive || p.addressed && !p.native {
		return there(p)
	}
	return aReviewer(whyFate)(p)
}

// never: no send ever has an effect, and none is refused.
func never(p powers) verdict {
	if p.conclusive {
		return must(notApplied)(p)
	}
	return aReviewer(whyFate)(p)
}

// turnedDown: every send is refused. A doubt remains only if a process dies with that answer.
func turnedDown(p powers) verdict {
	if p.conclusive {
		return must(notApplied)(p)
	}
	return verdict{[]ledger.Status{notApplied, review}, whyLostAnswer}
}

// passing: the first send is deferred, later ones work.
func passing(p powers) verdict {
	v := missing(p)
	if v.may[0] == review && p.shows {
		return verdict{[]ledger.Status{verified, review}, whyLostAnswer}
	}
	return v
}

// refusedOnce: the first send is refused for good; a process that dies with that answer makes
// another one, which works.
func refusedOnce(p powers) verdict {
	v := missing(p)
	return verdict{append([]ledger.Status{notApplied}, v.may...), v.why}
}

// undone: the record differs, and the intent requests an undo in that case.
func undone(p powers) verdict {
	switch {
	case !p.based:
		return aReviewer(whyBased)(p)
	case p.conclusive:
		return must(compensated)(p)
	case !p.recent:
		return aReviewer(whyLag)(p)
	}
	return verdict{[]ledger.Status{compensated, review}, whyLostAnswer}
}

// mended: the record differs, and the intent requests another send in that case.
func mended(p powers) verdict {
	if p.overwritten {
		return must(verified)(p)
	}
	return aReviewer(whyDiffers)(p)
}

// takenBack: the effect was taken back before any read could show it.
func takenBack(p powers) verdict {
	if p.versions && !p.creates {
		return aReviewer(whyDiffers)(p)
	}
	return phantom(p)
}

// unreadable: no read ever works. If the plan reads first, nothing is sent.
func unreadable(p powers) verdict {
	if p.readsFirst {
		return must(notApplied)(p)
	}
	return aReviewer(whyUnread)(p)
}

// unreadableAfter: the first read works and no other. A process that dies
// before it announced the send leaves the next one without that read.
func unreadableAfter(p powers) verdict {
	if p.readsFirst {
		return verdict{[]ledger.Status{review, notApplied}, whyUnread}
	}
	return aReviewer(whyUnread)(p)
}

// detected: the destination broke its word. Nothing can be promised but that this is
// detected.
func detected(why string) func(powers) verdict {
	return func(powers) verdict { return verdict{[]ledger.Status{verified, review}, why} }
}

func fold(w *intent.WriteIntent) {
	w.Compare = map[string]intent.Comparison{"/currency": {{Name: intent.RuleFold}}}
}

func undo(w *intent.WriteIntent) {
	w.Reversibility, w.OnMismatch = intent.Compensable, intent.MismatchCompensate
}

func again(w *intent.WriteIntent) { w.OnMismatch = intent.MismatchRetry }

// soon gives a write a deadline. Without one a write that cannot be delivered
// is given up after a day.
func soon(w *intent.WriteIntent) { w.Deadline = began.Add(5 * time.Minute) }

func rechecked(o *orders.Options) { o.Recheck = connectors.Within(time.Hour) }

func settles(o *orders.Options) { o.Settle = connectors.Within(orders.DefaultLag) }

func one(f orders.Fault) []orders.Fault {
	f.Times = 1
	return []orders.Fault{f}
}

func ever(v orders.FaultKind) []orders.Fault { return []orders.Fault{{Kind: v}} }

var dropped = one(orders.Fault{Kind: orders.DroppedField, Field: "currency", Ops: []orders.Op{orders.OpCreate, orders.OpUpdate, orders.OpUpsert}})

// faultCases are the rows, in the order of the document.
var faultCases = []faultCase{
	{name: "none", want: there, once: true},
	{name: "answer lost after the commit", faults: one(orders.Fault{Kind: orders.LostAnswer}), want: there, once: true},
	{name: "every answer lost after the commit", faults: ever(orders.LostAnswer), want: there, once: true},
	{name: "502 after the commit", faults: one(orders.Fault{Kind: orders.BadGateway}), want: there, once: true},
	{name: "dropped before the commit", faults: one(orders.Fault{Kind: orders.DroppedBefore}), want: missing},
	{name: "every send dropped before the commit", faults: ever(orders.DroppedBefore), want: never},
	{name: "late commit, 2 s after the client's time-out", faults: one(orders.Fault{Kind: orders.LateCommit}), want: there},
	{name: "phantom success", faults: one(orders.Fault{Kind: orders.PhantomSuccess}), want: phantom},
	{name: "nothing but phantom success", faults: ever(orders.PhantomSuccess), want: never},
	{name: "silently dropped field", faults: dropped, can: hasFields, want: aReviewer(whyDiffers), once: true},
	{name: "silently dropped field; the intent asks to send again", faults: dropped, intent: again, can: hasFields, want: mended, proven: true},
	{name: "silently dropped field; the intent asks to undo", faults: dropped, intent: undo, can: canUndo, want: undone, proven: true},
	{name: "normalised field", faults: one(orders.Fault{Kind: orders.NormalisedField, Field: "currency", How: "lower"}), can: hasFields, want: aReviewer(whyDiffers), once: true},
	{name: "normalised field; the intent compares without case", faults: one(orders.Fault{Kind: orders.NormalisedField, Field: "currency", How: "lower"}), intent: fold, can: hasFields, want: there, once: true},
	{name: "lagging reads, 2 s, as declared", faults: ever(orders.LaggingRead), options: settles, want: there, once: true},
	{name: "unreadable three times", faults: []orders.Fault{{Kind: orders.UnreadableRead, Times: 3}}, want: there, once: true},
	{name: "reads hang twice", faults: []orders.Fault{{Kind: orders.UnreadableRead, How: "hang", Times: 2}}, want: there, once: true},
	{name: "answer lost, then unreadable three times", faults: []orders.Fault{{Kind: orders.LostAnswer, Times: 1}, {Kind: orders.UnreadableRead, Times: 3}}, spare: true, want: there, once: true},
	{name: "never readable", faults: []orders.Fault{{Kind: orders.UnreadableRead, How: "403"}}, intent: soon, want: unreadable},
	{name: "never readable after the send", faults: []orders.Fault{{Kind: orders.UnreadableRead, How: "page"}}, spare: true, intent: soon, want: unreadableAfter, once: true},
	{name: "duplicate made by another actor", faults: one(orders.Fault{Kind: orders.DuplicateByOthers}), can: canDouble, want: aReviewer(whyDouble), once: true},
	{name: "duplicate without our stamp", faults: one(orders.Fault{Kind: orders.DuplicateByOthers, How: "nostamp"}), can: canDouble, want: aReviewer(whyDouble), once: true},
	{name: "duplicate 10 min later; a recheck is declared", faults: one(orders.Fault{Kind: orders.DuplicateByOthers, Delay: 10 * time.Minute}), options: rechecked, can: canDouble, want: aReviewer(whyDouble), once: true},
	{name: "taken back at once", faults: one(orders.Fault{Kind: orders.Rollback}), want: takenBack},
	{name: "taken back 10 min later; a recheck is declared", faults: one(orders.Fault{Kind: orders.Rollback, Delay: 10 * time.Minute}), options: rechecked, want: aReviewer(whyGone), once: true},
	{name: "unreachable five times", faults: []orders.Fault{{Kind: orders.Unreachable, Times: 5}}, want: passing},
	{name: "never reachable", faults: ever(orders.Unreachable), intent: soon, want: turnedDown},
	{name: "throttled once", faults: one(orders.Fault{Kind: orders.Throttled}), want: passing},
	{name: "throttled for ever", faults: ever(orders.Throttled), intent: soon, want: turnedDown},
	{name: "refused once", faults: one(orders.Fault{Kind: orders.Refused}), want: refusedOnce, once: true},
	{name: "refused", faults: ever(orders.Refused), want: turnedDown, once: true},
	{name: "late commit, 2 min after the client's time-out", faults: one(orders.Fault{Kind: orders.LateCommit, Delay: 2 * time.Minute}), want: detected(whyLate), liar: true},
	{name: "reads lag by 60 s, and 2 s are declared", faults: []orders.Fault{{Kind: orders.LaggingRead, Delay: time.Minute}}, options: settles, want: detected(whyStale), liar: true},
}
