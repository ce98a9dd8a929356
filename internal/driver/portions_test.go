package driver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/driver"
)

// A long job leaves as much time to others as it takes, and ends when its caller gives up or
// something fails.
func TestInPortions(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		reason   string
		portions int // of 50 ms each
		cut      time.Duration
		fails    error
		want     error
		took     time.Duration
		did      int
	}{
		"one":      {"there is no pause after the last", 1, time.Hour, nil, nil, 50 * time.Millisecond, 1},
		"three":    {"half of the time is others'", 3, time.Hour, nil, nil, 250 * time.Millisecond, 3},
		"fails":    {"what fails is not tried again", 3, time.Hour, broken, broken, 50 * time.Millisecond, 1},
		"given up": {"in a rest as well", 3, 70 * time.Millisecond, nil, context.DeadlineExceeded, 70 * time.Millisecond, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithTimeout(t.Context(), c.cut)
				defer end()
				began, did := time.Now(), 0
				err := driver.InPortions(ctx, func() (bool, error) {
					did++
					time.Sleep(50 * time.Millisecond)
					return did < c.portions, c.fails
				})
				if took := time.Since(began); !errors.Is(err, c.want) || took != c.took || did != c.did {
					t.Errorf("%d portions in %v, error %v; want %d in %v, error %v: %s", did, took, err, c.did, c.took, c.want, c.reason)
				}
			})
		})
	}
}
