package rest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
)

// pace spaces the calls of one read, over all writes of one account in this process. The rate of a
// whole destination is the guards'; this one is that of one method of it.
type pace struct {
	every time.Duration

	mu   sync.Mutex
	next time.Time
}

// wait returns when the call may be made. Where that is after the end of ctx it is an error at once,
// as if the destination had said "not now": nothing is gained by asking it.
func (p *pace) wait(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	now := time.Now()
	at := now
	if p.next.After(at) {
		at = p.next
	}
	if end, bounded := ctx.Deadline(); bounded && !at.Before(end) {
		p.mu.Unlock()
		return &connectors.Error{Fate: connectors.FateThrottled, RetryAfter: at.Sub(now),
			Err: fmt.Errorf("the declaration allows this read once in %s", p.every)}
	}
	p.next = at.Add(p.every)
	p.mu.Unlock()
	timer := time.NewTimer(at.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// paces are the paces of the reads that have one.
func (d *Declaration) paces() map[*read]*pace {
	all := map[*read]*pace{}
	for _, k := range d.kinds {
		for _, r := range k.reads {
			if r.every > 0 {
				all[r] = &pace{every: r.every}
			}
		}
	}
	return all
}

// sharing checks reads that are to serve many queries, or may be made seldom.
func (l *loader) sharing(k *kind, f *fileKind) {
	for i, r := range k.reads {
		from := f.Reads[i]
		if from.Shared && !k.shared() {
			l.Say(from.At.Line, from.At.Field+".shared", "is true, and the reads of the kind are not the same for all queries; want every read to be a list without {stamp} and without {key.…} that is not in scope")
		}
		if from.Rate == nil {
			continue
		}
		if from.Rate.Calls < 1 || from.Rate.Per <= 0 {
			l.At(from.Rate.At, "want calls (1 or more) and per (a duration such as 1m)")
			continue
		}
		r.every = time.Duration(from.Rate.Per) / time.Duration(from.Rate.Calls)
		k.explain("read %s: made once in %s, whatever number of writes wait for it.", r.name, r.every)
		if last := k.profile.ReadFor() - k.profile.BulkWait; r.paging != nil && r.every >= last {
			l.warn(from.Rate.At, "lets a second page be read %s after the first, and a read lasts %s at the most: a list of several pages is never read; want profile.read_timeout longer than all of its pages take", r.every, last)
		}
		switch {
		case !k.shared() && r.bulk == 0:
			l.warn(from.Rate.At, "each write needs calls of its own to this read: no more than one write in %s can be verified; want a list that serves all queries (shared: true)", r.every)
		case k.shared() && k.profile.BulkWait < r.every:
			l.warn(from.Rate.At, "profile.bulk_wait is shorter than the %s between two calls: reads that come between them are refused and made again; want bulk_wait: %s", r.every, r.every)
		}
	}
}
