package explorer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// observe is what a read by key, stamp and ref shows.
func (s *scenario) observe(rows [3]row) *seen {
	var shown [3]row // without what no read shows
	for n, r := range rows {
		if r.id == 0 {
			continue
		}
		shown[n] = row{id: r.id, amount: field{value: r.amount.value}, note: field{value: r.note.value}}
		if s.profile.Conditional != nil {
			shown[n].version = r.version
		}
		if s.profile.Stamped && r.stamp <= undo {
			shown[n].stamp = r.stamp
		}
	}
	if l, known := s.reads[shown]; known {
		return l
	}
	l := &seen{nr: uint16(len(s.reads)), Observation: connectors.Observation{Strength: connectors.Strong, At: epoch}}
	if s.lags {
		l.Strength = connectors.Weak
	}
	for _, r := range shown {
		if r.id == 0 {
			continue
		}
		found := connectors.Record{Ref: strconv.Itoa(int(r.id)), Fields: intent.Fields{"order_id": "S-1", "amount": number(int(r.amount.value))}}
		if r.note.value > 0 {
			found.Fields["note"] = number(int(r.note.value))
		}
		if r.version > 0 {
			found.Version = strconv.Itoa(int(r.version))
		}
		if r.stamp > 0 {
			found.Stamp = s.stamps[r.stamp-1]
		}
		l.Records = append(l.Records, found)
	}
	s.reads[shown] = l
	return l
}

// valueOf is the value of a field, 0 for none.
func valueOf(fields intent.Fields, name string) uint8 {
	n, _ := fields[name].(json.Number)
	value, _ := strconv.Atoi(string(n)) // "" where there is none
	return uint8(value)
}

// sets are the fields that a write sets.
func sets(w *intent.WriteIntent) (all uint8) {
	for name, bit := range map[string]uint8{"amount": setsAmount, "note": setsNote} {
		if _, there := w.Expect[name]; there || slices.Contains(w.Absent, "/"+name) {
			all |= bit
		}
	}
	return all
}

// arrive applies a send and returns the destination's answer. inPart leaves out the second field.
// problem names a broken promise.
func (s *scenario) arrive(w *world, f inFlight, inPart bool) (answer ledger.Event, problem string) {
	i, in, kind := f.write, s.intent(w, int(f.write)), s.intent(w, int(f.write)).Write
	if f.repair {
		kind = intent.Update
	}
	refuse := func(conflict bool) (ledger.Event, string) {
		return ledger.Event{Kind: ledger.EvSent, Fate: string(connectors.FateRefused), Conflict: conflict, Reason: "refused"}, ""
	}
	if s.profile.NativeWindow != nil {
		for _, k := range w.keys {
			remembered := int32(window)
			if s.broken == "the destination forgets the key sooner than it declares" {
				remembered = 1
			}
			if k.ref > 0 && k.write == i && k.generation == f.generation && w.real < int32(k.at)+remembered {
				return ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Ref: fmt.Sprint(k.ref)}, ""
			}
		}
	}
	at := slices.IndexFunc(w.rows[:], func(r row) bool { return r.id > 0 })
	creates := kind == intent.Create || kind == intent.Upsert && at < 0
	switch {
	case creates && at >= 0 && s.profile.Unique != nil:
		return refuse(true)
	case !creates && at < 0:
		return refuse(false)
	case !creates && f.condition > 0 && w.rows[at].version != f.condition:
		return refuse(true)
	}
	by := i + 1
	set := func(r *row) (changed bool) {
		for _, c := range []struct {
			bit  uint8
			name string
			f    *field
		}{{setsAmount, "amount", &r.amount}, {setsNote, "note", &r.note}} {
			if f.sets&c.bit == 0 || inPart && c.bit == setsNote {
				continue
			}
			next := field{valueOf(in.Expect, c.name), by}
			changed = changed || *c.f != next
			*c.f = next
		}
		return changed
	}
	target := row{}
	switch {
	case creates:
		if at = slices.IndexFunc(w.rows[:], func(r row) bool { return r.id == 0 }); at < 0 {
			return refuse(false)
		}
		w.ids++
		w.rows[at] = row{id: w.ids, maker: by, version: w.ids * 16}
		set(&w.rows[at])
		if s.profile.Stamped {
			w.rows[at].stamp = by
		}
		w.effects[i]++
		target = w.rows[at]
	case kind == intent.Delete:
		target = w.rows[at]
		problem = s.replaces(w, f, kind, target, row{})
		w.effects[i]++
		w.rows[at] = row{}
	default:
		was := w.rows[at]
		if set(&w.rows[at]) {
			w.rows[at].version++
			if s.profile.StampsUpdates {
				w.rows[at].stamp = by
			}
		}
		target = w.rows[at]
		problem = s.replaces(w, f, kind, was, target)
		if was.amount.by != by && target.amount.by == by || i == undoing && was != target {
			w.effects[i]++
		}
	}
	ref := max(target.id, 1)
	if s.profile.NativeWindow != nil {
		if k := slices.IndexFunc(w.keys[:], func(k key) bool { return k.ref == 0 }); k >= 0 {
			w.keys[k] = key{write: i, generation: f.generation, at: uint8(w.real), ref: ref}
		}
	}
	r := w.rec[i]
	if w.notOurs[i] && (r.NeedsRecheck && int(f.nth) < r.Sends-r.Unsent || !r.Answered && !r.EffectSeen) {
		// No read can distinguish what another actor took back from what never arrived. The
		// recheck must find a record that was made again.
		w.effects[i] = 1
	}
	switch {
	case problem != "":
	case w.effects[i] > 1:
		problem = fmt.Sprintf("%s took effect %d times", named(i), w.effects[i])
	case r.State == ledger.Settled && (r.Settlement == ledger.NotApplied || r.Settlement == ledger.Compensated) && r.Due.IsZero():
		problem = fmt.Sprintf("%s is %s, no recheck is pending, and it takes effect", named(i), r.Phase())
	}
	answer = ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Ref: fmt.Sprint(ref)}
	if s.profile.Conditional != nil && kind != intent.Delete {
		answer.Version = strconv.Itoa(int(target.version))
	}
	return answer, problem
}

