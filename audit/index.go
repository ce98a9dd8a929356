package audit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
)

// index is the chains' content about some of the writes and documents.
type index struct {
	writes    map[writeName]*sealedWrite
	documents map[documentName]*sealedDocument
	wrong     []Problem // entries that contradict each other
	erased    []erasedBy
}

// erasedBy is an entry of something that an erasure erased.
type erasedBy struct {
	tenant  string
	entry   Entry
	number  int64
	erasure string
}

type writeName struct {
	tenant string
	id     ledger.ID
}

type documentName struct{ tenant, kind, id string }

// sum is a digest; the zero sum is none.
type sum [32]byte

func sumOf(digest string) (s sum) {
	raw, err := hex.DecodeString(digest)
	if err == nil && len(raw) == len(s) {
		copy(s[:], raw)
	}
	return s
}

// sealedEvent is one event as it was sealed.
type sealedEvent struct {
	seq, entry int64
	digest     sum
	missing    bool // it was gone before it could be sealed
}

// sealedWrite is the chain's content about one write since it was created, possibly for the
// second time.
type sealedWrite struct {
	events []sealedEvent
	intent sum
	pruned *sealedEvent // its tombstone's entry, with the tombstone's digest
	erased string       // the erasure that made the tombstone, "" for a rule
	seen   bool
}

// sealedDocument is a document's last sealed version; none if it was dropped since. Names is the
// digest of its names, which never change; none if they are not known.
type sealedDocument struct {
	version, entry int64
	digest, names  sum
	dropped, seen  bool
}

func newIndex() *index {
	return &index{writes: make(map[writeName]*sealedWrite), documents: make(map[documentName]*sealedDocument)}
}

// partOf is the part of a check that a write or a document belongs to.
func partOf(tenant, name string, parts int) int {
	if parts == 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(tenant + "\x00" + name))
	return int(h.Sum32() % uint32(parts)) //nolint:gosec // parts is small and positive
}

// read indexes the chains, as far as they were read, for one part.
func (v *verifier) read(ctx context.Context, part, parts int) (*index, error) {
	x := newIndex()
	for _, tenant := range v.tenants {
		if v.lengths[tenant].Page == 0 {
			continue
		}
		err := v.pages(ctx, tenant, 0, v.lengths[tenant].Page, func(p Page) error {
			for i, e := range p.Entries {
				if e.DocumentKind == ledger.ErasureKind && e.Mark == ledger.MarkFiled {
					v.erasures[documentName{tenant, e.DocumentKind, e.DocumentID}] = true
				}
				if partOf(tenant, e.about(), parts) != part {
					continue
				}
				if e.Backfilled {
					v.report.Backfilled++
				}
				if (e.Mark == ledger.MarkForgotten || e.Mark == ledger.MarkDropped) && e.Erasure == "" {
					v.report.Forgotten++
				}
				v.report.Repeated += x.add(tenant, e, p.First+int64(i))
			}
			return nil
		}, func(int64, error) {})
		if err != nil {
			return nil, err
		}
	}
	for _, p := range x.wrong {
		v.report.add(p)
	}
	for _, e := range x.erased {
		v.erasure(e)
	}
	return x, nil
}

// erasure counts an entry of an erasure, whose document (who, when and why) must be in the chain
// itself.
func (v *verifier) erasure(e erasedBy) {
	if !v.erasures[documentName{e.tenant, ledger.ErasureKind, e.erasure}] {
		if !v.undecided(e.tenant) {
			v.report.add(Problem{Kind: Altered, Tenant: e.tenant, Write: e.entry.Write, Document: e.entry.document(), Entry: e.number,
				What: fmt.Sprintf("erasure %q erased it, and the chain does not say who that was and why", e.erasure)})
		}
		return
	}
	if name := (erasedOne{e.tenant, e.erasure, e.entry.about()}); !v.erased[name] { // a killed sealer seals it twice
		v.erased[name] = true
		v.report.erased(e)
	}
}

// erasedOne is a write or a document that an erasure erased.
type erasedOne struct{ tenant, erasure, about string }

// erasedMore compares how many writes erasures erased with their own counts: it finds an entry
// that wrongly claims an erasure.
func (v *verifier) erasedMore(ctx context.Context) error {
	for _, e := range v.report.Erased {
		p, err := v.ledger.Document(ctx, e.Tenant, ledger.ErasureKind, e.ID)
		if errors.Is(err, ledger.ErrNoDocument) {
			continue // reported as its own problem
		}
		if err != nil {
			return err
		}
		record, err := ledger.ErasureOf(p)
		if problem := (Problem{Kind: Altered, Tenant: e.Tenant, Document: p.Kind + " " + p.ID, Entry: e.Entry}); err != nil {
			problem.What = err.Error()
			v.report.add(problem)
		} else if record.Writes < e.Writes {
			problem.What = fmt.Sprintf("it says that it erased %d writes, and the chain says %d", record.Writes, e.Writes)
			v.report.add(problem)
		}
	}
	return nil
}

