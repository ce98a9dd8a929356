package audit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

const (
	// maxEntries is how many entries a page has: some 150 KiB, of the 1 MiB that a document may
	// have.
	maxEntries = 1000
	// maxFiled is how many pages are committed at once: a batch may hold 4 MiB and 100 documents.
	maxFiled = 10
	// runsAtOnce is how many runs are read at once: each may hold megabytes of evidence. After a
	// batch with less than smallBatch bytes of it, and entries for less than one commit, it is
	// manyRuns: fewer batches are fewer commits.
	runsAtOnce = 200
	manyRuns   = 1000
	smallBatch = 4 << 20
	// maxTries is how often a batch is begun anew because another sealer extended the chain of
	// one tenant first; then it is left to that sealer.
	maxTries = 8
	// maxChains is how many ends of chains are remembered between two batches.
	maxChains = 10_000
	// defaultEvery is how often new events are sealed: an alteration before that is not detected.
	defaultEvery = time.Second
	// defaultHeads is how often a head is signed if the chain moved.
	defaultHeads = time.Minute
)

// noteLedger is the note with the ledger's name, noteActive the one with the active sealer.
const (
	noteLedger = "audit/ledger"
	noteActive = "audit/turn"
)

// Options configures a [Sealer]. The zero value is valid: it seals, and signs no heads.
type Options struct {
	// Every is how often new events are sealed. Default 1 s.
	Every time.Duration
	// Heads is how often a head is signed if the chain moved. Default 1 minute.
	Heads time.Duration
	// Signer signs heads. Default none: no heads.
	Signer *signing.Signer
	// HeadStores receive each head, by a name that logs and counts use. Default none.
	HeadStores map[string]HeadStore
	// Owner names this sealer among others. Default a random name.
	Owner string
	// Progress gets how many events Seal has sealed, after each batch. Default nil: it is not
	// reported.
	Progress func(sealed int)
	// Logger receives errors. Default [slog.Default].
	Logger *slog.Logger
}

// Sealer makes the chains of a ledger. Create it with [New]. Several may work on one ledger, in
// any number of processes: of two that make the same page one is refused, and reads again.
type Sealer struct {
	ledger ledger.Ledger
	o      Options
	keep   []*keeping

	mu     sync.Mutex // of one batch at a time, and of all below
	id     string     // the ledger's name; "" before the first batch
	since  time.Time  // events until then may be in no chain
	ends   map[string]end
	moved  map[string]bool // tenants whose newest head is behind
	unread map[int64]bool  // runs that are unreadable and were logged
	limit  int             // how many runs are read next
	// stuck are tenants whose chain cannot be extended, and lost counts how often another sealer
	// was faster, both for one call of Seal: other tenants do not wait for them.
	stuck map[string]error
	lost  map[string]int

	count counts
}

// end is the end of a tenant's chain.
type end struct {
	tip     Head
	version int64 // of the document that holds it
	// last is what the last commit sealed, so that what was not marked as sealed in time is not
	// sealed again. It is set for an end that was read. After a commit of this sealer nothing is
	// sealed before that is marked, or the end is read again.
	last map[key]bool
}

// key names the subject of an entry.
type key struct {
	write                  ledger.ID
	seq                    int64
	mark                   ledger.MarkKind
	documentKind, document string
	version                int64
	at                     int64
}

func (e Entry) key() key {
	k := key{e.Write, e.Seq, e.Mark, e.DocumentKind, e.DocumentID, e.Version, 0}
	if !e.At.IsZero() {
		k.at = e.At.UnixNano()
	}
	return k
}

// New returns a sealer.
func New(l ledger.Ledger, o Options) *Sealer {
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.Heads <= 0 {
		o.Heads = defaultHeads
	}
	if o.Owner == "" {
		o.Owner = random()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &Sealer{ledger: l, o: o, ends: make(map[string]end), moved: make(map[string]bool), unread: make(map[int64]bool), limit: runsAtOnce}
	for name, k := range o.HeadStores {
		s.keep = append(s.keep, &keeping{name: name, store: k, pending: make(map[string]signing.Envelope), wake: make(chan struct{}, 1)})
	}
	return s
}

func random() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// Seal puts everything that is not sealed into the chains, and returns how many entries that
// were. The first call on a ledger begins its chains ([ledger.Feed.BeginSealing]).
func (s *Sealer) Seal(ctx context.Context) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.tried()
	defer func() { s.count.read(err) }()
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	s.stuck, s.lost = make(map[string]error), make(map[string]int)
	after := int64(0)
	for {
		sealed, last, err := s.batch(ctx, after)
		if n += sealed; s.o.Progress != nil {
			s.o.Progress(n)
		}
		switch {
		case errors.Is(err, ledger.ErrStale): // another sealer was faster
			after = 0
		case err != nil:
			return n, err
		case last == 0:
			return n, s.whyStuck()
		default:
			after = last
		}
	}
}

