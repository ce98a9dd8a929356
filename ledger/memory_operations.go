package ledger

import (
	"context"
	"slices"
)

// Operation implements [Ledger].
func (m *Memory) Operation(ctx context.Context, tenant, tool, key string) ([]Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	var open, settled []Record
	for _, id := range slices.Backward(m.order) {
		r := m.records[id]
		if !sameOperation(r, tenant, tool, key) || !r.Blocking() {
			continue
		}
		r.Now = now
		if r.State == Settled {
			settled = append(settled, r)
		} else {
			open = append(open, r)
		}
	}
	slices.SortStableFunc(settled, func(a, b Record) int { return b.SettledAt.Compare(a.SettledAt) })
	all := append(open, settled...)
	return all[:min(len(all), OperationLimit)], nil
}
