package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
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
}

// snapRecord is one record as it was before the run.
type snapRecord struct {
	Destination string        `json:"destination"`
	Kind        string        `json:"kind"`
	Ref         string        `json:"ref"`
	Version     string        `json:"version,omitempty"`
	Stamp       string        `json:"stamp,omitempty"`
	Fields      intent.Fields `json:"fields"`
	// Listed says that a list showed it, which may show fewer fields than a read.
	Listed bool `json:"listed,omitempty"`
}

var snapMembers = []string{"destination", "kind", "ref", "version", "stamp", "fields", "listed"}

// readSnapshot reads what was there before the run.
func readSnapshot(ps *problems, path, name string) []snapRecord {
	all := []snapRecord{}
	lines := readLines(ps, path)
	if len(lines) == 0 {
		ps.say(path, 0, "", "has nothing; want a snapshot, as `readback eval --snapshot` writes it")
	}
	for i, l := range lines {
		if i == 0 {
			var head snapHead
			if !strictly(ps, l, []string{"snapshot", "evaluation", "taken"}, &head) {
				return nil
			}
			if head.Snapshot != Version || head.Evaluation != name {
				ps.say(path, l.n, "snapshot", "is of version %d and evaluation %q; want version %d and %q, as `readback eval --snapshot` writes it", head.Snapshot, head.Evaluation, Version, name)
				return nil
			}
			continue
		}
		var r snapRecord
		if strictly(ps, l, snapMembers, &r) {
			all = append(all, r)
		}
	}
	return all
}

