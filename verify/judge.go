package verify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

const (
	// MaxMismatches is the maximum of differences in one judgement: a reviewer reads the first
	// few, and a ledger record must stay small.
	MaxMismatches = 64
	// maxPaths and maxPath bound the fields that the reason of a judgement names, and each path
	// in bytes: the rest is in the list of differences.
	maxPaths = 5
	maxPath  = 80
)

// Case is the input of a judgement: the intent, the destination's profile, and one observation.
type Case struct {
	Intent  intent.WriteIntent
	Profile connectors.Profile
	Stamp   string
	// Receipt is the destination's response to a send of this write; nil when there is none.
	Receipt *connectors.Receipt
	// Before is the pre-state; nil when none was read.
	Before *connectors.Observation
	Seen   connectors.Observation
	// Since is how long after the end of the last send the read began. It is negative when the
	// read began before that.
	Since time.Duration
	// Assumed says that the send is assumed, because history is missing in which it may have been
	// made. Default: it was announced.
	Assumed bool
}

// Judgement is a verdict and why.
type Judgement struct {
	Verdict    Verdict
	Mismatches []Mismatch
	// Reason is one sentence for a reviewer.
	Reason string
	// Conflict says that another actor is in the way, with a record under our key or by having
	// removed the record to change, or that the effect failed (Failed): no repeat helps, and a
	// reviewer decides.
	Conflict bool
	// Ours says, beside Conflict, that a record of ours is there as well.
	Ours bool
	// Failed says that the record is there, but its effect failed. It comes with Conflict and
	// Ours.
	Failed bool
	// Open says, with Indeterminate, that the record is as declared and that the destination has not
	// decided yet whether it takes effect.
	Open bool
	// Unused says that no record is there, and that what was prepared for the write is still there
	// and had no effect: what no read of the effect could show.
	Unused bool
	// Conclusive says that the read cannot be older than the last send: it was strong, or the
	// settle time had fully passed. An inconclusive verdict may still change as replicas catch
	// up.
	Conclusive bool
	// Since is how long after the end of the last send the read began.
	Since time.Duration
	// AsOf says, for a conclusive read, up to how long after the end of the last send it
	// certainly shows everything applied: the begin of a strong read, or the settle time before
	// the begin of a weak one.
	AsOf time.Duration
	// Undone says, with Mismatched, that nothing of the write is left although the record was
	// written to: the same record has its earlier fields; for a delete, the same record is
	// there.
	Undone bool
	// Based says that the pre-state was no older than the read that returned it. A weakly read
	// pre-state can lack what others did just before us.
	Based bool
	// Stamped says that every matching record shows the stamp of this write.
	Stamped bool
	// Own says that every difference from before the write is proven to be its effect: a read
	// cannot identify another actor's value, so every other explanation must be excluded. Only
	// then may it be undone, or replaced, without a reviewer.
	Own bool
	// Login says, with Unavailable, that the destination refused the credentials of the read.
	// That concerns the destination, and ends when an operator renews them.
	Login bool
	// Throttled says, with Unavailable, that the destination takes fewer reads, and ReadAfter for
	// how long it asked not to be read, 0 where it did not say.
	Throttled bool
	ReadAfter time.Duration
	// Record is the one that verified, when there is exactly one.
	Record *connectors.Record
}

// Effect reports whether the read, made after a send, showed an effect that the send can have
// made.
func (j Judgement) Effect() bool {
	switch j.Verdict {
	case Verified, Mismatched, Duplicated, Collateral:
		return !j.Conflict || j.Ours
	}
	return false
}

// Shows reports whether the read, made after a send, showed a possible effect of the send, even
// if an older state looked the same: of Judge's verdicts Indeterminate means that.
func (j Judgement) Shows() bool { return j.Effect() || j.Verdict == Indeterminate }

