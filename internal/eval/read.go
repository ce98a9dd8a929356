package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/pause"
)

const (
	// atOnce is how many reads of one destination run concurrently, if it has no bulk read: few,
	// since an evaluation is not urgent.
	atOnce = 4
	// firstPause and longestPause lie between two tries of a read that failed.
	firstPause, longestPause = 100 * time.Millisecond, 10 * time.Second
	// stalePause is the time between two reads that report being older than possible.
	stalePause = time.Second
)

// seen is what was read of one target.
type seen struct {
	records  []connectors.Record
	strength connectors.Strength
	// conclusive means that the read is no older than the last send: it was strong, or the settle
	// time had passed.
	conclusive bool
	reads      int
	// err is why nothing was read, why is why the read is not conclusive.
	err error
	why string
}

// reader reads targets until the reads are conclusive.
type reader struct {
	began    time.Time
	ended    time.Time // of the last send
	patience time.Duration
	lists    int // how many were made
}

// asking is one query under way.
type asking struct {
	t      *target
	query  connectors.Query
	got    seen
	last   string // what the read before this one found
	agree  int    // how many reads in a row found the same
	tries  int
	due    time.Time
	closed bool
}

// read reads all targets, each destination separately.
func (r *reader) read(ctx context.Context, targets []*target) {
	// By name: a connector need not be comparable.
	byPlace := map[string]map[string][]*asking{}
	var all []*asking
	for _, t := range targets {
		if t.profile.WriteOnly {
			t.seen = seen{err: errWriteOnly}
			continue
		}
		destination, kind := t.profile.Destination, t.profile.Kind
		for _, q := range t.queries() {
			a := &asking{t: t, query: q}
			all = append(all, a)
			if byPlace[destination] == nil {
				byPlace[destination] = map[string][]*asking{}
			}
			byPlace[destination][kind] = append(byPlace[destination][kind], a)
		}
	}
	var wg sync.WaitGroup
	for _, kinds := range byPlace {
		wg.Go(func() {
			for _, asked := range kinds {
				r.rounds(ctx, asked[0].t.conn, asked[0].t.profile, asked)
			}
		})
	}
	wg.Wait()
	collect(all)
}

// collect puts together what was found of each target by its queries.
func collect(all []*asking) {
	begun := map[*target]bool{}
	refs := map[*target]map[string]bool{}
	for _, a := range all {
		if !begun[a.t] {
			begun[a.t], refs[a.t] = true, map[string]bool{}
			a.t.seen = seen{strength: connectors.Strong, conclusive: true}
		}
		into := &a.t.seen
		into.reads += a.got.reads
		if a.got.err != nil {
			into.err = a.got.err
		}
		if !a.got.conclusive {
			into.conclusive, into.why = false, a.got.why
		}
		if a.got.strength != connectors.Strong {
			into.strength = connectors.Weak
		}
		for _, rec := range a.got.records {
			if rec.Ref != "" && refs[a.t][rec.Ref] {
				continue
			}
			refs[a.t][rec.Ref] = true
			into.records = append(into.records, rec)
		}
	}
}

// rounds reads all until each has its answer, or the patience is used up.
func (r *reader) rounds(ctx context.Context, conn connectors.Connector, p connectors.Profile, all []*asking) {
	for {
		var due []*asking
		next := time.Time{}
		now := time.Now()
		for _, a := range all {
			switch {
			case a.closed:
			case !a.due.After(now):
				due = append(due, a)
			case next.IsZero() || a.due.Before(next):
				next = a.due
			}
		}
		if len(due) == 0 {
			if next.IsZero() || !pause.For(ctx, time.Until(next)) {
				for _, a := range all {
					a.cut(ctx)
				}
				return
			}
			continue
		}
		r.once(ctx, conn, p, due)
	}
}

func (a *asking) cut(ctx context.Context) {
	if !a.closed && ctx.Err() != nil {
		a.got.err = context.Cause(ctx)
	}
}

// once reads each of several once: together if the destination has a bulk read.
func (r *reader) once(ctx context.Context, conn connectors.Connector, p connectors.Profile, due []*asking) {
	if bulk, ok := conn.(connectors.BulkReader); ok && p.BulkLimit > 0 && len(due) > 1 {
		for begin := 0; begin < len(due); begin += p.BulkLimit {
			r.together(ctx, bulk, p, due[begin:min(begin+p.BulkLimit, len(due))])
		}
		return
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, a := range due {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			one, cancel := context.WithTimeout(ctx, p.ReadFor())
			defer cancel()
			o, err := conn.Read(one, a.query)
			r.take(a, p, o, err)
		})
	}
	wg.Wait()
}

