package mcpgate_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/mcpgate"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/readbacktest/fault"
)

// looking is a bench whose update depends on the record's state before, as an edit of a
// file does.
func looking(t *testing.T, change func(*mcpgate.Config)) (*bench, *fakemcp.Server) {
	t.Helper()
	s := fakemcp.New(fakemcp.NewWorld())
	from, to := "        ref: $.id\n        idempotent: true\n", "        ref: $.id\n        require: {note: {before: note}}\n        idempotent: true\n"
	text := strings.Replace(fakemcp.Contract, from, to, 1)
	if text == fakemcp.Contract {
		t.Fatal("the contract has no update that this test knows")
	}
	conn, err := mcp.New(pinnedTo(t, s, text), mcp.Options{Server: mcp.Server{Transport: s.Transport}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Cut)
	s.World.Put(map[string]any{"order_id": "A-1", "note": "before"}, "")
	return newBench(t, conn, nil, change), s
}

func note(text string) map[string]any { return map[string]any{"order_id": "A-1", "note": text} }

// A call that is held is answered at once, and so is its repetition: a person decides, in hours.
func TestAHeldCallIsAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, up := looking(t, nil)
		b.engine.SetRisks([]policies.RiskRule{{Tool: "*"}})
		s, meta := b.stdio(agent("acme"), nil), sdk.Meta{mcpapi.MetaWorkflow: "run-7", mcpapi.MetaStep: "edit"}
		for range 3 {
			began := time.Now()
			if r := b.call(s, fakemcp.Update, note("after"), meta); r.Status != "held" || time.Since(began) > time.Second || up.World.Calls(fakemcp.Update) != 0 {
				t.Errorf("%+v after %s of the bubble's clock", r, time.Since(began))
			}
		}
	})
}

// TestACallThatChangesWhatItReads: the same call again is the same write, though
// the intent would be another one by then.
func TestACallThatChangesWhatItReads(t *testing.T) {
	meta := sdk.Meta{mcpapi.MetaWorkflow: "run-7", mcpapi.MetaStep: "edit"}
	t.Run("under the client's name", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, up := looking(t, nil)
			s := b.stdio(agent("acme"), nil)
			first := b.call(s, fakemcp.Update, note("after"), meta)
			up.World.Alter("A-1", map[string]any{"note": "another actor's"})
			again := b.call(s, fakemcp.Update, note("after"), meta)
			if !first.Verified || again.ID != first.ID || again.Status != "verified" || !begunBefore(again) || up.World.Calls(fakemcp.Update) != 1 {
				t.Errorf("%+v\nthen %+v\nwith %d calls", first, again, up.World.Calls(fakemcp.Update))
			}
			other := b.call(s, fakemcp.Update, note("another"), meta)
			if other.Status != "refused" || other.ID != first.ID || !strings.Contains(other.Text, "whose arguments differ") {
				t.Errorf("another call under the same name: %+v", other)
			}
		})
	})
	t.Run("under the name of a session that begins again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b, up := looking(t, nil)
			var ids [2][]string
			for i := range ids {
				s := b.stdio(agent("acme"), nil)
				for _, text := range []string{"one", "two"} {
					r := b.call(s, fakemcp.Update, note(text), nil)
					if !r.Verified || begunBefore(r) != (i == 1) {
						t.Errorf("session %d, %s: %+v", i, text, r)
					}
					ids[i] = append(ids[i], r.ID)
				}
			}
			if ids[0][0] != ids[1][0] || ids[0][1] != ids[1][1] || up.World.Calls(fakemcp.Update) != 2 {
				t.Errorf("writes %v after %d calls", ids, up.World.Calls(fakemcp.Update))
			}
		})
	})
}

// TestWaitingCallsEndWithTheProcess: for an outcome, for a read before a write, for a
// tool that reads, for a list of tools.
func TestWaitingCallsEndWithTheProcess(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		arm    fault.Kind
		call   func(b *bench, s *sdk.ClientSession) string
		want   string
	}{
		"an outcome": {"the write continues", fault.LateCommit, func(b *bench, s *sdk.ClientSession) string {
			return b.call(s, fakemcp.Create, order("A-2"), nil).Status
		}, "in_progress"},
		"a read before": {"nothing was begun", fault.HangingRead, func(b *bench, s *sdk.ClientSession) string {
			return b.call(s, fakemcp.Update, note("after"), nil).Status
		}, "refused"},
		"a tool that reads": {"it was only asked", fault.HangingRead, func(_ *bench, s *sdk.ClientSession) string {
			if _, err := s.CallTool(context.Background(), &sdk.CallToolParams{Name: fakemcp.Find, Arguments: map[string]any{"order_id": "A-1"}}); err != nil {
				return "error"
			}
			return "answered"
		}, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				closing := make(chan struct{})
				b, up := looking(t, func(c *mcpgate.Config) { c.Closing = closing })
				s := b.stdio(agent("acme"), nil)
				meets(t, up, fault.Fault{Kind: c.arm})
				time.AfterFunc(100*time.Millisecond, func() { close(closing) }) // of the bubble's clock
				begun := time.Now()
				if got := c.call(b, s); got != c.want || time.Since(begun) != 100*time.Millisecond {
					t.Errorf("%s: %s after %s, want %s at once", c.reason, got, time.Since(begun), c.want)
				}
				up.Cut()
				_ = b.gate.Client().Gone(context.Background())
			})
		})
	}
}

