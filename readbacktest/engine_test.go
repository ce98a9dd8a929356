package readbacktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	rt "github.com/readback-go/readback/readbacktest"
)

// TestEngineLives: an engine before a connector with faults, killed at each of its calls and, in
// a second life, somewhere. Its calls come from goroutines that are not the loop's own.
func TestEngineLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stories := 0
		rt.Replay(t, rt.Plan{Kills: 2}, func(s *rt.Story) {
			stories++
			w, err := orders.New(orders.Plain.Options())
			if err != nil {
				s.Fatal(err)
			}
			d := w.Destination()
			l := s.Around(d.Connector, rt.Options{})
			book := ledger.NewMemory()
			err = s.Run(func(ctx context.Context, run *rt.Run) error {
				var reg connectors.Registry
				if err := reg.Register("orders", connectors.Destination{Connector: run.Connector(l.Connector()), Profiles: d.Profiles}); err != nil {
					return err
				}
				eng := engine.New(book, &reg, nil)
				defer eng.Close()
				out, err := eng.Do(ctx, order().Intent)
				if err == nil && out.Status == ledger.InProgress {
					err = errors.New(out.Text)
				}
				return err
			})
			if err != nil {
				s.Error(err)
			}
			want := 1
			if v, _ := s.Fault(); v == rt.Duplicate {
				want = 2
			}
			rt.Effects(s, func(key string) int { return len(w.Records(key)) }, invoice).Exactly(want)
		})
		if stories < 50 {
			t.Errorf("%d stories; the engine's calls are no points", stories)
		}
	})
}