// document is the name of the document that an entry is about, "" for none.
func (e Entry) document() string {
	if e.DocumentID == "" {
		return ""
	}
	return e.DocumentKind + " " + e.DocumentID
}

// about is the name that an entry is indexed under.
func (e Entry) about() string {
	if e.DocumentID != "" {
		return e.DocumentKind + "\x00" + e.DocumentID
	}
	return string(e.Write)
}

// add indexes an entry, and returns how many were there already. The first sealed version counts:
// altering a record and sealing it again is detected.
func (x *index) add(tenant string, e Entry, number int64) (repeated int) {
	if e.Mark == ledger.MarkErased || e.Erasure != "" {
		x.erased = append(x.erased, erasedBy{tenant, e, number, e.Erasure})
	}
	if e.DocumentID != "" {
		x.addDocument(documentName{tenant, e.DocumentKind, e.DocumentID}, e, number)
		return 0
	}
	name := writeName{tenant, e.Write}
	w := x.writes[name]
	if w == nil {
		w = &sealedWrite{}
		x.writes[name] = w
	}
	sealed := sealedEvent{seq: e.Seq, entry: number, digest: sumOf(e.Digest), missing: e.Mark == MarkMissing}
	switch e.Mark {
	case ledger.MarkForgotten:
		if w.pruned == nil && len(w.events) > 0 {
			x.say(Missing, name, 0, w.first(), "entry %d says that a rule forgot it (%s), and no rule had pruned it before", number, e.Rule)
		}
		delete(x.writes, name)
	case ledger.MarkErased:
		if w.erased != "" && w.pruned.digest != sealed.digest {
			x.say(Altered, name, 0, w.pruned.entry, "entry %d says that it was erased once more, to another tombstone", number)
			return 0
		}
		w.pruned, w.erased = &sealed, e.Erasure // also for writes that retention had pruned before
	case ledger.MarkPruned:
		if w.pruned == nil {
			w.pruned = &sealed
		} else if w.pruned.digest != sealed.digest {
			x.say(Altered, name, 0, w.pruned.entry, "entry %d says that it was pruned once more, to another tombstone", number)
		}
	default:
		return x.addEvent(name, w, e, sealed)
	}
	return 0
}

func (x *index) addEvent(name writeName, w *sealedWrite, e Entry, sealed sealedEvent) (repeated int) {
	switch got := sumOf(e.Intent); {
	case w.intent == (sum{}):
		w.intent = got
	case got != (sum{}) && got != w.intent:
		x.say(Altered, name, e.Seq, w.first(), "entry %d seals another intent for it", sealed.entry)
	}
	at := slices.IndexFunc(w.events, func(have sealedEvent) bool { return have.seq == e.Seq })
	switch {
	case at < 0:
		w.events = append(w.events, sealed)
		return 0
	case w.events[at].digest != sealed.digest:
		x.say(Altered, name, e.Seq, w.events[at].entry, "entry %d seals it once more, as something else", sealed.entry)
	}
	return 1
}

func (x *index) addDocument(name documentName, e Entry, number int64) {
	have := x.documents[name]
	switch {
	case e.Mark == ledger.MarkDropped:
		x.documents[name] = &sealedDocument{dropped: true, entry: number}
		return
	case have == nil || have.dropped:
		x.documents[name] = &sealedDocument{version: e.Version, digest: sumOf(e.Digest), names: sumOf(e.Names), entry: number}
		return
	case e.Version == have.version && sumOf(e.Digest) != have.digest:
		x.wrong = append(x.wrong, Problem{Kind: Altered, Tenant: name.tenant, Document: name.kind + " " + name.id, Entry: have.entry,
			What: fmt.Sprintf("entry %d seals version %d of it once more, as something else", number, e.Version)})
	case e.Version > have.version:
		have.version, have.digest, have.entry = e.Version, sumOf(e.Digest), number
	}
	if have.names == (sum{}) {
		have.names = sumOf(e.Names)
	}
}

func (x *index) say(kind string, of writeName, seq, entry int64, format string, args ...any) {
	x.wrong = append(x.wrong, Problem{Kind: kind, Tenant: of.tenant, Write: of.id, Seq: seq, Entry: entry, What: fmt.Sprintf(format, args...)})
}

