package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

// livesAtOnce is how many writes or documents are read at once for a check.
const livesAtOnce = 100

// part checks one part of the writes and documents. Differences are read a second time: an actor
// may have changed them during the read, and sealed that.
func (v *verifier) part(ctx context.Context, part, parts int) error {
	x, err := v.read(ctx, part, parts)
	if err != nil {
		return err
	}
	d := newDoubts(x)
	err = v.lives(ctx, func(life ledger.Lifetime) error {
		v.step(&v.writesRead, "comparing the ledger, writes")
		r := life.Record
		if partOf(r.Tenant, string(r.ID), parts) != part {
			return nil
		}
		name := writeName{r.Tenant, r.ID}
		w := x.writes[name]
		if w == nil {
			w = &sealedWrite{}
		}
		w.seen = true
		wrong, unsealed, older, err := v.compare(w, life)
		if r.Tombstone && w.pruned != nil && w.erased == "" {
			v.report.Pruned++
		}
		switch {
		case err != nil:
			return err
		case len(wrong) > 0:
			d.writes[name] = true
			return v.enough(ctx, d)
		case len(unsealed) > 0:
			d.fresh[name] = unsealed
		}
		v.older += older
		return v.enough(ctx, d)
	})
	if err != nil {
		return err
	}
	for name, w := range x.writes {
		if w.seen {
			continue
		}
		d.writes[name] = true
		if err := v.enough(ctx, d); err != nil {
			return err
		}
	}
	if err := v.keptDocuments(ctx, d, part, parts); err != nil {
		return err
	}
	return v.settle(ctx, d)
}

// compare compares a write with the chain, and its state with its events.
func (v *verifier) compare(w *sealedWrite, life ledger.Lifetime) (wrong []Problem, unsealed []int64, older int, err error) {
	wrong, unsealed, older, err = w.compare(life, v.since)
	if err != nil || len(wrong) > 0 || life.Record.Tombstone {
		return wrong, unsealed, older, err
	}
	if why := w.behind(life.Record); why != "" {
		wrong = append(wrong, Problem{Kind: RowDiffers, Tenant: life.Record.Tenant, Write: life.Record.ID, Seq: life.Record.Seq, Entry: w.first(), What: why})
	} else if why := follows(life); why != "" {
		wrong = append(wrong, Problem{Kind: RowDiffers, Tenant: life.Record.Tenant, Write: life.Record.ID, Entry: w.first(), What: why})
	}
	return wrong, unsealed, older, nil
}

// behind reports that a row ends before sealed events: the chain is read first.
func (w *sealedWrite) behind(r ledger.Record) string {
	for _, e := range w.events {
		if e.seq > r.Seq {
			return fmt.Sprintf("its row is that of event %d, and event %d was sealed: an earlier state was put back", r.Seq, e.seq)
		}
	}
	return ""
}

// follows describes how the state of a write differs from what its events give.
func follows(life ledger.Lifetime) string {
	have := life.Record
	events := life.Events
	for len(events) > 0 && events[len(events)-1].Seq > have.Seq { // added since the row was read
		events = events[:len(events)-1]
	}
	rebuilt, err := ledger.Rebuild(events)
	if err != nil {
		return "its state does not follow from its events: " + err.Error()
	}
	a, b := fields(have), fields(rebuilt)
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name] != b[name] {
			return fmt.Sprintf("its row says %s %s, and its events make it %s", name, clip(a[name]), clip(b[name]))
		}
	}
	return ""
}

// fields are a record's values that follow from events, as text.
func fields(r ledger.Record) map[string]string {
	r.Intent, r.Owner, r.LeaseFor, r.Fence = nil, "", 0, 0
	r.LeaseUntil = r.Now
	text, err := json.Marshal(r)
	all := make(map[string]json.RawMessage)
	if err != nil || json.Unmarshal(text, &all) != nil {
		return map[string]string{"record": fmt.Sprint(err)}
	}
	out := make(map[string]string, len(all))
	for name, raw := range all {
		if name != "lease_until" {
			out[name] = string(raw)
		}
	}
	return out
}

func clip(s string) string { return visible.Cut(cmp.Or(s, "nothing"), 60) }

// lives visits all writes of the checked tenants.
func (v *verifier) lives(ctx context.Context, see func(ledger.Lifetime) error) error {
	for after := ledger.ID(""); ; {
		lives, err := v.ledger.Lifetimes(ctx, after, livesAtOnce)
		if err != nil {
			return err
		}
		for _, life := range lives {
			after = life.Record.ID
			if v.o.Tenant != "" && life.Record.Tenant != v.o.Tenant {
				continue
			}
			if err := see(life); err != nil {
				return err
			}
		}
		if len(lives) < livesAtOnce {
			return nil
		}
	}
}

// keptDocuments compares all documents with the sealed ones.
func (v *verifier) keptDocuments(ctx context.Context, d *doubts, part, parts int) error {
	for after := (ledger.Document{}); ; {
		kept, err := v.ledger.Kept(ctx, after, livesAtOnce)
		if err != nil {
			return err
		}
		for _, p := range kept {
			after = p
			if v.o.Tenant != "" && p.Tenant != v.o.Tenant || partOf(p.Tenant, p.Kind+"\x00"+p.ID, parts) != part {
				continue
			}
			name := documentName{p.Tenant, p.Kind, p.ID}
			sealed := d.x.documents[name]
			if sealed != nil {
				sealed.seen = true
			}
			if sealed == nil && before(p.Updated, v.since) {
				v.older++
				continue
			}
			seen, err := glanceOf(p)
			if err != nil {
				return err
			}
			if sealed.compare(name, *seen) != nil {
				d.documents[name] = seen
			}
			if err := v.enough(ctx, d); err != nil {
				return err
			}
		}
		if len(kept) < livesAtOnce {
			break
		}
	}
	for name, p := range d.x.documents {
		if p.seen || p.dropped {
			continue
		}
		d.documents[name] = nil
		if err := v.enough(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// compare returns the problem of a document, nil for none.
func (s *sealedDocument) compare(name documentName, p glance) *Problem {
	of := &Problem{Tenant: name.tenant, Document: name.kind + " " + name.id}
	if s == nil || s.dropped {
		of.Kind, of.What = Inserted, "it is in the ledger, and was never sealed"
		return of
	}
	of.Kind, of.Entry = Altered, s.entry
	switch {
	case p.version != s.version:
		of.What = fmt.Sprintf("it has version %d; version %d is the last that was sealed", p.version, s.version)
	case p.digest != s.digest:
		of.What = fmt.Sprintf("version %d of it differs from when it was committed", p.version)
	case s.names != (sum{}) && p.names != s.names:
		of.What = "its collection, subject or trace differ from when it was first committed"
	default:
		return nil
	}
	return of
}
