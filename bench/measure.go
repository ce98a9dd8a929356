//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gonum.org/v1/gonum/stat"
)

// results are the rates of the contenders that completed every turn.
type results struct {
	contenders []contender
	rates      map[string][][]float64 // by name; for each of callers, writes a second in each round
}

// measure gives each contender its turn, round by round. The order is another one in each round.
// A system under test that fails loses its place, with one line; readback must not fail.
func measure(ctx context.Context, w io.Writer, m *machine, present []contender, o options) (results, error) {
	r := results{contenders: slices.Clone(present), rates: map[string][][]float64{}}
	for _, c := range present {
		r.rates[c.name] = make([][]float64, len(callers))
	}
	for round := range o.rounds {
		fmt.Fprintf(w, "Round %d of %d, load average %s\n", round+1, o.rounds, loadAverage())
		order := slices.Clone(r.contenders)
		for i := range order {
			order[i] = r.contenders[(i+round)%len(order)]
		}
		for _, c := range order {
			rates, err := turn(ctx, m, c, o.each)
			if err != nil && (ctx.Err() != nil || c.isReadback()) {
				return results{}, fmt.Errorf("%s: %w", c.name, err)
			}
			if err != nil {
				fmt.Fprintf(w, "%s failed and is left out: %s\n", c.name, strings.ReplaceAll(err.Error(), "\n", "; "))
				r.contenders = slices.DeleteFunc(r.contenders, func(of contender) bool { return of.name == c.name })
				continue
			}
			for i, rate := range rates {
				r.rates[c.name][i] = append(r.rates[c.name][i], rate)
			}
		}
	}
	return r, nil
}

// turn opens a contender and returns its writes a second for each number of callers.
func turn(ctx context.Context, m *machine, c contender, each time.Duration) (rates []float64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(len(callers))*each+3*time.Minute, errors.New("the turn took too long"))
	defer cancel()
	// What the last contender left to do is done before this one begins.
	runtime.GC()
	if m.pg != nil {
		if err := m.pg.Exec("postgres", "CHECKPOINT"); err != nil {
			return nil, err
		}
	}
	d := newDestination()
	s, err := c.open(ctx, m, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	written := 0
	for _, n := range callers {
		if _, err := writeWith(ctx, s, fmt.Sprint("warm-", n), n, 0); err != nil {
			return nil, err
		}
		began := time.Now()
		writes, err := writeWith(ctx, s, fmt.Sprint("order-", n), n, each)
		if err != nil {
			return nil, err
		}
		rates = append(rates, float64(writes)/time.Since(began).Seconds())
		written += n + writes
	}
	if orders, _ := d.count(); orders != written {
		return nil, fmt.Errorf("%d writes ended, and the destination has %d", written, orders)
	}
	return rates, nil
}

// writeWith has callers write one after another for a while, each at least once, and returns how
// many writes ended.
func writeWith(ctx context.Context, s session, batch string, callers int, each time.Duration) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	end := time.Now().Add(each)
	for range callers {
		wg.Go(func() {
			for {
				if err := s.write(ctx, newOrder(fmt.Sprintf("%s-%d", batch, next.Add(1)))); err != nil {
					cancel(err)
					return
				}
				if !time.Now().Before(end) {
					return
				}
			}
		})
	}
	wg.Wait()
	return int(next.Load()), context.Cause(ctx)
}

// base is the contender that another one is compared with: readback on the same store. Restate
// has a store of its own and a server of its own, as PostgreSQL is one.
func (r results) base(c contender) (contender, bool) {
	store := c.store
	if store == restateStore {
		store = postgresStore
	}
	i := slices.IndexFunc(r.contenders, func(b contender) bool { return b.isReadback() && b.store == store })
	if i < 0 || c.isReadback() {
		return contender{}, false
	}
	return r.contenders[i], true
}

func (c contender) isReadback() bool { return c.module == readbackOnPostgres.module }

// ratios are those of readback's rates to a contender's, round by round.
func (r results) ratios(base, c contender, i int) []float64 {
	var all []float64
	for round, rate := range r.rates[c.name][i] {
		all = append(all, r.rates[base.name][i][round]/rate)
	}
	return all
}

// spread is the median with the lowest and the highest.
func spread(all []float64) (median, low, high float64) {
	sorted := slices.Sorted(slices.Values(all))
	return stat.Quantile(0.5, stat.Empirical, sorted, nil), sorted[0], sorted[len(sorted)-1]
}
