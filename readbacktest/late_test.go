package readbacktest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rt "github.com/readback-go/readback/readbacktest"
)

// slowly is a slow bank, which continues after its client has gone.
type slowly struct{ *bank }

func (s slowly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	<-time.After(5 * time.Second)
	s.bank.ServeHTTP(w, r)
}

// TestHeldAndNotSeen: a count of the destination that does not include the proxy comes too early,
// and the test fails for it when it ends.
func TestHeldAndNotSeen(t *testing.T) {
	for seen, want := range map[bool]string{false: "had not landed", true: "2 effects"} {
		synctest.Test(t, func(t *testing.T) {
			b := &bank{}
			says := failures(t, func(tb testing.TB) {
				p := rt.NewProxy(tb, b, rt.Options{Script: []rt.Fault{{Kind: rt.LateCommit, Nth: 1}}})
				post(t.Context(), p.Client(), "http://bank.example", invoice)
				post(t.Context(), p.Client(), "http://bank.example", invoice)
				if seen {
					rt.Effects(tb, b.Charges, invoice, p).Exactly(1)
				} else {
					rt.Effects(tb, b.Charges, invoice).Exactly(1)
				}
			})
			if !strings.Contains(says, want) {
				t.Errorf("seen %t: it does not say %q: %s", seen, want, says)
			}
		})
	}
}

// TestUnderWay: a request whose client has gone arrives before it is counted.
func TestUnderWay(t *testing.T) {
	for name, count := range map[string]func(testing.TB, *bank, *rt.Proxy){
		"Effects":       func(tb testing.TB, b *bank, p *rt.Proxy) { rt.Effects(tb, b.Charges, invoice, p).Exactly(1) },
		"ExpectEffects": func(tb testing.TB, _ *bank, p *rt.Proxy) { p.ExpectEffects(tb, nil, 1) },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &bank{}
			p := rt.NewProxy(t, slowly{b}, rt.Options{})
			go post(t.Context(), p.Client(), "http://bank.example", invoice)
			synctest.Wait()
			if says := failures(t, func(tb testing.TB) { count(tb, b, p) }); says != "" {
				t.Errorf("%s: %s", name, says)
			}
		})
	}
}

// TestUnderWayWhenKilled: an in-flight request of another goroutine of a dead life arrives before
// the count.
func TestUnderWayWhenKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		says := failures(t, func(tb testing.TB) {
			rt.Replay(tb, rt.Plan{Kinds: []rt.Kind{rt.None}}, func(s *rt.Story) {
				b := &bank{}
				_ = s.Run(func(_ context.Context, run *rt.Run) error {
					go func() {
						_ = run.Do("charge", func() error {
							<-time.After(5 * time.Second)
							b.mu.Lock()
							defer b.mu.Unlock()
							b.charges = append(b.charges, charge{Invoice: invoice})
							return nil
						})
					}()
					<-time.After(time.Second)
					run.Point("charged, it seems")
					return nil
				})
				rt.Effects(s, b.Charges, invoice).Exactly(1)
			})
		})
		if !strings.Contains(says, "2 effects") {
			t.Errorf("the charge of the dead life is not counted: %s", says)
		}
	})
}

// TestNoPoints: a loop whose requests cannot be killed shows less than it seems to.
func TestNoPoints(t *testing.T) {
	says := failures(t, func(tb testing.TB) {
		rt.Replay(tb, rt.Plan{}, func(s *rt.Story) {
			p := s.Proxy(&bank{}, rt.Options{})
			_ = s.Run(func(ctx context.Context, _ *rt.Run) error {
				post(ctx, p.Client(), "http://bank.example", invoice)
				return nil
			})
		})
	})
	if !strings.Contains(says, "none of them is a point") {
		t.Errorf("it does not say so: %s", says)
	}
}
