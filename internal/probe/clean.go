package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/verify"
)

const (
	// perCleaning is how many sends are reserved for removing one record: one, one more for a
	// duplicate, and the rest for sends that fail.
	perCleaning = 6
	// cleanupFor, and three settle times, limit the removal of all records, even after the
	// context of the run has ended; lateFor limits the wait for a record whose send had no answer
	// and that may still arrive.
	cleanupFor = 15 * time.Minute
	lateFor    = 5 * time.Minute
)

// cleanup removes every record that the probe made or may have made. It has its own time: a
// cancelled run must leave as little as any other. It handles the samples together, so that their
// settle times pass together.
func (r *run) cleanup(ctx context.Context) {
	settle, _ := r.p.Settle.Declared()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupFor+3*settle)
	defer cancel()
	r.say("taking the samples away")
	var open []*cleaning
	for _, s := range r.samples {
		if !s.sent.IsZero() { // otherwise it was never sent
			open = append(open, &cleaning{sample: s, began: time.Now(), landed: s.sent.Add(r.quiet(s)), sends: perCleaning})
		}
	}
	for pauses := r.cleaningPauses(); len(open) > 0; {
		open = slices.DeleteFunc(open, func(c *cleaning) bool { return r.advance(ctx, c) })
		if !pause.For(ctx, pauses.NextBackOff()) {
			for _, c := range open {
				r.leave(context.WithoutCancel(ctx), c.sample, orElse(c.failed, "the time for it is up"))
			}
			return
		}
	}
}

// cleaning is one sample that is being removed.
type cleaning struct {
	*sample
	began  time.Time
	landed time.Time // after it no send can arrive any more
	tried  bool      // something was sent: a read may show what is gone
	sends  int       // that may still be made
	failed error     // the last thing that went wrong
}

// advance makes one step, and reports whether the sample is done with.
func (r *run) advance(ctx context.Context, c *cleaning) bool {
	done, err := r.clean(ctx, c)
	if err != nil && ctx.Err() == nil {
		r.leave(ctx, c.sample, err)
	}
	return done || err != nil && ctx.Err() == nil
}

// clean reads a sample, and deletes what the read shows. It is done when reads show nothing and
// no send can arrive any more.
func (r *run) clean(ctx context.Context, c *cleaning) (done bool, err error) {
	in, err := r.intent(c.name, intent.Create, 0)
	if err != nil {
		return false, err
	}
	o, err := r.read(ctx, in, "")
	switch {
	case err != nil:
		c.failed = fmt.Errorf("it cannot be read: %w", err)
	case len(o.Records) == 0 && r.gone(o, c):
		return true, nil
	case len(o.Records) > 0 && (o.Strength == connectors.Strong && !c.tried || r.passed(c.sent)):
		c.tried = true
		if kept, err := r.remove(ctx, c, o); kept || err != nil {
			return true, err
		}
	}
	from := c.began
	if c.landed.After(from) {
		from = c.landed
	}
	if time.Since(from) > 2*r.patience() {
		return false, orElse(c.failed, "reads go on showing it")
	}
	return false, nil
}

// cleaningPauses are between the tries to remove records: a retry at once would probably fail
// again.
func (r *run) cleaningPauses() backoff.BackOff {
	settle, _ := r.p.Settle.Declared()
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(max(settle/pausePart, longestPause)), backoff.WithMaxElapsedTime(0), backoff.WithRandomizationFactor(0))
}

func orElse(err error, otherwise string) error {
	if err != nil {
		return err
	}
	return errors.New(otherwise)
}

// quiet is how long after the last send none can arrive any more.
func (r *run) quiet(s *sample) time.Duration {
	horizon, declared := r.p.Horizon.Declared()
	switch {
	case !s.doubt:
		return 0
	case !declared:
		return lateFor
	}
	return min(horizon, lateFor)
}

// gone reports whether a read that shows nothing proves it.
func (r *run) gone(o connectors.Observation, c *cleaning) bool {
	if o.At.Before(c.landed) {
		return false
	}
	return o.Strength == connectors.Strong || r.passed(c.landed) && r.passed(c.sent)
}

// passed reports whether reads have had the time to show all that was sent by
// then.
func (r *run) passed(sent time.Time) bool {
	settle, declared := r.p.Settle.Declared()
	if !declared {
		settle = longestPause
	}
	return time.Since(sent) >= max(settle, 2*r.lag)
}

// errKept means that a sample is removed as far as possible.
var errKept = errors.New("such records cannot be removed")

// remove removes the records of a read, one by one, by their ids. kept: they are undone, and
// cannot be removed.
func (r *run) remove(ctx context.Context, c *cleaning, o connectors.Observation) (kept bool, err error) {
	for i := range o.Records {
		one := o
		one.Records = o.Records[i : i+1]
		in, err := r.removal(c.sample, one)
		if err != nil {
			return false, err
		}
		res, err := r.take(ctx, c, write{in: in, before: &one})
		if err != nil {
			return false, err
		}
		turnedDown := res.Fate == connectors.FateNotSent || res.Fate == connectors.FateRefused
		if turnedDown && len(o.Records) > 1 && in.Write == intent.Delete {
			in.Count = len(o.Records) // it takes all under a key, or none
			if _, err := r.take(ctx, c, write{in: in, before: &o}); err != nil {
				return false, err
			}
			return false, nil
		}
		if in.Write != intent.Delete && res.Fate == connectors.FateAnswered {
			kept = true
		}
	}
	if kept {
		return true, fmt.Errorf("%w; what was done is undone", errKept)
	}
	return false, nil
}

// take sends within what is set aside for one sample.
func (r *run) take(ctx context.Context, c *cleaning, w write) (verify.Result, error) {
	if c.sends--; c.sends < 0 {
		return verify.Result{}, orElse(c.failed, "none of the sends set aside for it took it away")
	}
	r.mu.Lock()
	r.left++ // it is not of the checks' budget
	r.mu.Unlock()
	res, err := r.send(ctx, c.sample, w)
	if err == nil && res.Err != nil {
		c.failed = fmt.Errorf("the %s: %w", w.in.Write, res.Err)
	}
	return res, err
}

// removal is the delete of a sample, or the inverse of the create that made it.
func (r *run) removal(s *sample, o connectors.Observation) (intent.WriteIntent, error) {
	if r.can(intent.Delete) {
		return r.of(s, intent.Delete)
	}
	inverter, ok := r.c.(connectors.Inverter)
	if !ok {
		return intent.WriteIntent{}, fmt.Errorf("%w: there is neither a delete nor an inverse of a create", errKept)
	}
	var last error
	for _, made := range s.creates {
		inverse, err := inverter.Invert(made, none(), o)
		if err == nil {
			return r.inverse(s, made, inverse)
		}
		last = err
	}
	return intent.WriteIntent{}, fmt.Errorf("its create has no inverse: %w", last)
}

// leave lists what is still there of a sample.
func (r *run) leave(ctx context.Context, s *sample, why error) {
	in, err := r.intent(s.name, intent.Create, 0)
	if err != nil {
		return
	}
	o, err := r.read(ctx, in, "")
	if err != nil || len(o.Records) == 0 {
		r.report.Left = append(r.report.Left, Leftover{Name: s.name, Why: shown("it may be there: " + why.Error()), Kept: errors.Is(why, errKept)})
		return
	}
	for _, rec := range o.Records {
		r.report.Left = append(r.report.Left, Leftover{Name: s.name, Ref: shown(rec.Ref), URL: shown(rec.URL), Why: shown(why.Error()), Kept: errors.Is(why, errKept)})
	}
}
