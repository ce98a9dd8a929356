package audit

import (
	"context"

	"github.com/readback-go/readback/ledger"
)

// doubts are writes and papers that differed at a first look.
type doubts struct {
	x      *index
	writes map[writeName]bool
	fresh  map[writeName][]int64 // events that are not sealed, of writes that do not differ
	papers map[paperName]*glance // nil: it is not there

	// finding says that what was there when it was switched on is still being found.
	finding bool

	// What came since: events and marks that are not sealed, or were only lately.
	unsealed map[writeName]map[int64]bool
	later    *index
	gone     map[writeName]bool  // forgotten since
	buried   map[writeName]bool  // pruned since
	dropped  map[paperName]bool  // forgotten since
	filed    map[paperName]int64 // the newest version that is not sealed, or was only lately
}

// glance is what was seen of a paper.
type glance struct {
	version       int64
	digest, names sum
}

func glanceOf(p ledger.Paper) (*glance, error) {
	m, err := p.Found()
	if err != nil || m == nil {
		return nil, err
	}
	return &glance{p.Version, sumOf(m.Digest), sumOf(m.Names)}, nil
}

func newDoubts(x *index) *doubts {
	return &doubts{x: x, writes: make(map[writeName]bool), fresh: make(map[writeName][]int64), papers: make(map[paperName]*glance)}
}

// enough settles doubts where there are many: none is left out, however many there
// are.
func (v *verifier) enough(ctx context.Context, d *doubts) error {
	if len(d.writes) < maxDoubtful && len(d.fresh)+len(d.papers) < maxWaiting {
		return nil
	}
	return v.settle(ctx, d)
}

// settle looks a second time at what differed: first at the writes themselves, then
// at what is not sealed, then at pages that are new. What was committed before the
// first is in the second or in the third, unless it was not found yet.
func (v *verifier) settle(ctx context.Context, d *doubts) error {
	if len(d.writes)+len(d.fresh)+len(d.papers) == 0 {
		return nil
	}
	lives, err := v.again(ctx, d)
	if err != nil {
		return err
	}
	if d.finding, err = v.store.finding(ctx); err != nil {
		return err
	}
	v.finding = v.finding || d.finding
	d.unsealed, d.later = make(map[writeName]map[int64]bool), newIndex()
	d.gone, d.buried, d.dropped, d.filed = make(map[writeName]bool), make(map[writeName]bool), make(map[paperName]bool), make(map[paperName]int64)
	if err := v.waiting(ctx, d); err != nil {
		return err
	}
	if err := v.lately(ctx, d); err != nil {
		return err
	}
	for name := range d.writes {
		if err := v.judge(d, name, lives[name]); err != nil {
			return err
		}
	}
	for name, seqs := range d.fresh {
		v.judgeFresh(d, name, seqs)
	}
	for name, p := range d.papers {
		v.judgePaper(d, name, p)
	}
	*d = *newDoubts(d.x)
	return nil
}

// again reads what is in doubt anew.
func (v *verifier) again(ctx context.Context, d *doubts) (lives map[writeName]*ledger.Life, err error) {
	lives = make(map[writeName]*ledger.Life)
	for name := range d.writes {
		found, err := v.store.Lives(ctx, before(name.id), 1)
		if err != nil {
			return nil, err
		}
		if len(found) == 1 && found[0].Record.ID == name.id && found[0].Record.Tenant == name.tenant {
			lives[name] = &found[0]
		}
	}
	return lives, nil
}

// before is an id behind which the next one is this: ids are of one length, of
// letters before ~.
func before(id ledger.ID) ledger.ID {
	last := len(id) - 1
	if last < 0 {
		return ""
	}
	return id[:last] + ledger.ID(id[last]-1) + "~"
}

// waiting takes note of what is not sealed.
func (v *verifier) waiting(ctx context.Context, d *doubts) error {
	for after := int64(0); ; {
		runs, err := v.store.Unsealed(ctx, after, runsAtOnce)
		if err != nil || len(runs) == 0 {
			return err
		}
		for _, r := range runs {
			after = r.Ticket
			if r.Mark == nil {
				if !d.about(writeName{r.Tenant, r.ID}) {
					continue // of the rest nothing is held
				}
				for seq := r.First; seq <= r.Last; seq++ {
					d.note(r.Tenant, Entry{Write: r.ID, Seq: seq})
				}
				continue
			}
			entries, err := entriesOf(r)
			if err != nil {
				return err
			}
			d.take(r.Tenant, entries[0], 0)
		}
	}
}

// lately takes note of pages that were made since the chains were walked through.
func (v *verifier) lately(ctx context.Context, d *doubts) error {
	tenants := make(map[string]bool)
	for name := range d.writes {
		tenants[name.tenant] = true
	}
	for name := range d.fresh {
		tenants[name.tenant] = true
	}
	for name := range d.papers {
		tenants[name.tenant] = true
	}
	for tenant := range tenants {
		err := v.pages(ctx, tenant, v.lengths[tenant].Page, 0, func(p Page) error {
			for i, e := range p.Entries {
				d.take(tenant, e, p.First+int64(i))
			}
			return nil
		}, func(int64, error) {})
		if err != nil {
			return err
		}
	}
	return nil
}

