package saga_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// get is the saga in its current state.
func (b *bench) get() saga.Saga {
	b.t.Helper()
	s, err := b.runner.Get(context.Background(), "acme", "saga-1")
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bench) cancel(by string) error {
	_, err := b.runner.Cancel(context.Background(), "acme", "saga-1", by, "no longer wanted")
	return err
}

// decide is a reviewer's decision about the write of a step.
func (b *bench) decide(step int, word engine.Word) {
	b.t.Helper()
	if _, err := b.engine.Resolve(context.Background(), "acme", b.get().Steps[step].WriteID, engine.Decision{Word: word, By: "eve", Reason: "so it shall be"}); err != nil {
		b.t.Fatal(err)
	}
}

func TestBeginAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.begin(four())
		b.want(b.run(time.Hour), saga.Done)
		s, err := b.runner.Begin(t.Context(), four())
		if err != nil || s.State != saga.Done || s.Steps[3].Ref == "" {
			t.Errorf("the same plan again: %v\n%s", err, picture(s))
		}
		other := four()
		other.Steps = other.Steps[:3]
		if _, err := b.runner.Begin(t.Context(), other); !errors.Is(err, saga.ErrOtherPlan) {
			t.Errorf("another plan: %v", err)
		}
		if _, err := b.runner.Get(t.Context(), "evil", "saga-1"); !errors.Is(err, saga.ErrNotFound) {
			t.Errorf("in another tenant: %v", err)
		}
		if all, err := b.runner.List(t.Context(), "acme", 0); err != nil || len(all) != 1 || all[0].State != saga.Done {
			t.Errorf("list: %+v, %v", all, err)
		}
		if all, err := b.runner.List(t.Context(), "evil", 0); err != nil || len(all) != 0 {
			t.Errorf("list of another tenant: %+v, %v", all, err)
		}
	})
}

// A refused saga leaves nothing behind.
func TestRefusedSagaLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		p := four()
		p.Steps[0].After = []string{"mail"}
		var wrong *saga.PlanError
		if _, err := b.runner.Begin(t.Context(), p); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "contact -> ticket -> pay -> mail -> contact") {
			t.Errorf("%v", err)
		}
		if all, err := b.runner.List(t.Context(), "acme", 0); err != nil || len(all) != 0 || b.ledger.Commits() != 0 {
			t.Errorf("%+v, %v, %d commits", all, err, b.ledger.Commits())
		}
	})
}

// How each step is undone is on disk before anything of it is sent.
func TestUndoingIsRegisteredFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.set(orders.Fault{Kind: orders.Refused, Key: "P-1"})
		seen := map[string]ledger.ID{}
		g := &gatekeeper{Store: b.ledger, stops: func(f ledger.Batch) bool {
			if f.Reserve == nil {
				return false
			}
			if got, _ := b.ledger.Get(t.Context(), "acme", f.Reserve.Record.ID); got.Sends > 0 {
				t.Errorf("%s was sent before it was committed", got.Step)
			}
			body := string(f.Documents[0].Body)
			if at := strings.LastIndex(body, `"undo_id":"`); at >= 0 {
				seen[f.Reserve.Record.Step] = ledger.ID(body[at+11 : at+11+35])
			}
			return false
		}}
		b.runner = saga.New(g, b.engine, nil)
		b.begin(four())
		s := b.run(time.Hour)
		b.want(s, saga.Undone, ledger.Compensated, ledger.Compensated, ledger.NotApplied, "")
		for i, name := range []string{"contact", "ticket"} {
			if s.Steps[i].Undoing != seen[name] || s.Steps[i].UndoStatus != ledger.Verified {
				t.Errorf("%s: registered %q\n%+v", name, seen[name], s.Steps[i])
			}
		}
	})
}