func (r *reader) together(ctx context.Context, bulk connectors.BulkReader, p connectors.Profile, due []*asking) {
	ctx, cancel := context.WithTimeout(ctx, p.ReadFor())
	defer cancel()
	qs := make([]connectors.Query, len(due))
	for i, a := range due {
		qs[i] = a.query
	}
	answers, err := bulk.ReadMany(ctx, qs)
	if err == nil && len(answers) != len(qs) {
		err = fmt.Errorf("a bulk read gave %d answers to %d questions", len(answers), len(qs))
	}
	for i, a := range due {
		if err != nil {
			r.take(a, p, connectors.Observation{}, err)
			continue
		}
		r.take(a, p, answers[i].Observation, answers[i].Err)
	}
}

// take evaluates one answer and returns whether and when to read again.
func (r *reader) take(a *asking, p connectors.Profile, o connectors.Observation, err error) {
	a.got.reads++
	now := time.Now()
	end := r.began.Add(r.patience)
	if err != nil {
		a.got.err, a.agree, a.last = connectors.OfRead(err), 0, ""
		a.tries++
		a.due = now.Add(pauseAfter(a.tries, err))
		a.closed = a.due.After(end) || errors.Is(err, connectors.ErrUnknownDestination)
		return
	}
	a.got.err, a.tries = nil, 0
	a.got.records, a.got.strength = o.Records, o.Strength
	found := signature(o.Records)
	if a.agree++; found != a.last {
		a.agree = 1
	}
	a.last = found
	var again time.Time
	a.got.conclusive, again, a.got.why = r.conclusive(o.Strength, o.At, p, end)
	switch {
	case a.got.conclusive && a.agree >= p.Confirm():
		a.closed = true
	case a.got.conclusive:
		a.due = now.Add(firstPause)
		if a.closed = a.due.After(end); a.closed {
			a.got.conclusive, a.got.why = false, fmt.Sprintf("%d reads in a row did not agree in time", p.Confirm())
		}
	case again.IsZero():
		a.closed = true
	default:
		a.due = again
	}
}

// conclusive reports whether a read that began at a time shows everything that was sent,
// and else when to read again, or why that would not help.
func (r *reader) conclusive(s connectors.Strength, at time.Time, p connectors.Profile, end time.Time) (bool, time.Time, string) {
	settle, declared := p.Settle.Declared()
	shows := r.ended.Add(settle)
	switch {
	case s == connectors.Strong:
		return true, time.Time{}, ""
	case !declared:
		return false, time.Time{}, "reads may lag, and the destination declares no settle time (settle: in the configuration declares one)"
	case !at.Before(shows):
		return true, time.Time{}, ""
	case !time.Now().Before(shows): // it is late enough, and the read is older all the same
		again := time.Now().Add(stalePause)
		if again.After(end) {
			again = time.Time{}
		}
		return false, again, "reads are older than the last send, however late they are made"
	case shows.After(end):
		return false, time.Time{}, fmt.Sprintf("reads may lag by %v, which have not passed since the last send and are more than patience allows", settle)
	}
	return false, shows, fmt.Sprintf("reads may lag by %v, which have not passed since the last send", settle)
}

// pauseAfter is how long to wait after so many reads in a row that failed.
func pauseAfter(tries int, err error) time.Duration {
	pause := min(firstPause<<min(tries-1, 20), longestPause)
	var known *connectors.Error
	if errors.As(err, &known) {
		pause = max(pause, known.RetryAfter)
	}
	return pause
}

// signature is equal for reads that found the same.
func signature[R any](records []R) string {
	text, err := json.Marshal(records)
	if err != nil {
		return ""
	}
	return string(text)
}

// list lists until the list is conclusive, or the patience is used up: for one that fails it begins
// with the first failure, since a long list may take longer. One try returns a listing and a value that
// is equal for two listings of the same content.
func (r *reader) list(ctx context.Context, p connectors.Profile, try func() (connectors.Listing, string, error)) (connectors.Listing, bool, string, error) {
	end := r.began.Add(r.patience)
	tries, agree, last, failing := 0, 0, "", time.Time{}
	for {
		r.lists++
		got, found, err := try()
		if err != nil {
			tries, agree = tries+1, 0
			rest := pauseAfter(tries, err)
			if failing.IsZero() {
				failing = time.Now()
			}
			if errors.Is(err, connectors.ErrScope) || errors.Is(err, errStop) || time.Now().Add(rest).After(failing.Add(r.patience)) || !pause.For(ctx, rest) {
				return got, false, "", connectors.OfRead(err)
			}
			continue
		}
		if agree++; found != last {
			agree = 1
		}
		tries, last = 0, found
		conclusive, again, why := r.conclusive(got.Strength, got.At, p, end)
		if conclusive && agree < p.Confirm() {
			conclusive, again, why = false, time.Now().Add(firstPause), fmt.Sprintf("%d lists in a row did not agree in time", p.Confirm())
			if again.After(end) {
				again = time.Time{}
			}
		}
		if conclusive || again.IsZero() || !pause.For(ctx, time.Until(again)) {
			return got, conclusive, why, nil
		}
	}
}
