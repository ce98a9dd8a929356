package postgres

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxClockStep is how far the database's clock may be before the newest entry and still be
	// used: the steps of time daemons, and the difference between a primary and the standby that
	// takes over. Beyond it, no lease, settle time or horizon can be trusted.
	maxClockStep = time.Minute

	// maxParties is how many parties (tenant, destination and state) one claim reads; the next
	// one continues from there.
	maxParties = 256

	// minShare is the least number of due writes of each party that a claim reads.
	minShare = 64

	// maxPartyReads is how many such reads a claim makes before it returns that nothing is due.
	// maxRounds is how often it asks for more when other workers took its rows first.
	maxPartyReads = 16
	maxRounds     = 4

	// maxServed is how many served parties are remembered. Beyond it all are cleared.
	maxServed = 10_000

	// setAside is how long this program skips a write that only a newer one can read.
	setAside = 5 * time.Second
)

// fairness records which parties this process served, so that claims for fewer records than there
// are parties continue where the previous one ended.
type fairness struct {
	mu     sync.Mutex
	after  driver.Party // the next read of parties starts after this one
	queue  string       // and that of the outbox after this queue
	count  int64
	served map[driver.Party]int64 // by destination and tenant: the last claim that served it
}

// Claim implements [ledger.Ledger]. It fails with [ledger.ErrClock] when the clock is too far
// before the newest entry. Parties that this process served longest ago come first.
func (l *Ledger) Claim(ctx context.Context, c ledger.Claim) ([]ledger.Record, error) {
	c, err := c.Checked()
	if err != nil {
		return nil, err
	}
	if err := gaveUp(ctx); err != nil {
		return nil, err
	}
	if c.ID != "" {
		return l.claimOne(ctx, c)
	}
	recs := []ledger.Record{}
	for range maxRounds {
		more, again, err := l.claimShare(ctx, driver.Rest(c, recs))
		if err != nil && len(recs) == 0 {
			return nil, err
		}
		if recs = append(recs, more...); err != nil || !again || len(recs) >= c.Limit {
			break
		}
	}
	return recs, nil //nolint:nilerr // what was leased stays leased, whatever error came then
}

// claimShare leases the claim's share of what is due. Again says that there may be more: other
// workers took the same rows, or some cannot be read.
func (l *Ledger) claimShare(ctx context.Context, c ledger.Claim) (recs []ledger.Record, again bool, err error) {
	due, err := l.due(ctx, c)
	if err != nil {
		return nil, false, err
	}
	share := c.Share(l.fairness.order(due))
	if len(share) == 0 {
		return nil, false, nil
	}
	shares := make(map[driver.Party]int64)
	for _, r := range share {
		shares[partyOf(r)]++
	}
	lent, refused, err := l.lend(ctx, c, shares)
	if err != nil {
		return nil, false, err
	}
	slices.SortStableFunc(lent, func(a, b row) int { return a.rec.Due.Compare(b.rec.Due) })
	for _, r := range lent {
		l.memory.keep(r)
		recs = append(recs, r.rec)
	}
	l.fairness.serve(recs)
	return recs, refused > 0 || len(lent) < len(share), nil
}

func partyOf(r ledger.Record) driver.Party {
	return driver.Party{Destination: r.Destination, Tenant: r.Tenant, State: string(r.State)}
}

// servedOf returns the party of a record in any state.
func servedOf(r ledger.Record) driver.Party {
	return driver.Party{Destination: r.Destination, Tenant: r.Tenant}
}

// order sorts what is due so that parties alternate.
func (t *fairness) order(due []ledger.Record) []ledger.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(due, func(a, b ledger.Record) int {
		return cmp.Or(cmp.Compare(t.served[servedOf(a)], t.served[servedOf(b)]), a.Due.Compare(b.Due))
	})
	return due
}

func (t *fairness) serve(recs []ledger.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.served == nil || len(t.served) > maxServed {
		t.served = make(map[driver.Party]int64)
	}
	t.count++
	for _, r := range recs {
		t.served[servedOf(r)] = t.count
	}
}

// due returns the oldest due of some parties, as far as the claim's share can depend on it:
// party, state and due time only. It reads on until it finds something for this claim, or has
// read all parties. The next call continues from there in any case.
func (l *Ledger) due(ctx context.Context, c ledger.Claim) ([]ledger.Record, error) {
	l.fairness.mu.Lock()
	begin := l.fairness.after
	l.fairness.mu.Unlock()
	after, round := begin, begin == (driver.Party{})
	defer func() {
		l.fairness.mu.Lock()
		l.fairness.after = after
		l.fairness.mu.Unlock()
	}()
	var failed error // an error of the outbox only: what is due is leased all the same
	for visit := range maxPartyReads {
		w, err := l.duePartiesAfter(ctx, c, after)
		if err == nil && visit == 0 && w.outbox {
			var moved bool
			if moved, failed = l.admitDue(ctx); moved {
				w, err = l.duePartiesAfter(ctx, c, after)
			}
		}
		if err != nil {
			return nil, err
		}
		after = w.last
		if len(c.Share(w.due)) > 0 {
			return w.due, nil
		}
		ended := after == driver.Party{}
		if round && (ended || begin != driver.Party{} && !after.Before(begin)) {
			break
		}
		round = round || ended
	}
	return nil, failed
}

// dueParties is what one read of parties found.
type dueParties struct {
	due    []ledger.Record
	last   driver.Party // after which the next one continues; the zero party at the end
	outbox bool
}

