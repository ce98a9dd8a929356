package audit

import (
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

// Stats counts since a sealer was made, for this process only.
type Stats struct {
	// Entries and Pages were put into chains.
	Entries, Pages int64
	// Read is when everything was last sealed: the chain is behind by at most the time since
	// then. Failures counts failed attempts.
	Read     time.Time
	Failures int64
	// Tried is when sealing was first tried: how far the chain is behind, if Read is zero.
	Tried time.Time
	// Oldest is when the oldest unsealed event of the last batch happened; zero if there was
	// none.
	Oldest time.Time
	// Head is when a head was last signed, Heads counts them.
	Head  time.Time
	Heads int64
	// HeadStores is the delivery of heads, by head store name.
	HeadStores map[string]HeadStoreStats
}

// HeadStoreStats counts for one head store.
type HeadStoreStats struct {
	Kept, Failures int64
	// Dropped counts heads that were not delivered because a newer one of the same tenant came
	// first, or too many tenants waited.
	Dropped int64
	// Waiting is how many heads are queued now.
	Waiting int
	// At is when a head was last stored.
	At time.Time
}

// counts is a sealer's counters.
type counts struct {
	mu sync.Mutex
	s  Stats
}

func (c *counts) do(f func(s *Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.s)
}

func (c *counts) read(err error) {
	c.do(func(s *Stats) {
		if err != nil {
			s.Failures++
			return
		}
		s.Read, s.Oldest = time.Now(), time.Time{}
	})
}

func (c *counts) tried() {
	c.do(func(s *Stats) {
		if s.Tried.IsZero() {
			s.Tried = time.Now()
		}
	})
}

func (c *counts) committed(pages, entries int, _ time.Time) {
	c.do(func(s *Stats) { s.Pages, s.Entries = s.Pages+int64(pages), s.Entries+int64(entries) })
}

func (c *counts) saw(runs []ledger.Run) {
	c.do(func(s *Stats) {
		for _, r := range runs {
			if len(r.Events) > 0 && (s.Oldest.IsZero() || r.Events[0].At.Before(s.Oldest)) {
				s.Oldest = r.Events[0].At
			}
		}
	})
}

// Stats returns the counts so far.
func (s *Sealer) Stats() Stats {
	s.count.mu.Lock()
	all := s.count.s
	s.count.mu.Unlock()
	all.HeadStores = make(map[string]HeadStoreStats, len(s.keep))
	for _, k := range s.keep {
		all.HeadStores[k.name] = k.stats()
	}
	return all
}
