package audit

import (
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

// Stats counts since a sealer was made, for this process alone.
type Stats struct {
	// Entries and Pages were put into chains.
	Entries, Pages int64
	// Looked is when everything that was there had been sealed last: how far the
	// chain is behind is the time since then, at the most. Failures counts the times
	// it could not be.
	Looked   time.Time
	Failures int64
	// Tried is when sealing was first tried: how far the chain is behind, where Looked
	// is zero.
	Tried time.Time
	// Oldest is when the oldest event happened that was seen unsealed in the last
	// batch; zero where nothing was to be sealed.
	Oldest time.Time
	// Head is when a head was signed last, Heads counts them.
	Head  time.Time
	Heads int64
	// Keepers says by name how handing heads on went.
	Keepers map[string]KeeperStats
}

// KeeperStats counts for one keeper.
type KeeperStats struct {
	Kept, Failures int64
	// Dropped counts heads that were not handed on because a newer one of the same
	// tenant came first, or too many tenants waited.
	Dropped int64
	// Waiting is how many heads are to be handed on now.
	Waiting int
	// At is when a head was kept last.
	At time.Time
}

// counts is what a sealer counts.
type counts struct {
	mu sync.Mutex
	s  Stats
}

func (c *counts) do(f func(s *Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.s)
}

func (c *counts) looked(err error) {
	c.do(func(s *Stats) {
		if err != nil {
			s.Failures++
			return
		}
		s.Looked, s.Oldest = time.Now(), time.Time{}
	})
}

func (c *counts) tried() {
	c.do(func(s *Stats) {
		if s.Tried.IsZero() {
			s.Tried = time.Now()
		}
	})
}

func (c *counts) filed(pages, entries int, _ time.Time) {
	c.do(func(s *Stats) { s.Pages, s.Entries = s.Pages+int64(pages), s.Entries+int64(entries) })
}

func (c *counts) saw(runs []ledger.Run) {
	c.do(func(s *Stats) {
		for _, r := range runs {
			if len(r.Events) > 0 && (s.Oldest.IsZero() || r.Events[0].At.Before(s.Oldest)) && !r.Found {
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
	all.Keepers = make(map[string]KeeperStats, len(s.keep))
	for _, k := range s.keep {
		all.Keepers[k.name] = k.stats()
	}
	return all
}
