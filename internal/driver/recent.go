package driver

import (
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

const (
	// MaxRecent bounds, in bytes, what a process keeps for its sealer: several seconds of a busy
	// server.
	MaxRecent = 32 << 20
	// RecentFor is how long runs are kept without a read of the sealer: then another one is active.
	RecentFor = time.Minute
	// eventBytes is about what an event takes without its long members.
	eventBytes = 1 << 10
)

// Recent are the runs that a process committed while its sealer reads, so that they are neither
// read nor decoded again. A run is sealed as it was committed, whatever became of its rows.
type Recent struct {
	mu      sync.Mutex
	until   time.Time // when runs are no longer kept, unless the sealer of this process reads
	size    int
	runs    map[Stretch]ledger.Run // without events: the sealer had to read it
	tickets map[int64]Stretch      // of the runs whose ticket is known
}

// Stretch names the events of a run: the number of their write, their own, and the time of the
// last, which differs where a database went back to an older state.
type Stretch struct{ Write, First, Last, At int64 }

// RunOf returns what a committed run is kept as. First is 1 for that which has the intent.
func RunOf(rec ledger.Record, events []ledger.Event) ledger.Run {
	run := ledger.Run{Tenant: rec.Tenant, ID: rec.ID, First: events[0].Seq, Last: events[len(events)-1].Seq, Events: events}
	if run.First == 1 {
		run.Intent = rec.Intent
	}
	return run
}

func sizeOf(run ledger.Run) int {
	size := eventBytes + len(run.Intent)
	for _, e := range run.Events {
		size += eventBytes + len(e.Evidence) + len(e.Mismatches) + len(e.Prepared) + len(e.Answer) + len(e.Reason) + len(e.Message)
	}
	return size
}

// Begin reports that a sealer of this process reads.
func (r *Recent) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.until = time.Now().Add(RecentFor); r.runs == nil {
		r.runs, r.tickets = make(map[Stretch]ledger.Run), make(map[int64]Stretch)
	}
}

// Kept reports whether committed runs are kept.
func (r *Recent) Kept() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs != nil
}

// Add keeps a committed run, whose ticket may be unknown, unless the sealer has read it already.
// If runs become too many, or the sealer no longer reads, all are dropped, and none is kept until
// the next read.
func (r *Recent) Add(s Stretch, run ledger.Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, read := r.runs[s]; !read {
		r.keep(s, run)
	}
	if !time.Now().Before(r.until) {
		r.size, r.runs, r.tickets = 0, nil, nil
	}
}

func (r *Recent) keep(s Stretch, run ledger.Run) {
	if r.runs == nil {
		return
	}
	r.set(s, run)
	if r.size += sizeOf(run); r.size > MaxRecent {
		r.size, r.runs, r.tickets = 0, nil, nil
	}
}

func (r *Recent) set(s Stretch, run ledger.Run) {
	if r.runs[s] = run; run.Ticket != 0 {
		r.tickets[run.Ticket] = s
	}
}

// Known returns the run of a ticket, if it is kept. Otherwise the sealer must read it.
func (r *Recent) Known(s Stretch, ticket int64) (ledger.Run, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run, found := r.runs[s]
	if !found {
		r.keep(s, ledger.Run{Ticket: ticket})
		return run, false
	}
	if run.Ticket != ticket {
		run.Ticket = ticket
		r.set(s, run)
	}
	return run, run.Events != nil
}

// Drop drops sealed runs.
func (r *Recent) Drop(tickets []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ticket := range tickets {
		if s, found := r.tickets[ticket]; found {
			r.size -= sizeOf(r.runs[s])
			delete(r.runs, s)
			delete(r.tickets, ticket)
		}
	}
}

// Tickets returns the tickets of the runs that are kept, and what all takes.
func (r *Recent) Tickets() (tickets []int64, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range r.runs {
		if run.Events != nil {
			tickets = append(tickets, run.Ticket)
		}
	}
	slices.Sort(tickets)
	return tickets, r.size
}
