package eval

import (
	"fmt"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// left are the writes that are to have left a record under the key: creates, of
// which it is not claimed that they left none, after the last delete. stamps are
// all that such a record may bear. tell is false where stamps tell nothing: the
// destination shows none, one is not known, or a record of before was updated.
func (t *target) left() (creates []member, stamps []string, tell bool) {
	if !t.profile.Stamped {
		return nil, nil, false
	}
	created := false // surely, by us: what is updated later bears a stamp of ours
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

// strangers counts records under the key of a create that bear no stamp of a write
// that is to have left one, where stamps tell that.
func (t *target) strangers() int {
	_, stamps, tell := t.left()
	if !tell {
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

// oneOfEach reports whether each of several creates has left as many records as it
// declares: one that is doubled does not stand for another one that is missing.
func (t *target) oneOfEach() bool {
	creates, stamps, tell := t.left()
	if !tell || len(creates) < 2 || len(stamps) > len(creates) && t.profile.StampsUpdates {
		return true
	}
	for _, m := range creates {
		if n := len(t.bears(m.stamp)); n > m.intent.Want() || n < m.intent.Want() && m.sure() {
			return false
		}
	}
	return true
}

func (t *target) countHolds() bool {
	n, strangers := len(t.seen.records), t.strangers()
	if !t.based { // nothing was surely made here: what is somebody else's may be there
		n, strangers = n-strangers, 0
	}
	return n >= t.least && n <= t.most && strangers == 0 && (!t.based || t.oneOfEach())
}

// operation is one business operation: what its writes may leave, and what is there.
type operation struct {
	most, found, writes int
	keys                []string
	told                bool
}

// operations: one business operation has the effects of one write, whatever keys
// its writes were made under.
func (b *bound) operations(c *Check) {
	all := map[string]*operation{}
	var order []string
	for _, t := range b.targets {
		mine := map[string][]member{}
		for _, m := range t.members {
			if m.key == "" || m.intent.Tenant == "" || m.intent.Write != intent.Create {
				continue
			}
			name := m.intent.Tenant + "/" + m.intent.Tool + "/" + m.key
			mine[name] = append(mine[name], m)
			if all[name] == nil {
				all[name] = &operation{told: true}
				order = append(order, name)
			}
		}
		for name, members := range mine {
			all[name].add(t, members)
		}
	}
	for _, name := range order {
		if o := all[name]; o.writes > 1 && o.told && o.found > o.most {
			c.wrong(Named{Name: "idempotency key " + name, Says: fmt.Sprintf("%d records under %d keys, at most %d declared: %v", o.found, len(o.keys), o.most, o.keys)})
		}
	}
}

// add counts what the writes of an operation have left at one target, where other
// operations may have left something too.
func (o *operation) add(t *target, members []member) {
	o.keys = append(o.keys, t.name)
	o.told = o.told && t.untold() == ""
	o.writes += len(members)
	if len(members) == len(t.members) && len(members) == 1 {
		o.most, o.found = max(o.most, t.most), o.found+len(t.seen.records)
		return
	}
	borne, wanted := 0, 0
	for _, m := range members {
		if borne += len(t.bears(m.stamp)); !m.claimsNoEffect() {
			wanted += m.intent.Want()
			o.most = max(o.most, m.intent.Want())
		}
	}
	if !t.profile.Stamped {
		borne = min(len(t.seen.records), wanted)
	}
	o.found += borne
}

// stamps are those of declared writes, and the destinations for which they were
// declared; "" for one whose records others show, such as mail that mailboxes hold.
type stamps map[string]map[string]bool

func (s stamps) add(stamp, destination string, conn connectors.Connector) {
	if _, lists := conn.(connectors.Lister); !lists {
		destination = ""
	}
	if s[stamp] == nil {
		s[stamp] = map[string]bool{}
	}
	s[stamp][destination] = true
}

// declared reports whether a record bears the stamp of a write that was declared,
// and of one that was declared for its place.
func (b *bound) declared(l listing, r connectors.Listed) (anywhere, here bool) {
	if r.Stamp == "" {
		return false, false
	}
	for _, s := range []stamps{b.stamps, b.elsewhere} {
		places := s[r.Stamp]
		anywhere = anywhere || len(places) > 0
		here = here || places[""] || places[l.scope.Destination.Value]
	}
	return anywhere, here
}

// misplaced says what a record is whose stamp was declared for another place.
const misplaced = "its stamp is that of a write that was declared for another destination: it was sent here instead, or the two are one"
