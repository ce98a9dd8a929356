package postgres

import (
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxSample is how long a reading of the database's clock is valid. Two clocks do not drift
	// apart measurably in that time.
	maxSample = 100 * time.Millisecond

	// margin is how far an estimate of the database's clock aims before it, in the middle of
	// what the database accepts: from the present back to maxLag.
	margin = maxLag / 2
)

// state is the state of the database that each statement returns with its result.
type state struct {
	version, compatibleFrom int
	newest, now             int64
	standby                 bool
	durable                 string
}

// dest returns where to scan columnsOfState.
func (s *state) dest() []any {
	return []any{&s.version, &s.compatibleFrom, &s.newest, &s.standby, &s.now, &s.durable}
}

// usable refuses a database that is no primary, and one that a newer program has made
// incompatible. It is checked with every result: both can happen while a program runs.
func (l *Ledger) usable(s state) error {
	switch {
	case s.version < 1:
		return fmt.Errorf("%w: %s: its version is missing", ledger.ErrCorrupt, l.name)
	case s.standby:
		return fmt.Errorf("%w: %s is a standby, whose answers may be old: connect to the primary", ledger.ErrUnavailable, l.name)
	case s.compatibleFrom > l.version:
		return fmt.Errorf("%w: %s has version %d, which programs of version %d and later can use; this one has version %d: use the program that upgraded it, or a newer one",
			ledger.ErrVersion, l.name, s.version, s.compatibleFrom, l.version)
	}
	return nil
}

// trusted refuses a clock that is too far before the newest recorded time.
func (l *Ledger) trusted(s state) error {
	if s.newest-s.now <= int64(maxClockStep) {
		return nil
	}
	return fmt.Errorf("%w: the clock of %s says %s, but an entry of the ledger was made at %s: "+
		"set the database's clock right; if the entry is what is wrong, open the ledger once with ResetClock; "+
		"writes that were sent can still be settled",
		ledger.ErrClock, l.name, at(s.now).Format(time.RFC3339Nano), at(s.newest).Format(time.RFC3339Nano))
}

// timely reports whether a change was written with the database's present time.
func timely(s state, now time.Time) bool {
	lag := s.now - now.UnixNano()
	return lag >= 0 && lag <= int64(maxLag)
}

// clock estimates the database's clock: its last reading, and the time since by this process's
// clock. The database checks every time that it gets, so a wrong estimate costs only another
// reading.
//
// A reading is half a round trip old when it arrives, and the time that is sent another half when
// the database compares it. Without allowance for that no change would be accepted by a database
// that is more than maxLag away.
type clock struct {
	mu   sync.Mutex
	read int64         // the database's clock, 0 for never read
	when time.Time     // when that reading arrived here
	trip time.Duration // the shortest round trip since the database last refused a time, 0 for none
}

// guess returns the time of the database when it will get a statement that is sent now, if there
// was a reading.
func (c *clock) guess() (now time.Time, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age := time.Since(c.when)
	if c.read == 0 || age < 0 || age > maxSample {
		return time.Time{}, false
	}
	return at(c.read + int64(age+c.ahead())), true
}

// ahead returns by how much the database's clock advances on the way of a reading and of the
// statement that follows it, without the margin.
func (c *clock) ahead() time.Duration { return max(0, c.trip-margin) }

// tripped records a round trip of a statement that waits for nothing, and returns the time of
// the database when it will get a statement that is sent now.
func (c *clock) tripped(read int64, trip time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trip == 0 || trip < c.trip {
		c.trip = trip
	}
	c.read, c.when = read, time.Now()
	return at(read + int64(c.ahead()))
}

// later returns the time of the database when it will get a statement that is sent now, from a
// reading of any age: for a transaction, which stays on one connection. The database refuses it
// if a process that was stopped has made it wrong.
func (c *clock) later(read int64, when time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return at(read + int64(time.Since(when)+c.ahead()))
}

// refused forgets the reading and the round trip: the database has refused a time.
func (c *clock) refused() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.trip = 0, 0
}

// observe records a reading of the database's clock that came with a result, unless it was longer
// on its way than the last one.
func (c *clock) observe(read int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	age := now.Sub(c.when)
	if age >= 0 && age <= maxSample && read < c.read+int64(age) {
		return
	}
	c.read, c.when = read, now
}

// clamp returns the time of a change to a record: now, or when the record was last changed, if
// that is later. Time never runs backwards during the lifetime of a write.
func clamp(now time.Time, r ledger.Record) time.Time {
	if r.Updated.After(now) {
		return r.Updated
	}
	return now
}

// scanState reads the state of the database only.
func scanState(rows pgx.Rows) (s state, err error) {
	_, err = pgx.CollectOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, r.Scan(s.dest()...)
	})
	return s, err
}
