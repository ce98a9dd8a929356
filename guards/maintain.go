package guards

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	// tendEvery is the interval at which held slots and unpublished changes are processed.
	tendEvery = 250 * time.Millisecond
	// closeFor bounds the time in which Close returns slots and publishes.
	closeFor = 2 * time.Second
)

// kick triggers publication.
func (g *Guards) kick() {
	select {
	case g.news <- struct{}{}:
	default:
	}
	g.attend()
}

// attend ensures that the maintenance loop runs. It runs as long as there are changes to publish or slots to
// renew.
func (g *Guards) attend() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.maintainer == nil && !g.closed {
		g.maintainer = make(chan struct{})
		go g.keep()
	}
}

// keep is the maintenance loop.
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

// rest ends the maintenance loop when nothing is left to do, or nothing can be done.
func (g *Guards) rest(busy bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() == nil && (busy || len(g.news) > 0) {
		return false
	}
	close(g.maintainer)
	g.maintainer = nil
	return true
}

// tend processes all destinations, and reports whether work is left.
func (g *Guards) tend(ctx context.Context, closing bool) (busy bool, err error) {
	g.mu.Lock()
	all := slices.Collect(maps.Values(g.dests))
	g.mu.Unlock()
	for _, d := range all {
		for _, part := range []func() (bool, error){
			func() (bool, error) { return d.breaker.tend(ctx, closing) },
			func() (bool, error) { return d.rates.tend(ctx) },
			func() (bool, error) { return d.reads.tend(ctx) },
			func() (bool, error) { return d.slots.tend(ctx, closing) },
		} {
			left, failed := part()
			busy, err = busy || left, errors.Join(err, failed)
		}
	}
	return busy, err
}

// Close publishes unpublished changes and returns unused slots, within two seconds; the rest
// expires. From then on Enter holds everything. Close the engine first. It does not close the
// ledger.
func (g *Guards) Close() error {
	g.mu.Lock()
	g.closed = true
	maintainer := g.maintainer
	g.mu.Unlock()
	g.stop()
	if maintainer != nil {
		<-maintainer
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeFor)
	defer cancel()
	_, err := g.tend(ctx, true)
	return err
}

// newTendPace is the backoff of the maintenance loop while the ledger fails.
func newTendPace() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(tendEvery), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
}
