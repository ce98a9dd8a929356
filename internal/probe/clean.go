package probe

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// cleanup takes away every record that the probe made or may have made. It has
// time of its own: a run that was called off must leave as little behind as
// any other.
func (r *run) cleanup(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupFor)
	defer cancel()
	r.say("taking the samples away")
	for _, s := range r.samples {
		if s.sent.IsZero() {
			continue // nothing of it was ever sent
		}
		r.mu.Lock()
		r.left = perCleaning
		r.mu.Unlock()
		if err := r.clean(ctx, s); err != nil {
			r.leave(ctx, s, err)
		}
	}
}

// clean takes one sample away: it deletes what reads show until they show
// nothing, and nothing can land any more.
func (r *run) clean(ctx context.Context, s *sample) error {
	in, err := r.intent(s.name, intent.Create, 0)
	if err != nil {
		return err
	}
	sent, quiet, pauses, tried := s.sent, r.quiet(s), cleaningPauses(), false
	var failed error
	for began := time.Now(); ; {
		o, err := r.read(ctx, in, "")
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failed = fmt.Errorf("it cannot be read: %w", err)
		case len(o.Records) == 0 && r.gone(o, s, sent.Add(quiet)):
			return nil
		case len(o.Records) == 0 && sleep(ctx, time.Until(sent.Add(quiet))) != nil:
			return ctx.Err()
		case len(o.Records) > 0 && (o.Strength == connectors.Strong && !tried || r.passed(s.sent)):
			tried = true // from now on a read may show what is gone
			kept, err := r.remove(ctx, s, o)
			if kept || err != nil {
				return err
			}
		}
		if time.Since(began) > r.patience()+quiet+lateFor {
			return orElse(failed, "reads go on showing it")
		}
		if err := sleep(ctx, pauses.NextBackOff()); err != nil {
			return err
		}
	}
}

// cleaningPauses lie between the tries to take one record away: what just failed
// had better be given some time.
func cleaningPauses() backoff.BackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(longestPause), backoff.WithMaxElapsedTime(0), backoff.WithRandomizationFactor(0))
}

func orElse(err error, otherwise string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s", otherwise)
}

// quiet is how long after the last send nothing can land any more.
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
func (r *run) gone(o connectors.Observation, s *sample, landed time.Time) bool {
	if o.At.Before(landed) {
		return false
	}
	return o.Strength == connectors.Strong || r.passed(landed) && r.passed(s.sent)
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

// remove takes the records away that a read shows, one by one, as somebody does
// who knows them by their id. kept: they are undone, and cannot be removed.
func (r *run) remove(ctx context.Context, s *sample, o connectors.Observation) (kept bool, err error) {
	for i := range o.Records {
		one := o
		one.Records = o.Records[i : i+1]
		in, err := r.removal(s, one)
		if err != nil {
			return false, err
		}
		res, err := r.send(ctx, s, write{in: in, before: &one})
		if err != nil {
			return false, err
		}
		turnedDown := res.Fate == connectors.FateNotSent || res.Fate == connectors.FateRefused
		if turnedDown && len(o.Records) > 1 && in.Write == intent.Delete {
			in.Count = len(o.Records) // it takes all under a key, or none
			if _, err := r.send(ctx, s, write{in: in, before: &o}); err != nil {
				return false, err
			}
			return false, nil
		}
		if in.Write != intent.Delete && res.Fate == connectors.FateAnswered {
			kept = true
		}
	}
	if kept {
		return true, fmt.Errorf("what was done is undone; such records cannot be removed")
	}
	return false, nil
}

// removal is the delete of a sample, or the inverse of the create that made it.
func (r *run) removal(s *sample, o connectors.Observation) (intent.WriteIntent, error) {
	if r.can(intent.Delete) {
		return r.of(s, intent.Delete)
	}
	inverter, ok := r.c.(connectors.Inverter)
	if !ok {
		return intent.WriteIntent{}, fmt.Errorf("there is neither a delete nor an inverse of a create")
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
		r.report.Left = append(r.report.Left, Leftover{Name: s.name, Why: shown("it may be there: " + why.Error())})
		return
	}
	for _, rec := range o.Records {
		r.report.Left = append(r.report.Left, Leftover{Name: s.name, Ref: shown(rec.Ref), URL: shown(rec.URL), Why: shown(why.Error())})
	}
}
