package v1

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

// batch is the body of a batch of intents.
func batch(items ...string) string { return `{"writes":[` + strings.Join(items, ",") + `]}` }

// keyed is an order that its idempotency key names.
func keyed(id, key string) string {
	return asJSON(order(id, unnamed, func(w *intent.WriteIntent) { w.IdempotencyKey = key }))
}

// several are n different orders.
func several(n int) []string {
	var all []string
	for i := range n {
		all = append(all, asJSON(order(fmt.Sprint("A-", i))))
	}
	return all
}

func (b *bench) batch(body string, headers ...string) []Result {
	b.t.Helper()
	return into[Results](b.ask(agent, "POST", "/v1/writes/batch", body, headers...).want(200)).Results
}

// ofAll is the address of the outcomes of writes.
func ofAll(ids ...ledger.ID) string {
	target := "/v1/writes/batch?"
	for _, id := range ids {
		target += "&id=" + string(id)
	}
	return strings.Replace(target, "?&", "?", 1)
}

func codes(results []Result) []int {
	var all []int
	for _, r := range results {
		all = append(all, r.Status)
	}
	return all
}

func ids(results []Result) []ledger.ID {
	var all []ledger.ID
	for _, r := range results {
		if r.Outcome != nil {
			all = append(all, r.Outcome.ID)
		}
	}
	return all
}

// scoped bounds all callers.
type scoped struct {
	access.Resolver
	scope *engine.Scope
}

func (s scoped) Resolve(r *http.Request) (access.Identity, error) {
	id, err := s.Resolver.Resolve(r)
	id.Scope = s.scope
	return id, err
}

// Every item is answered as if it came alone, whatever is wrong with those beside it.
func TestAnItemIsAnsweredAsIfItCameAlone(t *testing.T) {
	plain := asJSON(order("A-1"))
	first := func(member string) string { return strings.Replace(plain, "{", "{"+member+",", 1) }
	items := []struct{ name, item, key, alone string }{
		{"a write", plain, "", ""},
		{"a held one", asJSON(order("A-2", held)), "", ""},
		{"a key alone", keyed("A-3", "k-3"), "k-3", asJSON(order("A-3", unnamed))},
		{"a key beside a name", asJSON(order("A-4", func(w *intent.WriteIntent) { w.IdempotencyKey = "k-4" })), "k-4", asJSON(order("A-4"))},
		{"an operation that was begun", asJSON(order("A-5", func(w *intent.WriteIntent) { w.IdempotencyKey = "begun" })), "begun", asJSON(order("A-5"))},
		{"no name", asJSON(order("A-6", unnamed)), "", ""},
		{"half a name", asJSON(order("A-7", func(w *intent.WriteIntent) { w.Workflow = "" })), "", ""},
		{"a number", `5`, "", ""},
		{"a list", `[]`, "", ""},
		{"null", `null`, "", ""},
		{"an empty object", `{}`, "", ""},
		{"a member that is null", first(`"call":null`), "", ""},
		{"a member twice", first(`"tool":"charge"`), "", ""},
		{"a member twice below", strings.Replace(plain, `"order_id"`, `"order_id":"B-1","order_id"`, 1), "", ""},
		{"an unknown member", first(`"tols":"charge"`), "", ""},
		{"a NUL", first(`"correlation_id":"\u0000"`), "", ""},
		{"no UTF-8", first("\"correlation_id\":\"\xff\""), "", ""},
		{"nested too deep", first(`"payload":` + strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)), "", ""},
		{"another tenant", first(`"tenant":"umbrella"`), "", ""},
		{"another destination", strings.Replace(plain, `"orders"`, `"nowhere"`, 1), "", ""},
		{"beyond the scope", strings.Replace(asJSON(order("A-8")), `"tool":"charge"`, `"tool":"refund"`, 1), "", ""},
	}
	fresh := func(t *testing.T) *bench {
		b := newBench(t, orders.Native.Options(), func(o *Options) {
			o.Who = scoped{o.Who, &engine.Scope{Tools: []string{"charge"}}}
		})
		b.ask(agent, "POST", "/v1/writes", asJSON(order("B-0", func(w *intent.WriteIntent) { w.IdempotencyKey = "begun" })), "Prefer: wait=60").want(200)
		return b
	}
	synctest.Test(t, func(t *testing.T) {
		var all []string
		for _, i := range items {
			all = append(all, i.item)
		}
		b := fresh(t)
		results := b.batch(batch(all...), "Prefer: wait=60")
		if len(results) != len(items) {
			t.Fatalf("%d results of %d items", len(results), len(items))
		}
		for n, i := range items {
			body, headers := i.item, []string{"Prefer: wait=60"}
			if i.key != "" {
				body, headers = i.alone, append(headers, "Idempotency-Key: "+i.key)
			}
			a := fresh(t).ask(agent, "POST", "/v1/writes", body, headers...)
			got := results[n]
			if got.Status != a.Status || (got.Outcome == nil) == (got.Problem == nil) {
				t.Errorf("%s: %s; alone it is status %d: %s", i.name, validJSON(t, got), a.Status, a.Body)
				continue
			}
			if got.Outcome != nil {
				if again := into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", body, headers...)); !again.Replayed || again.ID != got.Outcome.ID {
					t.Errorf("%s: to send it again alone is no repeat: %+v", i.name, again)
				}
				if alone := into[engine.Outcome](a); got.Outcome.ID != alone.ID || got.Outcome.Status != alone.Status || got.Outcome.Replayed {
					t.Errorf("%s: %+v; alone it is %+v", i.name, got.Outcome, alone)
				}
				continue
			}
			alone := into[Problem](a)
			if alone.Outcome != nil { // times differ
				got.Problem.Outcome, alone.Outcome = nil, nil
			}
			if diff := cmp.Diff(validJSON(t, alone), validJSON(t, got.Problem)); diff != "" {
				t.Errorf("%s: %s", i.name, diff)
			}
		}
	})
}

