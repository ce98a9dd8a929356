package postgres

import (
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

// state is what each statement says of the database beside its answer.
type state struct {
	version, compatibleFrom int
	newest, now             int64
	standby                 bool
	durable                 string
}

// dest is where columnsOfState go.
func (s *state) dest() []any {
	return []any{&s.version, &s.compatibleFrom, &s.newest, &s.standby, &s.now, &s.durable}
}

// usable refuses a database that is no primary, and one that a newer program
// has made unfit for this one. It is asked about every answer: both can come
// while a program runs.
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

// trusted refuses a clock that stands too far before the newest time on record.
func (l *Ledger) trusted(s state) error {
	if s.newest-s.now <= int64(maxClockStep) {
		return nil
	}
	return fmt.Errorf("%w: the clock of %s says %s, but an entry of the ledger was made at %s: "+
		"set the database's clock right; if the entry is what is wrong, open the ledger once with ResetClock; "+
		"writes that were sent can still be settled",
		ledger.ErrClock, l.name, at(s.now).Format(time.RFC3339Nano), at(s.newest).Format(time.RFC3339Nano))
}

// timely says that a change was written with the database's present time.
func timely(s state, now time.Time) bool {
	lag := s.now - now.UnixNano()
	return lag >= 0 && lag <= int64(maxLag)
}

// clock is what this process knows of the database's clock: what it said last,
// and how long ago by the process's own counting. The database checks every
// time that it is given, so a wrong guess costs another look and nothing else.
type clock struct {
	mu   sync.Mutex
	said int64     // the database's clock, 0 for never looked at
	when time.Time // when that arrived here
}

// guess is the database's time now, as far as it is known.
func (c *clock) guess() (now time.Time, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age := time.Since(c.when)
	if c.said == 0 || age < 0 || age > maxSample {
		return time.Time{}, false
	}
	return at(c.said + int64(age)), true
}

// heard takes note of what the database's clock said beside an answer, unless
// the answer was longer on its way than the last one.
func (c *clock) heard(said int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	age := now.Sub(c.when)
	if age >= 0 && age <= maxSample && said < c.said+int64(age) {
		return
	}
	c.said, c.when = said, now
}

// set takes what the database's clock says for true, whatever was known.
func (c *clock) set(said int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said, c.when = said, time.Now()
}

// clamp is the time of a change to a record: now, or when the record was last
// changed, if that is later. Time never runs backwards in the life of a write.
func clamp(now time.Time, r ledger.Record) time.Time {
	if r.Updated.After(now) {
		return r.Updated
	}
	return now
}

// look asks for the state of the database and nothing else.
func look(rows pgx.Rows) (s state, err error) {
	_, err = pgx.CollectOneRow(rows, func(r pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, r.Scan(s.dest()...)
	})
	return s, err
}
