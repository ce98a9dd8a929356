package service

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/ledger"
)

// counting is a feed whose history takes its time.
type counting struct {
	ledger.Feed
	takes time.Duration
	err   error
	asked int
}

func (c *counting) History(_ context.Context, q ledger.Past) ([]ledger.Span, error) {
	time.Sleep(c.takes)
	c.asked++
	return []ledger.Span{{From: q.Since, Sends: c.asked}}, c.err
}

// A history that took long is not counted again for each caller, and is not outdated
// either.
func TestSlowHistories(t *testing.T) {
	day := ledger.Past{Tenant: "acme", Since: time.Unix(0, 0), Until: time.Unix(86400, 0), Step: time.Hour}
	for name, c := range map[string]struct {
		takes  time.Duration
		err    error
		after  time.Duration
		change func(*ledger.Past)
		asked  int
		reason string
	}{
		"slow":           {2 * time.Second, nil, 19 * time.Second, nil, 1, "it is kept for ten times as long as it took"},
		"slow, later":    {2 * time.Second, nil, 21 * time.Second, nil, 2, "and no longer"},
		"very slow":      {time.Minute, nil, 61 * time.Second, nil, 2, "nor for longer than a minute"},
		"quick":          {time.Millisecond, nil, 0, nil, 2, "it is counted anew"},
		"failed":         {2 * time.Second, errors.New("gone"), 0, nil, 2, "a failure is none"},
		"another tenant": {2 * time.Second, nil, 0, func(q *ledger.Past) { q.Tenant = "umbrella" }, 2, "no tenant sees another's"},
		"another place":  {2 * time.Second, nil, 0, func(q *ledger.Past) { q.Destination = "jira" }, 2, "it is another question"},
		"another step":   {2 * time.Second, nil, 0, func(q *ledger.Past) { q.Step *= 2 }, 2, "it is another question"},
		"another start":  {2 * time.Second, nil, 0, func(q *ledger.Past) { q.Since = q.Since.Add(1) }, 2, "it is another question"},
		"another end":    {2 * time.Second, nil, 0, func(q *ledger.Past) { q.Until = q.Until.Add(1) }, 2, "it is another question"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p pasts
				h, q := &counting{takes: c.takes, err: c.err}, day
				first, _ := p.history(t.Context(), h, q)
				time.Sleep(c.after)
				if c.change != nil {
					c.change(&q)
				}
				second, err := p.history(t.Context(), h, q)
				if h.asked != c.asked || !errors.Is(err, c.err) || len(first) != 1 || len(second) != 1 || second[0].Sends != c.asked {
					t.Errorf("asked %d times, want %d: %s", h.asked, c.asked, c.reason)
				}
			})
		})
	}
}

// However many are requested, a bounded number is kept.
func TestHistoriesAreBounded(t *testing.T) {
	var p pasts
	for i := range 3 * maxPasts {
		p.keep(pastKey{tenant: fmt.Sprint(i)}, past{})
	}
	if len(p.kept) > maxPasts {
		t.Errorf("%d are kept", len(p.kept))
	}
}

// slowly is a ledger that counts what waits slowly.
type slowly struct {
	ledger.Ledger
	takes time.Duration
	err   error
	asked int
}

func (c *slowly) Waiting(context.Context, string, [ledger.WaitAges]time.Time) ([]ledger.Waiting, bool, error) {
	time.Sleep(c.takes)
	c.asked++
	return []ledger.Waiting{{Count: c.asked}}, false, c.err
}

// Counts that took long are not made again for each page, and are not outdated either.
func TestSlowCounts(t *testing.T) {
	for name, c := range map[string]struct {
		takes, after time.Duration
		err          error
		tenant       string
		asked        int
	}{
		"slow":           {400 * time.Millisecond, 3 * time.Second, nil, "acme", 1},
		"slow, later":    {400 * time.Millisecond, 5 * time.Second, nil, "acme", 2},
		"very slow":      {time.Minute, 6 * time.Second, nil, "acme", 2},
		"quick":          {200 * time.Millisecond, 0, nil, "acme", 2},
		"failed":         {time.Second, 0, errors.New("gone"), "acme", 2},
		"another tenant": {time.Second, 0, nil, "umbrella", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var all counts
				l := &slowly{takes: c.takes, err: c.err}
				_, _, _ = all.of(t.Context(), l, "acme", [ledger.WaitAges]time.Time{})
				time.Sleep(c.after)
				found, _, err := all.of(t.Context(), l, c.tenant, [ledger.WaitAges]time.Time{})
				if l.asked != c.asked || !errors.Is(err, c.err) || found[0].Count != c.asked {
					t.Errorf("counted %d times, want %d: %+v, %v", l.asked, c.asked, found, err)
				}
			})
		})
	}
}
