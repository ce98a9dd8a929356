package postgres

import (
	"sync"

	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxRemembered writes of at most maxRememberedSize bytes of raw messages
	// are kept decoded: some megabytes, and more than are in flight in one
	// process.
	maxRemembered     = 4096
	maxRememberedSize = 4 << 10
)

// memory caches writes as this process last stored or claimed them: most are settled soon after,
// by the same process, and need not be read again. It may be outdated: the database compares
// fence and seq with every change.
type memory struct {
	mu   sync.Mutex
	rows map[ledger.ID]row
}

func (m *memory) recall(id ledger.ID) (row, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.rows[id]
	return r, ok
}

// keep remembers writes that are open and not large.
func (m *memory) keep(r row) {
	size := len(r.rec.Intent) + len(r.rec.Prepared)
	for _, raw := range driver.Raws(&r.rec) {
		size += len(*raw)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.rec.State == ledger.Settled || size > maxRememberedSize {
		delete(m.rows, r.rec.ID)
		return
	}
	if m.rows == nil || len(m.rows) >= maxRemembered {
		m.rows = make(map[ledger.ID]row)
	}
	m.rows[r.rec.ID] = r
}

func (m *memory) forget(id ledger.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.rows, id)
}
