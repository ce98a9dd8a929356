package readbacktest_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	rt "github.com/readback-go/readback/readbacktest"
)

var kills = rt.Plan{Kinds: []rt.Kind{rt.None}}

// naive charges, and fails if it gets no success.
func naive(ctx context.Context, client *http.Client) error {
	if saw := post(ctx, client, "http://bank.example", invoice); !strings.HasPrefix(saw, "201") {
		return errors.New(saw)
	}
	return nil
}

// careful reads first.
func careful(ctx context.Context, client *http.Client) error {
	if strings.Contains(readCharge(ctx, client, "http://bank.example", invoice), invoice) {
		return nil
	}
	return naive(ctx, client)
}

// shown are the stories of a naive loop and how many charges each leaves.
func shown(t testing.TB, p rt.Plan, loop func(context.Context, *http.Client) error) map[string]int {
	charges := map[string]int{}
	rt.Replay(t, p, func(s *rt.Story) {
		b := &bank{}
		proxy := s.Proxy(b, rt.Options{Key: invoiceOf})
		_ = s.Run(func(ctx context.Context, run *rt.Run) error {
			client := run.Client(proxy)
			client.Timeout = time.Second
			run.Point("begun")
			err := loop(ctx, client)
			run.Point("charged")
			return err
		})
		charges[s.String()] = b.Charges(invoice)
	})
	return charges
}

// TestKills: a loop is killed at each point, before and after each request, and after its end; it
// is started again each time.
func TestKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := map[string]int{
			"nothing happens":                                              1,
			`life 1 killed at point 1, "begun"`:                            1,
			`life 1 killed at point 2, "before POST /charges"`:             1,
			`life 1 killed at point 3, "after POST /charges"`:              2,
			`life 1 killed at point 4, "charged"`:                          2,
			`life 1 killed at point 5, "the end, before anybody notes it"`: 2,
		}
		if diff := cmp.Diff(want, shown(t, kills, naive)); diff != "" {
			t.Errorf("charges by story (-want +got): %s", diff)
		}
	})
}

// TestFaultsAndKills: under each fault too. The naive loop charges twice or not at all; reading
// first helps if the read is reliable.
func TestFaultsAndKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, c := shown(t, rt.Plan{}, naive), shown(t, rt.Plan{}, careful)
		for story, want := range map[string]int{
			"lost-answer on write 1":     2,
			"late-commit on write 1":     2,
			"phantom-success on write 1": 0,
			"bad-gateway on write 1":     2,
			"lost-answer on write 1, life 1 killed at point 3, \"after POST /charges\"": 2,
		} {
			if got, ok := n[story]; !ok || got != want {
				t.Errorf("naive: %s: %d charges (run %t), want %d", story, got, ok, want)
			}
		}
		for story, want := range map[string]int{
			"lost-answer on write 1": 1,
			"late-commit on write 1": 2, // the read comes before it arrives
			"lagging-read on read 2, life 1 killed at point 5, \"after POST /charges\"":              2,
			"lagging-read on read 1, life 1 killed at point 5, \"after POST /charges\"":              1,
			"life 1 killed at point 5, \"after POST /charges\"":                                      1,
			"duplicate on write 1, life 1 killed at point 5, \"after POST /charges\"":                2,
			"dropped-before on write 1, life 1 killed at point 4, \"before POST /charges\"":          1,
			"unavailable on write 1, life 2 killed at point 7, \"the end, before anybody notes it\"": 1,
		} {
			if got, ok := c[story]; !ok || got != want {
				t.Errorf("careful: %s: %d charges (run %t), want %d", story, got, ok, want)
			}
		}
	})
}

// TestSameStories: one seed runs the same stories with the same results; if not all fit, another
// seed runs others.
func TestSameStories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		few := func(seed uint64) rt.Plan { return rt.Plan{Seed: seed, Stories: 40, Kills: 2} }
		first := shown(t, few(3), careful)
		if diff := cmp.Diff(first, shown(t, few(3), careful)); diff != "" {
			t.Errorf("seed 3 again (-first +again): %s", diff)
		}
		if len(first) > 40 {
			t.Errorf("%d stories, at most 40 were asked for", len(first))
		}
		if cmp.Equal(first, shown(t, few(4), careful)) {
			t.Error("seed 4 runs the same stories as seed 3")
		}
	})
}