// Judge returns what an observation after a send proves. It is pure.
func Judge(c Case) Judgement {
	j := judge(c)
	if c.Seen.Failed != "" && len(c.Seen.Records) > 0 && (j.Verdict == Verified || j.Verdict == Indeterminate) {
		j = Judgement{Verdict: Mismatched, Conflict: true, Ours: true, Failed: true, Mismatches: []Mismatch{{Problem: Failed, Got: c.Seen.Failed}},
			Reason: "the record is as requested, and a report says that it failed"}
	}
	if c.Seen.Open != "" && j.Verdict == Verified && len(c.Seen.Records) > 0 {
		j = Judgement{Verdict: Indeterminate, Open: true, Reason: "the record is as requested, and the destination has not decided yet whether it takes effect"}
	}
	j.Since, j.Based = c.Since, based(c)
	j.Stamped = stamps(c) && len(c.Seen.Records) > 0 && allStamped(c.Seen.Records, c.Stamp)
	j.Own = own(c, j)
	j.Unused = c.Seen.Unused && len(c.Seen.Records) == 0
	if j.Conclusive = conclusive(c); j.Conclusive {
		j.AsOf, _ = asOf(c)
	}
	return j
}

// asOf returns the moment, counted from the end of the last send, up to which the read shows
// everything; false when unknown.
func asOf(c Case) (time.Duration, bool) {
	if c.Seen.Strength == connectors.Strong {
		return c.Since, true
	}
	settle, declared := c.Profile.Settle.Declared()
	return c.Since - settle, declared
}

func based(c Case) bool {
	settle, declared := c.Profile.Settle.Declared()
	return c.Before != nil && (c.Before.Strength == connectors.Strong || declared && settle == 0)
}

func conclusive(c Case) bool {
	moment, known := asOf(c)
	return known && moment >= 0
}

func judge(c Case) Judgement {
	c.Seen.Records = slices.DeleteFunc(slices.Clone(c.Seen.Records), func(r connectors.Record) bool { return reused(c, r) })
	found := c.Seen.Records
	switch {
	case c.Intent.Write == intent.Delete:
		return judgeDelete(c)
	case len(found) == 0:
		return judgeAbsent(c)
	}
	ours, others := split(c, found)
	want := c.Intent.Want()
	switch {
	case unknownBefore(c):
		return Judgement{Verdict: Mismatched, Conflict: true, Mismatches: foreign(found),
			Reason: "a record with this key exists, and it is not known whether it did before the send"}
	case len(ours) > want:
		return Judgement{Verdict: Duplicated, Mismatches: counted(want, len(ours)),
			Reason: fmt.Sprintf("%d records match instead of %d", len(ours), want)}
	case len(others) > 0:
		return Judgement{Verdict: Mismatched, Conflict: true, Ours: len(ours) > 0, Mismatches: foreign(others),
			Reason: "a record with this key exists, and nothing shows that this write made it" + beside(ours)}
	case len(ours) < want:
		return Judgement{Verdict: Mismatched, Mismatches: counted(want, len(ours)),
			Reason: fmt.Sprintf("only %d of %d wanted records match", len(ours), want)}
	}
	return judgeFields(c, ours)
}

func beside(ours []connectors.Record) string {
	if len(ours) == 0 {
		return ""
	}
	return ", beside one that does"
}

// judgeAbsent: nothing is there. For a write that had a record before, that is not the state
// from before the send: the record was removed or has another key. Another actor or a later
// write of ours can have done that.
func judgeAbsent(c Case) Judgement {
	if c.Intent.Write != intent.Create && !wasAbsent(c) {
		why := "the record to change is gone from its key: it was removed or given another key, which does not say whether the send was applied"
		if c.Before == nil {
			why = "no record has the business key, and whether one had it before the send is not known"
		}
		return Judgement{Verdict: Absent, Conflict: true, Reason: why}
	}
	return Judgement{Verdict: Absent, Reason: "no record of this write was found"}
}

