package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
)

// shop is a destination of one's own: it stores orders and loses its first answer. It
// deduplicates nothing, so a caller that sent again would charge twice.
type shop struct {
	mu  sync.Mutex
	all []connectors.Record
}

// profiles declare what the shop can do.
func (s *shop) profiles() map[string]connectors.Profile {
	return map[string]connectors.Profile{"order": {
		Stamped: true, // records have our stamp, and reads show it
		Settle:  connectors.Within(0),
		Horizon: connectors.Within(30 * time.Second),
	}}
}

// Write implements [connectors.Connector].
func (s *shop) Write(_ context.Context, r connectors.Request) (connectors.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fields := maps.Clone(r.Intent.Expect)
	maps.Copy(fields, r.Intent.Key)
	ref := fmt.Sprintf("order-%d", len(s.all)+1)
	s.all = append(s.all, connectors.Record{Ref: ref, Stamp: r.Stamp, Fields: fields})
	if len(s.all) == 1 {
		return connectors.Receipt{}, errors.New("the connection was reset before the answer")
	}
	return connectors.Receipt{Ref: ref}, nil
}

// Read implements [connectors.Connector]: it returns every matching order.
func (s *shop) Read(_ context.Context, q connectors.Query) (connectors.Observation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := connectors.Observation{Strength: connectors.Strong, At: time.Now()}
	for _, r := range s.all {
		if r.Stamp == q.Stamp || r.Fields["order_id"] == q.Intent.Key["order_id"] {
			seen.Records = append(seen.Records, r)
		}
	}
	return seen, nil
}
