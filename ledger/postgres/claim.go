package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger"
)

// party is whose turn it can be; of each state by itself, so that what is
// paused need not be walked through.
type party struct{ destination, tenant, state string }

// turns is whose turn it was in this process, so that claims of less than all
// have one each go on where the one before ended.
type turns struct {
	mu     sync.Mutex
	after  party  // the walk goes on behind this one
	line   string // and that through the outbox behind this line
	count  int64
	served map[party]int64 // by destination and tenant: the claim that had it last
}

// Claim implements [ledger.Ledger]. It fails with [ledger.ErrClock] when the
// clock stands too far before the newest entry. Parties that this process
// served longest ago come first.
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
		more, again, err := l.claimShare(ctx, rest(c, recs))
		if err != nil && len(recs) == 0 {
			return nil, err
		}
		if recs = append(recs, more...); err != nil || !again || len(recs) >= c.Limit {
			break
		}
	}
	return recs, nil //nolint:nilerr // what was lent is lent, whatever came then
}

// rest is what a claim still wants.
func rest(c ledger.Claim, got []ledger.Record) ledger.Claim {
	c.Limit -= len(got)
	c.Most = maps.Clone(c.Most)
	for _, r := range got {
		if _, bounded := c.Most[r.Destination]; bounded {
			c.Most[r.Destination]--
		}
	}
	return c
}

// claimShare lends what the claim gets of what is due. Again says that it may
// have been more: other workers were at the same rows, or some cannot be read.
func (l *Ledger) claimShare(ctx context.Context, c ledger.Claim) (recs []ledger.Record, again bool, err error) {
	due, err := l.due(ctx, c)
	if err != nil {
		return nil, false, err
	}
	share := c.Share(l.turns.order(due))
	if len(share) == 0 {
		return nil, false, nil
	}
	shares := make(map[party]int64)
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
	l.turns.serve(recs)
	return recs, refused > 0 || len(lent) < len(share), nil
}

func partyOf(r ledger.Record) party { return party{r.Destination, r.Tenant, string(r.State)} }

// order puts what is due in the order in which turns are taken.
func (t *turns) order(due []ledger.Record) []ledger.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(due, func(a, b ledger.Record) int {
		return cmp.Or(cmp.Compare(t.served[party{a.Destination, a.Tenant, ""}], t.served[party{b.Destination, b.Tenant, ""}]), a.Due.Compare(b.Due))
	})
	return due
}

func (t *turns) serve(recs []ledger.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.served == nil || len(t.served) > maxServed {
		t.served = make(map[party]int64)
	}
	t.count++
	for _, r := range recs {
		t.served[party{r.Destination, r.Tenant, ""}] = t.count
	}
}

// due is the oldest due of some parties, as far as the claim's share can
// depend on it: party, state and due time alone. The walk goes on until it finds
// something for this claim, or has gone round; however it ends, the next one
// goes on from there.
func (l *Ledger) due(ctx context.Context, c ledger.Claim) ([]ledger.Record, error) {
	l.turns.mu.Lock()
	begin := l.turns.after
	l.turns.mu.Unlock()
	after, round := begin, begin == (party{})
	defer func() {
		l.turns.mu.Lock()
		l.turns.after = after
		l.turns.mu.Unlock()
	}()
	var failed error // of the outbox alone: what is due is lent all the same
	for visit := range maxWalks {
		w, err := l.walk(ctx, c, after)
		if err == nil && visit == 0 && w.outbox {
			var moved bool
			if moved, failed = l.admitDue(ctx); moved {
				w, err = l.walk(ctx, c, after)
			}
		}
		if err != nil {
			return nil, err
		}
		after = w.last
		if len(c.Share(w.due)) > 0 {
			return w.due, nil
		}
		ended := after == party{}
		if round && (ended || begin != party{} && !after.before(begin)) {
			break
		}
		round = round || ended
	}
	return nil, failed
}

func (p party) before(q party) bool {
	return cmp.Or(cmp.Compare(p.destination, q.destination), cmp.Compare(p.tenant, q.tenant), cmp.Compare(p.state, q.state)) < 0
}

