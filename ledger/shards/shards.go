package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/ledger"
)

const (
	// defaultCache is how long a placement is used without another read of the directory.
	defaultCache = 2 * time.Second
	// retryAfter is how long a partition that could not be opened is left alone.
	retryAfter = 2 * time.Second
	// checkAgain is how often it is found out whether a tenant still is refused.
	checkAgain = 5 * time.Second
	// maxKnown bounds the placements, and the tenants of writes, that are remembered.
	maxKnown = 100_000
	// Max bounds the partitions of a directory: a call about all tenants asks each.
	Max = 64
)

// Shard is one partition as it is configured.
type Shard struct {
	// Name names it in the directory and in the partition itself: lower-case letters, digits and
	// dashes, at most 40. It must not change.
	Name string
	// Open opens it. A partition that is also an [io.Closer] is closed with the router.
	Open func(ctx context.Context) (ledger.Partition, error)
}

// Options configures a Ledger. The zero value is valid.
type Options struct {
	// Home is the partition with the directory. Default the first one. It must not change.
	Home string
	// Tenants places tenants when they are seen first. From then on the directory counts.
	Tenants map[string]string
	// Default are the partitions of all other tenants, by a hash of the name. Default: all.
	Default []string
	// Cache is how long a placement is used without another read of the directory, and how long
	// a move waits before it deletes what it copied. Default 2 s.
	Cache time.Duration
	// Logger receives events for operators. Default: nothing.
	Logger *slog.Logger
}

// Ledger is one ledger over several partitions. It implements [ledger.Ledger]. Create it with [Open].
type Ledger struct {
	o      Options
	home   *shard
	shards []*shard
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	rotate func() int // where the next claim begins

	started atomic.Bool // a partition that is opened from then on is compared with the others

	woken, changed forwarding

	mu      sync.Mutex
	places  map[string]place
	tenants map[ledger.ID]string // of writes
	split   map[string]error     // tenants that are refused
	tidied  map[string]int64     // the epochs of tenants of which nothing is left where they were before
	checked time.Time            // when that was found out
	keep    []func(ledger.Ledger)
	sealing bool
}

var _ ledger.Ledger = (*Ledger)(nil)

// place is a placement and when it was read.
type place struct {
	ledger.Placement
	read time.Time
}

// shard is a partition, once it is open.
type shard struct {
	Shard
	opening sync.Mutex
	mu      sync.Mutex
	ledger  ledger.Partition
	err     error
	tried   time.Time
}

// ErrInvalid means that the partitions are not configured as they must be. The error names what.
var ErrInvalid = errors.New("shards")

