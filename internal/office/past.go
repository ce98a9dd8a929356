package office

import (
	"context"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

const (
	// slowPast is from when on a history that was counted is kept: counting a
	// million changes takes seconds, and pages ask for the same one again.
	slowPast = 500 * time.Millisecond
	// pastFor is for how many times as long as it took it is kept, so that counting
	// takes a tenth of one processor at the most, and pastMost for how long at most.
	pastFor  = 10
	pastMost = time.Minute
	// maxPasts bounds how many are kept, each of at most a thousand spans.
	maxPasts = 64
)

// pasts keeps histories that took long. The zero value is empty and ready.
type pasts struct {
	mu   sync.Mutex
	kept map[pastKey]past
}

type pastKey struct {
	tenant             string
	since, until, step int64
}

type past struct {
	spans []ledger.Span
	until time.Time
}

// history is what h counts, or counted lately. It is not to be changed.
func (p *pasts) history(ctx context.Context, h ledger.Historian, q ledger.Past) ([]ledger.Span, error) {
	key := pastKey{q.Tenant, q.Since.UnixNano(), q.Until.UnixNano(), int64(q.Step)}
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