// TestNothingAfter: nothing of the loop's own goroutine runs after the point; any other goroutine
// gets an error, has no effect, and the loop has to end.
func TestNothingAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stories := 0
		rt.Replay(t, kills, func(s *rt.Story) {
			stories++
			b, after := &bank{}, 0
			proxy := s.Proxy(b, rt.Options{})
			err := s.Run(func(ctx context.Context, run *rt.Run) error {
				defer func() { // deferred calls try to, and a killed process does not
					err := run.Do("late", func() error { after++; return nil })
					if ctx.Err() != nil && err == nil {
						s.Error("a dead life had an effect")
					}
				}()
				other := make(chan string)
				go func() { other <- post(context.Background(), run.Client(proxy), "http://bank.example", invoice) }()
				saw := <-other
				switch {
				case ctx.Err() != nil && saw != "dead":
					s.Errorf("the other goroutine saw %q", saw)
				case ctx.Err() != nil:
					run.Point("never")
					s.Error("a point after the end of a life did not stop it")
				}
				run.Point("between")
				if ctx.Err() != nil {
					s.Error("it went on after its point")
				}
				return nil
			})
			if err != nil {
				s.Error(err)
			}
			if n := b.Charges(invoice); n < 1 || n > 2 {
				s.Errorf("%d charges", n)
			}
		})
		if stories != 7 {
			t.Errorf("%d stories, want an undisturbed one, two kills for the request, two for the deferred call, one between and one at the end", stories)
		}
	})
}

// TestKillsOverURL: a loop that takes a base URL is killed at its requests too: it sees a dead
// connection, and has no further effect.
func TestKillsOverURL(t *testing.T) {
	charges := map[string]int{}
	rt.Replay(t, rt.Plan{Kinds: []rt.Kind{rt.CutBody}}, func(s *rt.Story) {
		b := &bank{}
		proxy := s.Proxy(b, rt.Options{})
		_ = s.Run(func(ctx context.Context, run *rt.Run) error {
			base, saw := run.URL(proxy), ""
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			for range 3 { // whatever the result
				if saw = post(context.WithoutCancel(ctx), client, base, invoice); strings.HasPrefix(saw, "201 {") {
					return ctx.Err()
				}
			}
			return errors.New(saw)
		})
		charges[s.String()] = b.Charges(invoice)
	})
	for story, want := range map[string]int{
		"nothing happens": 1,
		`life 1 killed at point 1, "before POST /charges"`:                     1,
		`life 1 killed at point 2, "after POST /charges"`:                      2,
		"cut-body on write 1":                                                  2,
		`cut-body on write 1, life 1 killed at point 4, "after POST /charges"`: 3,
	} {
		if got, ok := charges[story]; !ok || got != want {
			t.Errorf("%s: %d charges (run %t), want %d", story, got, ok, want)
		}
	}
}

// TestStoppedCallDoesNotContinue: the loop's own goroutine does not even see that its request failed.
func TestStoppedCallDoesNotContinue(t *testing.T) {
	rt.Replay(t, kills, func(s *rt.Story) {
		proxy := s.Proxy(&bank{}, rt.Options{})
		resumed := 0
		_ = s.Run(func(ctx context.Context, run *rt.Run) error {
			if run.Life > 1 {
				return nil
			}
			post(ctx, run.Client(proxy), "http://bank.example", invoice)
			resumed++
			err := run.Do("note", func() error { return nil })
			resumed++
			return err
		})
		at := "" // nowhere
		if lives := s.Lives(); len(lives) > 1 {
			at = lives[0][len(lives[0])-1]
		}
		want := map[string]int{
			"": 2, "before POST /charges": 0, "after POST /charges": 0, "before note": 1, "after note": 1, "the end, before anybody notes it": 2,
		}[at]
		if resumed != want {
			s.Errorf("killed at %q it went on %d times, want %d", at, resumed, want)
		}
	})
}

