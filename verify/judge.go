package verify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Case is what there is to judge: the intent, what the destination can do, and
// one observation.
type Case struct {
	Intent  intent.WriteIntent
	Profile connectors.Profile
	Stamp   string
	// Before is the pre-state; nil when none was read.
	Before *connectors.Observation
	Seen   connectors.Observation
	// Since is how long after the last send had ended the read began.
	Since time.Duration
}

// Judgement is a verdict and why.
type Judgement struct {
	Verdict    Verdict
	Mismatches []Mismatch
	// Reason is one sentence for a person.
	Reason string
	// Conflict says that somebody else's record stands in the way: no repeat
	// helps, a person decides.
	Conflict bool
	// Firm says that the read cannot be older than the last send: it was
	// strong, or the settle time had fully passed. A verdict that is not firm
	// may still change as replicas catch up.
	Firm bool
	// Record is the one that verified, when there is exactly one.
	Record *connectors.Record
}

// Effect reports whether the read, made after a send, showed something that
// the send can have made.
func (j Judgement) Effect() bool {
	switch j.Verdict {
	case Verified, Mismatched, Duplicated, Collateral:
		return !j.Conflict
	}
	return false
}

// Judge says what an observation after a send proves. It is pure.
func Judge(c Case) Judgement {
	j := judge(c)
	j.Firm = firm(c)
	return j
}

func firm(c Case) bool {
	return c.Seen.Strength == connectors.Strong || c.Profile.Settle.Passed(c.Since)
}

func judge(c Case) Judgement {
	found := c.Seen.Records
	switch {
	case c.Intent.Write == intent.Delete:
		return judgeDelete(c)
	case len(found) == 0:
		return Judgement{Verdict: Absent, Reason: "no record bears the stamp or matches the business key"}
	}
	ours, others := split(c, found)
	want := c.Intent.Want()
	switch {
	case len(ours) > want:
		return Judgement{Verdict: Duplicated, Mismatches: counted(want, len(ours)),
			Reason: fmt.Sprintf("%d records match, %d declared", len(ours), want)}
	case len(others) > 0:
		return Judgement{Verdict: Mismatched, Conflict: true, Mismatches: foreign(others),
			Reason: "a record under the business key does not bear our stamp: it is somebody else's"}
	case len(ours) < want:
		return Judgement{Verdict: Mismatched, Mismatches: counted(want, len(ours)),
			Reason: fmt.Sprintf("only %d of %d declared records match", len(ours), want)}
	}
	return judgeFields(c, ours)
}

// judgeFields judges the declared number of records by what stands in them.
func judgeFields(c Case, found []connectors.Record) Judgement {
	if differing := diffAll(c, found); len(differing) > 0 {
		if asBefore(c, found) {
			return Judgement{Verdict: Stale, Mismatches: differing, Reason: "the record still is as it was before the send"}
		}
		return Judgement{Verdict: Mismatched, Mismatches: differing, Reason: fmt.Sprintf("%d fields differ from what was expected", len(differing))}
	}
	if !proves(c, found) {
		return Judgement{Verdict: Indeterminate, Reason: "the record is as expected, but the read may be older than the send"}
	}
	if changed := collateral(c, found); len(changed) > 0 {
		return Judgement{Verdict: Collateral, Mismatches: changed, Reason: fmt.Sprintf("%d fields that nobody asked to change have changed", len(changed))}
	}
	j := Judgement{Verdict: Verified, Reason: "found exactly as declared"}
	if len(found) == 1 {
		j.Record = &found[0]
	}
	return j
}

func judgeDelete(c Case) Judgement {
	found := c.Seen.Records
	switch {
	case len(found) == 0 && firm(c):
		return Judgement{Verdict: Verified, Reason: "the record is gone"}
	case len(found) == 0:
		return Judgement{Verdict: Indeterminate, Reason: "no record found, but the read may be of a time before it existed"}
	case asBefore(c, found):
		return Judgement{Verdict: Stale, Mismatches: counted(0, len(found)), Reason: "the record is still there, as it was before the send"}
	}
	return Judgement{Verdict: Mismatched, Mismatches: counted(0, len(found)), Reason: "a record is there, and it is not as it was before the send"}
}

// proves reports whether records that are as expected were made so by our
// send: they bear our stamp, or nothing older can have looked like this to
// this read.
func proves(c Case, found []connectors.Record) bool {
	creates := c.Intent.Write == intent.Create || (c.Intent.Write == intent.Upsert && wasAbsent(c))
	if creates && c.Profile.FreshKeys {
		return true
	}
	if stamped := (creates && c.Profile.Stamped) || c.Profile.StampsUpdates; stamped && allBear(found, c.Stamp) {
		return true
	}
	return firm(c)
}

func wasAbsent(c Case) bool { return c.Before != nil && len(c.Before.Records) == 0 }

func allBear(found []connectors.Record, stamp string) bool {
	return stamp != "" && !slices.ContainsFunc(found, func(r connectors.Record) bool { return r.Stamp != stamp })
}

