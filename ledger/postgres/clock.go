package postgres

import (
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

// maxSample is how long a reading of the database's clock is valid. Two clocks do not drift
// apart measurably in that time.
const maxSample = 100 * time.Millisecond

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
type clock struct {
	mu   sync.Mutex
	read int64     // the database's clock, 0 for never read
	when time.Time // when that reading arrived here
}

// guess returns the estimated time of the database, if there was a reading.
func (c *clock) guess() (now time.Time, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age := time.Since(c.when)
	if c.read == 0 || age < 0 || age > maxSample {
		return time.Time{}, false
	}
	return at(c.read + int64(age)), true
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

// set replaces the reading of the database's clock unconditionally.
func (c *clock) set(read int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.when = read, time.Now()
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
