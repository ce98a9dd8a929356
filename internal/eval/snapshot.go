package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// snapHead is the first line of a snapshot.
type snapHead struct {
	Snapshot   int       `json:"snapshot"`
	Evaluation string    `json:"evaluation"`
	Taken      time.Time `json:"taken"`
	// Records is how many follow: the missing rest of a truncated file would look new.
	Records int `json:"records"`
}

// snapRecord is one record as it was before the run.
type snapRecord struct {
	Destination string        `json:"destination"`
	Kind        string        `json:"kind"`
	Ref         string        `json:"ref"`
	Version     string        `json:"version,omitempty"`
	Stamp       string        `json:"stamp,omitempty"`
	Fields      intent.Fields `json:"fields"`
	// Listed means that a list showed it, which may show fewer fields than a read.
	Listed bool `json:"listed,omitempty"`
}

// place is how the name of a record of a snapshot begins.
func (r snapRecord) place() string { return r.Destination + "/" + r.Kind + " " }

var snapMembers = []string{"destination", "kind", "ref", "version", "stamp", "fields", "listed"}

// readSnapshot reads what was there before the run.
// It must have been made before the last send ended, where that is known.
func readSnapshot(ps *problems, path, name string, ended time.Time) []snapRecord {
	all := []snapRecord{}
	lines := readLines(ps, path)
	var head snapHead
	if len(lines) == 0 {
		ps.say(path, 0, "", "has nothing; want a snapshot, as `readback eval --snapshot` writes it")
	}
	for i, l := range lines {
		if i == 0 {
			if !strictly(ps, l, []string{"snapshot", "evaluation", "taken", "records"}, &head) {
				return nil
			}
			if head.Snapshot != Version || head.Evaluation != name {
				ps.say(path, l.n, "snapshot", "is of version %d and evaluation %q; want version %d and %q, as `readback eval --snapshot` writes it", head.Snapshot, head.Evaluation, Version, name)
				return nil
			}
			if !ended.IsZero() && head.Taken.After(ended) {
				ps.say(path, l.n, "taken", "is %s, when the last send had ended (%s); want a snapshot from before the run", head.Taken.Format(time.RFC3339), ended.Format(time.RFC3339))
			}
			continue
		}
		var r snapRecord
		if strictly(ps, l, snapMembers, &r) {
			all = append(all, r)
		}
	}
	if n := len(lines) - 1; n >= 0 && n != head.Records {
		ps.say(path, 0, "records", "are %d, and the file declares %d; want the whole snapshot, as `readback eval --snapshot` writes it", n, head.Records)
	}
	return all
}

// Snapshot reads the declared records, and those in the scopes of the check collateral, and
// writes them to out. Make it before a run, so that a later evaluation detects unrequested
// changes. It fails with [InvalidError], and if something cannot be read: with half a snapshot
// everything else would look new.
func Snapshot(ctx context.Context, f *File, reg *connectors.Registry, out io.Writer) error {
	done, err := f.open()
	if err != nil {
		return err
	}
	defer done()
	b, err := bind(ctx, f, reg, func(Progress) {})
	if err != nil {
		return err
	}
	r := &reader{began: time.Now(), ended: time.Now(), patience: f.patience}
	if err := b.read(ctx, r, b.weighing(nil), nil, true, false, func(Progress) {}); err != nil {
		return err
	}
	var all []snapRecord
	noted := map[string]bool{}
	note := func(p connectors.Profile, rec connectors.Record, listed bool) {
		one := snapRecord{p.Destination, p.Kind, rec.Ref, rec.Version, rec.Stamp, rec.Fields, listed}
		if rec.Ref == "" || noted[one.place()+one.Ref] {
			return
		}
		noted[one.place()+one.Ref] = true
		all = append(all, one)
	}
	for _, t := range b.targets {
		if why := t.withheld(); why != "" {
			return fmt.Errorf("%s: %s", t.shown(), why)
		}
		for _, rec := range t.seen.records {
			note(t.profile, rec, false)
		}
	}
	var scopes []scopeForm
	if f.checks.Collateral != nil {
		scopes = f.checks.Collateral.Scopes
	}
	for _, l := range b.lists(ctx, r, scopes) {
		if gap := l.gap(); gap != "" {
			return fmt.Errorf("%s: %s", l.name(), gap)
		}
		for _, rec := range l.Records {
			note(l.profile, rec.Record, true)
		}
	}
	if err := f.unchanged(); err != nil {
		return err
	}
	enc := json.NewEncoder(out)
	if err := enc.Encode(snapHead{Version, f.name, r.began.UTC(), len(all)}); err != nil {
		return err
	}
	for _, one := range all {
		if err := enc.Encode(one); err != nil {
			return err
		}
	}
	return nil
}