// What is no batch is refused as a whole, and has no effect.
func TestWhatIsNoBatch(t *testing.T) {
	one := asJSON(order("A-1"))
	for name, c := range map[string]struct{ body, field string }{
		"no items":           {batch(), "/writes"},
		"no member":          {`{}`, "/writes"},
		"too many items":     {batch(several(maxBatch + 1)...), "/writes"},
		"one intent":         {one, "/destination"},
		"no list":            {`{"writes":` + one + `}`, "/writes"},
		"null":               {`{"writes":null}`, "/writes"},
		"two lists":          {`{"writes":[` + one + `],"writes":[` + one + `]}`, "/writes"},
		"a list alone":       {`[` + one + `]`, ""},
		"a member beside it": {`{"writes":[` + one + `],"tenant":"umbrella"}`, "/tenant"},
		"cut off":            {`{"writes":[` + one + `,{"tool"`, ""},
		"more after it":      {batch(one) + batch(one), ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, orders.Native.Options(), nil)
			if p := b.ask(agent, "POST", "/v1/writes/batch", c.body, "Prefer: wait=60").problem(invalidRequest); p.Field != c.field {
				t.Errorf("%+v; want field %q", p, c.field)
			}
			if n := len(b.world.Effects()); n != 0 {
				t.Errorf("%d effects", n)
			}
		})
	}
	b := newBench(t, orders.Native.Options(), nil)
	if p := b.ask(agent, "POST", "/v1/writes/batch", batch(one), "Idempotency-Key: k-1").problem(invalidRequest); p.Field != "Idempotency-Key" {
		t.Errorf("a key for all of them: %+v", p)
	}
	if got := b.batch(batch(several(maxBatch)...), "Prefer: wait=60"); len(got) != maxBatch || len(b.world.Effects()) != maxBatch {
		t.Errorf("%d results, %d effects of the largest batch", len(got), len(b.world.Effects()))
	}
	for _, target := range []string{"/v1/writes/batch", ofAll(slices.Repeat([]ledger.ID{"wr_0"}, maxBatch+1)...)} {
		if p := b.ask(agent, "GET", target, "").problem(invalidRequest); p.Field != "id" {
			t.Errorf("%.40s: %+v", target, p)
		}
	}
}