// judgeFields judges the declared number of records by their fields.
func judgeFields(c Case, found []connectors.Record) Judgement {
	if differing := diffAll(c, found); len(differing) > 0 {
		switch {
		case !asBefore(c, found, untouched):
		case c.Intent.Write == intent.Create:
			return Judgement{Verdict: Mismatched, Conflict: true, Mismatches: differing, Reason: "the record was there before the create"}
		default:
			return Judgement{Verdict: Stale, Mismatches: differing, Reason: "the record still is as it was before the send"}
		}
		return Judgement{Verdict: Mismatched, Mismatches: differing, Undone: asBefore(c, found, sameFields),
			Reason: many(len(differing), "field differs", "fields differ") + " from what was expected" + fields(c.Intent, differing)}
	}
	if !proves(c, found) {
		return Judgement{Verdict: Indeterminate, Reason: "the record is as expected, but the read may be older than the send"}
	}
	if changed := collateral(c, found); len(changed) > 0 {
		return Judgement{Verdict: Collateral, Mismatches: changed, Reason: many(len(changed), "field that the write does not name has changed", "fields that the write does not name have changed")}
	}
	j := Judgement{Verdict: Verified, Reason: "found exactly as requested"}
	if len(found) == 1 {
		j.Record = &found[0]
	}
	return j
}

func judgeDelete(c Case) Judgement {
	found := c.Seen.Records
	switch {
	case len(found) == 0 && conclusive(c):
		return Judgement{Verdict: Verified, Reason: "the record is gone"}
	case len(found) == 0:
		return Judgement{Verdict: Indeterminate, Reason: "no record found, but the read may be of a time before it existed"}
	case asBefore(c, found, untouched):
		return Judgement{Verdict: Stale, Mismatches: counted(0, len(found)), Reason: "the record is still there, as it was before the send"}
	}
	return Judgement{Verdict: Mismatched, Mismatches: counted(0, len(found)), Undone: asBefore(c, found, sameRecord), Reason: "a record is there, and it is not as it was before the send"}
}

// proves reports whether records that are as expected are the effect of our send: they have our
// stamp, are the one that its answer named, or nothing older can have looked like this to this read.
func proves(c Case, found []connectors.Record) bool {
	switch {
	case creates(c) && c.Profile.FreshKeys, stamps(c) && allStamped(found, c.Stamp), answeredWith(c, found):
		return true
	}
	return conclusive(c)
}

// answeredWith reports whether the one record is that which the answer to our create named, and which the
// read before it did not show. Where records have stamps, they decide.
func answeredWith(c Case, found []connectors.Record) bool {
	return !c.Profile.Stamped && c.Before != nil && len(found) == 1 && answered(c, found[0]) &&
		!slices.ContainsFunc(c.Before.Records, func(r connectors.Record) bool { return r.Ref == found[0].Ref })
}

// unknownBefore reports whether a record under the key of a create can be any actor's: nothing shows
// whose it is, and whether it was there before the send was not read.
func unknownBefore(c Case) bool {
	return c.Assumed && c.Intent.Write == intent.Create && c.Before == nil && !c.Profile.Stamped && !c.Profile.FreshKeys && c.Receipt == nil
}

func wasAbsent(c Case) bool { return c.Before != nil && len(c.Before.Records) == 0 }

func allStamped(found []connectors.Record, stamp string) bool {
	return stamp != "" && !slices.ContainsFunc(found, func(r connectors.Record) bool { return r.Stamp != stamp })
}

// answered reports whether a record is the one in the receipt of a create of ours, and has no
// other write's stamp: another actor may have replaced our stamp or key in it.
func answered(c Case, r connectors.Record) bool {
	return c.Intent.Write == intent.Create && c.Receipt != nil && c.Receipt.Ref != "" && r.Ref == c.Receipt.Ref &&
		(r.Stamp == "" || r.Stamp == c.Stamp)
}

// reused reports whether a record has nothing of this create but the id of its receipt: the
// destination stored nothing and gave that id to another write.
func reused(c Case, r connectors.Record) bool {
	return c.Intent.Write == intent.Create && c.Receipt != nil && r.Ref == c.Receipt.Ref && r.Stamp != "" && r.Stamp != c.Stamp &&
		len(Diff(intent.WriteIntent{Key: c.Intent.Key, Compare: c.Intent.Compare}, c.Profile.Compare, r.Fields)) > 0
}

