package policies

import (
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// Permit says whether a write may be sent again, and how.
type Permit struct {
	Allowed bool
	// NewKey asks for the next generation of the idempotency key.
	NewKey bool
	// Conditional requires a conditional write.
	Conditional bool
	// Repair requires an update of the values that the destination did not store, in place of
	// the write itself.
	Repair bool
	// NeedsRecheck says that a late arrival of an earlier send could still make a second effect:
	// a recheck is needed.
	NeedsRecheck bool
	// Row names the row of the table that decided; Reason is a sentence.
	Row, Reason string
}

// The rows of the second-send table.
const (
	rowNothingSent = "nothing reached the destination"
	RowNativeKey   = "the destination deduplicates by our key"
	RowUnique      = "the write addresses the record by a unique key"
	RowConditional = "the destination refuses unless the record is as before"
	rowRepair      = "our own record lacks what was not stored"
	RowAbsence     = "absence is conclusive"
	rowReviewer    = "a person vouches for it"
	rowNone        = "no row of the table allows it"
)

// SecondSend is the table of when a write may be sent again. It is the only place that decides
// this. The engine consults it before every send but the first, and no policy can overrule it.
// The rows are in the order in which they are tried.
func SecondSend(c Case) Permit {
	switch {
	case c.Late:
		return refuse("the deadline has passed")
	case c.Conflict:
		return refuse("the last read found a conflict")
	case c.Sends == 0 && c.Directed != "" && !untouched(c) && !c.Profile.WriteOnly:
		return refuse("the last read does not show that nothing is there: " + c.Verdict.String())
	case c.Sends == 0:
		return Permit{Allowed: true, Row: rowNothingSent, Reason: "it was never sent"}
	case c.Sends-c.Unsent >= c.Budget:
		return refuse("the budget of sends is used up")
	case !c.Unknown && !c.Answered && !present(c) && (c.LastConflict || c.Verdict != verify.Mismatched):
		return Permit{Allowed: true, Row: rowNothingSent, Reason: "no send so far took effect"}
	case c.Directed != DirectForce && elsewhere(c):
		return refuse("the ledger was restored, and another write may have done the operation of its idempotency key under a key that no read of this one shows")
	case c.Profile.WriteOnly:
		return writeOnly(c)
	case c.Directed == DirectForce && untouched(c):
		return Permit{Allowed: true, NewKey: replayed(c), NeedsRecheck: true, Row: rowReviewer, Reason: "a reviewer states that it is not there"}
	case gone(c):
		return refuse(whyGone(c))
	case c.Verdict == verify.Mismatched && c.Intent.OnMismatch == intent.MismatchRepair:
		return repair(c)
	case neverRepeated(c):
		return refuse(neverRepeat)
	case !untouched(c) && !ownRecordDiffers(c):
		return refuse("the last read does not show the state from before the send: " + c.Verdict.String())
	case burnt(c):
		return conclusive(c) // a repeat under the same key would only replay the lie
	case native(c):
		return Permit{Allowed: true, Row: RowNativeKey, Reason: "the destination recognises the repeat by its key, and makes one effect of both"}
	case slices.Contains(c.Profile.Unique, c.Intent.Write):
		return Permit{Allowed: true, NeedsRecheck: createsLate(c), Row: RowUnique, Reason: "a repeat meets the same record, and makes no second one"}
	case slices.Contains(c.Profile.Conditional, c.Intent.Write): // and untouched: see above
		return Permit{Allowed: true, Conditional: true, NeedsRecheck: createsLate(c), Row: RowConditional, Reason: "sent only if the record is as it was read before the first send"}
	}
	return conclusive(c)
}

// elsewhere reports whether another write may have done the operation, in missing history, where no
// read for this write shows it.
func elsewhere(c Case) bool {
	return c.OperationUnknown && (c.Profile.WriteOnly || c.Intent.Write == intent.Create && c.Profile.FreshKeys)
}

// createsLate reports whether an earlier send can create the record again: its key is free once
// the record was deleted.
func createsLate(c Case) bool { return c.Unknown && c.Intent.Write == intent.Create }

// writeOnly is the table for a destination that cannot be read: only the key and a reviewer's
// decision permit a send.
func writeOnly(c Case) Permit {
	switch {
	case replayed(c):
		return refuse("the destination accepted it, and it cannot be read back")
	case c.Directed == DirectForce:
		return Permit{Allowed: true, Row: rowReviewer, Reason: "a reviewer states that it did not arrive"}
	case neverRepeated(c):
		return refuse(neverRepeat)
	case native(c):
		return Permit{Allowed: true, Row: RowNativeKey, Reason: "the destination recognises the repeat by its key, and makes one effect of both"}
	case c.Profile.NativeWindow[c.Intent.Write] > 0:
		return refuse("the destination cannot be read, and the window in which it deduplicates by our key may be over")
	}
	return refuse("the destination cannot be read, and it does not deduplicate by our key")
}

// repair is the row for a record that only this write made or changed, and in which every
// difference is a value that was not stored. c.Own must exclude changes by other actors: an
// update would replace them.
func repair(c Case) Permit {
	switch {
	case c.Repaired && c.Last == connectors.FateAnswered:
		return refuse("the destination did not store it when it was repaired either")
	case c.Repaired && c.Last == connectors.FateRefused:
		return refuse("the destination refused the repair")
	case !c.Own:
		return refuse(notProvenOurs)
	case !c.Conclusive:
		return refuse("the last read may be older than the send that is to be repaired")
	case c.Unknown && !settledFate(c):
		return refuse("a send may still land, over what the repair stores")
	case c.Repaired && slices.Contains(c.Profile.Irreversible, intent.Update):
		return refuse("the update is irreversible, and no read shows all that it did")
	}
	return Permit{Allowed: true, NewKey: true, Repair: true, NeedsRecheck: true, Row: rowRepair,
		Reason: "an update stores what the destination did not store in the record that this write alone made"}
}

const neverRepeat = "the write is declared never to be repeated"

// neverRepeated reports whether the declaration forbids a second send that may not be the only one. A
// repair is no second send of the write.
func neverRepeated(c Case) bool { return slices.Contains(c.Profile.NeverRepeat, c.Intent.Write) }

func refuse(why string) Permit { return Permit{Row: rowNone, Reason: why} }

// untouched reports whether the last read showed the state from before the send. A missing
// record that was there before is not that state.
func untouched(c Case) bool {
	return (c.Verdict == verify.Absent || c.Verdict == verify.Stale) && !c.Conflict
}

// gone reports whether an effect of this write has disappeared: it was seen, or a send was
// answered. Another actor may have removed it on purpose, unless the destination is declared to
// do that by itself and was read in time. A recreated record has another id: one that is still
// there was not deleted.
func gone(c Case) bool {
	within, declared := c.Profile.Rollback.Declared()
	if !untouched(c) || declared && max(c.Since, c.SinceByClock) <= within+window(c) {
		return false
	}
	return c.EffectSeen || c.Answered && !(c.Intent.Write == intent.Delete && c.Verdict == verify.Stale)
}

func whyGone(c Case) string {
	switch {
	case c.Named != "" && c.Verdict == verify.Absent:
		return fmt.Sprintf("the destination accepted a send and named record %q, which is not there: it was rolled back, or another actor removed it", c.Named)
	case !c.EffectSeen && c.Verdict == verify.Absent:
		return "the destination accepted a send, and no record is there: it was not stored, was rolled back, or another actor removed it"
	case !c.EffectSeen:
		return "the destination accepted a send, and the record is as before: it was not stored, was rolled back, or another actor set it back"
	}
	return "its effect was seen before and is gone: another actor may have taken it back on purpose"
}

// ownRecordDiffers reports whether the last read showed the one record that a repeat would
// address, with other values that are proven to be our own. Only a repeat that replaces those
// values can fix that.
func ownRecordDiffers(c Case) bool {
	replaces := c.Intent.Write == intent.Update || c.Intent.Write == intent.Upsert
	return c.Verdict == verify.Mismatched && c.Conclusive && c.Own && replaces && slices.Contains(c.Profile.Unique, c.Intent.Write)
}

// burnt reports whether the destination answered success under the present key and then showed
// nothing: it would replay that response.
func burnt(c Case) bool { return replayed(c) && c.Profile.NativeWindow[c.Intent.Write] > 0 }

// replayed reports whether the present key was answered, or is that of a repair, so that only a
// new key causes a real send. A key without a response stays: its send may still be in
// progress, and the shared key is what stops the repeat.
func replayed(c Case) bool { return c.Last == connectors.FateAnswered || c.Repaired }

// native reports whether a repeat under the same key is recognised wherever and whenever it
// arrives. The destination forgets a key when its window has passed since the first send under
// it. The repeat and the sends before it may be in transit for as long as a send and the
// horizon take. Where no horizon is declared, the window alone counts.
func native(c Case) bool { return InWindow(c, sendSlack) }

// InWindow reports whether a send that begins within slack arrives while the destination knows
// the present key.
func InWindow(c Case, slack time.Duration) bool {
	horizon, _ := c.Profile.Horizon.Declared()
	landed := c.SinceKey + slack + c.Profile.SendFor() + horizon
	return c.SinceKey >= 0 && landed < c.Profile.NativeWindow[c.Intent.Write] && landed >= c.SinceKey // a sum can be too large
}

// conclusive is the last row: a read shows the state from before, and it shows everything that
// can still have arrived. A new key follows an answered send only.
func conclusive(c Case) Permit {
	if !Conclusive(c) {
		return refuse("it is not certain that no send took effect: " + missingProof(c))
	}
	return Permit{Allowed: true, NewKey: replayed(c), NeedsRecheck: true, Row: RowAbsence,
		Reason: "a read after the time in which a send can arrive shows the state from before"}
}

// Conclusive reports whether the last read proves that no send was applied and that none will
// be: it shows the state from before, and it shows everything up to a moment past the horizon.
// A read that began before the horizon had passed proves nothing, however long it took. A
// lagging read must begin later by the settle time. The effect of an irreversible write may be
// where no read can see it: no absence proves that it was not applied, unless what was prepared for
// it is still unused.
func Conclusive(c Case) bool {
	return untouched(c) && !gone(c) && settledFate(c) && !hidden(c) && !leavesNothing(c)
}

// leavesNothing reports whether the write may have an effect that no read shows.
func leavesNothing(c Case) bool {
	return slices.Contains(c.Profile.Irreversible, c.Intent.Write) && !c.Unused
}

// hidden reports whether the destination refused the last send because of a record that the
// read does not show: it may be ours, changed by another actor. A destination that knows our
// idempotency key, and has no unique key, only says that an earlier send under that key is in
// progress, which the horizon covers; unless its answer is of unknown fate, since what it names can
// only be ours.
func hidden(c Case) bool {
	keyInUse := c.Profile.NativeWindow[c.Intent.Write] > 0 && !slices.Contains(c.Profile.Unique, c.Intent.Write) && c.Last == connectors.FateRefused
	return c.LastConflict && c.Verdict == verify.Absent && !keyInUse
}

// unshown reports whether the destination refused the last send because of a record that the reads,
// which may lag, do not show for certain yet. It may be of the same send: a proxy that repeats a request
// answers with the refusal of the second.
func unshown(c Case) bool {
	nothing := untouched(c) || c.Verdict == verify.Indeterminate || c.Verdict == verify.Unavailable
	return c.LastConflict && nothing && !c.Conclusive && c.Since < lag(c) && !c.Profile.WriteOnly
}

// settledFate reports whether no send that the last read did not show can still arrive.
func settledFate(c Case) bool { return c.Conclusive && c.Profile.Horizon.Passed(c.AsOf) }

func missingProof(c Case) string {
	_, settle := c.Profile.Settle.Declared()
	_, horizon := c.Profile.Horizon.Declared()
	switch {
	case leavesNothing(c):
		return "the write cannot be taken back (irreversible), and no read shows all that it did"
	case !untouched(c):
		return "the last read does not show the state from before the send"
	case hidden(c):
		return "the destination refused since something is there, and the read does not show it"
	case !c.Conclusive && !settle:
		return "the destination does not declare for how long its reads lag behind (settle)"
	case !c.Conclusive:
		return "reads may still lag behind"
	case !horizon:
		return "the destination does not declare how late a send can still arrive (horizon)"
	}
	return "a send may have arrived after the last read"
}

// knownNotApplied reports whether it is certain that nothing was applied, and why: the only
// basis for calling a write not applied.
func knownNotApplied(c Case) (string, bool) {
	switch {
	case elsewhere(c): // the caller would ask for the operation anew
	case c.Sends == 0:
		return "it was never sent", true
	case !c.Unknown && !c.Answered && !present(c) && !unshown(c):
		return "no send took effect", true
	case madeByAnother(c) && (!c.Unknown && c.Conclusive || settledFate(c)):
		return fmt.Sprintf("write %s made the record under this key, so that this one cannot have taken effect", c.MadeBy), true
	case Conclusive(c) && c.Verdict == verify.Stale:
		return "the record is as it was before the send, and no send can arrive any more", true
	case Conclusive(c):
		return "there is no record, and no send can arrive any more", true
	}
	return "", false
}

// madeByAnother reports whether a record of another write of ours is under the unique key of a
// create. A send of unknown fate can still apply once that record is gone.
func madeByAnother(c Case) bool {
	return c.Conflict && c.MadeBy != "" && c.Intent.Write == intent.Create && slices.Contains(c.Profile.Unique, intent.Create)
}

// present reports whether the last read showed what a refused send should not have made: a
// refusal that the destination itself contradicts proves nothing. A differing record is no
// contradiction: another actor changed or made it, unless our stamp, or a key that only we can
// have made, proves otherwise.
func present(c Case) bool {
	return c.Effect() && (c.Verdict != verify.Mismatched || c.Stamped || c.Profile.FreshKeys)
}