// Items about one write are a write and its repeats, in their order, however they are named.
func TestOneWriteTwiceInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Lagging.Options(), nil)
		var items []string
		for i := range 20 {
			key := fmt.Sprint("k-", i)
			items = append(items, keyed("A-"+key, key), keyed("A-"+key, key), keyed("B-"+key, key))
		}
		results := b.batch(batch(items...), "Prefer: wait=60")
		for i := 0; i < len(results); i += 3 {
			one, repeat, other := results[i], results[i+1], results[i+2]
			if one.Status != 200 || one.Outcome.Status != ledger.Verified || one.Outcome.Replayed {
				t.Fatalf("%d: %s", i, validJSON(t, one))
			}
			if repeat.Status != 200 || repeat.Outcome.ID != one.Outcome.ID || !repeat.Outcome.Replayed {
				t.Fatalf("the repeat of %d: %s", i, validJSON(t, repeat))
			}
			if other.Status != 422 || other.Problem.Type != digestMismatch.uri() || other.Problem.ID != one.Outcome.ID {
				t.Fatalf("another write of the same name as %d: %s", i, validJSON(t, other))
			}
		}
		if n := len(b.world.Effects()); n != 20 {
			t.Errorf("%d effects", n)
		}
		// As alone: a repeat that does not wait is refused while the write is in progress.
		two := b.batch(batch(keyed("C-1", "c"), keyed("C-1", "c")))
		if got := codes(two); !slices.Equal(got, []int{202, 409}) || two[1].RetryAfter != 1 || two[1].Problem.ID != two[0].Outcome.ID {
			t.Errorf("%s", validJSON(t, two))
		}
	})
}

// All of a batch wait within one limit, and what has not ended says when to ask.
func TestABatchWaitsWithinOneLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.UnreadableRead})
		began := time.Now()
		a := b.ask(agent, "POST", "/v1/writes/batch", batch(several(5)...), "Prefer: wait=10").want(200)
		if took := time.Since(began); took != 10*time.Second || a.Header.Get("Preference-Applied") != "wait=10" {
			t.Errorf("it took %s, applied %q", took, a.Header.Get("Preference-Applied"))
		}
		results := into[Results](a).Results
		for _, r := range results {
			if r.Status != 202 || r.Outcome.Status != ledger.InProgress || r.RetryAfter != 1 {
				t.Errorf("%s", validJSON(t, r))
			}
		}
		began = time.Now()
		a = b.ask(agent, "GET", ofAll(ids(results)...), "", "Prefer: wait=7").want(200)
		if took := time.Since(began); took != 7*time.Second || a.Header.Get("Preference-Applied") != "wait=7" {
			t.Errorf("the outcomes took %s, applied %q", took, a.Header.Get("Preference-Applied"))
		}
		b.world.Clear()
		b.work()
		for i, r := range into[Results](b.ask(agent, "GET", ofAll(ids(results)...), "", "Prefer: wait=60").want(200)).Results {
			if r.Status != 200 || r.Outcome.ID != results[i].Outcome.ID || r.Outcome.Status != ledger.Verified {
				t.Errorf("%s", validJSON(t, r))
			}
		}
	})
}

// A held write holds up no batch, as alone. Asking for outcomes waits through the decision, as
// for one.
func TestABatchWithAHeldWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Lagging.Options(), nil)
		b.work()
		began := time.Now()
		results := b.batch(batch(asJSON(order("A-1", held)), asJSON(order("A-2"))), "Prefer: wait=60")
		if got := codes(results); !slices.Equal(got, []int{202, 200}) || results[0].Outcome.Status != ledger.StatusHeld || results[0].RetryAfter != 0 {
			t.Fatalf("%s", validJSON(t, results))
		}
		if took := time.Since(began); took >= 60*time.Second {
			t.Errorf("it waited %s for a reviewer", took)
		}
		began = time.Now()
		all := ofAll(ids(results)...)
		if got := into[Results](b.ask(agent, "GET", all, "", "Prefer: wait=30")).Results; got[0].Outcome.Status != ledger.StatusHeld || time.Since(began) != 30*time.Second {
			t.Errorf("%s after %s", validJSON(t, got), time.Since(began))
		}
		time.AfterFunc(5*time.Second, func() {
			b.ask(reviewer, "POST", writePath(results[0].Outcome.ID, "/decision"), `{"word":"approve","reason":"it is right"}`).want(200)
		})
		for _, r := range into[Results](b.ask(agent, "GET", all, "", "Prefer: wait=60")).Results {
			if r.Outcome.Status != ledger.Verified {
				t.Errorf("%s", validJSON(t, r))
			}
		}
	})
}

