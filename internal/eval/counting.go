package eval

import (
	"fmt"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// left returns the writes that should have left a record under the key: creates not claimed to
// have left none, after the last delete. stamps are all that such a record may have. countable is
// false if stamps are inconclusive: the destination shows none, one is unknown, or an earlier
// record was updated.
func (t *target) left() (creates []member, stamps []string, countable bool) {
	if !t.profile.Stamped {
		return nil, nil, false
	}
	created := false // surely, by us: a later update keeps a stamp of ours
	for _, m := range t.members {
		switch {
		case m.intent.Write == intent.Delete: // it leaves no stamp
			if m.sure() {
				creates, stamps = nil, nil
			}
			continue
		case m.intent.Write == intent.Create && m.stamp == "", m.intent.Write != intent.Create && !created:
			return nil, nil, false
		case t.based && m.claimsNoEffect():
			continue
		}
		created = created || m.sure()
		stamps = append(stamps, m.stamp)
		if m.intent.Write == intent.Create {
			creates = append(creates, m)
		}
	}
	return creates, stamps, len(stamps) > 0
}

// foreign counts records under the key of a create that have no stamp of a write that should have
// left one, if stamps are conclusive.
func (t *target) foreign() int {
	_, stamps, countable := t.left()
	if !countable {
		return 0
	}
	n := 0
	for _, r := range t.seen.records {
		if !slices.Contains(stamps, r.Stamp) {
			n++
		}
	}
	return n
}

// oneOfEach reports whether each of several creates has left as many records as it declares: a
// duplicate of one does not replace a missing other.
func (t *target) oneOfEach() bool {
	creates, stamps, countable := t.left()
	if !countable || len(creates) < 2 || len(stamps) > len(creates) && t.profile.StampsUpdates {
		return true
	}
	for _, m := range creates {
		if n := len(t.stampedWith(m.stamp)); n > m.intent.Want() || n < m.intent.Want() && m.sure() {
			return false
		}
	}
	return true
}

func (t *target) countHolds() bool {
	n, foreign := len(t.seen.records), t.foreign()
	if !t.based { // nothing was surely made here: a record may be another actor's
		n, foreign = n-foreign, 0
	}
	return n >= t.least && n <= t.most && foreign == 0 && (!t.based || t.oneOfEach())
}

// operation is one business operation: what its writes may leave, and what is there.
type operation struct {
	name                string
	most, found, writes int
	keys                []string
	shown               bool
}

// operationOf names the operation of a write.
func operationOf(w intent.WriteIntent, key string) digest { return digestOf(w.Tenant, w.Tool, key) }

// share finds the operations that have more than one write. Their records are read and
// counted together, whatever lists show.
func (b *bound) share(all []ref) {
	b.f.sort(all)
	for i := range all {
		before, after := i > 0 && all[i-1].digest == all[i].digest, i+1 < len(all) && all[i+1].digest == all[i].digest
		if before || after {
			if b.shared[all[i].digest] == nil {
				b.shared[all[i].digest] = &operation{shown: true}
			}
		}
	}
}

// operation is that of a write, nil where it has no other write.
func (b *bound) operation(m member) (*operation, digest) {
	if len(b.shared) == 0 || m.key == "" || m.intent.Tenant == "" || m.intent.Write != intent.Create {
		return nil, digest{}
	}
	name := operationOf(m.intent, m.key)
	return b.shared[name], name
}

// operations counts a target for the operations of its writes that have others, too:
// one business operation has the effects of one write, whatever keys its writes were
// made under.
func (b *bound) operations(t *target) {
	mine := map[digest][]member{}
	for _, m := range t.members {
		if o, name := b.operation(m); o != nil {
			if o.name == "" {
				o.name = m.intent.Tenant + "/" + m.intent.Tool + "/" + m.key
				b.order = append(b.order, name)
			}
			mine[name] = append(mine[name], m)
		}
	}
	for name, members := range mine {
		b.shared[name].add(t, members)
	}
}

// tooMany names the operations that have left more than one of their writes declares.
func (b *bound) tooMany(c *Check) {
	for _, name := range b.order {
		if o := b.shared[name]; o.writes > 1 && o.shown && o.found > o.most {
			c.wrong(Named{Name: "idempotency key " + o.name, Says: fmt.Sprintf("%d records under %d keys, at most %d declared: %v", o.found, len(o.keys), o.most, o.keys)})
		}
	}
}

// add counts what the writes of an operation have left at one target, where other
// operations may have left something too.
func (o *operation) add(t *target, members []member) {
	o.keys = append(o.keys, t.shown())
	o.shown = o.shown && t.withheld() == ""
	o.writes += len(members)
	if len(members) == len(t.members) && len(members) == 1 {
		o.most, o.found = max(o.most, t.most), o.found+len(t.seen.records)
		return
	}
	borne, wanted := 0, 0
	for _, m := range members {
		if borne += len(t.stampedWith(m.stamp)); !m.claimsNoEffect() {
			wanted += m.intent.Want()
			o.most = max(o.most, m.intent.Want())
		}
	}
	if !t.profile.Stamped {
		borne = min(len(t.seen.records), wanted)
	}
	o.found += borne
}

// declaredBy reports whether a record has the stamp of a write that was declared, here or by
// another workflow, time or tenant of the export, and of one that was declared for its place. For
// destinations that cannot list, such as mail, another destination, such as the mailbox, shows
// the records.
func (b *bound) declaredBy(destination string, r connectors.Listed) (anywhere, here bool) {
	if r.Stamp == "" {
		return false, false
	}
	for _, one := range among(b.stamped, digestOf(r.Stamp)) {
		p := b.places[b.f.items[one.item].place]
		_, lists := p.conn.(connectors.Lister)
		anywhere, here = true, here || !lists || p.destination == destination
	}
	return anywhere, here
}

// misplaced describes a record whose stamp was declared for another place.
const misplaced = "its stamp is that of a write that was declared for another destination: it was sent here instead, or the two are one"