// before are the records of a snapshot by their names.
type before map[string]snapRecord

func (b *bound) before() before {
	all := before{}
	for _, r := range b.f.snapshot {
		all[r.Destination+"/"+r.Kind+" "+r.Ref] = r
	}
	return all
}

// worldReads is what is known of a world before and after a run.
type worldReads struct {
	was before
	// touched are the records that were read for what is declared, listed those that
	// lists show, and whole the places of which no list lacks anything.
	touched map[string]bool
	listed  map[string]connectors.Listed
	whole   map[string]bool
}

// collateral: fields that no write named are unchanged.
func (b *bound) collateral(lists []listing, found func(string, bool, Named)) Check {
	c := Check{Name: "collateral", About: "nothing has changed that was not declared", onFinding: found}
	was := b.before()
	k := worldReads{was: was, touched: map[string]bool{}, listed: map[string]connectors.Listed{}, whole: map[string]bool{}}
	for _, l := range lists {
		before, known := k.whole[l.place()]
		k.whole[l.place()] = l.gap() == "" && (before || !known)
		if l.gap() != "" {
			continue
		}
		for _, r := range l.Records {
			k.listed[l.place()+r.Ref] = r
		}
	}
	for _, t := range b.targets {
		b.collateralOf(&c, t, k)
	}
	for _, l := range lists {
		b.collateralIn(&c, l, k)
	}
	b.gone(&c, k)
	b.vanished(&c, k)
	if c.Read == 0 {
		c.Result, c.Why, c.Strength = NotChecked, "nothing is known of how it was before; want snapshot:, as `readback eval --snapshot` writes it, or unchanged: in effects", "none"
		return c
	}
	c.settle("records have changed only as declared", "records have changed in undeclared ways")
	return c
}

// collateralOf checks the records of one target.
func (b *bound) collateralOf(c *Check, t *target, k worldReads) {
	place := t.profile.Destination + "/" + t.profile.Kind + " "
	asked := intent.WriteIntent{Key: t.intent.Key}
	made := false
	for _, m := range t.members {
		// An upsert updates a record or makes one; a list of the place shows which.
		made = made || m.intent.Write != intent.Update && (m.intent.Write != intent.Upsert || k.whole[place])
		if m.claimsNoEffect() {
			continue // the record it required was not to be changed
		}
		asked.Expect, asked.Payload = joined(asked.Expect, m.intent.Expect), joined(asked.Payload, m.intent.Payload)
		asked.Absent, asked.Ignore = slices.Concat(asked.Absent, m.intent.Absent), slices.Concat(asked.Ignore, m.intent.Ignore)
	}
	for _, r := range t.seen.records {
		old, known := k.was[place+r.Ref]
		k.touched[place+r.Ref] = true
		if !known && len(t.unchanged) == 0 && made {
			continue // it is new
		}
		c.Read++
		if !known && len(t.unchanged) == 0 {
			c.unknown(t.named("it was updated, and its earlier state is unknown; want it in the snapshot"))
			continue
		}
		if why := t.withheld(); why != "" {
			c.unknown(t.named(why))
			continue
		}
		c.rests(string(t.seen.strength), "")
		var found []verify.Mismatch
		if known {
			was, is := old.Fields, r.Fields
			if now, there := k.listed[place+r.Ref]; old.Listed && there {
				is = now.Fields // as it was shown before
			} else if old.Listed {
				was, is = shared(was, is), shared(is, was)
			}
			found = verify.Changes(asked, t.profile.Volatile, was, is)
		}
		kept := intent.WriteIntent{Expect: t.unchanged, Compare: t.intent.Compare}
		found = append(found, verify.Diff(kept, t.profile.Compare, r.Fields)...)
		if len(found) > 0 {
			n := t.named(t.differ(found))
			n.Refs = []string{r.Ref}
			c.wrong(n)
		}
	}
	if len(t.unchanged) > 0 && len(t.seen.records) == 0 {
		c.Read++
		c.unknown(t.named("it is not there, or could not be read"))
	}
}