// about reports whether a write is in doubt.
func (d *doubts) about(name writeName) bool { return d.writes[name] || d.fresh[name] != nil }

// take takes an entry into account, if it is about something that is in doubt.
func (d *doubts) take(tenant string, e Entry, number int64) {
	_, paper := d.papers[paperName{tenant, e.PaperKind, e.PaperID}]
	if paper || e.PaperID == "" && d.about(writeName{tenant, e.Write}) {
		d.note(tenant, e)
		d.later.add(tenant, e, number)
	}
}

// note takes note of one thing that was not sealed when the chain was read.
func (d *doubts) note(tenant string, e Entry) {
	write, paper := writeName{tenant, e.Write}, paperName{tenant, e.PaperKind, e.PaperID}
	switch {
	case e.Mark == ledger.MarkForgotten:
		d.gone[write] = true
	case e.Mark == ledger.MarkPruned:
		d.buried[write] = true
	case e.Mark == ledger.MarkDropped:
		d.dropped[paper] = true
	case e.Mark == ledger.MarkFiled:
		d.filed[paper] = max(d.filed[paper], e.Version)
	case e.Mark == "":
		if d.unsealed[write] == nil {
			d.unsealed[write] = make(map[int64]bool)
		}
		d.unsealed[write][e.Seq] = true
	}
}

// judge says what is wrong with a write that was in doubt.
func (v *verifier) judge(d *doubts, name writeName, life *ledger.Life) error {
	w := d.x.writes[name]
	if w == nil {
		w = &sealedWrite{}
	}
	if d.gone[name] { // it was forgotten, and what is there now came after that
		if len(w.events) > 0 && w.pruned == nil && !d.buried[name] {
			v.report.add(Problem{Kind: Missing, Tenant: name.tenant, Write: name.id, Entry: w.first(),
				What: "a mark says that a rule forgot it, and no rule had pruned it before"})
		}
		w = &sealedWrite{}
	}
	if life == nil {
		if len(w.events)+pruned(w) > 0 {
			v.report.add(Problem{Kind: Missing, Tenant: name.tenant, Write: name.id, Entry: w.first(),
				What: "the write is gone with all of its events, and no rule forgot it"})
		}
		return nil
	}
	if later := d.later.writes[name]; later != nil && later.pruned != nil && life.Record.Tombstone && w.pruned == nil {
		w.pruned = later.pruned
	}
	if d.finding && life.Record.Tombstone && w.pruned == nil && life.Unread == nil {
		v.report.Unsealed++ // it is found as what it is now
		return nil
	}
	wrong, unsealed, err := v.compare(w, *life)
	if err != nil {
		return err
	}
	for _, p := range wrong {
		v.report.add(p)
	}
	v.judgeFresh(d, name, unsealed)
	return nil
}

// judgeFresh says which events of a write do not wait to be sealed, and were not
// lately.
func (v *verifier) judgeFresh(d *doubts, name writeName, seqs []int64) {
	for _, seq := range seqs {
		if d.unsealed[name][seq] || d.finding {
			v.report.Unsealed++
			continue
		}
		if v.cannotTell(name.tenant) {
			continue
		}
		entry := int64(0)
		if w := d.x.writes[name]; w != nil {
			entry = w.near(seq)
		}
		v.report.add(Problem{Kind: Inserted, Tenant: name.tenant, Write: name.id, Seq: seq, Entry: entry,
			What: "it is in the ledger, does not wait to be sealed, and never was sealed"})
	}
}

func pruned(w *sealedWrite) int {
	if w.pruned != nil {
		return 1
	}
	return 0
}

// near is the last entry of a write before an event.
func (w *sealedWrite) near(seq int64) (entry int64) {
	for _, e := range w.events {
		if e.seq < seq {
			entry = max(entry, e.entry)
		}
	}
	return entry
}

// judgePaper says what is wrong with a paper that was in doubt.
func (v *verifier) judgePaper(d *doubts, name paperName, p *glance) {
	sealed := d.x.papers[name]
	if p == nil {
		if sealed != nil && !sealed.dropped && !d.dropped[name] {
			v.report.add(Problem{Kind: Missing, Tenant: name.tenant, Paper: name.kind + " " + name.id, Entry: sealed.entry,
				What: "it was filed, and is gone; no rule forgot it"})
		}
		return
	}
	if newest, filed := d.filed[name]; filed && newest >= p.version && !(sealed != nil && !sealed.dropped && !d.dropped[name] && sealed.version == p.version) {
		v.report.Unsealed++
		later := d.later.papers[name]
		if later == nil || later.dropped || later.version != p.version {
			return
		}
		if sealed != nil && !d.dropped[name] && later.names == (sum{}) {
			later.names = sealed.names
		}
		sealed = later
	}
	wrong := sealed.compare(name, *p)
	if wrong != nil && d.finding && (wrong.Kind == Inserted || p.version > sealed.version) {
		v.report.Unsealed++
		return
	}
	if wrong != nil && (wrong.Kind != Inserted || !v.cannotTell(name.tenant)) {
		v.report.add(*wrong)
	}
}
