package guards

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// kick has what is new published.
func (g *Guards) kick() {
	select {
	case g.news <- struct{}{}:
	default:
	}
	g.attend()
}

// attend makes sure that there is a keeper, which runs as long as there is
// something to publish or a slot to look after.
func (g *Guards) attend() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.keeper == nil && !g.closed {
		g.keeper = make(chan struct{})
		go g.keep()
	}
}

// keep is the keeper.
func (g *Guards) keep() {
	failing, pause := newTendPace(), tendEvery
	for {
		timer := time.NewTimer(pause)
		select {
		case <-g.news:
		case <-timer.C:
		case <-g.ctx.Done():
		}
		timer.Stop()
		busy, err := false, g.ctx.Err()
		if err == nil {
			busy, err = g.tend(g.ctx, false)
		}
		if pause = tendEvery; err != nil && g.ctx.Err() == nil {
			pause = failing.NextBackOff()
			g.opts.Logger.Warn("the guards' notes could not be written", "error", err)
		} else {
			failing.Reset()
		}
		if g.rest(busy) {
			return
		}
	}
}

// rest ends the keeper when nothing is left to do, or nothing can be done.
func (g *Guards) rest(busy bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() == nil && (busy || len(g.news) > 0) {
		return false
	}
	close(g.keeper)
	g.keeper = nil
	return true
}

// tend looks after all destinations, and reports whether something is left.
func (g *Guards) tend(ctx context.Context, closing bool) (busy bool, err error) {
	g.mu.Lock()
	all := slices.Collect(maps.Values(g.dests))
	g.mu.Unlock()
	for _, d := range all {
		for _, part := range []func() (bool, error){
			func() (bool, error) { return d.breaker.tend(ctx, closing) },
			func() (bool, error) { return d.rates.tend(ctx) },
			func() (bool, error) { return d.slots.tend(ctx, closing) },
		} {
			left, failed := part()
			busy, err = busy || left, errors.Join(err, failed)
		}
	}
	return busy, err
}

// Close publishes what is not published yet and gives back what is not in use,
// within two seconds; what does not get back comes back by time. From then on
// Enter holds everything. Close the engine first. It does not close the ledger.
func (g *Guards) Close() error {
	g.mu.Lock()
	g.closed = true
	keeper := g.keeper
	g.mu.Unlock()
	g.stop()
	if keeper != nil {
		<-keeper
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeFor)
	defer cancel()
	_, err := g.tend(ctx, true)
	return err
}
