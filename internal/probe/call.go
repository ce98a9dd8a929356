package probe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/verify"
)

const (
	// agree is how many reads in a row must show a write before it counts as visible: with
	// several replicas at one address, the first that has it proves nothing about the others.
	agree = 3
	// firstPause and the pauses after it lie between two reads of one write.
	// The longest is a part of the settle time, so that a lag beyond it is not
	// overlooked, and never above longestPause.
	firstPause   = 20 * time.Millisecond
	pausePart    = 8
	shortPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	// patience is how long a write is read for beyond twice the settle time.
	patience = time.Minute
	// maxThrottled is how many throttled sends a run repeats in total, and longestThrottle the
	// longest wait for one: a probe must not burden a destination further.
	maxThrottled    = 10
	longestThrottle = time.Minute
)

// sample is one record that the probe makes, or tries to.
type sample struct {
	name    string
	creates []intent.WriteIntent // the writes that may have made it
	sent    time.Time            // when the last send on it had ended, zero for none
	doubt   bool                 // a send on it had no answer
	variant int                  // distinguishes the writes on it
}

// errBudget means that a check needed more sends than were declared for it.
var errBudget = errors.New("the sends that were declared beforehand are used up")

// sample notes a new sample before anything of it is sent.
func (r *run) sample() *sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &sample{name: fmt.Sprintf("%sn%d", r.id, len(r.samples))}
	r.samples = append(r.samples, s)
	return s
}

// write is one send that a check makes.
type write struct {
	in          intent.WriteIntent
	before      *connectors.Observation
	key         string // the idempotency key; default a new one
	attempt     int    // default 1
	conditional bool
}

// of is the intent of a write on a sample; each call has a stamp of its own.
func (r *run) of(s *sample, w intent.WriteType) (intent.WriteIntent, error) {
	r.mu.Lock()
	s.variant++
	variant := s.variant
	r.mu.Unlock()
	return r.intent(s.name, w, variant)
}

// send sends, within the budget and the destination's rate. It repeats a throttled send after the
// requested time.
func (r *run) send(ctx context.Context, s *sample, w write) (verify.Result, error) {
	for {
		if err := r.spend(); err != nil {
			return verify.Result{}, err
		}
		res, err := r.dispatch(ctx, s, w)
		if err != nil || res.Fate != connectors.FateThrottled || !r.mayRepeat() {
			return res, err
		}
		if !pause.For(ctx, min(max(res.RetryAfter, time.Second), longestThrottle)) {
			return res, ctx.Err()
		}
	}
}

func (r *run) spend() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == 0 {
		return errBudget
	}
	r.left--
	return nil
}

func (r *run) mayRepeat() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalled++
	return r.stalled <= maxThrottled
}