// split separates our records from others'. Only a create on a destination that shows stamps
// can do that: there, a record without our stamp belongs to another actor, unless our receipt
// names it.
func split(c Case, found []connectors.Record) (ours, others []connectors.Record) {
	if c.Intent.Write != intent.Create || !c.Profile.Stamped {
		return found, nil
	}
	for _, r := range found {
		if r.Stamp == c.Stamp && c.Stamp != "" || answered(c, r) {
			ours = append(ours, r)
		} else {
			others = append(others, r)
		}
	}
	return ours, others
}

func diffAll(c Case, found []connectors.Record) []Mismatch {
	var all []Mismatch
	for _, r := range found {
		all = append(all, Diff(c.Intent, c.Profile.Compare, r.Fields)...)
		if len(all) >= MaxMismatches {
			return all[:MaxMismatches]
		}
	}
	return all
}

// likeness compares two readings of one record; mayChange are the places that do not count.
type likeness func(mayChange places, old, now connectors.Record) bool

// untouched: the same fields, the same version and the same stamp. A record with another stamp
// or version was written to, whatever its fields are now.
func untouched(mayChange places, old, now connectors.Record) bool {
	return old.Stamp == now.Stamp && (old.Version == now.Version || old.Version == "" || now.Version == "") &&
		sameFields(mayChange, old, now)
}

func sameFields(mayChange places, old, now connectors.Record) bool {
	return len(changes(mayChange, old.Fields, now.Fields)) == 0
}

func sameRecord(places, connectors.Record, connectors.Record) bool { return true }

// asBefore reports whether every matching record was there before, unchanged. Volatile and
// ignored fields do not count.
func asBefore(c Case, found []connectors.Record, like likeness) bool {
	if c.Before == nil || len(c.Before.Records) != len(found) {
		return false
	}
	earlier, mayChange := readingsOf(c.Before), placesOf(c.Intent.Ignore, c.Profile.Volatile)
	for _, now := range found {
		if old, same := earlier.of(now); !same || !like(mayChange, old, now) {
			return false
		}
	}
	return true
}

// readings finds the pre-state reading of a record.
type readings struct {
	byRef map[string]connectors.Record
	only  *connectors.Record
}

func readingsOf(before *connectors.Observation) readings {
	all := readings{byRef: make(map[string]connectors.Record, len(before.Records))}
	for _, r := range before.Records {
		if r.Ref != "" {
			all.byRef[r.Ref] = r
		}
	}
	if len(before.Records) == 1 {
		all.only = &before.Records[0]
	}
	return all
}

// of returns the earlier reading of a record, and whether it is certainly of the same record.
// The destination's own id makes it certain. Without an id, a single earlier record can be
// another one under the same key.
func (all readings) of(r connectors.Record) (old connectors.Record, same bool) {
	if old, ok := all.byRef[r.Ref]; ok {
		return old, true
	}
	if all.only != nil {
		return *all.only, all.only.Ref == r.Ref
	}
	return connectors.Record{}, false
}

// collateral lists the unrequested changes. A new record under the key counts as the earlier
// one: what it lacks was lost.
func collateral(c Case, found []connectors.Record) []Mismatch {
	if c.Before == nil || len(c.Before.Records) == 0 || c.Intent.Write == intent.Create {
		return nil // a create changes no earlier record
	}
	var all []Mismatch
	earlier, mayChange := readingsOf(c.Before), placesOf(named(c.Intent), c.Profile.Volatile)
	for _, now := range found {
		old, same := earlier.of(now)
		if !same && earlier.only == nil {
			continue // none of the earlier records
		}
		all = append(all, changes(mayChange, old.Fields, now.Fields)...)
		if len(all) >= MaxMismatches {
			return all[:MaxMismatches]
		}
	}
	return all
}

