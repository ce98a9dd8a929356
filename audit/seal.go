package audit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

// ErrCannot says that a ledger lacks what a chain needs: [ledger.Chronicler],
// [ledger.Papers], [ledger.Notes] and [ledger.Witness].
var ErrCannot = errors.New("this ledger cannot be sealed")

// noteLedger is the note that says which ledger it is, noteTurn the one that says
// who seals.
const (
	noteLedger = "audit/ledger"
	noteTurn   = "audit/turn"
)

// Options of a [Sealer]. The zero value works: it seals, and signs no heads.
type Options struct {
	// Every is how often what is new is sealed. Default 1 s.
	Every time.Duration
	// Heads is how often a head is signed where the chain moved. Default 1 minute.
	Heads time.Duration
	// Signer signs heads. Default none: no heads.
	Signer *signing.Signer
	// Keepers are given each head, by a name that logs and counts use. Default none.
	Keepers map[string]Keeper
	// Owner names this sealer among others. Default a random name.
	Owner string
	// Logger hears what goes wrong. Default [slog.Default].
	Logger *slog.Logger
}

// store is what a chain needs of a ledger.
type store struct {
	ledger.Chronicler
	ledger.Papers
	ledger.Witness
	notes ledger.Notes
}

// finding says that part of the ledger was not gone over since it is sealed: what is
// there waits to be sealed, and nothing says so yet.
func (s store) finding(ctx context.Context) (bool, error) {
	if f, can := s.Chronicler.(ledger.PortionedChronicler); can {
		return f.Finding(ctx)
	}
	return false, nil
}

func storeOf(l ledger.Ledger) (s store, err error) {
	var ok [4]bool
	s.Chronicler, ok[0] = l.(ledger.Chronicler)
	s.Papers, ok[1] = l.(ledger.Papers)
	s.Witness, ok[2] = l.(ledger.Witness)
	s.notes, ok[3] = l.(ledger.Notes)
	if ok != [4]bool{true, true, true, true} {
		return s, ErrCannot
	}
	return s, nil
}

// Sealer makes the chains of a ledger. Make it with [New]. Several may work on
// one ledger, in any number of processes: of two that make the same page one is
// refused, and looks again.
type Sealer struct {
	store store
	o     Options
	err   error // why it cannot work
	keep  []*keeping

	mu     sync.Mutex // of one batch at a time, and of all below
	on     bool
	id     string // of the ledger
	ends   map[string]end
	moved  map[string]bool // tenants whose newest head is behind
	unread map[int64]bool  // runs that could not be read, and were told of
	limit  int             // how many runs are read next
	// stuck are tenants whose chain cannot go on, and lost counts how often another
	// sealer was quicker, both for one call of Seal: nobody else waits for them.
	stuck map[string]error
	lost  map[string]int

	count counts
}

// end is where the chain of a tenant stands.
type end struct {
	tip     Head
	version int64 // of the paper that says so
	// last is what the last filing sealed, so that nothing is sealed again that was
	// not marked as sealed in time. It is known of an end that was read. After what
	// this sealer filed nothing is sealed before that is marked, or the end is read
	// again.
	last map[key]bool
}

// key is what an entry is about.
type key struct {
	write            ledger.ID
	seq              int64
	mark             ledger.MarkKind
	paperKind, paper string
	version          int64
	at               int64
}

func (e Entry) key() key {
	k := key{e.Write, e.Seq, e.Mark, e.PaperKind, e.PaperID, e.Version, 0}
	if !e.At.IsZero() {
		k.at = e.At.UnixNano()
	}
	return k
}

// New returns a sealer. What the ledger lacks is said by its first call.
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
	s := &Sealer{o: o, ends: make(map[string]end), moved: make(map[string]bool), unread: make(map[int64]bool), limit: runsAtOnce}
	s.store, s.err = storeOf(l)
	for name, k := range o.Keepers {
		s.keep = append(s.keep, &keeping{name: name, keeper: k, pending: make(map[string]signing.Envelope), wake: make(chan struct{}, 1)})
	}
	return s
}