// compare returns the problems of a write, which of its events were never sealed, and how many
// more are from before the chains, which began then.
func (w *sealedWrite) compare(life ledger.Lifetime, since time.Time) (wrong []Problem, unsealed []int64, older int, err error) {
	r := life.Record
	say := func(kind string, seq, entry int64, format string, args ...any) {
		wrong = append(wrong, Problem{Kind: kind, Tenant: r.Tenant, Write: r.ID, Seq: seq, Entry: entry, What: fmt.Sprintf(format, args...)})
	}
	if life.Unread != nil {
		say(Unreadable, 0, w.first(), "%v", life.Unread)
		return wrong, nil, 0, nil //nolint:nilerr // that it is unreadable is the finding
	}
	prunedTo := int64(0)
	switch {
	case r.Tombstone && w.pruned == nil && before(r.SettledAt, since): // it may have been pruned before, too
		older = 1
	case r.Tombstone && w.pruned == nil:
		say(Altered, 0, w.first(), "it is a tombstone, and no rule pruned it")
		return wrong, nil, 0, nil
	case r.Tombstone:
		prunedTo = w.pruned.seq
		tombstone, err := ledger.Tombstone(r)
		if err != nil {
			return nil, nil, 0, err
		}
		if sumOf(tombstone) != w.pruned.digest {
			say(Altered, 0, w.pruned.entry, "the tombstone says something else than when it was made")
		}
		if r.Erased != w.erased {
			say(Altered, 0, w.pruned.entry, "the tombstone says that it was erased by %q, and the chain says %q", r.Erased, w.erased)
		}
	case w.pruned != nil:
		say(Altered, 0, w.pruned.entry, "it was pruned, and is no tombstone")
	}
	c, err := w.lifeOf(life, since)
	if err != nil {
		return nil, nil, 0, err
	}
	wrong = append(wrong, c.wrong...)
	for _, e := range w.events {
		if !c.there[e.seq] && e.seq > prunedTo {
			say(Missing, e.seq, e.entry, "%s", missingSentence(e))
		}
	}
	if !r.Tombstone && w.intent != (sum{}) && sumOf(rawDigest(r.Intent)) != w.intent {
		say(Altered, 1, w.first(), "the intent that it keeps is another than the one that was recorded")
	}
	return wrong, c.unsealed, older + c.older, nil
}

func missingSentence(e sealedEvent) string {
	if e.missing {
		return "it had gone before it could be sealed"
	}
	return "it was sealed, and is gone; no rule pruned it"
}

// first is the first entry of a write.
func (w *sealedWrite) first() int64 {
	if len(w.events) == 0 {
		return 0
	}
	return w.events[0].entry
}

// compared is the result of comparing a write's events.
type compared struct {
	wrong    []Problem
	there    map[int64]bool
	unsealed []int64
	older    int
}

// before reports whether something happened before the chains began, if they began later than the
// ledger.
func before(at, since time.Time) bool { return !since.IsZero() && !at.After(since) }

// lifeOf compares the events of a write with the sealed ones.
func (w *sealedWrite) lifeOf(life ledger.Lifetime, since time.Time) (c compared, err error) {
	r := life.Record
	sealed, first := make(map[int64]sealedEvent, len(w.events)), int64(math.MaxInt64)
	for _, e := range w.events {
		sealed[e.seq], first = e, min(first, e.seq)
	}
	c.there = make(map[int64]bool, len(life.Events))
	last, near := int64(0), w.first()
	for _, e := range life.Events {
		p := Problem{Tenant: r.Tenant, Write: r.ID, Seq: e.Seq}
		was, known := sealed[e.Seq]
		if known {
			near = was.entry
		}
		p.Entry = near
		switch ok, err := same(r, e, was.digest); {
		case err != nil:
			return c, err
		case e.Seq <= last:
			p.Kind, p.What = Reordered, fmt.Sprintf("event %d is after event %d", e.Seq, last)
			c.wrong = append(c.wrong, p)
		case !known && e.Seq < first && before(e.At, since):
			c.older++
		case !known:
			c.unsealed = append(c.unsealed, e.Seq)
		case !ok:
			p.Kind, p.What = Altered, "it says something else than when it was sealed"
			for _, other := range w.events {
				moved := e
				moved.Seq = other.seq
				if as, err := same(r, moved, other.digest); err == nil && as && other.seq != e.Seq {
					p.Kind, p.What = Reordered, fmt.Sprintf("it came as event %d", other.seq)
				}
			}
			c.wrong = append(c.wrong, p)
		}
		c.there[e.Seq], last = true, max(last, e.Seq)
	}
	return c, nil
}

func same(r ledger.Record, e ledger.Event, was sum) (bool, error) {
	d, err := eventDigest(r.Tenant, r.ID, e)
	return sumOf(d) == was, err
}
