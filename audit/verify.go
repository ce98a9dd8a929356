package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

const (
	// maxIndexed is how many entries are held in memory at a time during a check: some 100 MB. A
	// longer chain is read several times.
	maxIndexed = 500_000
	// headsLate is how long entries may have no outside head until a check with such heads fails,
	// if the ledger's own newest head gives no time.
	headsLate = 24 * time.Hour
)

// VerifyOptions configures a check. The zero value checks that the ledger agrees with itself,
// which proves little.
type VerifyOptions struct {
	// Tenant restricts the check to one. Default all.
	Tenant string
	// Heads are signed heads from outside. Default none.
	Heads []signing.Envelope
	// Outside requires heads from outside: the check fails if there are none, as in a file that
	// was emptied. Heads imply it.
	Outside bool
	// AsOf allows Heads to be older: none that was signed later needs to be among them. Default
	// when the check begins.
	AsOf time.Time
	// Keys are trusted to sign heads. Without any, every given head is a problem.
	Keys signing.Keys
	// Progress gets what is being read, and how many of these were. Default nil: it is not
	// reported.
	Progress func(doing string, done int)
}

// Verify checks a ledger against its chains, and these against heads. It changes nothing, and may
// run while others work on the ledger. The report lists what is wrong; an error means that the
// check failed.
//
// Memory is bounded: it reads chain and ledger page by page, repeatedly if the data to compare
// does not fit.
func Verify(ctx context.Context, l ledger.Ledger, o VerifyOptions) (Report, error) {
	o.Outside = o.Outside || len(o.Heads) > 0
	now := time.Now().UTC()
	if o.AsOf.IsZero() {
		o.AsOf = now
	}
	v := &verifier{ledger: l, o: o, report: Report{Checked: now, NotCovered: notCovered}, lengths: make(map[string]Head), heads: make(map[string][]Head), gaps: make(map[string]bool), erasures: make(map[documentName]bool), erased: make(map[erasedOne]bool)}
	if err := v.run(ctx); err != nil {
		return Report{}, err
	}
	v.report.finish()
	return v.report, nil
}

// verifier is a check in progress.
type verifier struct {
	ledger  ledger.Ledger
	o       VerifyOptions
	report  Report
	tenants []string
	lengths map[string]Head // how far each chain was read
	gaps    map[string]bool // chains with missing or unreadable pages
	none    bool            // there is no chain at all
	begun   bool            // the first page of some chain was read
	since   time.Time       // what happened until then may be in no chain
	older   int             // what is in none for that reason
	unknown int             // what may have been sealed on these, or is in no chain
	heads   map[string][]Head
	// erasures are those whose own document is in the chains.
	erasures map[documentName]bool
	erased   map[erasedOne]bool

	pagesRead, writesRead int // for progress
}

// step reports that one more of something was read.
func (v *verifier) step(count *int, doing string) {
	if *count++; v.o.Progress != nil {
		v.o.Progress(doing, *count)
	}
}

func (v *verifier) run(ctx context.Context) error {
	tenants, err := v.ledger.Tenants(ctx)
	if err != nil {
		return err
	}
	v.tenants = tenants
	if v.o.Tenant != "" {
		v.tenants = []string{v.o.Tenant}
	}
	v.openHeads()
	foreign, err := v.ledger.Foreign(ctx)
	if err != nil {
		return err
	}
	for _, name := range foreign {
		v.report.add(Problem{Kind: Foreign, What: fmt.Sprintf(
			"%s: the ledger did not make it, and it can change what is stored; see what it does, and remove it", name)})
	}
	entries := int64(0)
	for _, tenant := range v.tenants {
		chain, err := v.chain(ctx, tenant)
		if err != nil {
			return err
		}
		entries += chain.Entries
	}
	v.unplaced()
	v.none = len(v.report.Chains) == 0
	parts := int(entries/maxIndexed) + 1
	for part := range parts {
		if err := v.part(ctx, part, parts); err != nil {
			return err
		}
	}
	if err := v.erasedMore(ctx); err != nil {
		return err
	}
	if v.report.Backfilled += v.older; v.older > 0 {
		v.report.Notes = append(v.report.Notes, fmt.Sprintf("%d events and documents from before %s are older than the chains, and in none: no check can detect that they were altered", v.older, clock(v.since)))
	}
	switch {
	case v.unknown == 0:
	case v.none:
		v.report.Notes = append(v.report.Notes, fmt.Sprintf("%d events and documents are in no chain: there is none", v.unknown))
	default:
		v.report.Notes = append(v.report.Notes, fmt.Sprintf("%d events and documents may have been sealed on pages that are gone or cannot be read: they could not be compared", v.unknown))
	}
	return nil
}