// Snapshot reads what is there of what was declared, and in the scopes of the
// check collateral, and writes it to out: to be made before a run, so that a later
// evaluation sees what changed though nobody asked for it. It fails with
// [InvalidError] and where something cannot be read: half a snapshot would make
// everything else look new.
func Snapshot(ctx context.Context, f *File, reg *connectors.Registry, out io.Writer) error {
	b, err := bind(f, reg)
	if err != nil {
		return err
	}
	r := &reader{began: time.Now(), ended: time.Now(), patience: f.patience}
	r.read(ctx, b.targets)
	enc := json.NewEncoder(out)
	if err := enc.Encode(snapHead{Version, f.name, r.began.UTC()}); err != nil {
		return err
	}
	written := map[string]bool{}
	write := func(p connectors.Profile, rec connectors.Record, listed bool) error {
		name := p.Destination + "/" + p.Kind + " " + rec.Ref
		if rec.Ref == "" || written[name] {
			return nil
		}
		written[name] = true
		return enc.Encode(snapRecord{p.Destination, p.Kind, rec.Ref, rec.Version, rec.Stamp, rec.Fields, listed})
	}
	for _, t := range b.targets {
		if why := t.untold(); why != "" {
			return fmt.Errorf("%s: %s", t.name, why)
		}
		for _, rec := range t.seen.records {
			if err := write(t.profile, rec, false); err != nil {
				return err
			}
		}
	}
	if f.checks.Collateral == nil {
		return nil
	}
	for _, l := range b.lists(ctx, r, f.checks.Collateral.Scopes) {
		if gap := l.gap(); gap != "" {
			return fmt.Errorf("%s: %s", l.name(), gap)
		}
		for _, rec := range l.Records {
			if err := write(l.profile, rec.Record, true); err != nil {
				return err
			}
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

// collateral: fields that nobody asked to change are as they were.
func (b *bound) collateral(lists []listing) Check {
	c := Check{Name: "collateral", About: "what nobody asked to change has not changed"}
	was := b.before()
	touched := map[string]bool{}
	for _, t := range b.targets {
		b.collateralOf(&c, t, was, touched)
	}
	for _, l := range lists {
		b.collateralIn(&c, l, was, touched)
	}
	b.vanished(&c, was, touched, lists)
	if c.Looked == 0 {
		c.Result, c.Why, c.Strength = NotChecked, "nothing is known of how it was before; want snapshot:, as `readback eval --snapshot` writes it, or unchanged: in effects", "none"
		return c
	}
	c.settle("records have changed only as declared", "records have changed in ways that nobody asked for")
	return c
}

// collateralOf looks at the records of one target.
func (b *bound) collateralOf(c *Check, t *target, was before, touched map[string]bool) {
	place := t.profile.Destination + "/" + t.profile.Kind + " "
	asked := intent.WriteIntent{Key: t.intent.Key}
	made := false
	for _, m := range t.members {
		made = made || m.intent.Write != intent.Update
		if m.claimsNoEffect() {
			continue // what it asked for was not to be changed
		}
		asked.Expect, asked.Payload = joined(asked.Expect, m.intent.Expect), joined(asked.Payload, m.intent.Payload)
		asked.Absent, asked.Ignore = slices.Concat(asked.Absent, m.intent.Absent), slices.Concat(asked.Ignore, m.intent.Ignore)
	}
	for _, r := range t.seen.records {
		old, known := was[place+r.Ref]
		touched[place+r.Ref] = true
		if !known && len(t.unchanged) == 0 && made {
			continue // it is new
		}
		c.Looked++
		if !known && len(t.unchanged) == 0 {
			c.unknown(t.named("it was updated, and nobody knows how it was before; want it in the snapshot"))
			continue
		}
		if why := t.untold(); why != "" {
			c.unknown(t.named(why))
			continue
		}
		c.rests(string(t.seen.strength), "")
		var found []verify.Mismatch
		if known {
			was, is := old.Fields, r.Fields
			if old.Listed {
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
		c.Looked++
		c.unknown(t.named("it is not there, or could not be read"))
	}
}

// collateralIn looks at the records of a scope that nobody declared.
func (b *bound) collateralIn(c *Check, l listing, was before, touched map[string]bool) {
	place := l.scope.Destination.Value + "/" + l.scope.Kind.Value + " "
	if gap := l.gap(); gap != "" {
		c.Looked++
		c.unknown(Named{Name: l.name(), Says: gap})
		return
	}
	c.rests(string(l.Strength), l.Path)
	there := map[string]bool{}
	for _, r := range l.Records {
		there[place+r.Ref] = true
		old, known := was[place+r.Ref]
		if !known || touched[place+r.Ref] {
			continue // the check unaccounted is about those that are new
		}
		c.Looked++
		wasFields, isFields := old.Fields, r.Fields
		if !old.Listed {
			wasFields, isFields = shared(wasFields, isFields), shared(isFields, wasFields)
		}
		if found := verify.Changes(intent.WriteIntent{}, l.profile.Volatile, wasFields, isFields); len(found) > 0 {
			c.wrong(strange(l, r, differ(found, l.profile.Sensitive)))
		}
	}
	for name, old := range was {
		if !strings.HasPrefix(name, place) || there[name] || b.mayGo(old) {
			continue
		}
		c.Looked++
		c.wrong(Named{Name: name, Says: "it was there before, and is gone", Refs: []string{old.Ref}})
	}
}

// vanished looks for records that were read for a declared effect before the run,
// and that neither its read nor a list of their place shows any more.
func (b *bound) vanished(c *Check, was before, touched map[string]bool, lists []listing) {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		old := was[name]
		inList := slices.ContainsFunc(lists, func(l listing) bool {
			return l.scope.Destination.Value == old.Destination && l.scope.Kind.Value == old.Kind
		})
		if old.Listed || touched[name] || inList || b.mayGo(old) {
			continue
		}
		for _, t := range b.targets {
			if !t.keyed(old) {
				continue
			}
			c.Looked++
			if why := t.untold(); why != "" {
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
	return t.profile.Destination == old.Destination && t.profile.Kind == old.Kind &&
		len(verify.Diff(intent.WriteIntent{Key: t.intent.Key, Compare: t.intent.Compare}, t.profile.Compare, old.Fields)) == 0
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