func TestCancel(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		at     string // cancelled when the write of this step is about to be committed
		want   error
		state  saga.State
		there  string
	}{
		"before anything":  {"nothing is begun", "contact", nil, saga.Undone, ""},
		"before the pivot": {"what was done is undone", "pay", nil, saga.Undone, ""},
		"behind the pivot": {"it only continues", "mail", saga.ErrTooLate, saga.Done, "CTPM"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				var err error
				g := &gatekeeper{Store: b.ledger, here: make(chan struct{}), on: make(chan struct{}),
					stops: func(f ledger.Batch) bool { return f.Reserve != nil && f.Reserve.Record.Step == tt.at }}
				runner := saga.New(g, b.engine, nil)
				b.begin(four())
				go func() {
					<-g.here
					err = b.cancel("ada")
					close(g.on)
				}()
				if _, err := runner.Run(t.Context(), "acme", "saga-1"); err != nil {
					t.Fatal(err)
				}
				if !errors.Is(err, tt.want) {
					t.Errorf("%s: cancel says %v", tt.reason, err)
				}
				s := b.get()
				b.want(s, tt.state)
				b.there(tt.there)
				if tt.want == nil && (s.Back == nil || s.Back.By != "ada" || s.Back.Reason != "no longer wanted") {
					t.Errorf("not kept: %+v", s.Back)
				}
			})
		})
	}
}

func TestCancelSaysWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.begin(four())
		b.want(b.run(time.Hour), saga.Done)
		if err := b.cancel("ada"); !errors.Is(err, saga.ErrTooLate) || !strings.Contains(err.Error(), "every step is done") {
			t.Error(err)
		}
		if _, err := b.runner.Cancel(t.Context(), "acme", "saga-1", "", "x"); !errors.Is(err, saga.ErrIncomplete) {
			t.Error(err)
		}
		if _, err := b.runner.Cancel(t.Context(), "acme", "saga-9", "ada", "x"); !errors.Is(err, saga.ErrNotFound) {
			t.Error(err)
		}
	})
}

func TestWhoMayCancel(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		who    engine.Principal
		by     string
		want   error
	}{
		"the agent that began it": {"it takes its own word back", engine.Principal{Name: "bot", Role: engine.RoleAgent}, "bot", nil},
		"another agent":           {"agents decide about nothing of others", engine.Principal{Name: "bot2", Role: engine.RoleAgent}, "bot2", engine.ErrForbidden},
		"a nameless agent":        {"it is unknown whether it is the same", engine.Principal{Role: engine.RoleAgent}, "bot", engine.ErrForbidden},
		"in another's name":       {"a name is that of the credentials", engine.Principal{Name: "rita", Role: engine.RoleReviewer}, "ada", engine.ErrForbidden},
		"a reviewer":              {"a reviewer may", engine.Principal{Name: "rita", Role: engine.RoleReviewer}, "rita", nil},
		"this process":            {"and the process itself", engine.Principal{}, "ada", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				bot := engine.As(t.Context(), engine.Principal{Name: "bot", Role: engine.RoleAgent})
				if _, err := b.runner.Begin(bot, four()); err != nil {
					t.Fatal(err)
				}
				_, err := b.runner.Cancel(engine.As(t.Context(), tt.who), "acme", "saga-1", tt.by, "no longer wanted")
				if !errors.Is(err, tt.want) {
					t.Errorf("%s: got %v, want %v", tt.reason, err, tt.want)
				}
				if back := b.get().Back != nil; back != (tt.want == nil) {
					t.Errorf("goes back: %t", back)
				}
			})
		})
	}
}