// The final outcomes are those that rechecks lead to.
func TestABatchOfFinalOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := rolledBack(t)
		results := b.batch(batch(several(2)...), "Prefer: wait=60, final")
		got := []ledger.Status{results[0].Outcome.Status, results[1].Outcome.Status}
		slices.Sort(got)
		if !slices.Equal(got, []ledger.Status{ledger.StatusReview, ledger.Verified}) || !results[0].Outcome.RecheckUntil.IsZero() || !results[1].Outcome.RecheckUntil.IsZero() {
			t.Errorf("%s", validJSON(t, results))
		}
	})
}

// limited has callers share a server.
func (b *bench) limited(l access.Limits) {
	shares := access.NewShares(l, nil, nil)
	b.inside.opts.Who = shares.Resolver(b.inside.opts.Who)
	b.api = shares.Handler(b.api)
}

// recorded are the writes of the tenant that are in the ledger.
func (b *bench) recorded() int {
	b.t.Helper()
	return len(into[Writes](b.ask("auditor@acme", "GET", "/v1/writes?limit=200", "").want(200)).Writes)
}

// A batch takes no more of the server than the share of its caller: that many items run at once,
// and the others when these have ended, or the time is up. All that it took is given back.
func TestABatchTakesTheShareOfItsCaller(t *testing.T) {
	for name, c := range map[string]struct{ requests, atOnce int }{"a place": {4, 1}, "a few": {16, 4}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				b.limited(access.Limits{Requests: c.requests, TokenRate: 1000, TenantRate: 1000})
				b.set(orders.Fault{Kind: orders.UnreadableRead})
				for round := range 2 {
					var items []string
					for _, item := range several(10) {
						items = append(items, strings.Replace(item, `"run-1"`, fmt.Sprintf(`"run-%d"`, round), 1))
					}
					before, began, answer := b.recorded(), time.Now(), make(chan []Result)
					go func() { answer <- b.batch(batch(items...), "Prefer: wait=10") }()
					time.Sleep(5 * time.Second)
					if n := b.recorded() - before; n != c.atOnce {
						t.Errorf("%d items run at once, want %d", n, c.atOnce)
					}
					b.ask(agent, "GET", "/v1/stops", "").problem(tooManyRequests)
					b.ask(outsider, "GET", "/v1/stops", "").want(200)
					for i, r := range <-answer {
						if r.Status != 202 || r.Outcome.Replayed {
							t.Errorf("%d: %s", i, validJSON(t, r))
						}
					}
					if n := b.recorded() - before; n != len(items) || time.Since(began) != 10*time.Second {
						t.Errorf("%d of them were recorded within %s", n, time.Since(began))
					}
				}
				b.ask(agent, "GET", "/v1/stops", "").want(200)
			})
		})
	}
}

// Each thing in a batch counts as a request: one batch is as many as its items.
func TestABatchCountsAsManyRequests(t *testing.T) {
	for name, ask := range map[string]func(*bench, int) answered{
		"writes": func(b *bench, n int) answered {
			return b.ask(agent, "POST", "/v1/writes/batch", batch(several(n)...), "Prefer: wait=0")
		},
		"outcomes": func(b *bench, n int) answered {
			return b.ask(agent, "GET", ofAll(slices.Repeat([]ledger.ID{"wr_0"}, n)...), "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Native.Options(), nil)
				b.limited(access.Limits{TokenRate: 1, TenantRate: 1000})
				for i, r := range into[Results](ask(b, access.RateBurst+2).want(200)).Results {
					over := r.Problem != nil && r.Problem.Type == tooManyRequests.uri()
					if over != (i >= access.RateBurst) || over && (r.Status != 429 || r.RetryAfter < 1) {
						t.Errorf("%d: %s", i, validJSON(t, r))
					}
				}
				b.ask(agent, "GET", "/v1/stops", "").problem(tooManyRequests)
			})
		})
	}
}