// walked is what a walk found.
type walked struct {
	due    []ledger.Record
	last   party // behind which it goes on; the zero party at the end
	outbox bool
}

func (l *Ledger) walk(ctx context.Context, c ledger.Claim, after party) (w walked, err error) {
	args := []any{after.destination, after.tenant, after.state, maxParties, int64(minShare), int64(c.Limit)}
	err = l.read(ctx, l.sql["parties"], args, func(rows pgx.Rows) error {
		w = walked{}
		var s state
		count := 0
		for rows.Next() {
			var p party
			var due []int64
			if err := rows.Scan(append(s.dest(), &w.outbox, &p.destination, &p.tenant, &p.state, &due)...); err != nil {
				return err
			}
			for _, ns := range due {
				w.due = append(w.due, ledger.Record{Destination: p.destination, Tenant: p.tenant, State: ledger.State(p.state), Due: at(ns)})
			}
			count++
			w.last = p
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if count < maxParties {
			w.last = party{}
		}
		return cmp.Or(l.usable(s), l.trusted(s))
	})
	return w, err
}

// lend lends so many of each party. Rows that cannot be read are put out of
// the way, and counted.
func (l *Ledger) lend(ctx context.Context, c ledger.Claim, shares map[party]int64) (lent []row, refused int, err error) {
	var destinations, tenants, states []string
	var counts, leases []int64
	for _, p := range slices.SortedFunc(maps.Keys(shares), func(a, b party) int {
		return cmp.Or(cmp.Compare(a.destination, b.destination), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.state, b.state))
	}) {
		destinations, tenants, states = append(destinations, p.destination), append(tenants, p.tenant), append(states, p.state)
		counts, leases = append(counts, shares[p]), append(leases, int64(c.Lease(p.destination)))
	}
	return l.lent(ctx, "lend", l.version, int64(maxClockStep), destinations, tenants, states, counts, c.Owner, leases)
}

// lent runs a statement that lends, again where the database provably has not.
func (l *Ledger) lent(ctx context.Context, statement string, args ...any) (lent []row, refused int, err error) {
	for try := 0; ; try++ {
		lent, refused, err = l.lentOnce(ctx, statement, args...)
		switch {
		case !errors.Is(err, errAgain):
			return lent, refused, err
		case try == maxTries || ctx.Err() != nil:
			return nil, 0, fmt.Errorf("%w: tried %d times: %w", ledger.ErrUnavailable, try, err)
		}
	}
}

func (l *Ledger) lentOnce(ctx context.Context, statement string, args ...any) (lent []row, refused int, err error) {
	var unfit unfit
	err = l.ask(ctx, l.pool, l.sql[statement], args, func(rows pgx.Rows) error {
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
		l.clock.heard(s.now)
		return cmp.Or(l.usable(s), l.trusted(s))
	})
	if err != nil {
		return nil, 0, l.brokenClaim(ctx, l.late(err))
	}
	if len(unfit.ids) > 0 {
		// When this fails they are lent to somebody who will not come, until the
		// lease ends.
		_, _ = l.pool.Exec(ctx, l.sql["return"], l.args(unfit.ids, unfit.fences, unfit.reasons, unfit.until)...)
	}
	return lent, len(unfit.ids), nil
}

// brokenClaim is broken for a claim: a caller that gave up must not take it
// for certain that nothing was lent, but need not be told more, since a lease
// that nobody knows of ends by itself.
func (l *Ledger) brokenClaim(ctx context.Context, err error) error {
	if ctx.Err() != nil && !known(err) {
		return errors.Join(ctx.Err(), err)
	}
	return l.broken(err)
}

// unfit are rows that were lent and cannot be read.
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

// stuck says that a write waits for one that is in its line no more.
func (l *Ledger) stuck(ctx context.Context, c ledger.Claim) (bool, error) {
	have, err := l.one(ctx, c.ID, "get", string(c.ID), c.Tenant)
	if err != nil || have.rec.Behind == "" {
		return false, err
	}
	before, err := l.find(ctx, have.rec.Behind)
	return err != nil || !before.rec.InLine(), notFound(err)
}

// notFound is an error unless it says that there is no such write.
func notFound(err error) error {
	if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrRefused) {
		return nil
	}
	return err
}