// whyStuck returns which chains could not be extended; nil for none.
func (s *Sealer) whyStuck() error {
	for tenant, err := range s.stuck {
		return fmt.Errorf("%d chains cannot continue, one of them that of tenant %q: %w", len(s.stuck), tenant, err)
	}
	return nil
}

// begin ensures, once, that the ledger has a name and keeps what is not sealed.
func (s *Sealer) begin(ctx context.Context) error {
	if s.id != "" {
		return nil
	}
	id, err := s.identity(ctx)
	if err != nil {
		return err
	}
	if s.since, err = s.ledger.BeginSealing(ctx); err != nil {
		return fmt.Errorf("audit: the chains cannot begin: %w", err)
	}
	s.id = id
	return nil
}

// identity is the name of the ledger, assigned once.
func (s *Sealer) identity(ctx context.Context) (string, error) {
	for range maxTries {
		have, err := noteOf(ctx, s.ledger, noteLedger)
		if err != nil || have.Version != 0 {
			return string(have.Value), err
		}
		have.Value = []byte(random())
		set, err := s.ledger.SetNote(ctx, have)
		if !errors.Is(err, ledger.ErrStale) {
			return string(set.Value), err
		}
	}
	return "", fmt.Errorf("audit: the name of the ledger: %w", ledger.ErrStale)
}

func noteOf(ctx context.Context, l ledger.Ledger, name string) (ledger.Note, error) {
	found, _, err := l.Notes(ctx, name)
	for _, n := range found {
		if n.Name == name {
			return n, err
		}
	}
	return ledger.Note{Name: name}, err
}

// batch seals some runs after a ticket, and returns the last one's, 0 for none. The ends of the
// chains are read before the runs: a faster sealer's changes since then are in neither or in
// both.
func (s *Sealer) batch(ctx context.Context, after int64) (n int, last int64, err error) {
	limit := s.limit
	s.limit = runsAtOnce
	runs, err := s.ledger.Unsealed(ctx, after, limit)
	for err == nil {
		strange := s.foreign(runs)
		if len(strange) == 0 {
			break
		}
		for _, tenant := range strange {
			at, err := s.load(ctx, tenant)
			switch {
			case errors.Is(err, ledger.ErrCorrupt):
				s.stuck[tenant] = err
			case err != nil:
				return 0, 0, err
			default:
				s.ends[tenant] = at
			}
		}
		runs, err = s.ledger.Unsealed(ctx, after, limit)
	}
	if err != nil || len(runs) == 0 {
		return 0, 0, err
	}
	s.count.saw(runs)
	var tickets []int64
	for _, tenant := range s.byTenant(runs, &tickets) {
		sealed, err := s.chain(ctx, tenant.name, tenant.runs)
		n += sealed
		if err != nil {
			clear(s.ends)
			if s.lost[tenant.name]++; errors.Is(err, ledger.ErrStale) && s.lost[tenant.name] > maxTries {
				s.stuck[tenant.name] = err
			}
			return n, 0, errors.Join(err, s.ledger.Sealed(ctx, tickets))
		}
		for _, r := range tenant.runs {
			tickets = append(tickets, r.Ticket)
		}
	}
	if err := s.ledger.Sealed(ctx, tickets); err != nil {
		clear(s.ends) // it is not known whether the committed runs were marked
		return n, 0, err
	}
	if small(runs) && n <= maxEntries*maxFiled/(manyRuns/runsAtOnce) {
		s.limit = manyRuns
	}
	return n, runs[len(runs)-1].Ticket, nil
}

// small reports whether runs hold little: then more of them are read at once.
func small(runs []ledger.Run) bool {
	bytes := 0
	for _, r := range runs {
		bytes += len(r.Intent)
		for _, e := range r.Events {
			bytes += len(e.Evidence) + len(e.Mismatches) + len(e.Prepared)
		}
	}
	return bytes < smallBatch
}

// foreign returns the tenants of runs whose chain has no known end.
func (s *Sealer) foreign(runs []ledger.Run) (tenants []string) {
	if len(s.ends) > maxChains {
		clear(s.ends)
	}
	seen := make(map[string]bool)
	for _, r := range runs {
		if _, known := s.ends[r.Tenant]; !known && s.stuck[r.Tenant] == nil && !seen[r.Tenant] && r.Unread == nil && r.Tenant != "" {
			seen[r.Tenant] = true
			tenants = append(tenants, r.Tenant)
		}
	}
	return tenants
}

