package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// mostTime bounds the whole demonstration. It takes about 15 seconds.
const mostTime = 55 * time.Second

// Options are the choices of [Run]. The zero value works.
type Options struct {
	// JSON prints the figures for machines: one object with the member strategies, a list of
	// [Figures]. Default: a text report.
	JSON bool
	// Progress is where it is shown how far the demonstration has come: on a
	// terminal as one line that changes, elsewhere as lines. Default nowhere.
	Progress io.Writer

	within time.Duration // the bound on Run; default mostTime
}

// Errors of Run.
var (
	// errNotExact means that readback did not write each order exactly once, or could not report
	// so. The figures were printed all the same.
	errNotExact = errors.New("readback did not write each order exactly once")
	// errTooSlow means that the machine was too busy for the demonstration.
	errTooSlow = errors.New("the demonstration took too long; is the machine very busy?")
)

// Run makes the demonstration and prints what came of it to out. It takes
// about 15 seconds, and 55 at the most: then it fails with [errTooSlow]. The
// processes it starts and the folder it makes are gone when it returns, early
// too, because ctx has ended; then the error is the cause of that. The program
// must call [Child] first.
func Run(ctx context.Context, o Options, out io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(o.within, mostTime), errTooSlow)
	defer cancel()
	r, err := demonstrate(ctx, o.Progress, orderCount)
	if err != nil {
		return err
	}
	if o.JSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		_, err = io.WriteString(out, r.text())
	}
	return errors.Join(err, r.check())
}

// report is what came of all trials.
type report struct {
	Strategies []Figures `json:"strategies"`
}

// check holds readback to what it promises.
func (r report) check() error {
	for _, f := range r.Strategies {
		exact := f.SideEffectCalls == f.Orders && f.BalanceCents == f.ExpectedCents && f.Duplicates+f.Lost+f.Review == 0
		if f.trial.strategy == readback && !exact {
			return fmt.Errorf("%w: %s: %+v", errNotExact, f.Strategy, f)
		}
	}
	return nil
}

// demonstrate makes all trials with n orders each.
func demonstrate(ctx context.Context, progress io.Writer, n int) (report, error) {
	dir, err := os.MkdirTemp("", "readback-demo-")
	if err != nil {
		return report{}, err
	}
	s := newScreen(progress, n)
	r, err := allTrials(ctx, dir, n, s)
	s.end()
	return r, errors.Join(err, os.RemoveAll(dir))
}

// allTrials makes the trials at the same time: most of theirs is waiting for
// disks and leases. The first that fails ends the others.
func allTrials(ctx context.Context, dir string, n int, s *screen) (report, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := report{Strategies: make([]Figures, len(trials()))}
	var wg sync.WaitGroup
	for i, t := range trials() {
		wg.Go(func() {
			f, err := oneTrial(ctx, t, filepath.Join(dir, t.name), n, s)
			if err != nil {
				stop(err)
			}
			r.Strategies[i] = f
		})
	}
	wg.Wait()
	return r, context.Cause(ctx)
}

func oneTrial(ctx context.Context, t trial, dir string, n int, s *screen) (Figures, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return Figures{}, err
	}
	r := newRun(t, dir, n, s.set)
	if t.target == toIMAP {
		return r.toIMAP(ctx)
	}
	return r.toOrders(ctx)
}
