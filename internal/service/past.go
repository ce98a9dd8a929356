package service

import (
	"context"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

const (
	// slowPast is the counting time from which on a history is cached: counting a million
	// changes takes seconds, and pages ask for the same one again.
	slowPast = 500 * time.Millisecond
	// pastFor is the multiple of its counting time for which a history is cached, so that
	// counting takes a tenth of one processor at the most. pastMost bounds that time.
	pastFor  = 10
	pastMost = time.Minute
	// maxPasts bounds how many are cached, each of at most a thousand spans.
	maxPasts = 64
)

// pasts caches histories that took long. The zero value is empty and ready.
type pasts struct {
	mu   sync.Mutex
	kept map[pastKey]past
}

type pastKey struct {
	tenant, of         string
	since, until, step int64
}

type past struct {
	spans []ledger.Span
	until time.Time
}

// history is what h counts, or a cached count. It must not be changed.
func (p *pasts) history(ctx context.Context, h ledger.Feed, q ledger.Past) ([]ledger.Span, error) {
	key := pastKey{q.Tenant, q.Destination, q.Since.UnixNano(), q.Until.UnixNano(), int64(q.Step)}
	began := time.Now()
	p.mu.Lock()
	have, ok := p.kept[key]
	p.mu.Unlock()
	if ok && began.Before(have.until) {
		return have.spans, nil
	}
	spans, err := h.History(ctx, q)
	if took := time.Since(began); err == nil && took >= slowPast {
		p.keep(key, past{spans, time.Now().Add(min(pastFor*took, pastMost))})
	}
	return spans, err
}

func (p *pasts) keep(key pastKey, one past) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.kept) >= maxPasts || p.kept == nil {
		p.kept = make(map[pastKey]past)
	}
	p.kept[key] = one
}

const (
	// slowCount is the counting time from which on counts of waiting writes are cached: open pages
	// ask for them after each change. Like histories they are for a multiple of that time, at most
	// countMost.
	slowCount = 300 * time.Millisecond
	countMost = 5 * time.Second
)

// counts caches counts of waiting writes that took long. The zero value is empty and ready.
type counts struct {
	mu   sync.Mutex
	kept map[string]count
}

type count struct {
	found []ledger.Waiting
	more  bool
	until time.Time
}

// of is what the ledger counts in a tenant, or a cached count. It must not be changed.
func (c *counts) of(ctx context.Context, l ledger.Ledger, tenant string, before [ledger.WaitAges]time.Time) ([]ledger.Waiting, bool, error) {
	began := time.Now()
	c.mu.Lock()
	have, ok := c.kept[tenant]
	c.mu.Unlock()
	if ok && began.Before(have.until) {
		return have.found, have.more, nil
	}
	found, more, err := l.Waiting(ctx, tenant, before)
	if took := time.Since(began); err == nil && took >= slowCount {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.kept) >= maxPasts || c.kept == nil {
			c.kept = make(map[string]count)
		}
		c.kept[tenant] = count{found, more, time.Now().Add(min(pastFor*took, countMost))}
	}
	return found, more, err
}
