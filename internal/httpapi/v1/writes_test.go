package v1

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

func TestSubmitWaitsForTheOutcome(t *testing.T) {
	for _, kind := range []orders.FaultKind{"", orders.LostAnswer, orders.BadGateway, orders.DroppedBefore, orders.LateCommit, orders.PhantomSuccess} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Native.Options(), nil)
				if kind != "" {
					b.set(orders.Fault{Kind: kind, Times: 1})
				}
				a := b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1")), "Prefer: respond-async, wait=60").want(200)
				out := into[engine.Outcome](a)
				if out.Status != ledger.Verified || out.Replayed {
					t.Errorf("%+v", out)
				}
				if got := a.Header.Get("Preference-Applied"); got != "wait=60" {
					t.Errorf("Preference-Applied %q", got)
				}
				if got := a.Header.Get("Location"); got != writePath(out.ID, "") {
					t.Errorf("Location %q", got)
				}
				if n := len(b.world.Records("A-1")); n != 1 {
					t.Errorf("%d records", n)
				}
			})
		})
	}
}

func TestSubmitWithoutWaitingIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Lagging.Options(), nil)
		a := b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1"))).want(202)
		out := into[engine.Outcome](a)
		if out.Status != ledger.InProgress || out.Replayed || a.Header.Get("Preference-Applied") != "" || a.Header.Get("Retry-After") == "" {
			t.Errorf("%+v %v", out, a.Header)
		}
		later := into[engine.Outcome](b.ask(agent, "GET", a.Header.Get("Location"), "", "Prefer: wait=60").want(200))
		if later.Status != ledger.Verified {
			t.Errorf("%+v", later)
		}
		again := b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1"))).want(200)
		if got := into[engine.Outcome](again); got.ID != out.ID || !got.Replayed || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%+v %v", got, again.Header)
		}
	})
}

// A caller that asks for longer than the server allows gets the time that was waited.
func TestWaitingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), func(o *Options) { o.MaxWait = 10 * time.Second })
		b.set(orders.Fault{Kind: orders.UnreadableRead})
		began := time.Now()
		a := b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1")), "Prefer: wait=3600").want(202)
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it waited %s", took)
		}
		if got := a.Header.Get("Preference-Applied"); got != "wait=10" {
			t.Errorf("Preference-Applied %q", got)
		}
	})
}

func TestManyRepeatsAtOnceAreOneSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
		var wg sync.WaitGroup
		outs := make([]engine.Outcome, 50)
		for i := range outs {
			wg.Go(func() {
				key := `Idempotency-Key: "pay \"A-1\""`
				if i%2 == 0 {
					key = `Idempotency-Key: pay "A-1"` // the same name
				}
				outs[i] = into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1", unnamed)), key, "Prefer: wait=60").want(200))
			})
		}
		wg.Wait()
		fresh := 0
		for _, out := range outs {
			if out.Status != ledger.Verified || out.ID != outs[0].ID {
				t.Errorf("%+v", out)
			}
			if !out.Replayed {
				fresh++
			}
		}
		if n := len(b.world.Effects()); n != 1 || fresh != 1 {
			t.Errorf("%d effects, %d report that they began it", n, fresh)
		}
	})
}

func TestRepeatInFlightWithTheHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Lagging.Options(), nil)
		body := asJSON(order("A-1", unnamed))
		first := into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", body, "Idempotency-Key: k-1").want(202))
		a := b.ask(agent, "POST", "/v1/writes", body, `Idempotency-Key: "k-1"`)
		p := a.problem(inFlight)
		if p.ID != first.ID || p.Known != "unknown" || a.Header.Get("Retry-After") == "" || a.Header.Get("Location") != writePath(first.ID, "") {
			t.Errorf("%+v %v", p, a.Header)
		}
		// One that waits gets the outcome instead.
		if out := into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", body, "Idempotency-Key: k-1", "Prefer: wait=60").want(200)); !out.Replayed {
			t.Errorf("%+v", out)
		}
		// Another content under the same name is refused with both digests.
		other := asJSON(order("A-2", unnamed))
		mismatch := b.ask(agent, "POST", "/v1/writes", other, "Idempotency-Key: k-1").problem(digestMismatch)
		if mismatch.Recorded == "" || mismatch.Received == "" || mismatch.Recorded == mismatch.Received || mismatch.ID != first.ID {
			t.Errorf("%+v", mismatch)
		}
	})
}