// fields lists the first of the fields that differ, for the reviewer. It contains only names
// from the intent, and no text of the destination.
func fields(w intent.WriteIntent, found []Mismatch) string {
	var paths []string
	for _, m := range found {
		_, inKey := intent.Lookup(w.Key, m.Path)
		_, expected := intent.Lookup(w.Expect, m.Path)
		declared := inKey || expected || slices.Contains(w.Absent, m.Path)
		if m.Path != "" && declared && len(m.Path) <= maxPath && !slices.Contains(paths, m.Path) {
			paths = append(paths, m.Path)
		}
	}
	if len(paths) == 0 {
		return ""
	}
	more := ""
	if n := len(paths) - maxPaths; n > 0 {
		paths, more = paths[:maxPaths], fmt.Sprintf(" and %d more", n)
	}
	return ": " + strings.Join(paths, ", ") + more
}

// many returns a number with its noun.
func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func counted(want, got int) []Mismatch {
	return []Mismatch{{Path: "/count", Problem: Count, Want: number(want), Got: number(got)}}
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

func foreign(others []connectors.Record) []Mismatch {
	all := make([]Mismatch, 0, len(others))
	for _, r := range others {
		all = append(all, Mismatch{Path: "", Problem: NotOurs, Got: r.Ref})
	}
	return all[:min(len(all), MaxMismatches)]
}

// JudgeBefore returns what the pre-state means for a write that was not sent yet; Case.Since
// then counts from when the write was accepted. Indeterminate means: send. It is pure.
func JudgeBefore(c Case) Judgement {
	j := judgeBefore(c)
	j.Conclusive = j.Conclusive || conclusive(c)
	return j
}

func judgeBefore(c Case) Judgement {
	found, want := c.Seen.Records, c.Intent.Want()
	switch {
	case c.Intent.Write == intent.Create:
		return judgeBeforeCreate(c)
	case len(found) > want:
		return Judgement{Verdict: Duplicated, Conclusive: true, Conflict: true, Mismatches: counted(want, len(found)),
			Reason: fmt.Sprintf("before the write %d records have this key instead of %d", len(found), want)}
	}
	if unmet := required(c); len(unmet) > 0 {
		return Judgement{Verdict: Mismatched, Conflict: true, Mismatches: unmet,
			Reason: "what the caller requires of the record before the write does not hold" + fields(intent.WriteIntent{Expect: c.Intent.Require}, unmet)}
	}
	switch {
	case c.Intent.Write == intent.Delete && len(found) == 0 && conclusive(c):
		return Judgement{Verdict: Vacuous, Reason: "no such record: the wish was fulfilled before"}
	case c.Intent.Write != intent.Upsert && len(found) < want:
		return Judgement{Verdict: Absent, Mismatches: counted(want, len(found)),
			Reason: fmt.Sprintf("%d records have this key instead of %d", len(found), want)}
	case c.Intent.Write != intent.Delete && len(found) == want && conclusive(c) && len(diffAll(c, found)) == 0 && c.Seen.Open == "" && c.Seen.Failed == "":
		return vacuous(found)
	}
	return Judgement{}
}

func vacuous(found []connectors.Record) Judgement {
	j := Judgement{Verdict: Vacuous, Reason: "the record was as expected before: nothing to send"}
	if len(found) == 1 {
		j.Record = &found[0]
	}
	return j
}

func judgeBeforeCreate(c Case) Judgement {
	ours, others := split(c, c.Seen.Records)
	switch {
	case !c.Profile.Stamped && len(ours) > 0, len(others) > 0:
		return Judgement{Verdict: Mismatched, Conflict: true, Mismatches: foreign(c.Seen.Records),
			Reason: "a record with this key exists already"}
	case len(ours) > 0: // our own earlier send, unknown to this ledger
		return judge(c)
	}
	return Judgement{}
}

// required compares the records with what the intent requires of them.
func required(c Case) []Mismatch {
	if len(c.Intent.Require) == 0 {
		return nil
	}
	if len(c.Seen.Records) == 0 {
		return counted(c.Intent.Want(), 0)
	}
	asked := c
	asked.Intent = intent.WriteIntent{Expect: c.Intent.Require, Compare: c.Intent.Compare}
	return diffAll(asked, c.Seen.Records)
}