// A caller that disconnects leaves its whole batch to the server, also items that had not begun.
func TestWhoGoesAwayLeavesABatchToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Lagging.Options(), nil)
		b.limited(access.Limits{Requests: 4, TokenRate: 1000, TenantRate: 1000}) // one place
		b.work()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(aMoment, cancel)
		results := into[Results](b.askIn(ctx, agent, "POST", "/v1/writes/batch", batch(several(5)...), "Prefer: wait=60").want(200)).Results
		if n := len(ids(results)); n != 5 {
			t.Errorf("%d of 5 were begun", n)
		}
		for i, r := range into[Results](b.ask(agent, "GET", ofAll(ids(results)...), "", "Prefer: wait=60").want(200)).Results {
			if r.Outcome == nil || r.Outcome.Status != ledger.Verified || r.Outcome.Sends != 1 || len(b.world.Records(fmt.Sprint("A-", i))) != 1 {
				t.Errorf("%s", validJSON(t, r))
			}
		}
	})
}

// A server that stops ends the wait, and says of each write how far it is.
func TestABatchEndsWhenTheServerIsStopped(t *testing.T) {
	for name, ask := range map[string]func(*bench, []ledger.ID) answered{
		"writes": func(b *bench, _ []ledger.ID) answered {
			return b.ask(agent, "POST", "/v1/writes/batch", batch(several(3)...), "Prefer: wait=60")
		},
		"outcomes": func(b *bench, some []ledger.ID) answered {
			return b.ask(agent, "GET", ofAll(some...), "", "Prefer: wait=60")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				b.set(orders.Fault{Kind: orders.UnreadableRead})
				some := ids(b.batch(batch(several(3)...)))
				time.AfterFunc(time.Second, func() { close(b.closing) })
				began := time.Now()
				results := into[Results](ask(b, some).want(200)).Results
				if took := time.Since(began); took != time.Second {
					t.Errorf("it waited %s", took)
				}
				for _, r := range results {
					if r.Outcome == nil || r.Outcome.Status != ledger.InProgress {
						t.Errorf("%s", validJSON(t, r))
					}
				}
			})
		})
	}
}

// Ids of another tenant, unknown ids and such that are none are not found, as alone, and do not
// keep the others from being answered.
func TestOutcomesOfOthersAreNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		ours := b.submit(order("A-1")).ID
		theirs := into[engine.Outcome](b.ask("agent@umbrella", "POST", "/v1/writes", asJSON(order("B-1")), "Prefer: wait=60").want(200)).ID
		asked := []string{string(theirs), "wr_00000000000000000000000000000000", strings.Repeat("a", 300), string(ours), string(ours)}
		results := into[Results](b.ask(agent, "GET", "/v1/writes/batch?id="+strings.Join(asked, "&id="), "", "Prefer: wait=1").want(200)).Results
		if got := codes(results); !slices.Equal(got, []int{404, 404, 404, 200, 200}) {
			t.Fatalf("%s", validJSON(t, results))
		}
		for i, id := range asked[:3] {
			alone := b.ask(agent, "GET", writePath(ledger.ID(id), ""), "", "Prefer: wait=1").problem(notFound)
			if diff := cmp.Diff(validJSON(t, alone), validJSON(t, results[i].Problem)); diff != "" {
				t.Errorf("%.40s: %s", id, diff)
			}
		}
		if results[3].Outcome.ID != ours || results[3].Outcome.Status != ledger.Verified {
			t.Errorf("%s", validJSON(t, results[3]))
		}
	})
}

// panicky panics on some writes.
type panicky struct{ service.Writes }

func (p panicky) Do(ctx context.Context, w intent.WriteIntent) (engine.Outcome, error) {
	if w.Key["order_id"] == "A-1" {
		panic("a secret")
	}
	return p.Writes.Do(ctx, w)
}

// A panic fails its item alone, and reveals nothing. The repeat of the item does not wait for it.
func TestAPanicFailsItsItemAlone(t *testing.T) {
	b := newBench(t, orders.Native.Options(), nil)
	b.inside.service = service.New(service.Parts{Writes: panicky{b.engine}, Ledger: b.ledger, Registry: new(connectors.Registry)})
	items := append(several(3), several(3)...)
	results := b.batch(batch(items...), "Prefer: wait=60")
	if got := codes(results); !slices.Equal(got, []int{200, 500, 200, 200, 500, 200}) || strings.Contains(validJSON(t, results), "secret") {
		t.Errorf("%s", validJSON(t, results))
	}
}
