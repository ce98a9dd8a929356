package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
	"github.com/readback-go/readback/verify"
)

// shippedFakes are the shipped declarations that are run here.
var shippedFakes = map[string]func() api{
	"github":  func() api { a, _ := gitHub(fakerest.GitHubOptions{}); return a },
	"notion":  func() api { a, _ := notion(fakerest.NotionOptions{}); return a },
	"zendesk": func() api { a, _ := zendesk(fakerest.ZendeskOptions{TriggerTag: "routed"}); return a },
}

// lives are what can happen to a create on its way, and how it must end.
var lives = map[string]struct {
	faults []fault.Fault
	want   map[ledger.Status]bool
	reason string
}{
	"nothing":       {nil, only(ledger.Verified), "nothing goes wrong"},
	"lost answer":   {faults(fault.LostAnswer), only(ledger.Verified), "the write was applied, and its answer was lost"},
	"gateway":       {faults(fault.BadGateway), only(ledger.Verified), "it is there, a gateway says otherwise"},
	"late":          {[]fault.Fault{{Kind: fault.LateCommit, Times: 1, Delay: 90 * time.Second}}, only(ledger.Verified), "it lands within the horizon"},
	"dropped":       {faults(fault.DroppedBefore), only(ledger.Verified), "it never landed; absence becomes conclusive"},
	"unreachable":   {faults(fault.Unreachable), only(ledger.Verified), "nothing was sent"},
	"throttled":     {[]fault.Fault{{Kind: fault.Throttled, Times: 1, Delay: 40 * time.Second}}, only(ledger.Verified), "not now"},
	"dropped twice": {[]fault.Fault{{Kind: fault.DroppedBefore, Times: 2}}, only(ledger.Verified, ledger.StatusReview), "two never landed"},
	"phantom":       {faults(fault.PhantomSuccess), only(ledger.Verified, ledger.StatusReview), "the answer was a lie"},
	"refused":       {faults(fault.Refused), only(ledger.NotApplied), "a definite no"},
	"field dropped": {faults(fault.DroppedField), only(ledger.StatusReview), "201, and less was stored"},
	"field altered": {faults(fault.NormalisedField), only(ledger.StatusReview), "201, and something else was stored"},
	"twice":         {faults(fault.DuplicateBehindOurBack, fault.LostAnswer), only(ledger.StatusReview), "a proxy sent it twice"},
	"reads fail":    {append(faults(fault.LostAnswer), fault.Fault{Kind: fault.UnreadableRead, How: "503", Times: 40}), only(ledger.Verified, ledger.StatusReview), "reads fail for a while"},
}

func only(all ...ledger.Status) map[ledger.Status]bool {
	m := map[ledger.Status]bool{}
	for _, s := range all {
		m[s] = true
	}
	return m
}

func faults(kinds ...fault.Kind) []fault.Fault {
	var all []fault.Fault
	for _, v := range kinds {
		all = append(all, fault.Fault{Kind: v, Times: 1})
	}
	return all
}

// TestLives takes a create through the engine while the API misbehaves and its reads lag, and
// compares with the API's own store.
func TestLives(t *testing.T) {
	for name, open := range shippedFakes {
		for life, c := range lives {
			for _, lag := range []time.Duration{0, 30 * time.Second, 110 * time.Second, 9 * time.Minute} {
				if lag > 2*time.Minute && name != "github" {
					continue // no API does that
				}
				t.Run(fmt.Sprintf("%s/%s/%v", name, life, lag), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						a := open()
						a.fake.SetLag(lag)
						for _, f := range c.faults {
							if f.Kind == fault.UnreadableRead {
								f.Key = a.list
							}
							if err := a.fake.Set(f); err != nil {
								t.Fatal(err)
							}
						}
						in := a.intent(intent.Create, 1)
						delete(in.Expect, "tags") // triggers add some
						out := a.live(t, in)
						a.judgeLife(t, in, out, c.want, c.faults, c.reason)
					})
				})
			}
		}
	}
}

// judgeLife compares an outcome with the store.
func (a api) judgeLife(t *testing.T, in intent.WriteIntent, out engine.Outcome, want map[ledger.Status]bool, met []fault.Fault, reason string) {
	t.Helper()
	there := a.under(in.Key)
	if !want[out.Status] {
		t.Errorf("the outcome is %s (%s) after %d sends, with %d records there; want one of %v: %s", out.Status, out.Text, out.Sends, len(there), want, reason)
	}
	duplicated := len(met) > 0 && met[0].Kind == fault.DuplicateBehindOurBack
	if len(there) > 1 && !duplicated {
		t.Errorf("%d records, and only we made any: %s", len(there), reason)
	}
	if out.Status == ledger.Verified && len(there) != 1 {
		t.Errorf("verified, and there are %d records: %s", len(there), reason)
	}
	if out.Status == ledger.NotApplied && len(there) != 0 {
		t.Errorf("not applied, and there are %d records: %s", len(there), reason)
	}
}

// TestRandomLivesWithoutKeys takes a write of any type through the engine while several faults
// apply at once and reads lag, with APIs that keep no key unique, and checks the outcome against
// the API's own store.
func TestRandomLivesWithoutKeys(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(shippedFakes)) {
		counts := map[ledger.Status]int{}
		for seed := range uint64(randomSeeds) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					counts[laggingLife(t, shippedFakes[name](), rand.New(rand.NewPCG(seed, 2)))]++
				})
			})
		}
		if counts[ledger.Verified] < randomSeeds/3 {
			t.Errorf("%s: %v; a verifier that never says yes proves nothing", name, counts)
		}
	}
}