var validName = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$`)

// Check returns what is wrong with a configuration, before anything is opened.
func Check(names []string, o Options) error {
	seen := map[string]bool{}
	switch {
	case len(names) == 0 || len(names) > Max:
		return fmt.Errorf("%w: there are %d; want 1 to %d", ErrInvalid, len(names), Max)
	}
	for _, name := range names {
		if !validName.MatchString(name) {
			return fmt.Errorf("%w: %.60q is no name; want lower-case letters, digits and dashes, at most 40", ErrInvalid, name)
		}
		if seen[name] {
			return fmt.Errorf("%w: %q is named twice; want one name for each", ErrInvalid, name)
		}
		seen[name] = true
	}
	if o.Home != "" && !seen[o.Home] {
		return fmt.Errorf("%w: the directory is to be in %q, which is not configured", ErrInvalid, o.Home)
	}
	for _, name := range o.Default {
		if !seen[name] {
			return fmt.Errorf("%w: tenants that are not named go to %q, which is not configured", ErrInvalid, name)
		}
	}
	for tenant, name := range o.Tenants {
		if !seen[name] {
			return fmt.Errorf("%w: tenant %q goes to %q, which is not configured", ErrInvalid, tenant, name)
		}
	}
	return nil
}

// Open opens the home, and the other partitions as far as they can be reached; the rest is tried
// again when it is needed. It fails with [ErrInvalid], with [ledger.ErrPartition] where a database is
// not the partition that it is configured to be, and with the errors of the home. The caller must
// Close the ledger.
func Open(ctx context.Context, all []Shard, o Options) (*Ledger, error) {
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	if err := Check(names, o); err != nil {
		return nil, err
	}
	if o.Home == "" {
		o.Home = names[0]
	}
	if len(o.Default) == 0 {
		o.Default = names
	}
	if o.Cache <= 0 {
		o.Cache = defaultCache
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Ledger{o: o, places: map[string]place{}, tenants: map[ledger.ID]string{}, split: map[string]error{}, tidied: map[string]int64{}, rotate: rotation()}
	l.ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, s := range all {
		l.shards = append(l.shards, &shard{Shard: s})
	}
	l.home = l.named(o.Home)
	if _, err := l.open(ctx, l.home); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	var wait sync.WaitGroup
	errs := make([]error, len(l.shards))
	for i, s := range l.shards {
		wait.Go(func() { _, errs[i] = l.open(ctx, s) })
	}
	wait.Wait()
	for _, err := range errs {
		if errors.Is(err, ledger.ErrPartition) {
			return nil, errors.Join(err, l.Close())
		}
	}
	if err := l.reconcile(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.started.Store(true)
	return l, nil
}

// rotation returns a function that counts.
func rotation() func() int {
	var mu sync.Mutex
	n := -1
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		n++
		return n
	}
}

// Close closes all partitions.
func (l *Ledger) Close() error {
	l.stop()
	var errs []error
	for _, s := range l.shards {
		s.opening.Lock()
		s.mu.Lock()
		if c, ok := s.ledger.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
		s.ledger, s.err, s.tried = nil, fmt.Errorf("%w: the ledger is closed", ledger.ErrUnavailable), time.Now().Add(24*time.Hour)
		s.mu.Unlock()
		s.opening.Unlock()
	}
	return errors.Join(errs...)
}

func (l *Ledger) named(name string) *shard {
	for _, s := range l.shards {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// open returns a partition. One that could not be opened is tried again after a while, by one caller
// at a time; the others get the error.
func (l *Ledger) open(ctx context.Context, s *shard) (ledger.Partition, error) {
	if p, err := s.now(); p != nil || err != nil {
		return p, err
	}
	if !s.opening.TryLock() {
		return nil, fmt.Errorf("%w: partition %q is being opened", ledger.ErrUnavailable, s.Name)
	}
	defer s.opening.Unlock()
	if p, err := s.now(); p != nil || err != nil {
		return p, err
	}
	p, err := s.Open(ctx)
	if err == nil {
		err = l.join(ctx, s, p)
	}
	s.opened(p, err, l.o.Logger)
	if err == nil && l.started.Load() { // it may own tenants that others own too
		err = l.reconcile(ctx)
	}
	if err != nil {
		return nil, cmp.Or(s.why(), err)
	}
	return p, nil
}

// why is why it is not open.
func (s *shard) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// opened records the result.
func (s *shard) opened(p ledger.Partition, err error, log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if c, ok := p.(io.Closer); ok && p != nil {
			_ = c.Close() // it is not used
		}
		if !errors.Is(err, ledger.ErrPartition) && !errors.Is(err, ledger.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
		}
		s.err, s.tried = fmt.Errorf("partition %q: %w", s.Name, err), time.Now()
		log.Warn("a partition of the ledger cannot be opened; its tenants are refused", "partition", s.Name, "error", err)
		return
	}
	s.ledger, s.err = p, nil
}

// now returns the partition if it is open, or why not if that was tried just now.
func (s *shard) now() (ledger.Partition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger == nil && s.err != nil && time.Since(s.tried) < retryAfter {
		return nil, s.err
	}
	return s.ledger, nil
}

// join makes a database the partition that it is configured to be, and prepares it as the others are.
func (l *Ledger) join(ctx context.Context, s *shard, p ledger.Partition) error {
	var home ledger.Partition
	if s != l.home {
		var err error
		if home, err = l.open(ctx, l.home); err != nil {
			return err
		}
	}
	if err := p.Join(ctx, s.Name, home); err != nil {
		return err
	}
	if s != l.home {
		switch all, err := p.Placements(ctx); {
		case err != nil:
			return err
		case len(all) > 0: // rates and stops are there too
			return fmt.Errorf("%w: partition %q has a directory, and not %q: name it as the one with the directory", ledger.ErrPartition, s.Name, l.home.Name)
		}
	}
	l.mu.Lock()
	keep, sealing := slices.Clone(l.keep), l.sealing
	l.mu.Unlock()
	for _, k := range keep {
		k(p)
	}
	if sealing {
		if _, err := p.BeginSealing(ctx); err != nil {
			return err
		}
	}
	l.woken.add(l.ctx, p.Woken)
	l.changed.add(l.ctx, p.Changed)
	return nil
}

// forwarding passes the signals of all partitions on, from the first listener on.
type forwarding struct {
	ledger.Notifier
	mu      sync.Mutex
	on      bool
	sources []func()
}

func (f *forwarding) add(ctx context.Context, of func(context.Context) <-chan struct{}) {
	start := func() {
		signals := of(ctx)
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-signals:
					f.Notify()
				}
			}
		}()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sources = append(f.sources, start); f.on {
		start()
	}
}

func (f *forwarding) listen(ctx context.Context) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.on {
		f.on = true
		for _, start := range f.sources {
			start()
		}
	}
	return f.Woken(ctx)
}

// placeOf returns where a tenant is. Now reads the directory, however old the copy is. A tenant that
// the directory does not name is placed if place says so.
func (l *Ledger) placeOf(ctx context.Context, tenant string, now, first bool) (p place, err error) {
	l.mu.Lock()
	p, known := l.places[tenant]
	refused, stale := l.split[tenant], time.Since(l.checked) > checkAgain
	l.mu.Unlock()
	if refused != nil && stale {
		if err := l.reconcile(ctx); err != nil {
			return p, err
		}
		return l.placeOf(ctx, tenant, now, first)
	}
	if refused != nil {
		return p, refused
	}
	if known && !now && time.Since(p.read) < l.o.Cache {
		return p, nil
	}
	asked := time.Now() // the answer may be that old
	home, err := l.open(ctx, l.home)
	var found ledger.Placement
	if err == nil {
		found, err = home.Placement(ctx, tenant)
	}
	if err != nil {
		if known && errors.Is(err, ledger.ErrUnavailable) {
			return p, nil // the partition itself knows whether that is still true
		}
		return p, fmt.Errorf("the directory: %w", err)
	}
	if known && found.Epoch < p.Epoch { // the directory was restored
		if err := l.reconcile(ctx); err != nil {
			return p, err
		}
		return l.placeOf(ctx, tenant, now, first)
	}
	if first && (found.Epoch == 0 || found.State == ledger.TenantDraining && found.Target == found.Partition) {
		if found, err = l.place(ctx, home, tenant, found); err != nil {
			return p, err
		}
	}
	if p = (place{found, asked}); p.Epoch == 0 {
		p.Tenant, p.Partition = tenant, l.firstOf(tenant)
		return p, nil // another process may place it at any time
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.places) >= maxKnown {
		clear(l.places)
	}
	l.places[tenant] = p
	return p, nil
}

// Place returns the partition of a tenant, for callers that enqueue in transactions of their own. A
// tenant that the directory does not name is placed.
func (l *Ledger) Place(ctx context.Context, tenant string) (partition string, err error) {
	p, err := l.placeOf(ctx, tenant, true, true)
	return p.Partition, err
}

// firstOf returns the partition of a tenant that the directory does not name.
func (l *Ledger) firstOf(tenant string) string {
	if name, named := l.o.Tenants[tenant]; named {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(tenant)) // it never fails
	return l.o.Default[h.Sum32()%uint32(len(l.o.Default))]
}

// place puts a new tenant into the directory and into its partition. It is in the directory first, as
// if it were being moved to where it is, and active in it last: any program can end what another one
// has begun, and a tenant that is active and not in its partition is a fault.
func (l *Ledger) place(ctx context.Context, home ledger.Partition, tenant string, found ledger.Placement) (ledger.Placement, error) {
	if tenant == "" {
		return found, errors.New("the tenant is missing")
	}
	if found.Epoch == 0 {
		if had, err := l.restored(ctx, home, tenant); err != nil || had.Epoch > 0 {
			return had, err
		}
		name := l.firstOf(tenant)
		begun := ledger.Placement{Tenant: tenant, Partition: name, Epoch: 1, State: ledger.TenantDraining, Target: name}
		err := home.Place(ctx, begun, ledger.Placement{})
		if errors.Is(err, ledger.ErrStale) {
			begun, err = home.Placement(ctx, tenant)
		}
		if found = begun; err != nil || found.State == ledger.TenantActive {
			return found, err
		}
	}
	s := l.named(found.Partition)
	if s == nil {
		return found, l.missing(found)
	}
	p, err := l.open(ctx, s)
	if err != nil {
		return found, err
	}
	err = p.Own(ctx, ledger.Ownership{Tenant: tenant, Epoch: found.Epoch, State: ledger.TenantActive}, ledger.Ownership{})
	if err != nil && !errors.Is(err, ledger.ErrStale) {
		return found, err
	}
	done := found
	done.State, done.Target = ledger.TenantActive, ""
	if err = home.Place(ctx, done, found); errors.Is(err, ledger.ErrStale) {
		done, err = home.Placement(ctx, tenant)
	}
	return done, err
}

// restored returns the place of a tenant that the directory did not name, and that partitions know: it was
// restored from a backup. Every partition must answer, since the one that does not may know the tenant.
func (l *Ledger) restored(ctx context.Context, home ledger.Partition, tenant string) (found ledger.Placement, err error) {
	var known atomic.Bool
	err = l.every(ctx, func(_ int, p ledger.Partition) error {
		o, err := p.Ownership(ctx, tenant)
		if o.Epoch > 0 {
			known.Store(true)
		}
		return err
	})
	if err != nil {
		return found, fmt.Errorf("%w: tenant %q is new, and is placed when all partitions answer: %w", ledger.ErrUnavailable, tenant, err)
	}
	if !known.Load() {
		return found, nil
	}
	if err := l.reconcile(ctx); err != nil {
		return found, err
	}
	if found, err = home.Placement(ctx, tenant); err == nil && found.Epoch == 0 {
		err = fmt.Errorf("%w: %w: partitions have had tenant %q, and the directory does not name it: it was restored from a backup; run `readback shards check`", ledger.ErrUnavailable, ErrSplit, tenant)
	}
	return found, err
}

// missing is the error of a placement in a partition that is not configured.
func (l *Ledger) missing(p ledger.Placement) error {
	return fmt.Errorf("%w: tenant %q is in partition %q, which is not configured; add it to the shards of the ledger", ledger.ErrUnavailable, p.Tenant, p.Partition)
}

// at runs a call in the partition of a tenant, and once more if the tenant is in another one by now.
// Begins says that the call may be the first about the tenant.
func (l *Ledger) at(ctx context.Context, tenant string, begins bool, call func(p ledger.Partition, epoch int64) error) error {
	return l.run(ctx, tenant, begins, false, call)
}

// read is at for a call that changes nothing. A partition does not refuse those: with a placement that
// is old by now it is asked whether it has the tenant.
func (l *Ledger) read(ctx context.Context, tenant string, call func(p ledger.Partition, epoch int64) error) error {
	return l.run(ctx, tenant, false, true, call)
}

func (l *Ledger) run(ctx context.Context, tenant string, begins, reads bool, call func(p ledger.Partition, epoch int64) error) error {
	where, err := l.placeOf(ctx, tenant, false, begins)
	if err != nil {
		return err
	}
	if err = l.in(ctx, where, reads, call); !errors.Is(err, ledger.ErrNotOwned) {
		return err
	}
	now, failed := l.placeOf(ctx, tenant, true, begins)
	if failed != nil || now.Placement == where.Placement {
		return err
	}
	return l.in(ctx, now, reads, call)
}

// in runs a call where a tenant is. That something is missing there says nothing if the tenant has moved.
func (l *Ledger) in(ctx context.Context, where place, reads bool, call func(p ledger.Partition, epoch int64) error) error {
	s := l.named(where.Partition)
	if s == nil {
		return l.missing(where.Placement)
	}
	p, err := l.open(ctx, s)
	if err != nil {
		return err
	}
	err = call(p, where.Epoch)
	if where.Epoch > 0 && (errors.Is(err, ledger.ErrNotFound) || reads && err == nil && time.Since(where.read) > l.o.Cache) {
		switch o, failed := p.Ownership(ctx, where.Tenant); {
		case failed != nil:
			return failed
		case o.Epoch == 0 || o.State == ledger.TenantMoved:
			return &ledger.NotOwnedError{Partition: s.Name, Owned: o}
		}
	}
	return err
}

// each runs a call in every partition that can be reached, at the same time. The error is that of all,
// or nil if some partition answered.
func (l *Ledger) each(ctx context.Context, call func(i int, p ledger.Partition) error) error {
	errs := l.all(ctx, call)
	if slices.Contains(errs, nil) {
		return nil
	}
	return errors.Join(errs...)
}

// every is each, and fails if any partition does.
func (l *Ledger) every(ctx context.Context, call func(i int, p ledger.Partition) error) error {
	return errors.Join(l.all(ctx, call)...)
}

func (l *Ledger) all(ctx context.Context, call func(i int, p ledger.Partition) error) []error {
	errs := make([]error, len(l.shards))
	var wait sync.WaitGroup
	for i, s := range l.shards {
		wait.Go(func() {
			p, err := l.open(ctx, s)
			if err == nil {
				if err = call(i, p); err != nil {
					err = fmt.Errorf("partition %q: %w", s.Name, err)
				}
			}
			errs[i] = err
		})
	}
	wait.Wait()
	return errs
}

// know remembers the tenants of writes, so that an event about one finds its partition.
func (l *Ledger) know(recs ...ledger.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tenants) >= maxKnown {
		clear(l.tenants)
	}
	for _, r := range recs {
		if r.ID != "" {
			l.tenants[r.ID] = r.Tenant
		}
	}
}

// tenantOf returns the tenant of a write. One that is not remembered is looked up in all partitions.
func (l *Ledger) tenantOf(ctx context.Context, id ledger.ID) (tenant string, err error) {
	l.mu.Lock()
	tenant = l.tenants[id]
	l.mu.Unlock()
	if tenant != "" {
		return tenant, nil
	}
	var mu sync.Mutex
	errs := l.all(ctx, func(_ int, p ledger.Partition) error {
		lives, err := p.Lifetimes(ctx, before(id), 1)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && len(lives) == 1 && lives[0].Record.ID == id {
			tenant = lives[0].Record.Tenant
		}
		return err
	})
	switch err := errors.Join(errs...); {
	case tenant != "":
		l.know(ledger.Record{ID: id, Tenant: tenant})
		return tenant, nil
	case err != nil:
		return "", err
	}
	return "", fmt.Errorf("%w: %s", ledger.ErrNotFound, id)
}

// before returns an id after which the next one is this: ids are of one length, of letters before ~.
func before(id ledger.ID) ledger.ID {
	last := len(id) - 1
	if last < 0 {
		return ""
	}
	return id[:last] + ledger.ID(id[last]-1) + "~"
}