// dispatch makes one send and notes what follows from it for the sample.
func (r *run) dispatch(ctx context.Context, s *sample, w write) (verify.Result, error) {
	if err := r.pace(ctx); err != nil {
		return verify.Result{}, err
	}
	req := connectors.Request{Intent: w.in, Stamp: w.in.Stamp(), IdempotencyKey: w.key, FirstSent: time.Now(), Attempt: max(w.attempt, 1)}
	if req.IdempotencyKey == "" {
		req.IdempotencyKey = "rbk-probe-" + rand.Text()
	}
	prepared, err := verify.Prepare(ctx, r.c, r.p, req)
	if err != nil {
		return verify.Result{}, fmt.Errorf("the %s cannot be prepared: %w", w.in.Write, err)
	}
	req.Prepared, req.Before, req.Conditional = prepared, w.before, w.conditional
	req.Keep = func(context.Context, []byte) error { return nil } // it is sent once
	r.mu.Lock()
	if w.in.Write == intent.Create || w.in.Write == intent.Upsert {
		s.creates = append(s.creates, w.in)
	}
	s.sent = time.Now()
	r.report.Sent++
	r.mu.Unlock()
	res := verify.Send(ctx, r.c, r.p, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	s.sent = time.Now()
	s.doubt = s.doubt || res.Fate == connectors.FateUnknown
	if answer := res.Receipt.Reply; res.Err != nil && answer.Code+answer.Message+answer.RequestID != "" {
		res.Err = fmt.Errorf("%w (the destination's own words: code %.200q, message %.500q, request %.200q)", res.Err, answer.Code, answer.Message, answer.RequestID)
	}
	return res, nil
}

// answered sends a write that the destination must accept.
func (r *run) answered(ctx context.Context, s *sample, w write) (verify.Result, error) {
	res, err := r.send(ctx, s, w)
	switch {
	case err != nil:
		return res, err
	case res.Fate == connectors.FateUnknown:
		return res, unmeasured("the %s was not answered: %v", w.in.Write, res.Err)
	case res.Fate != connectors.FateAnswered:
		return res, unmeasured("the %s was turned down: %v", w.in.Write, res.Err)
	}
	return res, nil
}

// made has a new sample created, and read back.
func (r *run) made(ctx context.Context) (*sample, connectors.Observation, error) {
	s := r.sample()
	in, err := r.of(s, intent.Create)
	if err != nil {
		return s, connectors.Observation{}, err
	}
	if _, err := r.answered(ctx, s, write{in: in, before: none()}); err != nil {
		return s, connectors.Observation{}, err
	}
	o, err := r.until(ctx, in, func(o connectors.Observation) bool { return len(o.Records) == 1 })
	return s, o, err
}

// none is the read of a sample that was never written.
func none() *connectors.Observation {
	return &connectors.Observation{Strength: connectors.Strong, At: time.Now()}
}

// read reads once.
func (r *run) read(ctx context.Context, in intent.WriteIntent, ref string) (connectors.Observation, error) {
	if err := r.pace(ctx); err != nil {
		return connectors.Observation{}, err
	}
	return verify.Read(ctx, r.c, r.p, connectors.Query{Intent: in, Stamp: in.Stamp(), Ref: ref})
}

// until reads until enough reads in a row show something, for as long as the
// destination may be given.
func (r *run) until(ctx context.Context, in intent.WriteIntent, shows func(connectors.Observation) bool) (connectors.Observation, error) {
	began, pauses, agreeing := time.Now(), r.pauses(), 0
	var last connectors.Observation
	for {
		o, err := r.read(ctx, in, "")
		if ctx.Err() != nil {
			return o, ctx.Err()
		}
		if err == nil {
			last = o
		}
		if agreeing++; err != nil || !shows(o) {
			agreeing = 0
		}
		if agreeing >= agree {
			return o, nil
		}
		if time.Since(began) > r.patience() {
			return last, unmeasured("after %v the reads do not show it: %d records, %v", r.patience(), len(last.Records), err)
		}
		if !pause.For(ctx, pauses.NextBackOff()) {
			return o, ctx.Err()
		}
	}
}

// settled waits until reads can show all that was sent, and reads.
func (r *run) settled(ctx context.Context, s *sample, in intent.WriteIntent) (connectors.Observation, error) {
	settle, _ := r.p.Settle.Declared()
	if !pause.For(ctx, time.Until(s.sent.Add(max(settle, 2*r.lag)))) {
		return connectors.Observation{}, ctx.Err()
	}
	return r.until(ctx, in, func(connectors.Observation) bool { return true })
}

// patience is how long reads may take to show a write.
func (r *run) patience() time.Duration {
	settle, _ := r.p.Settle.Declared()
	return 2*settle + patience
}

// pauses lie between the reads of one write.
func (r *run) pauses() backoff.BackOff {
	settle, declared := r.p.Settle.Declared()
	most := longestPause
	if declared {
		most = min(max(settle/pausePart, shortPause), longestPause)
	}
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstPause), backoff.WithMultiplier(1.5), backoff.WithMaxInterval(most),
		backoff.WithMaxElapsedTime(0), backoff.WithRandomizationFactor(0))
}

// pace keeps to the rate that the profile declares.
func (r *run) pace(ctx context.Context) error {
	if r.p.Rate.Calls <= 0 || r.p.Rate.Per <= 0 {
		return ctx.Err()
	}
	r.mu.Lock()
	at := r.due
	if now := time.Now(); at.Before(now) {
		at = now
	}
	r.due = at.Add(r.p.Rate.Per / time.Duration(r.p.Rate.Calls))
	r.mu.Unlock()
	pause.For(ctx, time.Until(at))
	return ctx.Err()
}
