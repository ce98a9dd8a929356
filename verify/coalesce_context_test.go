package verify_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/verify"
)

type whose struct{}

// slowReads records the contexts of its calls.
type slowReads struct {
	connectors.Connector
	mu     sync.Mutex
	single []any
	bulk   []any
}

func (s *slowReads) note(list *[]any, ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, ctx.Value(whose{}))
}

func (s *slowReads) Read(ctx context.Context, _ connectors.Query) (connectors.Observation, error) {
	s.note(&s.single, ctx)
	time.Sleep(time.Second)
	return connectors.Observation{}, nil
}

func (s *slowReads) ReadMany(ctx context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	s.note(&s.bulk, ctx)
	return make([]connectors.BulkAnswer, len(qs)), nil
}

// A lone read has the values of its caller's context, such as the trace. A call for several
// reads has no caller's context.
func TestALoneReadHasItsCallersContext(t *testing.T) {
	for name, c := range map[string]struct {
		more         int
		single, bulk []any
	}{
		"alone":   {1, []any{0, 1}, nil},
		"several": {3, []any{0}, []any{nil}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slowReads{}
				joined := verify.NewCoalescer(s, connectors.Profile{BulkLimit: 10}, nil)
				for i := range c.more + 1 {
					go func() { _, _ = joined.Read(context.WithValue(t.Context(), whose{}, i), connectors.Query{}) }()
					synctest.Wait()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				same(t, "single reads", c.single, s.single)
				same(t, "bulk reads", c.bulk, s.bulk)
			})
		})
	}
}

func same(t *testing.T, what string, want, got []any) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s %v, want %v", what, got, want)
	}
	for i := range want {
		if want[i] != got[i] {
			t.Errorf("%s %v, want %v", what, got, want)
		}
	}
}
