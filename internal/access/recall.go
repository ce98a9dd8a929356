package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/readback-go/readback/ledger"
)

// recall asks the ledger for single notes, and remembers the answers for a
// moment: every request needs one, and the ledger has other work.
type recall struct {
	notes   ledger.Notes
	now     func() time.Time
	flights singleflight.Group
	reads   chan struct{}

	mu     sync.Mutex
	known  map[string]recalled
	failed time.Time // when the ledger last failed to answer
}

// recalled is a note as it was when the ledger was asked. Without a value there
// was none.
type recalled struct {
	note  ledger.Note
	asked time.Time // when the question began
	fresh bool
}

func newRecall(n ledger.Notes, now func() time.Time) *recall {
	return &recall{notes: n, now: now, reads: make(chan struct{}, maxReads), known: map[string]recalled{}}
}

// within reports whether something is younger than that. What is younger than
// now was remembered before the clock went back, and is not.
func within(now, at time.Time, age time.Duration) bool {
	passed := now.Sub(at)
	return !at.IsZero() && passed >= 0 && passed < age
}

// has reports whether a note is remembered at all.
func (c *recall) has(name string) bool {
	_, ok := c.look(name)
	return ok
}

func (c *recall) look(name string) (recalled, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have, ok := c.known[name]
	now := c.now()
	have.fresh = ok && within(now, have.asked, freshFor)
	return have, ok && within(now, have.asked, staleFor)
}

// get is a note of exactly this name. While the ledger does not answer it is
// what was there at most staleFor ago, and says that it is not fresh. It fails
// with [ErrUnavailable].
func (c *recall) get(ctx context.Context, name string) (recalled, error) {
	have, ok := c.look(name)
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

// read asks the ledger, on behalf of everybody who waits for the same, unless
// others did while the caller was on the way here.
func (c *recall) read(name string) (recalled, error) {
	if have, _ := c.look(name); have.fresh {
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
		if n.Name == name { // and not one that begins so
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

// shrink forgets what is of no use any more, and if that is nothing any tenth.
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

// forget makes the next question one to the ledger.
func (c *recall) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, name)
}

// change rewrites a note as decide says, which is asked again when somebody else
// was faster. No value and no error leave it as it is.
func change(ctx context.Context, notes ledger.Notes, name string, decide func(ledger.Note) ([]byte, error)) error {
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