// undecided counts what is not in the chain of a tenant, if that proves nothing: pages are
// missing, or nothing of the ledger is chained at all.
func (v *verifier) undecided(tenant string) bool {
	if v.none || v.gaps[tenant] {
		v.unknown++
	}
	return v.none || v.gaps[tenant]
}

// openHeads checks the signatures of the given heads.
func (v *verifier) openHeads() {
	for i, e := range v.o.Heads {
		h, err := OpenHead(e, v.o.Keys)
		if err != nil {
			v.report.add(Problem{Kind: BadHead, What: fmt.Sprintf("head %d of those that were given: %v", i+1, err)})
			continue
		}
		if v.o.Tenant == "" || v.o.Tenant == h.Tenant {
			v.heads[h.Tenant] = append(v.heads[h.Tenant], h)
		}
	}
	for _, of := range v.heads {
		slices.SortFunc(of, func(a, b Head) int { return int(a.Page - b.Page) })
	}
	if v.o.Outside && len(v.heads) == 0 {
		of := "of any tenant"
		if v.o.Tenant != "" {
			of = "of this tenant"
		}
		v.report.add(Problem{Kind: HeadsEnd, Tenant: v.o.Tenant, What: fmt.Sprintf(
			"heads from outside were to be compared, and among the %d that were given no trusted key signed one %s: an empty file proves nothing", len(v.o.Heads), of)})
	}
}

// unplaced are heads of tenants that do not exist here.
func (v *verifier) unplaced() {
	for tenant, heads := range v.heads {
		if !slices.Contains(v.tenants, tenant) {
			newest := heads[len(heads)-1]
			v.report.add(Problem{Kind: HeadUnplaced, Tenant: tenant, What: fmt.Sprintf(
				"a signed head says that it had %d entries at %s, and the ledger holds nothing of it: the whole tenant is missing, or the ledger is another (the head's is %s)", newest.Entries, clock(newest.At), newest.Ledger)})
		}
	}
}

// pages reads a chain from after a page up to one, 0 for its end.
func (v *verifier) pages(ctx context.Context, tenant string, after, until int64, see func(Page) error, gap func(n int64, unread error)) error {
	for n := after + 1; until == 0 || n <= until; n++ {
		p, err := v.ledger.Document(ctx, tenant, ledger.AuditKind, pageID(n))
		if errors.Is(err, ledger.ErrNoDocument) {
			if until == 0 {
				return nil
			}
			gap(n, nil)
			continue
		}
		if err != nil {
			return err
		}
		page, err := readPage(p.Body)
		if err != nil {
			gap(n, err)
			continue
		}
		if err := see(page); err != nil {
			return err
		}
	}
	return nil
}

// chain checks one chain by itself, and against heads.
func (v *verifier) chain(ctx context.Context, tenant string) (Chain, error) {
	w := &chainPass{v: v, chain: Chain{Tenant: tenant}}
	for _, h := range v.heads[tenant] {
		w.heads = append(w.heads, given{h, true})
		w.newest, w.chain.HeadAt = h, h.At
	}
	if err := w.begin(ctx, tenant); err != nil {
		return w.chain, err
	}
	slices.SortStableFunc(w.heads, func(a, b given) int { return int(a.Page - b.Page) })
	// The recorded end is a hint: later pages are searched as well.
	var err error
	if w.says > 0 {
		err = v.pages(ctx, tenant, 0, w.says, w.see, w.gap)
	}
	if err == nil {
		err = v.pages(ctx, tenant, max(w.says, w.last.Page), 0, w.see, w.gap)
	}
	if err != nil {
		return w.chain, err
	}
	beyond := len(w.heads) > 0
	w.end()
	w.short()
	if w.chain.Pages > 0 || w.says > 0 || beyond {
		v.report.Chains = append(v.report.Chains, w.chain)
	}
	v.lengths[tenant] = w.last
	return w.chain, nil
}

