package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
)

// happened is one event as a sentence. n is the number of the send that the
// event is about.
func happened(e ledger.Event, n int) string {
	text := Safe(what(e, n))
	if e.Reason != "" {
		text += ": " + Clip(e.Reason, maxText)
	}
	if refusal := (ledger.Refusal{Code: e.ErrorCode, Message: e.Message, RequestID: e.RequestID}); refusal != (ledger.Refusal{}) {
		text += "; " + Words(refusal)
	}
	return text
}

func what(e ledger.Event, n int) string {
	switch e.Kind {
	case ledger.EvReserved:
		return "reserved" + inQueue(e)
	case ledger.EvFreed:
		return freed(e)
	case ledger.EvHeld, ledger.EvAgreed, ledger.EvOverdue:
		return heldBack(e)
	case ledger.EvDelegated:
		return "released to its caller, who makes it"
	case ledger.EvYielded:
		return "its business operation was released: it blocks no other write"
	case ledger.EvApproved:
		return "approved" + inQueue(e)
	case ledger.EvRead:
		return read(e)
	case ledger.EvAnnounced:
		return announced(e, n)
	case ledger.EvPrepared:
		return fmt.Sprintf("send %d: the destination made what it needs; the call that has the effect follows", n)
	case ledger.EvSent:
		return sent(e, n)
	case ledger.EvRecovered:
		return fmt.Sprintf("send %d, its fate is unknown", n)
	case ledger.EvRestored:
		return fmt.Sprintf("assumed send %d: the history from %s until %s is missing, and it may have been sent then", n,
			e.LostFrom.UTC().Format(time.DateTime), e.LostUntil.UTC().Format(time.DateTime))
	case ledger.EvDeferred:
		return deferred(e)
	case ledger.EvEscalated:
		return "sent to a reviewer"
	case ledger.EvDirected:
		if e.Directed == "" {
			return "taken back from the person"
		}
		return "a reviewer decided " + e.Directed
	case ledger.EvCompensating:
		return fmt.Sprintf("to be undone by %s", e.Child)
	case ledger.EvSettled:
		if e.In > 0 {
			return fmt.Sprintf("settled as %s, to be read back again in %s", e.Settlement, Wait(e.In))
		}
		return fmt.Sprintf("settled as %s", e.Settlement)
	case ledger.EvRechecked:
		return "read back again"
	case ledger.EvLate:
		return "late result"
	}
	return string(e.Kind)
}

// heldBack describes what happens to a write that waits for approval.
func heldBack(e ledger.Event) string {
	switch {
	case e.Kind == ledger.EvAgreed:
		return "approved, and others must approve too"
	case e.Kind == ledger.EvOverdue:
		return "overdue"
	case e.Need > 1:
		return fmt.Sprintf("held; nothing is sent before %d different people approve", e.Need)
	}
	return "held; nothing is sent before a reviewer approves"
}

// inQueue describes what must be done first.
func inQueue(e ledger.Event) string {
	if e.QueuedBehind == "" {
		return ""
	}
	return fmt.Sprintf(", to be sent after %s about the same record", e.QueuedBehind)
}

func freed(e ledger.Event) string {
	if e.QueuedBehind == "" {
		return fmt.Sprintf("free to be sent, %s about the same record is done", e.By)
	}
	return fmt.Sprintf("moved up in the queue%s", inQueue(e))
}

func deferred(e ledger.Event) string {
	switch {
	case e.Unverified:
		return "left unverified on purpose, to be read back in a batch within " + Wait(e.In)
	case e.In <= 0:
		return "put back, due at once"
	}
	return "put back for " + Wait(e.In)
}

func read(e ledger.Event) string {
	text := "read"
	if e.Before {
		text = "read before the write"
	}
	if e.Count > 1 {
		text += fmt.Sprintf(" %d times", e.Count)
	}
	if e.Before && e.Verdict == "indeterminate" {
		return text // nothing blocks the write
	}
	return text + ", " + e.Verdict
}

func announced(e ledger.Event, n int) string {
	text := fmt.Sprintf("send %d announced", n)
	var how []string
	if e.Conditional {
		how = append(how, "on condition that nothing has changed")
	}
	if e.Generation > 0 {
		how = append(how, fmt.Sprintf("under key %d", e.Generation+1))
	}
	if e.Repair {
		how = append(how, "an update of what was not stored")
	}
	if e.NeedsRecheck {
		how = append(how, "which needs a recheck")
	}
	if len(how) == 0 {
		return text
	}
	return text + " (" + strings.Join(how, ", ") + ")"
}

// fates describes the fate of a send.
var fates = map[connectors.Fate]string{
	connectors.FateUnknown:   "its fate is unknown",
	connectors.FateAnswered:  "the destination answered with success",
	connectors.FateNotSent:   "nothing was sent",
	connectors.FateRefused:   "the destination refused",
	connectors.FateThrottled: "the destination throttled",
	connectors.FateLogin:     "the destination refused the login; nothing was applied",
}

func sent(e ledger.Event, n int) string {
	fate, ok := fates[connectors.Fate(e.Fate)]
	if !ok {
		fate = e.Fate
	}
	text := fmt.Sprintf("send %d", n)
	if !saysFate(e.Reason) {
		text += ", " + fate
		if e.Code != "" {
			text += " (" + Clip(e.Code, cell) + ")"
		}
	}
	if e.Conflict {
		text += ", something is there already or has changed"
	}
	if e.RetryAfter > 0 {
		text += ", asked to wait " + Wait(e.RetryAfter)
	}
	if e.Ref != "" {
		text += ", record " + Clip(e.Ref, maxValue)
	}
	if e.Replayed {
		text += ", a replay of an earlier answer as it says"
	}
	return text
}

// saysFate reports whether the reason begins with the fate, as the errors of
// package connectors do.
func saysFate(reason string) bool {
	return strings.HasPrefix(reason, "not applied") || strings.HasPrefix(reason, "unknown whether applied")
}