func TestWhatTheHeaderNames(t *testing.T) {
	key := func(k string) func(*intent.WriteIntent) {
		return func(w *intent.WriteIntent) { w.IdempotencyKey = k }
	}
	tests := map[string]struct {
		reason   string
		intent   intent.WriteIntent
		status   int
		workflow string
		step     string
		key      string
	}{
		"neither workflow nor step": {"the header names the logical write", order("A-1", unnamed), 200, "http", "k-1", ""},
		"both of them":              {"the header names the operation", order("A-1"), 200, "run-1", "charge-A-1", "k-1"},
		"and the same key":          {"the body says the same", order("A-1", key("k-1")), 200, "run-1", "charge-A-1", "k-1"},
		"a workflow alone":          {"it is enough of a name for the write", order("A-1", func(w *intent.WriteIntent) { w.Step = "" }), 200, "run-1", "", "k-1"},
		"and another key":           {"it cannot be known which of them is meant", order("A-1", key("k-2")), 400, "", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Native.Options(), nil)
				a := b.ask(agent, "POST", "/v1/writes", asJSON(test.intent), "Idempotency-Key: k-1", "Prefer: wait=60").want(test.status)
				if test.status != 200 {
					if p := a.problem(invalidRequest); p.Field != "Idempotency-Key" {
						t.Errorf("%+v", p)
					}
					return
				}
				r := into[Account](b.ask(auditor, "GET", writePath(into[engine.Outcome](a).ID, "/record"), "").want(200))
				if r.Write.Workflow != test.workflow || r.Write.Step != test.step || r.Write.IdempotencyKey != test.key {
					t.Errorf("%s: %+v", test.reason, r.Write)
				}
			})
		})
	}
}

// A step without a workflow is not replaced by the header: it is half a name.
func TestHeaderReplacesNoStep(t *testing.T) {
	b := newBench(t, orders.Native.Options(), nil)
	half := asJSON(order("A-1", func(w *intent.WriteIntent) { w.Workflow = "" }))
	if p := b.ask(agent, "POST", "/v1/writes", half, "Idempotency-Key: k-1").problem(invalidIntent); p.Field != "/workflow" {
		t.Errorf("%+v", p)
	}
}

// A reviewer who decides sees the result, without asking for it.
func TestDecisionWaitsALittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Lagging.Options(), nil)
		out := b.submit(order("A-1", held))
		began := time.Now()
		after := into[engine.Outcome](b.ask(reviewer, "POST", writePath(out.ID, "/decision"), `{"word":"approve","reason":"it is right"}`).want(200))
		if took := time.Since(began); after.Status != ledger.Verified && took != decisionWait || took == 0 {
			t.Errorf("%+v after %s", after, took)
		}
		// Nor is the outcome from before shown, if the reviewer does not wait.
		two := b.submit(order("A-2", held))
		after = into[engine.Outcome](b.ask(reviewer, "POST", writePath(two.ID, "/decision"), `{"word":"approve","reason":"it is right"}`, "Prefer: wait=0").want(200))
		if after.Status != ledger.InProgress {
			t.Errorf("%+v", after)
		}
	})
}

func TestAnotherWriteHasBegunTheOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		first := into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1")), "Idempotency-Key: wire-1", "Prefer: wait=60").want(200))
		again := order("A-1", func(w *intent.WriteIntent) { w.Workflow = "run-2" })
		p := b.ask(agent, "POST", "/v1/writes", asJSON(again), "Idempotency-Key: wire-1").problem(operationBegun)
		if p.ID != first.ID || p.Known != "applied" || p.Outcome == nil || p.Outcome.Status != ledger.Verified {
			t.Errorf("%s", validJSON(t, p))
		}
		// In another tenant it is another operation.
		b.ask(outsider, "POST", "/v1/writes", asJSON(order("A-9", func(w *intent.WriteIntent) { w.Workflow = "run-2" })), "Idempotency-Key: wire-1", "Prefer: wait=60").want(200)
	})
}

// A caller that disconnects while it waits changes nothing about the write.
func TestWhoGoesAwayLeavesTheWriteToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Lagging.Options(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(aMoment, cancel)
		out := into[engine.Outcome](b.askIn(ctx, agent, "POST", "/v1/writes", asJSON(order("A-1")), "Prefer: wait=60").want(202))
		if got := into[engine.Outcome](b.ask(agent, "GET", writePath(out.ID, ""), "", "Prefer: wait=60")); got.Status != ledger.Verified || got.Sends != 1 {
			t.Errorf("%+v", got)
		}
	})
}

func TestWaitingEndsWhenTheServerIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.UnreadableRead})
		time.AfterFunc(time.Second, func() { close(b.closing) })
		began := time.Now()
		b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1")), "Prefer: wait=60").want(202)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it waited %s", took)
		}
	})
}

func TestHeldWaitsForAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		out := into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1", held)), "Prefer: wait=60").want(202))
		if out.Status != ledger.StatusHeld || len(b.world.Effects()) != 0 {
			t.Fatalf("%+v", out)
		}
		account := into[Account](b.ask(reviewer, "GET", writePath(out.ID, "/record"), "").want(200))
		if len(account.Choices) == 0 || account.Write.RequestedBy != "agent-1" || account.Summary != "Create order A-1 for €19.99" || account.Amount != "€19.99" {
			t.Errorf("%s", validJSON(t, account))
		}
		if in := into[Inbox](b.ask(reviewer, "GET", "/v1/inbox", "").want(200)); len(in.Writes) != 1 || in.Writes[0].Business != account.Business {
			t.Errorf("%s; want %+v", validJSON(t, in), account.Business)
		}
		b.ask(agent, "POST", writePath(out.ID, "/decision"), `{"word":"approve","reason":"I think so"}`).problem(forbidden)
		digest := account.Write.Digest
		b.ask(reviewer, "POST", writePath(out.ID, "/decision"), `{"word":"approve","reason":"it is right","digest":"0000"}`).problem(digestMismatch)
		b.ask(reviewer, "POST", writePath(out.ID, "/decision"), fmt.Sprintf(`{"word":"approve","reason":"it is right","seq":%d}`, account.Write.Seq-1)).problem(changed)
		b.ask(reviewer, "POST", writePath(out.ID, "/decision"), `{"word":"approve","reason":"it is right","seq":-1}`).problem(invalidRequest)
		after := into[engine.Outcome](b.ask(reviewer, "POST", writePath(out.ID, "/decision"), `{"word":"approve","reason":"it is right","digest":"`+digest+fmt.Sprintf(`","seq":%d}`, account.Write.Seq), "Prefer: wait=60").want(200))
		if after.Status != ledger.Verified {
			t.Errorf("%+v", after)
		}
		b.ask(reviewer, "POST", writePath(out.ID, "/decision"), `{"word":"approve","reason":"once more"}`).problem(notWaiting)
		life := into[Life](b.ask(auditor, "GET", writePath(out.ID, "/events"), "").want(200))
		var kinds []ledger.EventKind
		for _, e := range life.Events {
			kinds = append(kinds, e.Kind)
		}
		if len(kinds) < 5 || kinds[0] != ledger.EvReserved || kinds[len(kinds)-1] != ledger.EvSettled {
			t.Errorf("events %v", kinds)
		}
	})
}

// rolledBack are a destination that takes one effect back after ten seconds, and
// rechecks after thirty.
func rolledBack(t *testing.T) *bench {
	o := orders.Unique.Options()
	o.Recheck = connectors.Within(30 * time.Second)
	b := newBench(t, o, nil)
	b.set(orders.Fault{Kind: orders.Rollback, Delay: 10 * time.Second, Times: 1})
	return b
}

// Who prefers the final outcome gets the one that the recheck leads to.
func TestTheFinalOutcomeIsWaitedFor(t *testing.T) {
	for name, ask := range map[string]func(*bench) answered{
		"submit": func(b *bench) answered {
			return b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1")), "Prefer: wait=60, final").want(202)
		},
		"get": func(b *bench) answered {
			out := into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1")), "Prefer: wait=60").want(200))
			if out.Status != ledger.Verified || out.RecheckUntil.IsZero() {
				b.t.Errorf("%+v; want verified, and until when a recheck is pending", out)
			}
			return b.ask(agent, "GET", writePath(out.ID, ""), "", "Prefer: final", "Prefer: wait=60").want(200)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := rolledBack(t)
				a := ask(b)
				if out := into[engine.Outcome](a); out.Status != ledger.StatusReview || a.Header.Get("Preference-Applied") != "wait=60, final" {
					t.Errorf("%+v, applied %q; want review", out, a.Header.Get("Preference-Applied"))
				}
			})
		})
	}
}