// chainPass is one pass over a chain.
type chainPass struct {
	v      *verifier
	chain  Chain
	heads  []given   // by page
	says   int64     // the last page that the ledger records
	last   Head      // of the last page that was read
	broken bool      // a page was altered, and so does not prove the next
	newest Head      // the newest from outside
	own    Head      // the newest that the ledger itself keeps; zero if none can be trusted
	gone   bool      // the ledger keeps none
	beyond time.Time // when the first page after the newest outside head was sealed
}

// given is a head, and whether it is from outside.
type given struct {
	Head
	outside bool
}

// begin reads the recorded end of the chain, and the ledger's own newest head.
func (w *chainPass) begin(ctx context.Context, tenant string) error {
	tip, err := w.v.ledger.Document(ctx, tenant, ledger.AuditKind, tipID)
	if err != nil && !errors.Is(err, ledger.ErrNoDocument) {
		return err
	}
	if err == nil {
		var says committedTip
		if err := strictly(tip.Body, &says); err != nil || says.Tenant != tenant || says.Page < 1 {
			w.add(Problem{Kind: PageAltered, What: "the document that records the end of the chain was altered"})
		} else {
			w.says = says.Page
		}
	}
	if len(w.v.o.Keys.List()) == 0 {
		return nil
	}
	p, err := w.v.ledger.Document(ctx, tenant, ledger.AuditKind, headID)
	if err != nil {
		if w.gone = errors.Is(err, ledger.ErrNoDocument); w.gone {
			err = nil
		}
		return err
	}
	e, err := signing.ReadEnvelope(p.Body)
	var h Head
	if err == nil {
		h, err = OpenHead(e, w.v.o.Keys)
	}
	switch {
	case err != nil:
		w.add(Problem{Kind: BadHead, What: "the signed head that the ledger itself keeps: " + err.Error()})
	case h.Tenant != tenant:
		w.add(Problem{Kind: BadHead, What: fmt.Sprintf("the signed head that the ledger itself keeps is that of tenant %q", h.Tenant)})
	default:
		w.own = h
		w.heads = append(w.heads, given{h, false})
	}
	return nil
}

func (w *chainPass) add(p Problem) {
	p.Tenant = w.chain.Tenant
	w.v.report.add(p)
}

func (w *chainPass) gap(n int64, unread error) {
	w.broken, w.v.gaps[w.chain.Tenant] = true, true
	if unread != nil {
		w.add(Problem{Kind: PageAltered, Page: n, Entry: w.last.Entries + 1, What: unread.Error()})
	} else {
		w.add(Problem{Kind: PageMissing, Page: n, Entry: w.last.Entries + 1, What: fmt.Sprintf("it is gone; the chain went on until page %d", w.says)})
	}
}

// see checks one page.
func (w *chainPass) see(p Page) error {
	w.v.step(&w.v.pagesRead, "reading the chain, pages")
	hash, err := p.hash()
	if err != nil {
		return err
	}
	at := Problem{Page: p.Number, Entry: w.last.Entries + 1}
	say := func(kind, format string, args ...any) {
		at.Kind, at.What = kind, fmt.Sprintf(format, args...)
		w.add(at)
	}
	follows := p.Number == w.last.Page+1 && p.First == w.last.Entries+1 && p.Previous == w.last.Hash
	switch {
	case p.Tenant != w.chain.Tenant:
		say(PageAltered, "it is of the chain of tenant %q", p.Tenant)
	case w.v.report.Ledger != "" && p.Ledger != w.v.report.Ledger:
		say(OtherLedger, "it is of ledger %s, and pages before it are of %s", p.Ledger, w.v.report.Ledger)
	case hash != p.Hash:
		say(PageAltered, "its content has the hash %s, and it says %s", hash, p.Hash)
	case !follows && !w.broken:
		say(ChainBroken, "it says page %d, first entry %d, after %q; want page %d, entry %d, after %q", p.Number, p.First, p.Previous, w.last.Page+1, w.last.Entries+1, w.last.Hash)
	}
	w.broken = hash != p.Hash
	if w.v.report.Ledger == "" {
		w.v.report.Ledger = p.Ledger
	}
	if v := w.v; p.Number == 1 && (!v.begun || p.Since.Before(v.since)) {
		v.begun, v.since = true, p.Since // it is the same for all: a forged chain must not explain what others lack
	}
	if p.Number > w.newest.Page && w.beyond.IsZero() {
		w.beyond = p.Sealed
	}
	p.Hash = hash
	w.last = p.head()
	w.chain.Pages, w.chain.Entries, w.chain.Hash, w.chain.Sealed = p.Number, w.last.Entries, hash, p.Sealed
	for len(w.heads) > 0 && w.heads[0].Page <= p.Number {
		w.meet(w.heads[0].Head, w.heads[0].outside)
		w.heads = w.heads[1:]
	}
	return nil
}

