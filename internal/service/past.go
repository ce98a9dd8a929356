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
