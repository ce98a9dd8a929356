package sqlite

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

const (
	// A claim reads enoughParties (tenant, destination and state with a due time), or more until
	// it finds work, but maxParties at the most: some milliseconds, and at worst some tens, in
	// which no other caller can write. The next claim continues where it ended, so that each
	// party is served.
	enoughParties = 256
	maxParties    = 4096
)

func (t *tx) claim(c ledger.Claim) ([]ledger.Record, error) {
	now, err := t.trust()
	if err != nil {
		return nil, err
	}
	if c.ID != "" {
		return t.claimOne(c, now)
	}
	recs := []ledger.Record{}
	for again := true; again && len(recs) < c.Limit; {
		var more []ledger.Record
		if more, again, err = t.claimShare(driver.Rest(c, recs), now); err != nil {
			return nil, err
		}
		recs = append(recs, more...)
	}
	return recs, nil
}

func (t *tx) claimOne(c ledger.Claim, now time.Time) ([]ledger.Record, error) {
	r, found, err := t.write(c.ID)
	if err != nil || !found || r.rec.Tenant != c.Tenant {
		return nil, err
	}
	if r, err = t.caughtUp(r, now); err != nil || !c.Freed(r.rec).Claimable(now, c.Early) || len(c.Share([]ledger.Record{r.rec})) == 0 {
		return nil, err
	}
	rec, err := t.lend(r, c, now)
	return []ledger.Record{rec}, err
}

func (t *tx) lend(r row, c ledger.Claim, now time.Time) (ledger.Record, error) {
	r.rec = r.rec.Lend(c.Owner, c.Lease(r.rec.Destination), now)
	return r.rec, t.updateWrite(&r)
}

// claimShare leases the claim's share of what is due. Rows that cannot be read are skipped;
// marked says that some of them were excluded from the next read.
func (t *tx) claimShare(c ledger.Claim, now time.Time) (recs []ledger.Record, marked bool, err error) {
	parties, err := t.parties(c, now)
	if err != nil || len(parties) == 0 {
		return nil, false, err
	}
	numbers, err := t.share(c, parties, now)
	if err != nil {
		return nil, false, err
	}
	for _, n := range numbers {
		r, err := t.numberedWrite(n)
		if reason := unreadable(err); reason != "" {
			if marked, err = true, t.markDamaged(n, reason); err != nil {
				return nil, false, err
			}
			continue
		}
		if errors.Is(err, ledger.ErrVersion) { // for a newer program
			continue
		}
		if err != nil {
			return nil, false, err
		}
		rec, err := t.lend(r, c, now)
		if err != nil {
			return nil, false, err
		}
		recs = append(recs, rec)
	}
	return recs, marked, nil
}

// parties reads one party after another, from where the previous claim ended, and returns those
// that have due work.
func (t *tx) parties(c ledger.Claim, now time.Time) (due []driver.Party, err error) {
	at, round := t.visited, false
	for visits := 0; visits < maxParties && (visits < enoughParties || len(due) == 0); visits++ {
		next, oldest, found, err := t.nextParty(at)
		switch {
		case err != nil:
			return nil, err
		case round && (!found || t.visited.Before(next)):
			return due, nil // all were read
		case !found:
			at, round = driver.Party{}, true
			continue
		}
		at = next
		most, bounded := c.Most[next.Destination]
		paused := next.State == string(ledger.Queued) && slices.Contains(c.Paused, next.Destination)
		if !oldest.After(now) && !paused && (!bounded || most > 0) {
			due = append(due, next)
		}
	}
	t.visited = at
	return due, nil
}

func (t *tx) nextParty(after driver.Party) (next driver.Party, oldest time.Time, found bool, err error) {
	s := t.party
	s.BindText(1, after.Destination)
	s.BindText(2, after.Tenant)
	s.BindText(3, after.State)
	err = each(t.path, s, func() error {
		found = true
		next = driver.Party{Destination: s.ColumnText(0), Tenant: s.ColumnText(1), State: s.ColumnText(2)}
		oldest = time.Unix(0, s.ColumnInt64(3))
		return nil
	})
	return next, oldest, found, err
}

// share returns the numbers of the rows that a claim gets. Of each party it reads only as many as
// its share can be: when they fill the claim, more would not change it.
func (t *tx) share(c ledger.Claim, parties []driver.Party, now time.Time) ([]int64, error) {
	for depth := (c.Limit + len(parties) - 1) / len(parties); ; depth *= 2 {
		var oldest []ledger.Record
		cut := false
		for _, p := range parties {
			before := len(oldest)
			var err error
			if oldest, err = t.oldestDue(oldest, p, depth, now); err != nil {
				return nil, err
			}
			cut = cut || len(oldest)-before == depth
		}
		slices.SortStableFunc(oldest, func(a, b ledger.Record) int {
			return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Seq, b.Seq))
		})
		got := c.Share(oldest)
		if cut && len(got) < c.Limit && depth < c.Limit {
			continue
		}
		numbers := make([]int64, 0, len(got))
		for _, r := range got {
			numbers = append(numbers, r.Seq)
		}
		return numbers, nil
	}
}

// oldestDue adds what a party may claim, as far as its share depends on it. Seq holds the number
// of the row.
func (t *tx) oldestDue(to []ledger.Record, p driver.Party, limit int, now time.Time) ([]ledger.Record, error) {
	s := t.due
	s.BindText(1, p.Destination)
	s.BindText(2, p.Tenant)
	s.BindText(3, p.State)
	bindTime(s, 4, now)
	s.BindInt64(5, int64(limit))
	err := each(t.path, s, func() error {
		to = append(to, ledger.Record{
			Seq: s.ColumnInt64(0), Due: time.Unix(0, s.ColumnInt64(1)),
			Destination: p.Destination, Tenant: p.Tenant, State: ledger.State(p.State),
		})
		return nil
	})
	return to, err
}

// numberedWrite reads a write by its number.
func (t *tx) numberedWrite(n int64) (r row, err error) {
	t.numbered.BindInt64(1, n)
	err = each(t.path, t.numbered, func() (err error) {
		r, err = scan(t.numbered, 0)
		return err
	})
	return r, err
}

// markDamaged excludes a row from claims until an operator has repaired it.
func (t *tx) markDamaged(n int64, reason string) error {
	t.wrote = true
	t.damaged.BindInt64(1, n)
	t.damaged.BindText(2, reason)
	return exec(t.path, t.damaged)
}