// meet compares a head with the last page read.
func (w *chainPass) meet(h Head, outside bool) {
	at := Problem{Entry: h.Entries, Page: h.Page}
	when := clock(h.At)
	switch {
	case h.Page != w.last.Page: // its page is missing, which is reported
		return
	case h.Ledger != w.v.report.Ledger:
		at.Kind, at.What = OtherLedger, fmt.Sprintf("a head that was signed at %s is of ledger %s; this one is %s", when, h.Ledger, w.v.report.Ledger)
	case h.Hash != w.last.Hash || h.Entries != w.last.Entries:
		at.Kind, at.What = Forked, fmt.Sprintf("the head that was signed at %s says hash %s after %d entries; the chain has %s after %d: it was made anew since, from somewhere before here", when, h.Hash, h.Entries, w.last.Hash, w.last.Entries)
	default:
		if w.chain.Heads++; outside {
			w.chain.Proven = h.Entries
		}
		return
	}
	w.add(at)
}

// end reports heads beyond the last page.
func (w *chainPass) end() {
	for i, g := range w.heads {
		h := g.Head
		if h.Ledger != w.v.report.Ledger && w.v.report.Ledger != "" {
			w.add(Problem{Kind: OtherLedger, Page: h.Page, What: fmt.Sprintf("a head is of ledger %s; this one is %s", h.Ledger, w.v.report.Ledger)})
			continue
		}
		if i == len(w.heads)-1 {
			w.add(Problem{Kind: OlderCopy, Page: h.Page, Entry: w.last.Entries + 1, What: fmt.Sprintf(
				"a head that was signed at %s says %d entries on %d pages; the chain ends after %d entries on %d pages: %d entries are missing. An older copy was put back, or its end was cut off",
				clock(h.At), h.Entries, h.Page, w.last.Entries, w.last.Page, h.Entries-w.last.Entries)})
		}
	}
}

// short reports where the outside heads end too early. Otherwise an attacker who shortens the
// file of heads, or has an older copy of it, could alter everything later.
func (w *chainPass) short() {
	if !w.v.o.Outside || len(w.v.heads) == 0 {
		return
	}
	at := Problem{Kind: HeadsEnd, Page: w.newest.Page, Entry: w.newest.Entries + 1}
	end := "no head of this tenant is among those that were given"
	if w.newest.Page > 0 {
		end = fmt.Sprintf("the newest head that was given was signed at %s, after %d entries", clock(w.newest.At), w.newest.Entries)
	}
	const why = "the heads that were given were shortened, or were collected before that: get newer ones, or say how far they may be behind"
	switch {
	case w.own.Page > w.newest.Page && !w.own.At.After(w.v.o.AsOf):
		at.What = fmt.Sprintf("%s, and the ledger signed one at %s, after %d entries; %s", end, clock(w.own.At), w.own.Entries, why)
	case w.gone && w.newest.Page > 0:
		at.What = end + ", and the ledger does not hold its own newest head, which it keeps from the first that is signed: it was deleted"
	case !w.beyond.IsZero() && w.beyond.Before(w.v.o.AsOf.Add(-headsLate)):
		at.What = fmt.Sprintf("%s, and entries behind it were sealed from %s on, with no head for more than %s: %s", end, clock(w.beyond), headsLate, why)
	default:
		return
	}
	w.add(at)
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
