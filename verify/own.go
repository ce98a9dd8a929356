package verify

import (
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// own reports whether what a read after a send shows is proven to be the effect of this write
// and of nothing else.
//
// The stamp identifies the record's owner. Without stamps, a send must have been answered, and
// the read must show a declared value that was not there before. Every other difference from
// before must be a value that was not stored. A value that is neither the declared nor the
// earlier one may be another actor's. Only the version in the receipt of our send excludes
// that.
func own(c Case, j Judgement) bool {
	found := c.Seen.Records
	switch {
	case j.Conflict || !j.Effect():
		return false
	case c.Intent.Write == intent.Delete:
		return j.Verdict == Verified && c.Receipt != nil
	case j.Verdict != Verified && j.Verdict != Mismatched, len(j.Mismatches) >= MaxMismatches:
		return false
	case len(found) != 1 || c.Intent.Want() != 1 || !wrote(c, j):
		return false
	case c.Assumed && c.Before == nil && len(j.Mismatches) > 0: // the missing send may have declared something else
		return false
	}
	now := found[0]
	if c.Receipt != nil && c.Receipt.Version != "" && now.Version != "" {
		same := c.Receipt.Version == now.Version
		switch {
		case creates(c): // an undo deletes the whole record
			return same
		case same && c.Before != nil && slices.Contains(c.Profile.Conditional, c.Intent.Write):
			return true // no other actor wrote between the pre-state and our send either
		}
	}
	return len(collateral(c, found)) == 0 && !slices.ContainsFunc(j.Mismatches, func(m Mismatch) bool {
		return !unstored(c, now, m.Path)
	})
}

// wrote reports whether the one matching record shows that a send of this write was applied to
// it.
func wrote(c Case, j Judgement) bool {
	found := c.Seen.Records
	switch {
	case creates(c) && c.Profile.FreshKeys:
		return true
	case stamps(c) && !(creates(c) && answered(c, found[0])):
		return j.Stamped
	case c.Receipt == nil:
		return false
	case creates(c) && c.Receipt.Ref != "":
		return found[0].Ref == c.Receipt.Ref
	case creates(c):
		return true
	}
	return slices.ContainsFunc(append(leaves(nil, "", c.Intent.Expect), c.Intent.Absent...), func(path string) bool {
		differs := slices.ContainsFunc(j.Mismatches, func(m Mismatch) bool { return m.Path == path })
		return !differs && !unstored(c, found[0], path)
	})
}

// creates reports whether there was no record before the write.
func creates(c Case) bool {
	return c.Intent.Write == intent.Create || c.Intent.Write == intent.Upsert && wasAbsent(c)
}

// stamps reports whether a record that the write made or changed has its stamp.
func stamps(c Case) bool { return creates(c) && c.Profile.Stamped || c.Profile.StampsUpdates }

// unstored reports whether a place of a record is as it was before the write. In a record that
// the write made, null is a field without a value: some destinations name every field.
func unstored(c Case, now connectors.Record, path string) bool {
	seen, there := intent.Lookup(now.Fields, path)
	if creates(c) {
		return !there || seen == nil
	}
	if c.Before == nil {
		return false
	}
	before, same := readingsOf(c.Before).of(now)
	was, had := intent.Lookup(before.Fields, path)
	return same && there == had && (!there || equal(was, seen))
}
