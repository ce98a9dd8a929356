package audit

import (
	"context"
	"errors"

	"github.com/readback-go/readback/ledger"
)

// doubts are writes and papers that differed at a first look.
type doubts struct {
	x      *index
	writes map[writeName]bool
	papers map[paperName]bool

	// What came since: events and marks that are not sealed, or were only lately.
	unsealed map[writeName]map[int64]bool
	later    *index
	gone     map[writeName]bool  // forgotten since
	dropped  map[paperName]bool  // likewise
	filed    map[paperName]int64 // the newest version that is not sealed, or was only lately
}

// settle looks a second time at what differed: first at the writes and papers
// themselves, then at what is not sealed, then at pages that are new. What was
// committed before the first is in the second or in the third.
func (v *verifier) settle(ctx context.Context, d *doubts) error {
	if len(d.writes)+len(d.papers) == 0 {
		return nil
	}
	if n := len(d.writes) + len(d.papers); n > maxDoubtful {
		v.report.More += d.limit(maxDoubtful)
	}
	lives, papers, err := v.again(ctx, d)
	if err != nil {
		return err
	}
	d.unsealed, d.later = make(map[writeName]map[int64]bool), newIndex()
	d.gone, d.dropped, d.filed = make(map[writeName]bool), make(map[paperName]bool), make(map[paperName]int64)
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
	for name := range d.papers {
		if err := v.judgePaper(d, name, papers[name]); err != nil {
			return err
		}
	}
	return nil
}

// limit leaves out what is too much, and says how much that is.
func (d *doubts) limit(most int) (left int) {
	for name := range d.writes {
		if most--; most < 0 {
			delete(d.writes, name)
			left++
		}
	}
	for name := range d.papers {
		if most--; most < 0 {
			delete(d.papers, name)
			left++
		}
	}
	return left
}

// again reads what is in doubt anew.
func (v *verifier) again(ctx context.Context, d *doubts) (lives map[writeName]*ledger.Life, papers map[paperName]*ledger.Paper, err error) {
	lives, papers = make(map[writeName]*ledger.Life), make(map[paperName]*ledger.Paper)
	for name := range d.writes {
		found, err := v.store.Lives(ctx, before(name.id), 1)
		if err != nil {
			return nil, nil, err
		}
		if len(found) == 1 && found[0].Record.ID == name.id && found[0].Record.Tenant == name.tenant {
			lives[name] = &found[0]
		}
	}
	for name := range d.papers {
		p, err := v.store.Paper(ctx, name.tenant, name.kind, name.id)
		if err != nil && !errors.Is(err, ledger.ErrNoPaper) {
			return nil, nil, err
		}
		if err == nil {
			papers[name] = &p
		}
	}
	return lives, papers, nil
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
				for seq := r.First; seq <= r.Last; seq++ {
					d.note(r.Tenant, Entry{Write: r.ID, Seq: seq})
				}
				continue
			}
			entries, err := entriesOf(r)
			if err != nil {
				return err
			}
			d.note(r.Tenant, entries[0])
			d.later.add(r.Tenant, entries[0], 0)
		}
	}
}

// lately takes note of pages that were made since the chains were walked through.
func (v *verifier) lately(ctx context.Context, d *doubts) error {
	tenants := make(map[string]bool)
	for name := range d.writes {
		tenants[name.tenant] = true
	}
	for name := range d.papers {
		tenants[name.tenant] = true
	}
	for tenant := range tenants {
		err := v.pages(ctx, tenant, v.lengths[tenant].Page, 0, func(p Page) error {
			for i, e := range p.Entries {
				d.note(tenant, e)
				d.later.add(tenant, e, p.First+int64(i))
			}
			return nil
		}, func(int64, error) {})
		if err != nil {
			return err
		}
	}
	return nil
}

// note takes note of one thing that was not sealed when the chain was read.
func (d *doubts) note(tenant string, e Entry) {
	write, paper := writeName{tenant, e.Write}, paperName{tenant, e.PaperKind, e.PaperID}
	switch {
	case e.Mark == ledger.MarkForgotten:
		d.gone[write] = true
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
		w = &sealedWrite{}
	}
	if life == nil {
		if !d.gone[name] && len(w.events)+pruned(w) > 0 {
			v.report.add(Problem{Kind: Missing, Tenant: name.tenant, Write: name.id, Entry: w.first(),
				What: "the write is gone with all of its events, and no rule forgot it"})
		}
		return nil
	}
	if later := d.later.writes[name]; later != nil && later.pruned != nil && life.Record.Tombstone && w.pruned == nil {
		w.pruned = later.pruned
	}
	wrong, unsealed, err := v.compare(w, *life)
	if err != nil {
		return err
	}
	v.report.Problems = append(v.report.Problems, wrong...)
	for _, seq := range unsealed {
		if d.unsealed[name][seq] {
			v.report.Unsealed++
			continue
		}
		if v.cannotTell(name.tenant) {
			continue
		}
		v.report.add(Problem{Kind: Inserted, Tenant: name.tenant, Write: name.id, Seq: seq, Entry: w.near(seq),
			What: "it is in the ledger, does not wait to be sealed, and never was sealed"})
	}
	return nil
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
func (v *verifier) judgePaper(d *doubts, name paperName, p *ledger.Paper) error {
	sealed := d.x.papers[name]
	if p == nil {
		if sealed != nil && !sealed.dropped && !d.dropped[name] {
			v.report.add(Problem{Kind: Missing, Tenant: name.tenant, Paper: name.kind + " " + name.id, Entry: sealed.entry,
				What: "it was filed, and is gone; no rule forgot it"})
		}
		return nil
	}
	if newest, filed := d.filed[name]; filed && newest >= p.Version {
		v.report.Unsealed++
		if later := d.later.papers[name]; later == nil || later.dropped || later.version != p.Version {
			return nil
		} else {
			sealed = later
		}
	}
	wrong, err := sealed.compare(*p)
	if wrong != nil && wrong.Kind == Inserted && v.cannotTell(name.tenant) {
		return nil
	}
	if err == nil && wrong != nil {
		v.report.add(*wrong)
	}
	return err
}
