package eval_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/eval"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// altered is a destination with changed lists and another profile.
type altered struct {
	*orders.Connector
	list func(*connectors.Listing)
}

func (a altered) List(ctx context.Context, s connectors.Scope) (connectors.Listing, error) {
	s.Each = nil // it is changed as a whole
	l, err := a.Connector.List(ctx, s)
	a.list(&l)
	return l, err
}

func (s *stage) altered(profile func(*connectors.Profile), list func(*connectors.Listing)) *connectors.Registry {
	s.Helper()
	c := altered{s.world.Connector(), list}
	p := c.Profiles()[orders.Kind]
	profile(&p)
	var reg connectors.Registry
	if err := reg.Register("orders", connectors.Destination{Connector: c, Profiles: map[string]connectors.Profile{orders.Kind: p}}); err != nil {
		s.Fatal(err)
	}
	return &reg
}

// TestListsThatMayLackSomething: only what is shown can be wrong, and nothing is
// right for want of being shown.
func TestListsThatMayLackSomething(t *testing.T) {
	for name, c := range map[string]struct {
		foreign bool
		list    func(*connectors.Listing)
		want    string
		reason  string
	}{
		"not complete":                {false, func(l *connectors.Listing) { l.Complete, l.Why = false, "pages shift" }, "unaccounted not-checked", "there may be one more"},
		"not complete, and one shown": {true, func(l *connectors.Listing) { l.Complete, l.Why = false, "pages shift" }, "unaccounted fail", "that one is there"},
		"weak":                        {false, func(l *connectors.Listing) { l.Strength = connectors.Weak }, "unaccounted pass", "a settle time of nothing is declared"},
		"no times, and one that may be older": {true, func(l *connectors.Listing) {
			l.Timed = false
			for i := range l.Records {
				l.Records[i].Changed = time.Time{}
			}
		}, "unaccounted not-checked", "it may be of before"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, orders.Plain.Options())
				s.there("A-1", 100, "")
				s.there("A-2", 100, "")
				if c.foreign {
					s.there("B-1", 1, "")
				}
				f := s.load(two + "checks: {unaccounted: [{destination: orders, kind: order, of: all, from: \"1999-01-01T00:00:00Z\"}]}\n")
				r, err := eval.Run(t.Context(), f, s.altered(func(*connectors.Profile) {}, c.list), eval.Options{})
				if err != nil || results(r) != c.want {
					t.Errorf("%s, %v; want %s: %s\n%s", results(r), err, c.want, c.reason, r.Text())
				}
			})
		})
	}
}

// refusing refuses the login of every read.
type refusing struct {
	*orders.Connector
	bulk bool // one call for all is what it refuses, and not each question in it
}

var errNoLogin = fmt.Errorf("search: %w", connectors.LoginRefused("401", errors.New("token expired")))

func (refusing) Read(context.Context, connectors.Query) (connectors.Observation, error) {
	return connectors.Observation{}, errNoLogin
}

func (r refusing) ReadMany(_ context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	if r.bulk {
		return nil, errNoLogin
	}
	all := make([]connectors.BulkAnswer, len(qs))
	for i := range all {
		all[i].Err = errNoLogin
	}
	return all, nil
}

func (refusing) List(context.Context, connectors.Scope) (connectors.Listing, error) {
	return connectors.Listing{}, errNoLogin
}

// TestAFailedReadSaysNothingOfWrites: a read applies nothing, so its failure does not show
// whether a write was applied.
func TestAFailedReadSaysNothingOfWrites(t *testing.T) {
	for name, c := range map[string]struct {
		limit int
		bulk  bool
	}{"each": {}, "together": {limit: 9}, "the call for all": {9, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, orders.Plain.Options())
				conn := refusing{s.world.Connector(), c.bulk}
				p := conn.Profiles()[orders.Kind]
				p.BulkLimit = c.limit
				var reg connectors.Registry
				if err := reg.Register("orders", connectors.Destination{Connector: conn, Profiles: map[string]connectors.Profile{orders.Kind: p}}); err != nil {
					t.Fatal(err)
				}
				f := s.load(two + "checks: {exactly: true, unaccounted: [{destination: orders, kind: order, of: all}]}\n")
				r, err := eval.Run(t.Context(), f, &reg, eval.Options{})
				if err != nil || r.Verdict() != eval.VerdictUnchecked || strings.Contains(r.Text(), "applied") ||
					strings.Count(r.Text(), "search: the destination refused the login (401): token expired") != 5 {
					t.Errorf("%v, a failed read is not reported as one:\n%s", err, r.Text())
				}
			})
		})
	}
}

// TestIrreversibleIsNoFalseAbort: an irreversible write is never sent again automatically, so
// giving it up was right.
func TestIrreversibleIsNoFalseAbort(t *testing.T) {
	for irreversible, want := range map[bool]int{true: 0, false: 1} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, orders.Plain.Options())
			s.write("writes.json", exportLine(t, declared(intent.Create, "A-1", 0), "settled", "not_applied", 0))
			reg := s.altered(func(p *connectors.Profile) {
				if irreversible {
					p.Irreversible = []intent.WriteType{intent.Create}
				}
			}, func(*connectors.Listing) {})
			r, err := eval.Run(t.Context(), s.load(workflowChecks), reg, eval.Options{})
			if err != nil || r.Claims == nil || r.Claims.FalseAborts.Cases != want {
				t.Errorf("irreversible %t: %v, %d false aborts, want %d", irreversible, err, r.Claims.FalseAborts.Cases, want)
			}
		})
	}
}