// split tells our records from others'. Only a create on a destination that
// shows stamps can: there a record without ours is somebody else's.
func split(c Case, found []connectors.Record) (ours, others []connectors.Record) {
	if c.Intent.Write != intent.Create || !c.Profile.Stamped {
		return found, nil
	}
	for _, r := range found {
		if r.Stamp == c.Stamp && c.Stamp != "" {
			ours = append(ours, r)
		} else {
			others = append(others, r)
		}
	}
	return ours, others
}

func diffAll(c Case, found []connectors.Record) []Mismatch {
	var all []Mismatch
	for _, r := range found[:min(len(found), maxRecords)] {
		all = append(all, Diff(c.Intent, c.Profile.Compare, r.Fields)...)
	}
	return all[:min(len(all), maxMismatches)]
}

// asBefore reports whether every record found was there before with the same
// fields. Volatile and ignored fields do not count.
func asBefore(c Case, found []connectors.Record) bool {
	if c.Before == nil || len(c.Before.Records) != len(found) {
		return false
	}
	for _, r := range found {
		old := before(c, r)
		if old == nil || len(changes(ignoring(c.Intent), c.Profile.Volatile, old.Fields, r.Fields)) > 0 {
			return false
		}
	}
	return true
}

// ignoring is the intent's list of ignored fields and nothing else, so that
// changes looks at every other field.
func ignoring(w intent.WriteIntent) intent.WriteIntent {
	return intent.WriteIntent{Ignore: w.Ignore}
}

// before is the earlier reading of a record: by the destination's own id, or
// the only one there was.
func before(c Case, r connectors.Record) *connectors.Record {
	if c.Before == nil {
		return nil
	}
	for i, old := range c.Before.Records {
		if old.Ref == r.Ref || len(c.Before.Records) == 1 {
			return &c.Before.Records[i]
		}
	}
	return nil
}

func collateral(c Case, found []connectors.Record) []Mismatch {
	var all []Mismatch
	for _, r := range found[:min(len(found), maxRecords)] {
		if old := before(c, r); old != nil {
			all = append(all, changes(c.Intent, c.Profile.Volatile, old.Fields, r.Fields)...)
		}
	}
	return all[:min(len(all), maxMismatches)]
}

func counted(want, got int) []Mismatch {
	return []Mismatch{{Path: "/count", Problem: Count, Want: number(want), Got: number(got)}}
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }

func foreign(others []connectors.Record) []Mismatch {
	all := make([]Mismatch, 0, len(others))
	for _, r := range others[:min(len(others), maxMismatches)] {
		all = append(all, Mismatch{Path: "", Problem: NotOurs, Got: r.Ref})
	}
	return all
}

// JudgeBefore says what the pre-state means for a write that was not sent yet;
// Case.Since then counts from when the write was accepted. Indeterminate means:
// go on and send. It is pure.
func JudgeBefore(c Case) Judgement {
	j := judgeBefore(c)
	j.Firm = j.Firm || firm(c)
	return j
}

func judgeBefore(c Case) Judgement {
	found, want := c.Seen.Records, c.Intent.Want()
	switch {
	case c.Intent.Write == intent.Create:
		return judgeBeforeCreate(c)
	case len(found) > want:
		return Judgement{Verdict: Duplicated, Firm: true, Conflict: true, Mismatches: counted(want, len(found)),
			Reason: fmt.Sprintf("before the write the business key matches %d records, %d declared", len(found), want)}
	}
	if unmet := required(c); len(unmet) > 0 {
		return Judgement{Verdict: Mismatched, Conflict: true, Mismatches: unmet,
			Reason: "what the intent requires of the record before the write does not hold"}
	}
	switch {
	case c.Intent.Write == intent.Delete && len(found) == 0 && firm(c):
		return Judgement{Verdict: Vacuous, Reason: "no such record: the wish was fulfilled before"}
	case c.Intent.Write != intent.Upsert && len(found) < want:
		return Judgement{Verdict: Absent, Mismatches: counted(want, len(found)),
			Reason: fmt.Sprintf("the business key matches %d records, %d declared", len(found), want)}
	case c.Intent.Write != intent.Delete && len(found) == want && firm(c) && len(diffAll(c, found)) == 0:
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
		return Judgement{Verdict: Mismatched, Firm: true, Conflict: true, Mismatches: foreign(c.Seen.Records),
			Reason: "a record under the business key exists already, and it is not ours"}
	case len(ours) > 0: // our own earlier send, which this ledger does not remember
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
	asked := intent.WriteIntent{Expect: c.Intent.Require, Compare: c.Intent.Compare}
	var all []Mismatch
	for _, r := range c.Seen.Records[:min(len(c.Seen.Records), maxRecords)] {
		all = append(all, Diff(asked, c.Profile.Compare, r.Fields)...)
	}
	return all[:min(len(all), maxMismatches)]
}

// SameRecords reports whether two observations show the same records with the
// same fields.
func SameRecords(a, b connectors.Observation) bool {
	return cmp.Equal(a.Records, b.Records, exactNumbers)
}
