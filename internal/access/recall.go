package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/readback-go/readback/ledger"
)

// How long results of the ledger are trusted.
const (
	// freshFor is for how long a result is used without a new read, watchEvery how often
	// open requests are checked again. With readFor they add up to the five seconds
	// within which a revoked credential is refused everywhere, and open requests are
	// ended.
	freshFor   = 2 * time.Second
	watchEvery = time.Second
	// staleFor is for how long valid credentials stay valid while the ledger is
	// unreachable: callers do not notice a failover, and a credential revoked meanwhile
	// is soon refused.
	staleFor = time.Minute
	// readFor bounds one read of the ledger.
	readFor = 2 * time.Second
	// restFor is how long the ledger is not read after a failure, so that not every
	// request waits for it.
	restFor = time.Second
	// maxReads bounds concurrent reads: callers who make up tokens must not overload the
	// ledger.
	maxReads = 8
	// maxRecalled bounds what is remembered, in notes of some 500 bytes: 5 MB.
	maxRecalled = 10_000
)

// recall reads single notes from the ledger and caches them for a moment: every request
// needs one, and the ledger has other work.
type recall struct {
	notes   ledger.Documents
	now     func() time.Time
	flights singleflight.Group
	reads   chan struct{}

	mu     sync.Mutex
	known  map[string]recalled
	failed time.Time // when a read of the ledger last failed
}

// recalled is a note at the time of its read. Without a value there was none.
type recalled struct {
	note  ledger.Note
	asked time.Time // when the read began
	fresh bool
}

func newRecall(n ledger.Documents, now func() time.Time) *recall {
	return &recall{notes: n, now: now, reads: make(chan struct{}, maxReads), known: map[string]recalled{}}
}

// within reports whether a time is less than age ago. A time after now is from before the
// clock went back, and is not.
func within(now, at time.Time, age time.Duration) bool {
	passed := now.Sub(at)
	return !at.IsZero() && passed >= 0 && passed < age
}

// has reports whether a note is cached.
func (c *recall) has(name string) bool {
	_, ok := c.cached(name)
	return ok
}

func (c *recall) cached(name string) (recalled, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have, ok := c.known[name]
	now := c.now()
	have.fresh = ok && within(now, have.asked, freshFor)
	return have, ok && within(now, have.asked, staleFor)
}

// get returns the note of exactly this name. While the ledger is unreachable it returns
// the note of at most staleFor ago, and reports that it is not fresh. It fails with
// [ErrUnavailable].
func (c *recall) get(ctx context.Context, name string) (recalled, error) {
	have, ok := c.cached(name)
	if have.fresh {
		return have, nil
	}
	err := errResting
	if !c.resting() {
		select {
		case answer := <-c.flights.DoChan(name, func() (any, error) { return c.read(name) }):
			if answer.Err == nil {
				return answer.Val.(recalled), nil
			}
			err = answer.Err
		case <-ctx.Done():
			return recalled{}, ctx.Err()
		}
	}
	if ok {
		return have, nil
	}
	return recalled{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

var errResting = fmt.Errorf("the ledger did not answer within the last %s", restFor)

func (c *recall) resting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return within(c.now(), c.failed, restFor)
}

// read reads the ledger for all callers that wait for the same note, unless another one
// has just done so.
func (c *recall) read(name string) (recalled, error) {
	if have, _ := c.cached(name); have.fresh {
		return have, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), readFor)
	defer cancel()
	select {
	case c.reads <- struct{}{}:
		defer func() { <-c.reads }()
	case <-ctx.Done():
		return recalled{}, fmt.Errorf("too much is asked at once: %w", ctx.Err())
	}
	found := recalled{note: ledger.Note{Name: name}, asked: c.now(), fresh: true}
	all, _, err := c.notes.Notes(ctx, name)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = c.now()
		return recalled{}, err
	}
	for _, n := range all {
		if n.Name == name { // and not one with this prefix
			found.note = n
		}
	}
	c.keep(name, found)
	return found, nil
}

func (c *recall) keep(name string, found recalled) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.known[name]; !ok && len(c.known) >= maxRecalled {
		c.shrink()
	}
	c.known[name] = found
}

// shrink removes what is too old, or else any tenth.
func (c *recall) shrink() {
	now, spare := c.now(), maxRecalled/10
	for name, have := range c.known {
		if !within(now, have.asked, freshFor) {
			delete(c.known, name)
		}
	}
	for name := range c.known {
		if len(c.known) <= maxRecalled-spare {
			return
		}
		delete(c.known, name)
	}
}

// forget makes the next get read the ledger.
func (c *recall) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, name)
}

// change rewrites a note as decide returns, which is called again if another process was
// faster. With no value or an error the note stays.
func change(ctx context.Context, notes ledger.Documents, name string, decide func(ledger.Note) ([]byte, error)) error {
	for try := 1; ; try++ {
		all, _, err := notes.Notes(ctx, name)
		if err != nil {
			return err
		}
		n := ledger.Note{Name: name}
		for _, found := range all {
			if found.Name == name {
				n = found
			}
		}
		value, err := decide(n)
		if err != nil || value == nil {
			return err
		}
		_, err = notes.SetNote(ctx, ledger.Note{Name: name, Version: n.Version, Value: value})
		if err == nil || try == setTries || !isStale(err) {
			return err
		}
	}
}