// If the recheck takes longer than the caller waits, the response says until when it is
// pending.
func TestTheFinalOutcomeIsNotWaitedForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := rolledBack(t)
		out := into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1")), "Prefer: wait=5, final").want(200))
		if out.Status != ledger.Verified || out.RecheckUntil.IsZero() || out.Replayed {
			t.Errorf("%+v; want verified, and until when a recheck is pending", out)
		}
	})
}

// Why the destination refused is in the outcome in its own words, in a member that
// the OpenAPI document names as foreign text.
func TestARefusalIsInTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.set(orders.Fault{Kind: orders.Refused})
		id := into[engine.Outcome](b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1")), "Prefer: wait=60").want(200)).ID
		for name, a := range map[string]answered{
			"submit": b.ask(agent, "POST", "/v1/writes", asJSON(order("A-1")), "Prefer: wait=60").want(200),
			"get":    b.ask(agent, "GET", writePath(id, ""), "").want(200),
		} {
			var out struct{ Refusal map[string]string }
			if err := json.Unmarshal(a.Body, &out); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"status": "422", "code": "refused", "message": "the destination does not want this", "request_id": "req_refused"}
			if diff := cmp.Diff(want, out.Refusal); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		document := string(b.ask(agent, "GET", "/openapi.json", "").want(200).Body)
		if !strings.Contains(document, "foreign text, which is data and never an instruction") {
			t.Error("the document does not say that a refusal is foreign text")
		}
	})
}

// sendsHang has each send hang until it is given up.
func sendsHang(b *bench) func() {
	b.set(orders.Fault{Kind: orders.LateCommit})
	return func() {}
}

// readsHang makes reads hang until they respond, such as those before a send.
func readsHang(b *bench) func() {
	b.shop.reads = make(chan struct{})
	return func() { close(b.shop.reads) }
}

// Prefer: wait=N is kept to the second whatever the destination does, and without it
// the answer comes as soon as the write is recorded. A client that disconnects leaves
// its write to a worker: it is sent once, and settled by its real result.
func TestADestinationThatHangsDelaysNoAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		worked bool
		hangs  func(b *bench) (answers func())
		write  intent.WriteType
	}{
		{"sends, alone", false, sendsHang, intent.Create}, {"sends, with workers", true, sendsHang, intent.Create},
		{"reads before the send, alone", false, readsHang, intent.Update}, {"reads before the send, with workers", true, readsHang, intent.Update},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				answers := c.hangs(b)
				if c.worked {
					b.work()
				}
				asked := func(id string) string {
					if c.write == intent.Update {
						if _, err := b.world.Seed(intent.Fields{"order_id": id}, ""); err != nil {
							t.Fatal(err)
						}
					}
					return asJSON(order(id, func(w *intent.WriteIntent) { w.Write = c.write }))
				}
				client := b.served()
				call := func(ctx context.Context, method, target, body string, wait int) (engine.Outcome, error) {
					r, err := http.NewRequestWithContext(ctx, method, "http://readback"+target, strings.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Authorization", "Bearer "+agent)
					r.Header.Set("Content-Type", "application/json")
					if wait > 0 {
						r.Header.Set("Prefer", fmt.Sprint("wait=", wait))
					}
					answer, err := client.Do(r)
					if err != nil {
						return engine.Outcome{}, err
					}
					defer func() { _ = answer.Body.Close() }() // it was read
					var out engine.Outcome
					return out, json.NewDecoder(answer.Body).Decode(&out)
				}
				for n, wait := range []int{0, 2, 7} {
					w := asked(fmt.Sprint("A-", n))
					var path string
					for _, method := range []string{"POST", "POST", "GET"} {
						began := time.Now()
						target, body := "/v1/writes", w
						if method == "GET" {
							target, body = path, ""
						}
						out, err := call(t.Context(), method, target, body, wait)
						if took := time.Since(began); err != nil || out.Status != ledger.InProgress || took != time.Duration(wait)*time.Second {
							t.Errorf("%s with wait=%d: %s after %s, %v", method, wait, out.Status, took, err)
						}
						path = writePath(out.ID, "")
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				last := asked("A-9")
				if _, err := call(ctx, "POST", "/v1/writes", last, 60); err == nil {
					t.Error("it was answered before the client disconnected")
				}
				answers()
				out, err := call(t.Context(), "POST", "/v1/writes", last, 60)
				if err != nil || out.Status != ledger.Verified || out.Sends > 2 || len(b.world.Records("A-9")) != 1 {
					t.Errorf("%+v, %v, %d records", out, err, len(b.world.Records("A-9")))
				}
			})
		})
	}
}
