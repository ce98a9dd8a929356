package receipt

import (
	"bytes"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/readback-go/readback/ledger"
)

// agree holds a record against what follows from its events, field by field, but
// for those that no event says: the intent's body, the lease and its owner.
func agree(r, rebuilt ledger.Record) error {
	for _, field := range []struct {
		name string
		same bool
	}{
		{"id", r.ID == rebuilt.ID},
		{"tenant", r.Tenant == rebuilt.Tenant},
		{"workflow", r.Workflow == rebuilt.Workflow},
		{"step", r.Step == rebuilt.Step},
		{"tool", r.Tool == rebuilt.Tool},
		{"call", r.Call == rebuilt.Call},
		{"structural_key", r.StructuralKey == rebuilt.StructuralKey},
		{"digest", r.Digest == rebuilt.Digest},
		{"idempotency_key", r.IdempotencyKey == rebuilt.IdempotencyKey},
		{"destination", r.Destination == rebuilt.Destination},
		{"kind", r.Kind == rebuilt.Kind},
		{"entrusted", r.Entrusted == rebuilt.Entrusted},
		{"requested_by", r.RequestedBy == rebuilt.RequestedBy},
		{"trace", r.Trace == rebuilt.Trace},
		{"parent", r.Parent == rebuilt.Parent},
		{"state", r.State == rebuilt.State},
		{"settlement", r.Settlement == rebuilt.Settlement},
		{"verdict", r.Verdict == rebuilt.Verdict},
		{"rule", r.Rule == rebuilt.Rule},
		{"sends", r.Sends == rebuilt.Sends},
		{"unsent", r.Unsent == rebuilt.Unsent},
		{"reads", r.Reads == rebuilt.Reads},
		{"unknown", r.Unknown == rebuilt.Unknown},
		{"answered", r.Answered == rebuilt.Answered},
		{"ref", r.Ref == rebuilt.Ref},
		{"url", r.URL == rebuilt.URL},
		{"child", r.Child == rebuilt.Child},
		{"evidence", sameJSON(r.Evidence, rebuilt.Evidence)},
		{"before", sameJSON(r.Before, rebuilt.Before)},
		{"seq", r.Seq == rebuilt.Seq},
		{"created", near(r.Created, rebuilt.Created)},
		{"first_send", near(r.FirstSend, rebuilt.FirstSend)},
		{"last_send", near(r.LastSend, rebuilt.LastSend)},
		{"settled_at", near(r.SettledAt, rebuilt.SettledAt)},
	} {
		if !field.same {
			return contradiction("write %s: its %s is not what follows from its events", r.ID, field.name)
		}
	}
	return nil
}

// near reports whether two times are one: databases keep times to the microsecond,
// and what is counted from a time that was cut off is cut off as well.
func near(a, b time.Time) bool {
	const cutOff = 10 * time.Microsecond
	return a.IsZero() == b.IsZero() && a.Sub(b).Abs() < cutOff
}

// sameJSON reports whether two texts hold the same value: databases may keep the
// value and not the text.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	return x.Canonicalize(exactly...) == nil && y.Canonicalize(exactly...) == nil && bytes.Equal(x, y)
}

// exactly makes JSON canonical and leaves its numbers as they stand.
var exactly = []jsontext.Options{jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)}
