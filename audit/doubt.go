package audit

import (
	"context"

	"github.com/readback-go/readback/ledger"
)

const (
	// maxDoubtful is how many differing writes are read a second time at once: they are held in
	// memory then. maxWaiting is how many writes and documents, of which little is held, are
	// searched at once among what is not sealed.
	maxDoubtful = 500
	maxWaiting  = 100_000
)

// doubts are writes and documents that differed at the first read.
type doubts struct {
	x         *index
	writes    map[writeName]bool
	fresh     map[writeName][]int64    // events that are not sealed, of writes that do not differ
	documents map[documentName]*glance // nil: it is missing

	// Later changes: events and marks that are not sealed, or were sealed during the check.
	unsealed  map[writeName]map[int64]bool
	later     *index
	gone      map[writeName]bool     // the tombstone was deleted since
	pruned    map[writeName]bool     // pruned since
	dropped   map[documentName]bool  // deleted since
	committed map[documentName]int64 // the newest version that is not sealed, or was sealed during the check
}

// glance is the part of a document that is compared.
type glance struct {
	version       int64
	digest, names sum
}

func glanceOf(p ledger.Document) (*glance, error) {
	digest, err := p.Digest()
	if err != nil {
		return nil, err
	}
	names, err := p.Names()
	return &glance{p.Version, sumOf(digest), sumOf(names)}, err
}

func newDoubts(x *index) *doubts {
	return &doubts{x: x, writes: make(map[writeName]bool), fresh: make(map[writeName][]int64), documents: make(map[documentName]*glance)}
}

// enough settles doubts once there are many: none is left out, however many there are.
func (v *verifier) enough(ctx context.Context, d *doubts) error {
	if len(d.writes) < maxDoubtful && len(d.fresh)+len(d.documents) < maxWaiting {
		return nil
	}
	return v.settle(ctx, d)
}

// settle reads a second time what differed: first the writes themselves, then what is not sealed,
// then new pages. What was committed before the first is in the second or in the third.
func (v *verifier) settle(ctx context.Context, d *doubts) error {
	if len(d.writes)+len(d.fresh)+len(d.documents) == 0 {
		return nil
	}
	lives, err := v.again(ctx, d)
	if err != nil {
		return err
	}
	d.unsealed, d.later = make(map[writeName]map[int64]bool), newIndex()
	d.gone, d.pruned, d.dropped, d.committed = make(map[writeName]bool), make(map[writeName]bool), make(map[documentName]bool), make(map[documentName]int64)
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
	for name, p := range d.documents {
		v.judgeDocument(d, name, p)
	}
	*d = *newDoubts(d.x)
	return nil
}

// again reads doubtful writes and documents anew.
func (v *verifier) again(ctx context.Context, d *doubts) (lives map[writeName]*ledger.Lifetime, err error) {
	lives = make(map[writeName]*ledger.Lifetime)
	for name := range d.writes {
		found, err := v.ledger.Lifetimes(ctx, justBefore(name.id), 1)
		if err != nil {
			return nil, err
		}
		if len(found) == 1 && found[0].Record.ID == name.id && found[0].Record.Tenant == name.tenant {
			lives[name] = &found[0]
		}
	}
	return lives, nil
}

// justBefore is an ID after which the next one is this: IDs are of one length, of letters before ~.
func justBefore(id ledger.ID) ledger.ID {
	last := len(id) - 1
	if last < 0 {
		return ""
	}
	return id[:last] + ledger.ID(id[last]-1) + "~"
}

// waiting records what is not sealed.
func (v *verifier) waiting(ctx context.Context, d *doubts) error {
	for after := int64(0); ; {
		runs, err := v.ledger.Unsealed(ctx, after, runsAtOnce)
		if err != nil || len(runs) == 0 {
			return err
		}
		for _, r := range runs {
			after = r.Ticket
			if r.Mark == nil {
				if !d.about(writeName{r.Tenant, r.ID}) {
					continue // nothing is held of the rest
				}
				for seq := r.First; seq <= r.Last; seq++ {
					d.note(r.Tenant, Entry{Write: r.ID, Seq: seq})
				}
				continue
			}
			entries, err := appendEntries(nil, r)
			if err != nil {
				return err
			}
			d.take(r.Tenant, entries[0], 0)
		}
	}
}