func laggingLife(t *testing.T, a api, r *rand.Rand) ledger.Status {
	w := []intent.WriteType{intent.Create, intent.Create, intent.Update, intent.Delete}[r.IntN(4)]
	if w != intent.Create || r.IntN(6) == 0 {
		if err := a.put(merged(a.intent(intent.Create, 1)), ""); err != nil {
			t.Fatal(err)
		}
	}
	lag := time.Duration(r.IntN(110)) * time.Second
	a.fake.SetLag(lag)
	<-time.After(lag + time.Second)
	for range 1 + r.IntN(3) {
		misbehave(t, a, r)
	}
	in := a.intent(w, 1)
	delete(in.Expect, "tags") // triggers add some
	if r.IntN(2) == 0 {
		in.OnMismatch = intent.MismatchRetry
	}
	before := a.under(in.Key)
	out := a.live(t, in)
	truthful(t, a, whole(a, in), before, out)
	return out.Status
}

// TestNumbersAsKeys: a key that was given as a number is stored as a text. It
// must be found again all the same, or every repeat makes another record.
func TestNumbersAsKeys(t *testing.T) {
	for name, open := range shippedFakes {
		for _, number := range []json.Number{"4711", "1.0", "1e2"} {
			t.Run(name+"/"+string(number), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := open()
					in := a.intent(intent.Create, 1)
					delete(in.Expect, "tags")
					for field := range in.Key {
						in.Key[field] = number
					}
					if err := a.fake.Set(fault.Fault{Kind: fault.LostAnswer}.Once()); err != nil {
						t.Fatal(err)
					}
					out := a.live(t, in)
					if n := len(a.fake.Now(a.collection)); n > 1 || out.Status == ledger.Verified && n != 1 {
						t.Errorf("%s, %d records", out.Status, n)
					}
					if texts := name != "notion"; texts && number == "4711" && out.Status != ledger.Verified {
						t.Errorf("%s (%s), want it found again and verified", out.Status, out.Text)
					}
				})
			})
		}
	}
}

// TestTwoWorkflowsOneKey: two workflows that know nothing of each other make a record under one
// key while the lookup lags. The second cannot be prevented, but neither may end as if it were
// the only one.
func TestTwoWorkflowsOneKey(t *testing.T) {
	for name, open := range shippedFakes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := open()
				a.fake.SetLag(20 * time.Second)
				one := a.intent(intent.Create, 1)
				delete(one.Expect, "tags")
				two := one
				one.Tool, two.Tool = "first", "second"
				for i, out := range a.lives(t, one, two) {
					if n := len(a.under(one.Key)); out.Status == ledger.Verified && n != 1 {
						t.Errorf("write %d is verified, and there are %d records", i, n)
					}
				}
			})
		})
	}
}

// TestGitHubNoPushLostAnswer: the label was dropped and the answer with the issue was lost. It
// cannot be found; that must not make a second one.
func TestGitHubNoPushLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, g := gitHub(fakerest.GitHubOptions{NoPush: true})
		if err := g.Set(fault.Fault{Kind: fault.LostAnswer}.Once()); err != nil {
			t.Fatal(err)
		}
		out := a.live(t, a.intent(intent.Create, 1))
		if n := len(g.Now(fakerest.Issues)); n > 1 || out.Status == ledger.Verified {
			t.Errorf("%s (%s), %d issues; want at most one and no word of success", out.Status, out.Text, n)
		}
	})
}

// live submits a write, lets a worker see to it for hours, and submits it
// again.
func (a api) live(t *testing.T, in intent.WriteIntent) engine.Outcome {
	t.Helper()
	return a.lives(t, in)[0]
}

// lives does so with several at once.
func (a api) lives(t *testing.T, writes ...intent.WriteIntent) []engine.Outcome {
	t.Helper()
	con, _ := a.connector(t)
	var reg connectors.Registry
	if err := reg.Register(a.name, connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
		t.Fatal(err)
	}
	e := engine.New(ledger.NewMemory(), &reg, nil)
	defer e.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Hour)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- e.Work(ctx, &engine.WorkOptions{Idle: 20 * time.Second}) }()
	for _, in := range writes {
		go func() {
			asking, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			if _, err := e.Do(asking, whole(a, in)); err != nil {
				t.Error(err)
			}
		}()
	}
	<-time.After(4 * time.Hour)
	var outs []engine.Outcome
	for _, in := range writes {
		out, err := e.Do(ctx, whole(a, in))
		if err != nil {
			t.Fatal(err)
		}
		outs = append(outs, out)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return outs
}

// TestSamplesWithoutKeys: the samples by which a destination is measured can be
// written, and are found as they were declared.
func TestSamplesWithoutKeys(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(shippedFakes)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := shippedFakes[name]()
				con, p := a.connector(t)
				for _, w := range []intent.WriteType{intent.Create, intent.Update, intent.Delete} {
					in, err := con.Sample(a.kind, w, "s1")
					if err != nil {
						t.Fatal(err)
					}
					if _, err := a.send(t, con, in, 1); err != nil {
						t.Fatal(err)
					}
					if j := a.judge(t, con, p, in); j.Verdict != verify.Verified {
						t.Errorf("%s of a sample is %s (%s %v), want verified", w, j.Verdict, j.Reason, j.Mismatches)
					}
				}
			})
		})
	}
}