func (l *Ledger) duePartiesAfter(ctx context.Context, c ledger.Claim, after driver.Party) (w dueParties, err error) {
	args := []any{after.Destination, after.Tenant, after.State, maxParties, int64(minShare), int64(c.Limit)}
	err = l.read(ctx, l.sql.Text("parties"), args, func(rows pgx.Rows) error {
		w = dueParties{}
		var s state
		count := 0
		for rows.Next() {
			var p driver.Party
			var due []int64
			if err := rows.Scan(append(s.dest(), &w.outbox, &p.Destination, &p.Tenant, &p.State, &due)...); err != nil {
				return err
			}
			for _, ns := range due {
				w.due = append(w.due, ledger.Record{Destination: p.Destination, Tenant: p.Tenant, State: ledger.State(p.State), Due: at(ns)})
			}
			count++
			w.last = p
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if count < maxParties {
			w.last = driver.Party{}
		}
		return cmp.Or(l.usable(s), l.trusted(s))
	})
	return w, err
}

// lend leases the given number of each party. Rows that cannot be read are excluded from later
// reads, and counted.
func (l *Ledger) lend(ctx context.Context, c ledger.Claim, shares map[driver.Party]int64) (lent []row, refused int, err error) {
	var destinations, tenants, states []string
	var counts, leases []int64
	for _, p := range slices.SortedFunc(maps.Keys(shares), func(a, b driver.Party) int {
		return cmp.Or(cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.State, b.State))
	}) {
		destinations, tenants, states = append(destinations, p.Destination), append(tenants, p.Tenant), append(states, p.State)
		counts, leases = append(counts, shares[p]), append(leases, int64(c.Lease(p.Destination)))
	}
	return l.lent(ctx, "lend", l.version, int64(maxClockStep), destinations, tenants, states, counts, c.Owner, leases)
}

// lent runs a statement that leases, and repeats it if the database provably did not apply it.
func (l *Ledger) lent(ctx context.Context, statement string, args ...any) (lent []row, refused int, err error) {
	for try := 0; ; try++ {
		if lent, refused, err = l.lentOnce(ctx, statement, args...); !l.repeat(ctx, try, &err) {
			return lent, refused, err
		}
	}
}

func (l *Ledger) lentOnce(ctx context.Context, statement string, args ...any) (lent []row, refused int, err error) {
	var unfit, none unfit
	err = l.change(ctx, statement, args, func(rows pgx.Rows) error {
		lent, unfit = nil, none
		var s state
		for rows.Next() {
			r, err := scanRow(rows, s.dest()...)
			switch {
			case err == nil && r.n != 0:
				r.rec.Now = at(s.now)
				lent = append(lent, r)
			case unreadable(err) != "":
				unfit.add(r, unreadable(err), 0)
			case errors.Is(err, ledger.ErrVersion):
				unfit.add(r, "", s.now+int64(setAside))
			case err != nil:
				return err
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		l.clock.observe(s.now)
		return cmp.Or(l.usable(s), l.trusted(s))
	})
	if err != nil {
		return nil, 0, l.brokenClaim(ctx, l.late(err))
	}
	if len(unfit.ids) > 0 {
		// If this fails they stay leased without a worker until the lease ends.
		l.do(ctx, "return_unreadable", unfit.ids, unfit.fences, unfit.reasons, unfit.until)
	}
	return lent, len(unfit.ids), nil
}

// brokenClaim is broken for a claim: a caller that gave up must not conclude that nothing was
// leased, but needs no other error, since an unused lease ends by itself.
func (l *Ledger) brokenClaim(ctx context.Context, err error) error {
	if ctx.Err() != nil && !known(err) {
		return errors.Join(ctx.Err(), err)
	}
	return l.broken(err)
}

// unfit are rows that were leased and cannot be read.
type unfit struct {
	ids, reasons  []string
	fences, until []int64
}

func (u *unfit) add(r row, reason string, until int64) {
	u.ids, u.reasons = append(u.ids, string(r.rec.ID)), append(u.reasons, reason)
	u.fences, u.until = append(u.fences, r.rec.Fence), append(u.until, min(until, math.MaxInt64))
}

func (l *Ledger) claimOne(ctx context.Context, c ledger.Claim) ([]ledger.Record, error) {
	paused, unwanted := append([]string{}, c.Paused...), []string{}
	for destination, most := range c.Most {
		if most <= 0 {
			unwanted = append(unwanted, destination)
		}
	}
	for range 2 {
		lent, _, err := l.lent(ctx, "lend_one", l.version, int64(maxClockStep), string(c.ID), c.Tenant, c.Owner, c.Early, int64(c.LeaseFor), paused, unwanted, c.Gone)
		if err != nil {
			return nil, err
		}
		if len(lent) == 1 {
			l.memory.keep(lent[0])
			return []ledger.Record{lent[0].rec}, nil
		}
		stuck, err := l.stuck(ctx, c)
		if errors.Is(err, ledger.ErrNotFound) {
			if _, err = l.admitID(ctx, c.Tenant, c.ID, err); err == nil {
				continue
			}
		}
		if err != nil || !stuck {
			return nil, notFound(err)
		}
		if err := l.within(ctx, func(t *tx) error { return t.caughtUp(c.ID) }); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// stuck reports whether a write waits for one that has left its queue.
func (l *Ledger) stuck(ctx context.Context, c ledger.Claim) (bool, error) {
	have, err := l.one(ctx, c.ID, "get", string(c.ID), c.Tenant)
	if err != nil || have.rec.QueuedBehind == "" {
		return false, err
	}
	before, err := l.find(ctx, have.rec.QueuedBehind)
	return err != nil || !before.rec.InQueue(), notFound(err)
}

// notFound returns the error, unless it says that there is no such write.
func notFound(err error) error {
	if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrRefused) {
		return nil
	}
	return err
}
