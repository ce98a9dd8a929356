package saga

import (
	"fmt"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

const (
	// defaultAttempts is how many times a retryable step is tried before review. The engine
	// repeats each attempt itself, so that a step that fails five times does not recover by
	// itself.
	defaultAttempts = 5
	// retryFirst and retryMost bound the pause before the next attempt, counted from the end of
	// the last one.
	retryFirst = time.Second
	retryMost  = 5 * time.Minute
)

// known is the ledger's state of the last write of a step; the zero value if the step was not
// begun, or its write was pruned.
type known struct {
	rec   ledger.Record
	there bool
	lost  bool // history is missing in which it may have been sent
}

// vacuous is the verdict of a write whose expected state was already there.
const vacuous = "vacuous"

// fate is the known state of a step that was begun.
type fate int

// The fates.
const (
	fateUnknown    fate = iota // never known: a reviewer gave it up, or it was pruned
	fateOpen                   // continues by itself
	fateUnverified             // read back later, on purpose
	fateHeld                   // waits for approval
	fateReview                 // a reviewer decides
	fateDone                   // observed at the destination
	fateAccepted               // a reviewer accepted it
	fateNothing                // no effect: not applied, denied, expired, compensated
)

func (k known) fate() fate {
	if !k.there {
		return fateUnknown
	}
	switch k.rec.State {
	case ledger.Held:
		return fateHeld
	case ledger.Review:
		return fateReview
	case ledger.Queued, ledger.Sending, ledger.Compensating:
		return fateOpen
	case ledger.Checking:
		if k.rec.Unverified {
			return fateUnverified
		}
		return fateOpen
	case ledger.Settled:
	default: // delegated: not by us
		return fateUnknown
	}
	switch k.rec.Settlement {
	case ledger.Verified:
		return fateDone
	case ledger.Accepted:
		return fateAccepted
	case ledger.NotApplied, ledger.Denied, ledger.Expired, ledger.Compensated:
		return fateNothing
	}
	return fateUnknown
}

// before reports whether a verified write found its expected state already there: no send was
// taken up, and there is nothing to undo.
func (k known) before() bool {
	return k.rec.Sends == k.rec.Unsent && k.rec.Verdict == vacuous
}

// unsent reports whether the ledger has no send of an open write.
func unsent(r ledger.Record) bool {
	return r.State == ledger.Held || r.State == ledger.Queued && r.Sends == 0
}

// withdrawable reports whether nothing of a write was sent and no worker has it, so that it can
// be ended in the ledger alone.
func (k known) withdrawable(now time.Time) bool {
	return k.there && !k.lost && unsent(k.rec) && !k.rec.InHand(now)
}

// doing is the kind of a move.
type doing int

// The moves. The zero value does nothing.
const (
	rest     doing = iota // wait: for a reviewer, or until a time
	hold                  // start the grace of a step
	begin                 // reserve the write of a step
	carry                 // work on the write of a step
	goBack                // decide that the saga goes back
	withdraw              // end a write of which nothing was sent
	undo                  // undo a step
	endDone               // all is done
	endBack               // all is undone
)

// move is the next move of a saga.
type move struct {
	do     doing
	step   int
	state  State
	reason string
	// at is when a resting saga is due again. Zero: when something has changed, or with poll,
	// after a while.
	at   time.Time
	poll bool
	// anew, with begin, reports that a caller resumed a step that had been given up.
	anew bool
}

// seen applies the ledger's state: the last statuses, and whether the point of no return is
// passed. That is never reset.
func (b body) seen(k []known) body {
	b = b.copy()
	for i := range b.Steps {
		s := &b.Steps[i]
		if !s.begun() {
			continue
		}
		if k[i].there {
			s.Status = engine.OutcomeOf(k[i].rec).Status
		}
		done := k[i].fate() == fateDone || k[i].fate() == fateAccepted
		if s.Class == intent.Retryable || s.Class == intent.Pivot && done {
			b.Past = b.Past || b.Back == nil
		}
	}
	return b
}

// next is the next move of a saga. All decisions about sagas are made here, from its document and
// the records of its writes. Urged reports that a caller resumed a saga that had given up.
func next(b body, k []known, now time.Time, urged bool) move {
	switch {
	case b.State == Done:
		return move{do: endDone, state: Done, reason: b.Reason}
	case b.State == Undone:
		return move{do: endBack, state: Undone, reason: b.Reason}
	case b.State == Closed:
		return move{do: rest, state: Closed, reason: b.Reason}
	case b.Back != nil:
		return back(b, k, now)
	}
	return forth(b, k, now, urged)
}

// forth begins the next step, when all before it are done.
func forth(b body, k []known, now time.Time, urged bool) move {
	for i, s := range b.Steps {
		if !s.begun() {
			return b.first(i, now, urged)
		}
		switch f := k[i].fate(); f {
		case fateDone, fateAccepted:
		case fateNothing:
			return b.failed(i, k, now, urged)
		default:
			return b.waits(i, k[i], now)
		}
	}
	return move{do: endDone, state: Done, reason: "every step is done, and was seen at its destination"}
}

// first begins a step, or holds it back for its grace.
func (b body) first(i int, now time.Time, urged bool) move {
	s := b.Steps[i]
	switch {
	case b.Stopped != nil:
		return move{do: rest, step: i, state: Review, reason: fmt.Sprintf("cancelled by %s before step %q was begun: %s; what was done before stays", b.Stopped.By, s.Name, b.Stopped.Reason)}
	case s.Blocked != nil && !urged:
		return move{do: rest, step: i, state: Review, reason: s.Blocked.why(s.Name)}
	case s.Grace > 0 && s.NotBefore.IsZero():
		return move{do: hold, step: i, state: Running, reason: heldBack(s)}
	case now.Before(s.NotBefore):
		return move{do: rest, step: i, state: Running, at: s.NotBefore, reason: heldBack(s)}
	}
	return move{do: begin, step: i, state: Running, reason: fmt.Sprintf("step %q is under way", s.Name)}
}

func heldBack(s bodyStep) string {
	return fmt.Sprintf("step %q is held back for %s, in which the saga can be cancelled", s.Name, s.Grace)
}

// waits is the move for a step that is not settled, or whose result will never be known.
func (b body) waits(i int, k known, now time.Time) move {
	name, state := b.Steps[i].Name, Running
	if b.Back != nil {
		state = Undoing
	}
	switch k.fate() {
	case fateOpen:
		return move{do: carry, step: i, state: state, reason: fmt.Sprintf("step %q is under way", name)}
	case fateUnverified:
		if !now.Before(k.rec.Due) {
			return move{do: carry, step: i, state: state, reason: fmt.Sprintf("step %q is read back", name)}
		}
		return move{do: rest, step: i, state: state, at: k.rec.Due, reason: fmt.Sprintf("step %q was sent, and is read back later", name)}
	case fateHeld:
		waits := move{do: rest, step: i, state: state, poll: true, reason: fmt.Sprintf("step %q waits for approval (write %s)", name, k.rec.ID)}
		if !k.rec.Due.IsZero() && !now.Before(k.rec.Due) {
			waits.do = carry // its deadline has passed, which the engine records
		}
		return waits
	case fateReview:
		return move{do: rest, step: i, state: Review, poll: true, reason: fmt.Sprintf("a reviewer must decide about step %q (write %s): %s", name, k.rec.ID, k.rec.Reason)}
	}
	return move{do: rest, step: i, state: Review, reason: fmt.Sprintf("whether step %q was done is not known and will not be (write %s); the saga goes neither on nor back by itself", name, b.Steps[i].write())}
}

// failed decides about a step that had no effect: back, or, after the point of no return, once
// more. It does not go back while the pivot may yet be done: a pivot that is already begun is
// withdrawn with the decision, or its end is waited for.
func (b body) failed(i int, k []known, now time.Time, urged bool) move {
	s, rec, last := b.Steps[i], k[i].rec, b.last()
	what := fmt.Sprintf("step %q is %s: %s", s.Name, rec.Phase(), rec.Reason)
	switch {
	case !b.Past && b.Steps[last].Class == intent.Pivot && k[last].fate() != fateNothing && !k[last].withdrawable(now):
		return b.waits(last, k[last], now)
	case !b.Past && s.Class != intent.Retryable:
		return move{do: goBack, step: i, state: Undoing, reason: what}
	case s.Class != intent.Retryable:
		return move{do: rest, step: i, state: Review, reason: what + "; the pivot was done before, so that there is no way back"}
	case len(s.Writes) >= maxCalls:
		return move{do: rest, step: i, state: Review, reason: fmt.Sprintf("%s; it was tried %d times, and is not tried again", what, len(s.Writes))}
	case s.Blocked != nil && !urged:
		return move{do: rest, step: i, state: Review, reason: s.Blocked.why(s.Name)}
	case urged && (s.Tries >= b.attempts() || rec.Settlement != ledger.NotApplied):
		return move{do: begin, step: i, state: Running, anew: true, reason: fmt.Sprintf("step %q is tried again", s.Name)}
	case rec.Settlement != ledger.NotApplied:
		return move{do: rest, step: i, state: Review, reason: what + "; it is tried again only on request"}
	case s.Tries >= b.attempts():
		return move{do: rest, step: i, state: Review, reason: fmt.Sprintf("%s; it was tried %d times, and is tried again only on request", what, s.Tries)}
	}
	if at := rec.SettledAt.Add(retryPause(s.Tries)); now.Before(at) {
		return move{do: rest, step: i, state: Running, at: at, reason: what + "; it is tried again"}
	}
	return move{do: begin, step: i, state: Running, reason: fmt.Sprintf("step %q is tried again", s.Name)}
}

// attempts is how many times in a row a retryable step is tried.
func (b body) attempts() int {
	if b.Attempts > 0 {
		return b.Attempts
	}
	return defaultAttempts
}

// retryPause is the pause before the next attempt after that many.
func retryPause(tries int) time.Duration {
	pause := retryFirst
	for range tries - 1 {
		pause = min(pause*2, retryMost)
	}
	return pause
}

// back undoes completed steps, the last first. It waits for unsettled ones: no step is undone
// while its effect is unknown. A step that has to stay keeps those that it depends on.
func back(b body, k []known, now time.Time) move {
	var left []string
	stays := map[string]bool{}
	for i := len(b.Steps) - 1; i >= 0; i-- {
		s := b.Steps[i]
		why := ""
		switch f := k[i].fate(); {
		case !s.begun() && k[i].lost:
			why = "the ledger was restored, and whether it was begun before is not known"
		case !s.begun():
			continue
		case f == fateNothing, f == fateDone && k[i].before():
			continue
		case f == fateDone && k[i].rec.Sends == 0:
			why = "it was found as declared before it was sent, and this ledger does not know who made it"
		case f == fateAccepted:
			why = "a reviewer accepted it as it is"
		case f == fateUnknown:
			why = "it is not known whether it was done"
		case k[i].withdrawable(now):
			return move{do: withdraw, step: i, state: Undoing, reason: fmt.Sprintf("step %q is withdrawn, as the saga goes back", s.Name)}
		case f != fateDone:
			return b.waits(i, k[i], now)
		case k[i].rec.Tombstone:
			why = "it is done, and what it wrote is forgotten here"
		case s.Class != intent.Compensable:
			why = fmt.Sprintf("it is done and a %s step is never undone", s.Class)
		case stays[s.Name]:
			why = "what depends on it stays"
		case k[i].rec.Child != "": // the engine begins one undoing of a write, and no other
			why = fmt.Sprintf("its undo (write %s) failed, and it remains", k[i].rec.Child)
		default:
			return move{do: undo, step: i, state: Undoing, reason: fmt.Sprintf("step %q is being undone", s.Name)}
		}
		left = append(left, fmt.Sprintf("step %q stays: %s", s.Name, why))
		for _, name := range s.After {
			stays[name] = true
		}
	}
	if len(left) > 0 {
		return move{do: rest, state: Review, reason: "not all could be undone. " + strings.Join(left, "; ")}
	}
	return move{do: endBack, state: Undone, reason: "every step that was begun is undone or was never applied; the saga went back since " + b.Back.why()}
}