// TestRepeatOne: a failure names its story, and the environment runs only that one.
func TestRepeatOne(t *testing.T) {
	assert := func(ran *[]string) func(testing.TB) {
		return func(tb testing.TB) {
			rt.Replay(tb, rt.Plan{Kinds: []rt.Kind{rt.LostAnswer}, Seed: 5, Kills: 2}, func(s *rt.Story) {
				b := &bank{}
				proxy := s.Proxy(b, rt.Options{Key: invoiceOf})
				_ = s.Run(func(ctx context.Context, run *rt.Run) error { return naive(ctx, run.Client(proxy)) })
				*ran = append(*ran, s.String())
				rt.Effects(s, b.Charges, invoice).Exactly(1)
			})
		}
	}
	var all, one []string
	says := failures(t, assert(&all))
	if n := strings.Count(says, "to repeat:"); n != 3 {
		t.Errorf("%d stories failed, want it to stop after 3:\n%s", n, says)
	}
	_, command, _ := strings.Cut(says[strings.LastIndex(says, "READBACKTEST_STORY"):], "'")
	name, _, _ := strings.Cut(command, "'")
	if !strings.Contains(says, "READBACKTEST_SEED=5 READBACKTEST_STORY='"+name+"' go test -run '^TestRepeatOne$'") {
		t.Errorf("the failure does not say how to repeat it:\n%s", says)
	}
	t.Setenv("READBACKTEST_STORY", name)
	again := failures(t, assert(&one))
	if len(one) != 1 || one[0] != all[len(all)-1] || strings.Count(again, "2 effects") != 1 && strings.Count(again, "3 effects") != 1 {
		t.Errorf("READBACKTEST_STORY=%q ran %q, want the last of %q; it says:\n%s", name, one, all, again)
	}
	t.Setenv("READBACKTEST_STORY", "lost-answer@x")
	if says := failures(t, assert(&one)); !strings.Contains(says, "want the name of a story") {
		t.Errorf("a bad name says %q", says)
	}
}

// TestBadLoops: loops that cannot be replayed are named.
func TestBadLoops(t *testing.T) {
	cases := map[string]struct {
		run  func(*rt.Story)
		says string
	}{
		"panics": {func(s *rt.Story) {
			_ = s.Run(func(context.Context, *rt.Run) error { panic("oh") })
		}, "the loop panicked: oh"},
		"fails the test": {func(s *rt.Story) {
			_ = s.Run(func(context.Context, *rt.Run) error { s.Fatal("no good"); return nil })
			s.Error("it went on")
		}, "no good"},
		"never ends": {func(s *rt.Story) {
			_ = s.Run(func(_ context.Context, run *rt.Run) error {
				for {
					run.Point("again")
				}
			})
		}, "does not end by itself"},
		"does not run": {func(*rt.Story) {}, "never called Run"},
		"outlives its context": {func(s *rt.Story) {
			_ = s.Run(func(ctx context.Context, run *rt.Run) error {
				asserted := make(chan struct{})
				go func() {
					defer close(asserted)
					_ = run.Do("call", func() error { return nil })
				}()
				<-asserted
				if ctx.Err() != nil {
					time.Sleep(time.Hour)
				}
				return nil
			})
		}, "must end with its context"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				says := failures(t, func(tb testing.TB) { rt.Replay(tb, kills, c.run) })
				time.Sleep(time.Hour) // for the one that continues
				if !strings.Contains(says, c.says) || strings.Contains(says, "it went on") {
					t.Errorf("it says %q, want %q", says, c.says)
				}
			})
		})
	}
}

// TestNoWay: a plan whose faults can never happen is refused.
func TestNoWay(t *testing.T) {
	for name, c := range map[string]struct {
		plan rt.Plan
		says string
	}{
		"all faults":  {rt.Plan{}, "no fault of the plan can happen"},
		"kills only":  {kills, ""},
		"a bad fault": {rt.Plan{Kinds: []rt.Kind{"hiccup"}}, `"hiccup"; want one of`},
	} {
		says := failures(t, func(tb testing.TB) {
			rt.Replay(tb, c.plan, func(s *rt.Story) {
				_ = s.Run(func(context.Context, *rt.Run) error { return nil })
			})
		})
		if (c.says == "") != (says == "") || !strings.Contains(says, c.says) {
			t.Errorf("%s: it says %q, want %q", name, says, c.says)
		}
	}
}

// TestErrorsAreReplayed: an orchestrator restarts a failed loop a bounded number of times; a
// clean-up of a story runs with the story.
func TestErrorsAreReplayed(t *testing.T) {
	lives, cleaned, stories := 0, 0, 0
	rt.Replay(t, rt.Plan{Kinds: []rt.Kind{rt.None}, Kills: -1, Lives: 3}, func(s *rt.Story) {
		stories++
		s.Cleanup(func() { cleaned++ })
		err := s.Run(func(_ context.Context, run *rt.Run) error {
			lives = run.Life
			return errors.New("always")
		})
		if err == nil || err.Error() != "always" {
			s.Errorf("the error is %v", err)
		}
	})
	if lives != 3 || cleaned != 1 || stories != 1 {
		t.Errorf("%d lives, %d cleaned up, %d stories; want 3, 1, 1", lives, cleaned, stories)
	}
}
