package probe

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/verify"
)

// series is what was measured of one way of reading.
type series struct {
	way    string // "list without the answer", "search by its id"
	lags   []time.Duration
	late   time.Duration // the age, after the send, of the latest read that did not show it
	missed int           // strong reads that did not show it
	never  int           // writes that it never showed
}

// tally is what the rounds found besides.
type tally struct {
	all                              []*series
	fresh, found                     int // creates before which nothing, something was under the key
	stamped, created, kept, restored int
	updates                          int
	doubled                          int // creates after which there was more than one record
	values                           *values
}

// rounds writes records one after the other, and measures how long each way of
// reading takes to show that they are there, have changed, and are gone.
func (r *run) rounds(ctx context.Context, _ check) error {
	t := &tally{values: newValues(r.p)}
	var failed error
	for n := range r.o.Rounds {
		r.say(fmt.Sprintf("round %d of %d", n+1, r.o.Rounds))
		if err := r.round(ctx, t); err != nil {
			failed = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	r.describe(t)
	return failed
}

func (r *run) round(ctx context.Context, t *tally) error {
	s := r.sample()
	in, err := r.of(s, intent.Create)
	if err != nil {
		return err
	}
	before, err := r.read(ctx, in, "")
	if err != nil {
		return unmeasured("the read before the create: %v", err)
	}
	if t.fresh++; len(before.Records) > 0 {
		t.found++
		return unmeasured("before the create there are %d records under the key %v", len(before.Records), in.Key)
	}
	res, err := r.send(ctx, s, write{in: in, before: &before})
	if err != nil {
		return err
	}
	sure, err := landed(in, res)
	if err != nil {
		return err
	}
	o, err := r.follow(ctx, t, s, in, res.Receipt.Ref, sure, func(o connectors.Observation) bool { return len(o.Records) > 0 })
	if err != nil {
		return err
	}
	t.created++
	if len(o.Records) > 1 {
		t.doubled++
		return nil
	}
	if o.Records[0].Stamp == in.Stamp() {
		t.stamped++
	}
	t.values.add(in, o.Records[0].Fields)
	return r.change(ctx, t, s, o)
}

// landed reports whether the destination accepted a send; no answer is no error.
func landed(in intent.WriteIntent, res verify.Result) (sure bool, err error) {
	switch res.Fate {
	case connectors.FateAnswered:
		return true, nil
	case connectors.FateUnknown:
		return false, nil
	}
	return false, unmeasured("the %s was turned down: %v", in.Write, res.Err)
}

// change updates a record and deletes it, where there are such writes.
func (r *run) change(ctx context.Context, t *tally, s *sample, before connectors.Observation) error {
	if r.can(intent.Update) {
		in, err := r.of(s, intent.Update)
		if err != nil {
			return err
		}
		res, err := r.send(ctx, s, write{in: in, before: &before})
		if err != nil {
			return err
		}
		sure, err := landed(in, res)
		if err != nil {
			return err
		}
		after, err := r.follow(ctx, t, s, in, before.Records[0].Ref, sure, r.changed(in, before))
		if err != nil {
			return err
		}
		r.updated(t, in, before, after)
		before = after
	}
	if !r.can(intent.Delete) {
		return nil
	}
	in, err := r.of(s, intent.Delete)
	if err != nil {
		return err
	}
	res, err := r.send(ctx, s, write{in: in, before: &before})
	if err != nil {
		return err
	}
	sure, err := landed(in, res)
	if err != nil {
		return err
	}
	_, err = r.follow(ctx, t, s, in, before.Records[0].Ref, sure, func(o connectors.Observation) bool { return len(o.Records) == 0 })
	return err
}

// changed reports whether a read shows more than the state before an update: whether it shows the
// requested values is checked separately.
func (r *run) changed(in intent.WriteIntent, before connectors.Observation) func(connectors.Observation) bool {
	return func(o connectors.Observation) bool {
		if len(o.Records) != 1 {
			return false
		}
		if len(verify.Diff(in, r.p.Compare, o.Records[0].Fields)) == 0 {
			return true
		}
		same := verify.Diff(intent.WriteIntent{Expect: before.Records[0].Fields, Ignore: r.p.Volatile}, nil, o.Records[0].Fields)
		return len(same) > 0
	}
}

// updated notes the stamp after an update and what else it changed.
func (r *run) updated(t *tally, in intent.WriteIntent, before, after connectors.Observation) {
	t.updates++
	switch after.Records[0].Stamp {
	case in.Stamp():
		t.restored++
	case before.Records[0].Stamp:
		t.kept++
	}
	t.values.add(in, after.Records[0].Fields)
	j := verify.Judge(verify.Case{Intent: in, Profile: r.p, Stamp: in.Stamp(), Before: &before, Seen: after, Since: math.MaxInt64 / 2})
	if j.Verdict == verify.Collateral {
		t.values.collateral(j.Mismatches)
	}
}

// follow reads by each way until enough reads in a row show a write, and notes
// how long that took.
func (r *run) follow(ctx context.Context, t *tally, s *sample, in intent.WriteIntent, ref string, sure bool, shows func(connectors.Observation) bool) (connectors.Observation, error) {
	plain, ways := &following{how: "without the answer"}, []*following{}
	ways = append(ways, plain)
	if ref != "" {
		ways = append(ways, &following{how: "by its id", ref: ref})
	}
	pauses := r.pauses()
	for time.Since(s.sent) <= r.patience() && slices.ContainsFunc(ways, (*following).open) {
		r.askEach(ctx, ways, in, s.sent, shows)
		if !pause.For(ctx, pauses.NextBackOff()) {
			return connectors.Observation{}, ctx.Err()
		}
	}
	for _, f := range ways {
		if sure || !f.open() {
			r.note(t, f)
		}
	}
	if plain.open() {
		return plain.last, unmeasured("the %s did not show within %v", in.Write, r.patience())
	}
	return plain.last, nil
}

// following is one way of reading while a write is awaited.
type following struct {
	how, ref string
	path     string
	last     connectors.Observation
	agreeing int
	lag      time.Duration // of the first of the reads that agree
	late     time.Duration
	missed   int
	read     bool // at least one read was answered
}

// open reports whether not enough reads have shown it yet.
func (f *following) open() bool { return f.agreeing < agree }

// askEach reads by all ways at once, so that none waits for another.
func (r *run) askEach(ctx context.Context, ways []*following, in intent.WriteIntent, sent time.Time, shows func(connectors.Observation) bool) {
	var all sync.WaitGroup
	for _, f := range ways {
		if f.open() {
			all.Go(func() { r.ask(ctx, f, in, sent, shows) })
		}
	}
	all.Wait()
}

func (r *run) ask(ctx context.Context, f *following, in intent.WriteIntent, sent time.Time, shows func(connectors.Observation) bool) {
	o, err := r.read(ctx, in, f.ref)
	if err != nil {
		return // neither there nor absent
	}
	f.read, f.path, f.last = true, o.Path, o
	age := max(o.At.Sub(sent), 0)
	if !shows(o) {
		f.agreeing, f.late = 0, max(f.late, age)
		if o.Strength == connectors.Strong {
			f.missed++
		}
		return
	}
	if f.agreeing++; f.agreeing == 1 {
		f.lag = age
	}
}

// note adds what one way found to its series.
func (r *run) note(t *tally, f *following) {
	if !f.read {
		return
	}
	way := fmt.Sprintf("lag of %q %s", f.path, f.how)
	i := slices.IndexFunc(t.all, func(s *series) bool { return s.way == way })
	if i < 0 {
		i = len(t.all)
		t.all = append(t.all, &series{way: way})
	}
	s := t.all[i]
	s.late, s.missed = max(s.late, f.late), s.missed+f.missed
	r.lag = max(r.lag, f.late)
	if f.open() {
		s.never++
		return
	}
	s.lags = append(s.lags, f.lag)
	r.lag = max(r.lag, f.lag)
}

// describe writes the lines of the rounds.
func (r *run) describe(t *tally) {
	for _, s := range t.all {
		settle, declared := r.p.Settle.Declared()
		result := OK
		switch {
		case s.never > 0 || s.missed > 0, declared && s.late > 0 && s.late >= settle:
			result = Weaker
		case !declared:
			result = Stronger
		}
		r.line(s.way, s.String(), "settle "+r.bound(settle, declared), result)
	}
	if result, single := OK, t.created-t.doubled; t.created > 0 {
		if t.doubled > 0 {
			result = Weaker
		}
		r.line("records of one send", fmt.Sprintf("one after %d of %d creates", single, t.created), "one", result)
	}
	r.reported("stamp on creates", t.stamped, t.created-t.doubled, r.p.Stamped)
	r.reported("stamp of the last write on updates", t.restored, t.updates, r.p.StampsUpdates)
	if t.fresh > 0 && r.p.FreshKeys {
		result := OK
		if t.found > 0 {
			result = Weaker
		}
		r.line("fresh keys", fmt.Sprintf("nothing was there before %d of %d creates", t.fresh-t.found, t.fresh), "yes", result)
	}
	if t.created > 0 {
		t.values.text(r)
	}
}

// reported is the line of something that shows or does not.
func (r *run) reported(about string, n, of int, declared bool) {
	measured, word := fmt.Sprintf("on %d of %d", n, of), map[bool]string{true: "yes", false: "no"}[declared]
	switch {
	case of == 0 && declared:
		r.line(about, "nothing to see it on", word, NotMeasured)
	case of == 0:
	case declared && n < of:
		r.line(about, measured, word, Weaker)
	case !declared && n == of:
		r.line(about, measured, word, Stronger)
	default:
		r.line(about, measured, word, OK)
	}
}

// String is the quantiles, exact as they are for so few.
func (s *series) String() string {
	text := fmt.Sprintf("within p50 %v, p90 %v, p99 %v, max %v of %d", short(s.quantile(50)), short(s.quantile(90)), short(s.quantile(99)), short(s.quantile(100)), len(s.lags))
	if len(s.lags) == 0 {
		text = "never seen"
	}
	if s.missed > 0 {
		text += fmt.Sprintf("; %d reads that call themselves strong did not show it, the latest %v after the send", s.missed, short(s.late))
	} else if s.late > 0 {
		text += fmt.Sprintf("; not yet there %v after the send", short(s.late))
	}
	if s.never > 0 {
		text += fmt.Sprintf("; %d writes never showed", s.never)
	}
	return text
}

// quantile is the smallest lag that so many of a hundred do not exceed.
func (s *series) quantile(percent int) time.Duration {
	if len(s.lags) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.lags))
	rank := (percent*len(sorted) + 99) / 100
	return sorted[max(rank, 1)-1]
}

func short(d time.Duration) time.Duration {
	if d > 10*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Microsecond)
}
