package receipt

import (
	"bytes"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/readback-go/readback/ledger"
)

// field is one field of a record, and whether it follows from the events.
type field struct {
	name string
	same bool
}

// agree compares a record with what follows from its events, field by field. It excludes fields
// that are in no event (the intent's body, the lease and its owner) and fields that only describe
// what comes next.
func agree(r, rebuilt ledger.Record) error {
	for _, f := range append(whichWrite(r, rebuilt), whatBecame(r, rebuilt)...) {
		if !f.same {
			return contradiction("write %s: its %s is not what follows from its events", r.ID, f.name)
		}
	}
	return nil
}

func whichWrite(r, rebuilt ledger.Record) []field {
	return []field{
		{"id", r.ID == rebuilt.ID},
		{"tenant", r.Tenant == rebuilt.Tenant},
		{"workflow", r.Workflow == rebuilt.Workflow},
		{"step", r.Step == rebuilt.Step},
		{"tool", r.Tool == rebuilt.Tool},
		{"call", r.Call == rebuilt.Call},
		{"structural_key", r.StructuralKey == rebuilt.StructuralKey},
		{"digest", r.Digest == rebuilt.Digest},
		{"key_digest", r.KeyDigest == rebuilt.KeyDigest},
		{"idempotency_key", r.IdempotencyKey == rebuilt.IdempotencyKey},
		{"correlation_id", r.CorrelationID == rebuilt.CorrelationID},
		{"destination", r.Destination == rebuilt.Destination},
		{"kind", r.Kind == rebuilt.Kind},
		{"entrusted", r.Delegated == rebuilt.Delegated},
		{"requested_by", r.RequestedBy == rebuilt.RequestedBy},
		{"trace", r.Trace == rebuilt.Trace},
		{"parent", r.Parent == rebuilt.Parent},
	}
}

func whatBecame(r, rebuilt ledger.Record) []field {
	return []field{
		{"state", r.State == rebuilt.State},
		{"settlement", r.Settlement == rebuilt.Settlement},
		{"verdict", r.Verdict == rebuilt.Verdict},
		{"rule", r.Rule == rebuilt.Rule},
		{"reason", r.Reason == rebuilt.Reason},
		{"sends", r.Sends == rebuilt.Sends},
		{"unsent", r.Unsent == rebuilt.Unsent},
		{"reads", r.Reads == rebuilt.Reads},
		{"unknown", r.Unknown == rebuilt.Unknown},
		{"answered", r.Answered == rebuilt.Answered},
		{"last_fate", r.LastFate == rebuilt.LastFate},
		{"effect_seen", r.EffectSeen == rebuilt.EffectSeen},
		{"repaired", r.Repaired == rebuilt.Repaired},
		{"owes_recheck", r.NeedsRecheck == rebuilt.NeedsRecheck},
		{"unverified", r.Unverified == rebuilt.Unverified},
		{"yielded", r.Yielded == rebuilt.Yielded},
		{"agreed", slices.Equal(r.Agreed, rebuilt.Agreed)},
		{"directed", r.Directed == rebuilt.Directed},
		{"ref", r.Ref == rebuilt.Ref},
		{"url", r.URL == rebuilt.URL},
		{"version", r.Version == rebuilt.Version},
		{"child", r.Child == rebuilt.Child},
		{"child_intent", sameJSON(r.ChildIntent, rebuilt.ChildIntent)},
		{"evidence", sameJSON(r.Evidence, rebuilt.Evidence)},
		{"mismatches", sameJSON(r.Mismatches, rebuilt.Mismatches)},
		{"before", sameJSON(r.Before, rebuilt.Before)},
		{"seq", r.Seq == rebuilt.Seq},
		{"created", near(r.Created, rebuilt.Created)},
		{"first_send", near(r.FirstSend, rebuilt.FirstSend)},
		{"restored", near(r.Restored, rebuilt.Restored)},
		{"last_send", near(r.LastSend, rebuilt.LastSend)},
		{"settled_at", near(r.SettledAt, rebuilt.SettledAt)},
	}
}

// near reports whether two times are equal at microsecond precision, which is what databases
// store. Times derived from a truncated time are truncated as well.
func near(a, b time.Time) bool {
	const cutOff = 10 * time.Microsecond
	return a.IsZero() == b.IsZero() && a.Sub(b).Abs() < cutOff
}

// sameJSON reports whether two texts hold the same value: databases may store the value and not
// the text.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	return x.Canonicalize(exactly...) == nil && y.Canonicalize(exactly...) == nil && bytes.Equal(x, y)
}

// exactly makes JSON canonical and leaves its numbers unchanged.
var exactly = []jsontext.Options{jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)}
