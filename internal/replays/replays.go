// Package replays counts the calls that got the outcome of an earlier one, by
// tenant and time. Such a call changes nothing in the ledger, so every process
// counts its own and keeps the counts in a note there, for a week.
//
// It does not know why a call was made again. What a process counted in its last
// moments before it died is missing.
package replays

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

const (
	// Step is how fine the counts are: a week of them fits into one note.
	Step = 5 * time.Minute
	// Kept is how long they are kept, as what happened to writes is.
	Kept = ledger.ChangesKept
	// every is how often a process writes what it counted.
	every = 15 * time.Second
	// maxTenants bounds what a process counts at once; beyond it repeats of
	// further tenants are not counted.
	maxTenants = 1000
	prefix     = "replays/"
)

// Counter counts the repeats of one process. It is safe for concurrent use.
type Counter struct {
	notes ledger.Documents
	owner string
	log   *slog.Logger

	mu      sync.Mutex
	tenants map[string]*book
}

// book is what was counted for one tenant.
type book struct {
	counts  counts
	version int64 // of its note
	fresh   bool  // something is not in the note yet
}

// counts are numbers of repeats by the number of the step since 1970.
type counts map[int64]int

// New makes a counter; log may be nil.
func New(notes ledger.Documents, log *slog.Logger) *Counter {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Counter{notes: notes, owner: rand.Text()[:16], log: log, tenants: map[string]*book{}}
}

// Repeated counts a call that repeated an earlier request.
func (c *Counter) Repeated(r ledger.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.tenants[r.Tenant]
	if b == nil {
		if len(c.tenants) >= maxTenants {
			return
		}
		b = &book{counts: counts{}}
		c.tenants[r.Tenant] = b
	}
	b.counts[at(time.Now())]++
	b.fresh = true
}

func at(t time.Time) int64 { return t.UnixNano() / int64(Step) }

// Work writes what was counted, now and then and when ctx ends. It returns nil.
func (c *Counter) Work(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.write(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			c.write(last)
			cancel()
			return nil
		}
	}
}

// write puts into the ledger what is not there yet. What cannot be written is
// tried again.
func (c *Counter) write(ctx context.Context) {
	for tenant, n := range c.due() {
		written, err := c.notes.SetNote(ctx, n)
		c.mu.Lock()
		switch b := c.tenants[tenant]; {
		case err == nil:
			b.version = written.Version
		case errors.Is(err, ledger.ErrStale): // no other actor has this name: it was removed
			b.version, b.fresh = 0, true
		default:
			b.fresh = true
			c.log.Debug("repeats are counted, and cannot be written now", "error", err)
		}
		c.mu.Unlock()
		if err == nil {
			c.sweep(ctx, tenant)
		}
	}
}

// due are the notes to be written, by tenant, and forgets what is too old.
func (c *Counter) due() map[string]ledger.Note {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]ledger.Note{}
	oldest := at(time.Now().Add(-Kept))
	for tenant, b := range c.tenants {
		for step := range b.counts {
			if step < oldest {
				delete(b.counts, step)
			}
		}
		if !b.fresh {
			continue
		}
		value, err := json.Marshal(b.counts)
		if err != nil { // numbers alone; they can be encoded
			continue
		}
		b.fresh = false
		all[tenant] = ledger.Note{Name: of(tenant) + c.owner, Version: b.version, Value: value}
	}
	return all
}

// of is where the notes of a tenant stand. A name can be too long for one.
func of(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return prefix + hex.EncodeToString(sum[:16]) + "/"
}

// sweep removes notes of processes that are gone and counted nothing in time.
func (c *Counter) sweep(ctx context.Context, tenant string) {
	all, now, err := c.notes.Notes(ctx, of(tenant))
	if err != nil {
		return
	}
	for _, n := range all {
		if now.Sub(n.At) > Kept {
			_, _ = c.notes.SetNote(ctx, ledger.Note{Name: n.Name, Version: n.Version}) // the next one tries again
		}
	}
}

// Count is how many repeats there were from a time on, for one [Step].
type Count struct {
	From time.Time
	N    int
}

// Counted are the repeats of one tenant from since to before until, in no order;
// steps without any are left out.
func Counted(ctx context.Context, notes ledger.Documents, tenant string, since, until time.Time) ([]Count, error) {
	all, _, err := notes.Notes(ctx, of(tenant))
	if err != nil {
		return nil, fmt.Errorf("replays: %w", err)
	}
	sum := counts{}
	for _, n := range all {
		var one counts
		if json.Unmarshal(n.Value, &one) != nil {
			continue // damaged: it counts nothing
		}
		for step, k := range one {
			sum[step] += k
		}
	}
	var found []Count
	for step, k := range sum {
		from := time.Unix(0, step*int64(Step)).UTC()
		if k > 0 && !from.Before(since.Truncate(Step)) && from.Before(until) {
			found = append(found, Count{from, k})
		}
	}
	return found, nil
}