// lately records pages that were made since the chains were read.
func (v *verifier) lately(ctx context.Context, d *doubts) error {
	tenants := make(map[string]bool)
	for name := range d.writes {
		tenants[name.tenant] = true
	}
	for name := range d.fresh {
		tenants[name.tenant] = true
	}
	for name := range d.documents {
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

// take records an entry, if it is about a doubtful write or document.
func (d *doubts) take(tenant string, e Entry, number int64) {
	_, document := d.documents[documentName{tenant, e.DocumentKind, e.DocumentID}]
	if document || e.DocumentID == "" && d.about(writeName{tenant, e.Write}) {
		d.note(tenant, e)
		d.later.add(tenant, e, number)
	}
}

// note records one change that was not sealed when the chain was read.
func (d *doubts) note(tenant string, e Entry) {
	write, document := writeName{tenant, e.Write}, documentName{tenant, e.DocumentKind, e.DocumentID}
	switch {
	case e.Mark == ledger.MarkForgotten:
		d.gone[write] = true
	case e.Mark == ledger.MarkPruned || e.Mark == ledger.MarkErased:
		d.pruned[write] = true
	case e.Mark == ledger.MarkDropped:
		d.dropped[document] = true
	case e.Mark == ledger.MarkFiled:
		d.committed[document] = max(d.committed[document], e.Version)
	case e.Mark == "":
		if d.unsealed[write] == nil {
			d.unsealed[write] = make(map[int64]bool)
		}
		d.unsealed[write][e.Seq] = true
	}
}

// judge returns the problems of a write that was in doubt.
func (v *verifier) judge(d *doubts, name writeName, life *ledger.Lifetime) error {
	w := d.x.writes[name]
	if w == nil {
		w = &sealedWrite{}
	}
	if d.gone[name] { // its tombstone was deleted, and the current write came after that
		if len(w.events) > 0 && w.pruned == nil && !d.pruned[name] {
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
	if later := d.later.writes[name]; later != nil && later.pruned != nil && life.Record.Tombstone && (w.pruned == nil || later.erased != "") {
		w.pruned, w.erased = later.pruned, later.erased
	}
	wrong, unsealed, older, err := v.compare(w, *life)
	if err != nil {
		return err
	}
	v.older += older
	for _, p := range wrong {
		v.report.add(p)
	}
	v.judgeFresh(d, name, unsealed)
	return nil
}

// judgeFresh reports events of a write that are not waiting to be sealed, and were not during the
// check.
func (v *verifier) judgeFresh(d *doubts, name writeName, seqs []int64) {
	for _, seq := range seqs {
		if d.unsealed[name][seq] {
			v.report.Unsealed++
			continue
		}
		if v.undecided(name.tenant) {
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

// judgeDocument returns the problem of a document that was in doubt.
func (v *verifier) judgeDocument(d *doubts, name documentName, p *glance) {
	sealed := d.x.documents[name]
	if p == nil {
		if sealed != nil && !sealed.dropped && !d.dropped[name] {
			v.report.add(Problem{Kind: Missing, Tenant: name.tenant, Document: name.kind + " " + name.id, Entry: sealed.entry,
				What: "it was committed, and is gone; no rule deleted it"})
		}
		return
	}
	if newest, committed := d.committed[name]; committed && newest >= p.version && !(sealed != nil && !sealed.dropped && !d.dropped[name] && sealed.version == p.version) {
		v.report.Unsealed++
		later := d.later.documents[name]
		if later == nil || later.dropped || later.version != p.version {
			return
		}
		if sealed != nil && !d.dropped[name] && later.names == (sum{}) {
			later.names = sealed.names
		}
		sealed = later
	}
	wrong := sealed.compare(name, *p)
	if wrong != nil && (wrong.Kind != Inserted || !v.undecided(name.tenant)) {
		v.report.add(*wrong)
	}
}
