package engine

import (
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// beforehand says what a look finds before the write was begun.
func (found Looked) beforehand(k verify.Case, s *redact.Scope) Looked {
	j := verify.JudgeBefore(k)
	found = found.judged(j, s)
	switch {
	case j.Verdict == verify.Vacuous, j.Verdict == verify.Verified:
		found.Effect, found.Verdict = EffectPresent, verify.Vacuous
		return found.named(j)
	case j.Verdict != verify.Indeterminate:
		return found
	case len(k.Seen.Records) == 0 && k.Intent.Write != intent.Delete:
		found.Verdict, found.Reason = verify.Absent, "no record matches the business key"
	default:
		found.Reason = "what is declared is not so yet"
	}
	if j.Firm && !fulfilled(k, k.Seen) {
		found.Effect = EffectAbsent
	} else {
		found.Reason += ", as far as a read can tell that may lag behind"
	}
	return found
}

// afterwards says what a look finds when the write may have been sent, and at
// the latest was given up at the time ended.
func (found Looked) afterwards(k verify.Case, ended time.Time, s *redact.Scope) Looked {
	j := verify.Judge(k)
	found = found.judged(j, s)
	was := k.Before != nil && fulfilled(k, *k.Before)
	gone := (j.Verdict == verify.Absent || j.Verdict == verify.Stale) && !j.Conflict
	switch {
	case k.Intent.Write == intent.Create && k.Before != nil && len(k.Before.Records) > 0:
		found.Verdict, found.Reason = verify.Mismatched, "a record under the business key was there before: what a create made cannot be told from it"
		return found
	case j.Verdict == verify.Verified && was:
		found.Effect, found.Verdict = EffectPresent, verify.Vacuous
		found.Reason = "it is as declared, and was so before the write was begun"
		return found.named(j)
	case j.Verdict == verify.Verified:
		found.Effect = EffectPresent
		if k.Before == nil {
			found.Reason += "; what was there before is not known"
		}
		return found.named(j)
	case gone && conclusive(k, j):
		found.Effect = EffectAbsent
		found.Reason += ", in a read that shows all that can still land"
		return found
	case gone && slices.Contains(k.Profile.Irreversible, k.Intent.Write):
		found.Reason += "; whether it was made cannot be told, as such a write leaves what cannot be looked for"
		return found
	}
	found.After = later(k, ended)
	if gone && found.After.IsZero() {
		found.Reason += "; the destination does not say how long a send may still land, or a read lag behind"
	} else if gone {
		found.Reason += "; it may still land, or be shown"
	}
	return found
}

// conclusive reports whether a read shows all that can still land of a write
// that its caller gave up.
func conclusive(k verify.Case, j verify.Judgement) bool {
	return j.Firm && k.Profile.Horizon.Passed(j.AsOf) && !slices.Contains(k.Profile.Irreversible, k.Intent.Write)
}

// later is the next moment at which another look can say more than this one, of a
// write that was given up at the time ended; zero where none is known.
func later(k verify.Case, ended time.Time) time.Time {
	settle, settles := k.Profile.Settle.Declared()
	horizon, ends := k.Profile.Horizon.Declared()
	if k.Seen.Strength == connectors.Strong {
		settle, settles = 0, true
	}
	if !settles {
		return time.Time{}
	}
	for _, in := range []time.Duration{settle, settle + horizon} {
		if k.Since < in {
			return ended.Add(in)
		}
		if !ends {
			break
		}
	}
	return time.Time{}
}

// fulfilled reports whether an observation, taken at its word, is as declared.
func fulfilled(k verify.Case, seen connectors.Observation) bool {
	k.Before, k.Seen, k.Since = nil, seen, 0
	k.Seen.Strength = connectors.Strong
	return verify.Judge(k).Verdict == verify.Verified
}

func (found Looked) judged(j verify.Judgement, s *redact.Scope) Looked {
	found.Verdict, found.Reason, found.Mismatches = j.Verdict, j.Reason, differences(s, j.Mismatches)
	return found
}

// named is with the destination's own names of the one record that was found.
func (found Looked) named(j verify.Judgement) Looked {
	found.Mismatches = nil
	if j.Record != nil {
		found.Ref, found.URL = j.Record.Ref, j.Record.URL
	}
	return found
}