// named names a write.
func named(i uint8) string { return [...]string{"write 1", "write 2", "the undo"}[i] }

// replaces names the promise that a send breaks by what it replaces or deletes. Only the
// first send of a write may replace what another actor left. A repeat, a repair and an
// undo may do so where the destination offers no condition, and the change was made after
// the read that permitted the send.
func (s *scenario) replaces(w *world, f inFlight, kind intent.WriteType, was, now row) string {
	i, again := f.write, f.write == undoing || f.nth > 1 || f.repair
	check := func(v, next field) string {
		switch {
		case v.by == 0 || v.by == i+1 || v.value == next.value && kind != intent.Delete:
		case v.by >= other:
			change := v.by - other
			before := i != undoing && change < w.base[i] // as the first send would have: it was there before the write
			raced := change >= f.known && !slices.Contains(s.profile.Conditional, kind) && !s.strict
			if again && !before && !raced {
				return fmt.Sprintf("send %d of %s replaces or deletes what another actor left", f.nth, named(i))
			}
		case v.by == first:
			// A repeat replaces it as the first send would have.
			if b := w.before[i]; i == undoing || again && (b == nil || len(b.Records) != 1 || b.Records[0].Ref != strconv.Itoa(int(was.id))) {
				return fmt.Sprintf("send %d of %s replaces or deletes what was there first", f.nth, named(i))
			}
		case v.by == 2 && i == 0:
			return "a send of write 1 arrives over what write 2, which comes after it, left"
		case v.by == undo && int(i) <= s.undoes:
			return fmt.Sprintf("a send of %s arrives over what the undo of write %d left", named(i), s.undoes+1)
		case i == undoing && int(v.by-1) != s.undoes:
			return fmt.Sprintf("the undo of write %d replaces or deletes what write %d left", s.undoes+1, v.by)
		}
		return ""
	}
	if kind == intent.Delete {
		if problem := check(field{by: was.maker}, field{}); problem != "" && was.maker != first {
			return problem
		} else if i == undoing && was.maker == first {
			return "the undo deletes the record that was there first"
		}
	}
	if problem := check(was.amount, now.amount); problem != "" {
		return problem
	}
	return check(was.note, now.note)
}

// interferes are the changes that another actor can make.
func (s *scenario) interferes(w *world, add func(string, func(*world) string)) {
	at := slices.IndexFunc(w.rows[:], func(r row) bool { return r.id > 0 })
	by := other + w.changes
	spend := func(w *world, gone ...uint8) {
		w.may.interference--
		w.changes++
		for _, author := range gone {
			if author > 0 && author <= undo {
				w.notOurs[author-1] = true
			}
		}
	}
	if at < 0 {
		add("another actor creates a record under the key", func(w *world) string {
			spend(w)
			w.ids++
			w.rows[0] = row{id: w.ids, maker: by, amount: field{by, by}, version: w.ids * 16}
			return ""
		})
		return
	}
	edits := func(label string, amount bool, value uint8) {
		add(label, func(w *world) string {
			r := &w.rows[at]
			f := &r.note
			if amount {
				f = &r.amount
			}
			spend(w, f.by)
			*f = field{value, by}
			r.version++
			if s.profile.StampsUpdates {
				r.stamp = by
			}
			return ""
		})
	}
	edits("another actor sets the amount", true, by)
	if s.notes {
		edits("another actor sets the note", false, by)
	}
	if s.putBack && s.there && w.rows[at].amount.value != first {
		edits("another actor sets the value that was there first", true, first)
	}
	add("another actor deletes the record", func(w *world) string {
		r := w.rows[at]
		spend(w, r.maker, r.amount.by, r.note.by)
		w.rows[at] = row{}
		return ""
	})
}