// A step in its grace is never sent when the saga is cancelled first.
func TestGrace(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		cancel time.Duration // after the saga was begun; 0: never
		step   int
		state  saga.State
		there  string
		want   error
	}{
		"not cancelled":          {"it is sent when the grace is over", 0, 2, saga.Done, "CTPM", nil},
		"cancelled in time":      {"the pivot is never sent", 4 * time.Minute, 2, saga.Undone, "", nil},
		"cancelled too late":     {"it was sent", 6 * time.Minute, 2, saga.Done, "CTPM", saga.ErrTooLate},
		"behind the pivot":       {"the mail is never sent, the rest stays", 4 * time.Minute, 3, saga.Review, "CTP", nil},
		"behind it and too late": {"it was sent", 6 * time.Minute, 3, saga.Done, "CTPM", saga.ErrTooLate},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				p := four()
				p.Steps[tt.step].Grace = 5 * time.Minute
				b.begin(p)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go func() { _ = runWorker(ctx, b.runner) }()
				if tt.cancel > 0 {
					time.Sleep(tt.cancel)
					if err := b.cancel("ada"); !errors.Is(err, tt.want) {
						t.Errorf("%s: cancel says %v", tt.reason, err)
					}
				}
				time.Sleep(time.Hour)
				b.want(b.get(), tt.state)
				b.there(tt.there)
				b.orderly(b.get())
			})
		})
	}
}

// A worker dies between two commits; another one takes the saga over when it is due.
func TestAnotherWorkerTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		b.begin(four())
		p := &process{at: 5, after: true}
		if _, err := saga.New(mortalStore{b.ledger, p}, mortalEngine{b.newEngine(nil), p}, nil).Run(t.Context(), "acme", "saga-1"); !errors.Is(err, errDead) {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = runWorker(ctx, b.runner) }()
		time.Sleep(2 * time.Minute)
		b.want(b.get(), saga.Done)
		b.there("CTPM")
	})
}

func TestHeldStep(t *testing.T) {
	for name, tt := range map[string]struct {
		word  engine.Word
		state saga.State
		there string
	}{
		"approved": {engine.WordApprove, saga.Done, "CTPM"},
		"denied":   {engine.WordDeny, saga.Undone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				p := four()
				p.Steps[2].Intent.Risk = intent.RiskApprove
				b.begin(p)
				s := b.run(10 * time.Minute)
				b.want(s, saga.Running, ledger.Verified, ledger.Verified, ledger.StatusHeld)
				if len(s.Steps[2].May) != 2 || !strings.Contains(s.Reason, "approval") {
					t.Errorf("%s %v", s.Reason, s.Steps[2].May)
				}
				if err := b.cancel("ada"); !errors.Is(err, saga.ErrTooLate) || !strings.Contains(err.Error(), "Denying it") {
					t.Errorf("cancel of a pivot that is held: %v", err)
				}
				b.decide(2, tt.word)
				b.want(b.run(time.Hour), tt.state)
				b.there(tt.there)
			})
		})
	}
}

// A cancelled saga withdraws a write that is held or waits in the queue: it is never sent.
func TestCancelWithdraws(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		change func(*bench, *saga.Plan)
		status ledger.Status
	}{
		"held": {"no reviewer has to deny it", func(_ *bench, p *saga.Plan) { p.Steps[1].Intent.Risk = intent.RiskApprove }, ledger.Denied},
		"queued": {"it does not wait in the queue to be undone", func(b *bench, _ *saga.Plan) {
			before := create("T-1", intent.Pivot)
			before.Tenant, before.Workflow, before.Risk, before.Expect = "acme", "other", intent.RiskAuto, intent.Fields{"currency": "USD"}
			b.set(orders.Fault{Kind: orders.UnreadableRead, Key: "T-1"})
			ctx, stop := context.WithTimeout(context.Background(), time.Second)
			defer stop()
			if _, err := b.engine.Do(ctx, before); err != nil {
				b.t.Fatal(err)
			}
		}, ledger.NotApplied},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Unique.Options(), nil)
				p := four()
				tt.change(b, &p)
				b.begin(p)
				b.run(time.Minute)
				sends := b.get().Steps[1]
				if err := b.cancel("ada"); err != nil {
					t.Fatalf("%s: %v (%+v)", tt.reason, err, sends)
				}
				b.want(b.run(time.Minute), saga.Undone, ledger.Compensated, tt.status)
			})
		})
	}
}