// TestAHangingReadBeforeACallEnds: a server that does not respond does not block a call.
func TestAHangingReadBeforeACallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, up := looking(t, nil)
		s := b.stdio(agent("acme"), nil)
		meets(t, up, fault.Fault{Kind: fault.HangingRead})
		if r := b.call(s, fakemcp.Update, note("after"), nil); r.Status != "refused" || up.World.Calls(fakemcp.Update) != 0 {
			t.Errorf("%+v after %d calls", r, up.World.Calls(fakemcp.Update))
		}
		up.Cut()
		_ = b.gate.Client().Gone(context.Background())
	})
}

// TestAReadThatHangsEnds: the caller gets the time-out, and its length.
func TestAReadThatHangsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, up := looking(t, nil)
		up.MCP.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
				if method == "prompts/list" {
					<-ctx.Done()
				}
				return next(ctx, method, req)
			}
		})
		s, began := b.stdio(agent("acme"), nil), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		meets(t, up, fault.Fault{Kind: fault.HangingRead})
		_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: fakemcp.Get, Arguments: map[string]any{"id": "o-1"}})
		if err == nil || !strings.Contains(err.Error(), "did not answer within 1m0s") || time.Since(began) > 2*time.Minute {
			t.Errorf("a tool that reads: %v after %s", err, time.Since(began))
		}
		began = time.Now()
		if _, err := s.ListPrompts(ctx, nil); err == nil || !strings.Contains(err.Error(), "did not answer within 1m0s") || time.Since(began) > 2*time.Minute {
			t.Errorf("prompts: %v after %s", err, time.Since(began))
		}
		up.Cut()
		_ = b.gate.Client().Gone(context.Background())
	})
}

// TestARepeatedCallNeedsNoRead: what is known already is returned while the server
// does not answer.
func TestARepeatedCallNeedsNoRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, up := looking(t, nil)
		s := b.stdio(agent("acme"), nil)
		meta := sdk.Meta{mcpapi.MetaStep: "edit"}
		first := b.call(s, fakemcp.Update, note("after"), meta)
		meets(t, up, fault.Fault{Kind: fault.HangingRead})
		if again := b.call(s, fakemcp.Update, note("after"), meta); again.ID != first.ID || again.Status != "verified" {
			t.Errorf("%+v", again)
		}
	})
}

// TestTheSameCallBesideItself: between the search for the same call and the read of the
// record another delivery of it is carried out completely.
func TestTheSameCallBesideItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, up := looking(t, nil)
		meta := sdk.Meta{mcpapi.MetaWorkflow: "run-7", mcpapi.MetaStep: "edit"}
		one, two := b.stdio(agent("acme"), nil), b.stdio(agent("acme"), nil)
		beside := make(chan mcpapi.Result, 1)
		var begun atomic.Bool
		up.MCP.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
				if p, ok := req.GetParams().(*sdk.CallToolParamsRaw); ok && p.Name == fakemcp.Find && begun.CompareAndSwap(false, true) {
					go func() { beside <- b.call(one, fakemcp.Update, note("after"), meta) }()
					time.Sleep(10 * time.Second) // of the bubble's clock
				}
				return next(ctx, method, req)
			}
		})
		again := b.call(two, fakemcp.Update, note("after"), meta)
		first := <-beside
		if !first.Verified || again.ID != first.ID || again.Status != "verified" || up.World.Calls(fakemcp.Update) != 1 {
			t.Errorf("%+v\nthen %+v\nwith %d calls", first, again, up.World.Calls(fakemcp.Update))
		}
	})
}

// The user of a client that opens addresses is shown the page of a write in review, once,
// and the second round of the call makes no write.
func TestTheUserIsShownThePageOfAWriteInReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, up := shop(t, false, nil)
		var shown []string
		s := b.stdio(agent("acme"), &sdk.ClientOptions{
			Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}},
			ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				shown = append(shown, r.Params.URL)
				return &sdk.ElicitResult{Action: "accept"}, nil
			},
		})
		meets(t, up, fault.Fault{Kind: fault.DroppedField})
		r := b.call(s, fakemcp.Create, order("A-1"), nil)
		if r.Status != "review" || up.World.Effects("A-1") != 1 || up.World.Calls(fakemcp.Create) != 1 {
			t.Errorf("answer %+v, %d effects", r, up.World.Effects("A-1"))
		}
		if d := cmp.Diff([]string{"https://readback.example/writes/" + r.ID}, shown); d != "" {
			t.Errorf("shown (-want +got):\n%s", d)
		}
	})
}