// collateralIn checks the undeclared records of a scope.
func (b *bound) collateralIn(c *Check, l listing, k worldReads) {
	place := l.place()
	if gap := l.gap(); gap != "" {
		c.Read++
		c.unknown(Named{Name: l.name(), Says: gap})
		return
	}
	c.rests(string(l.Strength), l.Path)
	for _, r := range l.Records {
		old, known := k.was[place+r.Ref]
		if !known || k.touched[place+r.Ref] {
			continue // the check unaccounted is about those that are new
		}
		c.Read++
		wasFields, isFields := old.Fields, r.Fields
		if !old.Listed {
			wasFields, isFields = shared(wasFields, isFields), shared(isFields, wasFields)
		}
		if found := verify.Changes(intent.WriteIntent{}, l.profile.Volatile, wasFields, isFields); len(found) > 0 {
			c.wrong(strange(l, r, differ(found, l.profile.Sensitive)))
		}
	}
}

// place is how names of the records of a scope begin.
func (l listing) place() string {
	return l.scope.Destination.Value + "/" + l.scope.Kind.Value + " "
}

// gone finds records of the snapshot that no list of their place shows any more, nor a read of a
// declared record. A place may have several lists, each of a part of it: an incomplete list may
// lack any of them.
func (b *bound) gone(c *Check, k worldReads) {
	for _, name := range slices.Sorted(maps.Keys(k.was)) {
		old := k.was[name]
		_, there := k.listed[name]
		if !k.whole[old.place()] || there || k.touched[name] || b.mayGo(old) {
			continue
		}
		c.Read++
		c.wrong(Named{Name: name, Says: "it was there before, and is gone", Refs: []string{old.Ref}})
	}
}

// vanished finds records that were read for a declared effect before the run, and that neither
// its read nor a list of their place shows any more.
func (b *bound) vanished(c *Check, k worldReads) {
	for _, name := range slices.Sorted(maps.Keys(k.was)) {
		old := k.was[name]
		_, inList := k.whole[old.place()]
		if old.Listed || k.touched[name] || inList || b.mayGo(old) {
			continue
		}
		for _, t := range b.targets {
			if !t.keyed(old) {
				continue
			}
			c.Read++
			if why := t.withheld(); why != "" {
				c.unknown(t.named(why))
				break
			}
			c.wrong(Named{Name: name, Says: "it was there before, and is gone", Refs: []string{old.Ref}})
			break
		}
	}
}

// keyed reports whether a record of a snapshot has the key of a target.
func (t *target) keyed(old snapRecord) bool {
	return t.profile.Destination == old.Destination && t.profile.Kind == old.Kind && hasKey(old.Fields, t.intent, t.profile)
}

// shared are the members of one reading that another, made in another way, shows
// too.
func shared(of, with intent.Fields) intent.Fields {
	all := intent.Fields{}
	for name, v := range of {
		if _, there := with[name]; there {
			all[name] = v
		}
	}
	return all
}

// mayGo reports whether a declared write deletes a record.
func (b *bound) mayGo(old snapRecord) bool {
	return slices.ContainsFunc(b.targets, func(t *target) bool {
		deletes := t.based && t.most == 0 // an effect of none
		for _, m := range t.members {
			deletes = deletes || m.intent.Write == intent.Delete && !m.claimsNoEffect()
		}
		return deletes && t.keyed(old)
	})
}