// load reads the end of a chain, and what its last commit sealed.
func (s *Sealer) load(ctx context.Context, tenant string) (end, error) {
	at := end{tip: Head{Format: format, Ledger: s.id, Tenant: tenant}, last: make(map[key]bool)}
	tip, err := s.ledger.Document(ctx, tenant, ledger.AuditKind, tipID)
	switch {
	case errors.Is(err, ledger.ErrNoDocument):
		return at, nil
	case err != nil:
		return at, err
	}
	var says committedTip
	if err := strictly(tip.Body, &says); err != nil || says.Page < 1 || says.From < 1 || says.From > says.Page {
		return at, fmt.Errorf("%w: the end of the audit chain of tenant %q cannot be read; `readback audit verify` says more", ledger.ErrCorrupt, tenant)
	}
	at.tip, at.version = says.Head, tip.Version
	for n := says.From; n <= says.Page; n++ {
		p, err := s.ledger.Document(ctx, tenant, ledger.AuditKind, pageID(n))
		if errors.Is(err, ledger.ErrNoDocument) {
			continue // a check reports it; new entries are chained to the recorded end
		}
		if err != nil {
			return at, err
		}
		page, err := readPage(p.Body)
		if err != nil {
			return at, fmt.Errorf("%w: page %d of the audit chain of tenant %q: %w", ledger.ErrCorrupt, n, tenant, err)
		}
		for _, e := range page.Entries {
			at.last[e.key()] = true
		}
	}
	return at, nil
}

// committedTip is the document of the end of a chain; From is the first page of the commit that
// made the last.
type committedTip struct {
	Head
	From int64 `json:"from"`
}

// group is the runs of one tenant.
type group struct {
	name string
	runs []ledger.Run
}

// byTenant groups runs by tenant, in the order of first occurrence. Empty runs are already
// sealed.
func (s *Sealer) byTenant(runs []ledger.Run, sealed *[]int64) (groups []group) {
	at := make(map[string]int)
	for _, r := range runs {
		switch {
		case r.Unread != nil:
			if !s.unread[r.Ticket] && len(s.unread) < maxChains {
				s.unread[r.Ticket] = true
				s.o.Logger.Error("events cannot be read and so not be sealed; nothing else waits for them", "error", r.Unread)
			}
			continue
		case r.Tenant == "":
			*sealed = append(*sealed, r.Ticket)
			continue
		case s.stuck[r.Tenant] != nil:
			continue
		}
		i, there := at[r.Tenant]
		if !there {
			i = len(groups)
			at[r.Tenant], groups = i, append(groups, group{name: r.Tenant})
		}
		groups[i].runs = append(groups[i].runs, r)
	}
	return groups
}

// chain puts the runs of one tenant into the next pages of its chain.
func (s *Sealer) chain(ctx context.Context, tenant string, runs []ledger.Run) (n int, err error) {
	at := s.ends[tenant]
	size := 0
	for _, r := range runs {
		size += max(len(r.Events), 1)
	}
	entries := make([]Entry, 0, size)
	var tickets []int64
	for _, r := range runs {
		before := len(entries)
		if entries, err = appendEntries(entries, r); err != nil {
			return 0, err
		}
		if len(at.last) > 0 {
			fresh := slices.DeleteFunc(entries[before:], func(e Entry) bool { return at.last[e.key()] })
			entries = entries[:before+len(fresh)]
		}
		if len(entries) == before {
			tickets = append(tickets, r.Ticket)
		}
	}
	// Mark what the last commit sealed before another commit: the next sealer reads only the last
	// one.
	if len(tickets) > 0 && len(entries) > 0 {
		if err := s.ledger.Sealed(ctx, tickets); err != nil {
			return 0, err
		}
	}
	for len(entries) > 0 {
		part := entries[:min(len(entries), maxEntries*maxFiled)]
		entries = entries[len(part):]
		if at, err = s.file(ctx, tenant, at, part); err != nil {
			return n, err
		}
		s.ends[tenant], s.moved[tenant] = at, true
		n += len(part)
	}
	return n, nil
}

// file commits entries as the next pages, together with the chain's new end.
func (s *Sealer) file(ctx context.Context, tenant string, at end, entries []Entry) (end, error) {
	next := end{version: at.version + 1, tip: at.tip}
	now := time.Now().UTC()
	var batch ledger.Batch
	for rest := entries; len(rest) > 0; {
		part := rest[:min(len(rest), maxEntries)]
		rest = rest[len(part):]
		p := Page{Format: format, Ledger: s.id, Tenant: tenant, Number: next.tip.Page + 1, First: next.tip.Entries + 1,
			Previous: next.tip.Hash, Sealed: now, Entries: part}
		if p.Number == 1 {
			p.Since = s.since
		}
		body, err := p.seal()
		if err != nil {
			return at, err
		}
		batch.Documents = append(batch.Documents, ledger.Document{Tenant: tenant, Kind: ledger.AuditKind, ID: pageID(p.Number), Body: body})
		next.tip = p.head()
	}
	body, err := json.Marshal(committedTip{next.tip, at.tip.Page + 1})
	if err != nil {
		return at, fmt.Errorf("audit: %w", err)
	}
	batch.Documents = append(batch.Documents, ledger.Document{Tenant: tenant, Kind: ledger.AuditKind, ID: tipID, Version: at.version, Body: body})
	if _, err := s.ledger.Commit(ctx, batch); err != nil {
		return at, err
	}
	s.count.committed(len(batch.Documents)-1, len(entries), now)
	return next, nil
}