func random() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// Seal puts everything that is not sealed into the chains, and says how many
// entries that were. The first call on a ledger switches on that the ledger
// remembers what is not sealed ([ledger.Chronicler]); what is there is sealed as
// found then.
func (s *Sealer) Seal(ctx context.Context) (n int, err error) {
	if s.err != nil {
		return 0, s.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.tried()
	defer func() { s.count.looked(err) }()
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	s.stuck, s.lost = make(map[string]error), make(map[string]int)
	after := int64(0)
	for {
		sealed, last, err := s.batch(ctx, after)
		n += sealed
		switch {
		case errors.Is(err, ledger.ErrStale): // another one was quicker
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

// whyStuck says which chains could not go on; nil for none.
func (s *Sealer) whyStuck() error {
	for tenant, err := range s.stuck {
		return fmt.Errorf("%d chains cannot go on, one of them that of tenant %q: %w", len(s.stuck), tenant, err)
	}
	return nil
}

// begin sees to it, once and after each time that a turn was taken, that the ledger remembers what is to be sealed, and
// that it has a name.
func (s *Sealer) begin(ctx context.Context) error {
	if s.on {
		return nil
	}
	id, err := s.identity(ctx)
	if err != nil {
		return err
	}
	changed, err := s.store.Chronicle(ctx, true)
	if err != nil {
		return fmt.Errorf("audit: switching it on: %w", err)
	}
	switch {
	case changed && s.id != "":
		s.o.Logger.Warn("somebody had switched the audit log off; it is on again, and what came meanwhile is sealed as found")
	case changed:
		s.o.Logger.Info("the ledger is sealed from now on; what is there is sealed as found")
	}
	s.id, s.on = id, true
	return nil
}

// identity is the name of the ledger, which it is given once.
func (s *Sealer) identity(ctx context.Context) (string, error) {
	for range maxTries {
		have, err := s.store.note(ctx, noteLedger)
		if err != nil || have.Version != 0 {
			return string(have.Value), err
		}
		have.Value = []byte(random())
		set, err := s.store.notes.SetNote(ctx, have)
		if !errors.Is(err, ledger.ErrStale) {
			return string(set.Value), err
		}
	}
	return "", fmt.Errorf("audit: the name of the ledger: %w", ledger.ErrStale)
}

func (s store) note(ctx context.Context, name string) (ledger.Note, error) {
	found, _, err := s.notes.Notes(ctx, name)
	for _, n := range found {
		if n.Name == name {
			return n, err
		}
	}
	return ledger.Note{Name: name}, err
}

// batch seals some runs behind a ticket, and says which was the last, 0 for none.
// The ends of the chains are known before the runs are read: whatever a quicker
// sealer has done since then is either in neither or in both.
func (s *Sealer) batch(ctx context.Context, after int64) (n int, last int64, err error) {
	limit := s.limit
	s.limit = runsAtOnce
	runs, err := s.store.Unsealed(ctx, after, limit)
	for err == nil {
		strange := s.strangers(runs)
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
		runs, err = s.store.Unsealed(ctx, after, limit)
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
			return n, 0, errors.Join(err, s.store.Sealed(ctx, tickets))
		}
		for _, r := range tenant.runs {
			tickets = append(tickets, r.Ticket)
		}
	}
	if err := s.store.Sealed(ctx, tickets); err != nil {
		clear(s.ends) // of what was filed it is not known whether it was marked
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

// strangers are the tenants of runs of whose chain the end is not known.
func (s *Sealer) strangers(runs []ledger.Run) (tenants []string) {
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

// load reads the end of a chain, and what its last filing sealed.
func (s *Sealer) load(ctx context.Context, tenant string) (end, error) {
	at := end{tip: Head{Format: format, Ledger: s.id, Tenant: tenant}, last: make(map[key]bool)}
	tip, err := s.store.Paper(ctx, tenant, ledger.AuditKind, tipID)
	switch {
	case errors.Is(err, ledger.ErrNoPaper):
		return at, nil
	case err != nil:
		return at, err
	}
	var says filedTip
	if err := strictly(tip.Body, &says); err != nil || says.Page < 1 || says.From < 1 || says.From > says.Page {
		return at, fmt.Errorf("%w: the end of the audit chain of tenant %q cannot be read; `readback audit verify` says more", ledger.ErrCorrupt, tenant)
	}
	at.tip, at.version = says.Head, tip.Version
	for n := says.From; n <= says.Page; n++ {
		p, err := s.store.Paper(ctx, tenant, ledger.AuditKind, pageID(n))
		if errors.Is(err, ledger.ErrNoPaper) {
			continue // a check says so; what comes is chained to what the end says
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

// filedTip is the paper that says where a chain ends; From is the first page of
// the filing that made the last.
type filedTip struct {
	Head
	From int64 `json:"from"`
}

// group is the runs of one tenant.
type group struct {
	name string
	runs []ledger.Run
}

// byTenant are runs by their tenants, in the order in which these came. Those
// about nothing are sealed already.
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
	var entries []Entry
	var told []int64
	for _, r := range runs {
		of, err := entriesOf(r)
		if err != nil {
			return 0, err
		}
		before := len(entries)
		for _, e := range of {
			if len(at.last) == 0 || !at.last[e.key()] {
				entries = append(entries, e)
			}
		}
		if len(entries) == before {
			told = append(told, r.Ticket)
		}
	}
	// What the last filing sealed is marked as sealed before there is another one:
	// that is all that whoever comes after this sealer looks at.
	if len(told) > 0 && len(entries) > 0 {
		if err := s.store.Sealed(ctx, told); err != nil {
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

// file files entries as the next pages, together with where the chain ends then.
func (s *Sealer) file(ctx context.Context, tenant string, at end, entries []Entry) (end, error) {
	next := end{version: at.version + 1, tip: at.tip}
	now := time.Now().UTC()
	var filing ledger.Filing
	for rest := entries; len(rest) > 0; {
		part := rest[:min(len(rest), maxEntries)]
		rest = rest[len(part):]
		p := Page{Format: format, Ledger: s.id, Tenant: tenant, Number: next.tip.Page + 1, First: next.tip.Entries + 1,
			Previous: next.tip.Hash, Sealed: now, Entries: part}
		body, err := p.seal()
		if err != nil {
			return at, err
		}
		filing.Papers = append(filing.Papers, ledger.Paper{Tenant: tenant, Kind: ledger.AuditKind, ID: pageID(p.Number), Body: body})
		next.tip = p.head()
	}
	body, err := json.Marshal(filedTip{next.tip, at.tip.Page + 1})
	if err != nil {
		return at, fmt.Errorf("audit: %w", err)
	}
	filing.Papers = append(filing.Papers, ledger.Paper{Tenant: tenant, Kind: ledger.AuditKind, ID: tipID, Version: at.version, Body: body})
	if _, err := s.store.File(ctx, filing); err != nil {
		return at, err
	}
	s.count.filed(len(filing.Papers)-1, len(entries), now)
	return next, nil
}
