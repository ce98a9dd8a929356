package engine_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// The trace contexts of a caller and of a reviewer.
const (
	callers   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	reviewers = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// traced runs a lifecycle in a recorded engine and compares the tree of its spans.
func traced(t *testing.T, o orders.Options, opts func(*engine.Options), live func(*bench, *tape), want ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		spans := newTape()
		options := spans.options()
		if opts != nil {
			opts(options)
		}
		b := newBench(t, o, options)
		live(b, spans)
		b.engine.Close()
		if diff := cmp.Diff(want, spans.tree()); diff != "" {
			t.Errorf("spans (-want +got):\n%s", diff)
		}
	})
}

// spanCase is a lifecycle and its expected spans.
type spanCase struct {
	reason string
	world  orders.Options
	opts   func(*engine.Options)
	live   func(*bench, *tape)
	want   []string
}

func hold(o *engine.Options) { o.Risks = []policies.RiskRule{{Name: "all"}} }

// rechecked is a destination that asks for a later recheck.
func rechecked() orders.Options {
	o := orders.Native.Options()
	o.Recheck = connectors.Within(10 * time.Minute)
	return o
}

var spanCases = map[string]spanCase{
	"happy path": {"one send, one read", orders.Native.Options(), nil,
		func(b *bench, _ *tape) { b.do(order("A-1", intent.Create)) }, []string{
			"execute_tool orders.create stage=new status=verified sends=1 verdict=verified rule=accept",
			"  read (client) before=true records=0 verdict=indeterminate",
			"  reserve",
			"  send (client) attempt=1 fate=answered code=201",
			"  read (client) records=1 verdict=verified",
			"  decide verdict=verified decision=accept rule=accept",
		}},
	"lost answer": {"what may have been sent is found by a later read", orders.Lagging.Options(), func(o *engine.Options) { o.Patience = time.Minute },
		func(b *bench, _ *tape) {
			b.set(orders.Fault{Kind: orders.LostAnswer, Times: 1})
			b.do(order("A-1", intent.Create))
		}, []string{
			"execute_tool orders.create stage=new status=verified sends=1 verdict=verified rule=accept",
			"  read (client) before=true records=0 verdict=indeterminate",
			"  reserve",
			"  send (client) attempt=1 fate=unknown error.type=unknown",
			"  read (client) records=0 verdict=absent",
			"  decide verdict=absent decision=wait rule=wait",
			"  read (client) records=1 verdict=verified",
			"  decide verdict=verified decision=accept rule=accept",
		}},
	"retry": {"a send that never left is made again", orders.Native.Options(), nil,
		func(b *bench, _ *tape) {
			b.set(orders.Fault{Kind: orders.Unreachable, Times: 1})
			b.do(order("A-1", intent.Create))
		}, []string{
			"execute_tool orders.create stage=new status=verified sends=2 verdict=verified rule=accept",
			"  read (client) before=true records=0 verdict=indeterminate",
			"  reserve",
			"  send (client) attempt=1 fate=not_sent error.type=not_sent",
			"  decide verdict=indeterminate decision=wait rule=retry",
			"  decide verdict=indeterminate decision=retry rule=retry",
			"  read (client) before=true records=0 verdict=indeterminate",
			"  send (client) attempt=2 fate=answered code=201",
			"  read (client) records=1 verdict=verified",
			"  decide verdict=verified decision=accept rule=accept",
		}},
	"approved": {"held, and approved by a reviewer", orders.Native.Options(), hold,
		func(b *bench, _ *tape) { out := b.do(order("A-1", intent.Create)); b.resolve(out.ID, approves("ada")) }, []string{
			"execute_tool orders.create stage=new status=held sends=0 rule=risk",
			"  reserve",
			"  approval approval=held rule=risk approvals.missing=1",
			"  execute_tool orders.create stage=decision status=verified sends=1 verdict=verified rule=accept",
			"    approval approval=approved rule=person approvals.missing=0",
			"    read (client) before=true records=0 verdict=indeterminate",
			"    send (client) attempt=1 fate=answered code=201",
			"    read (client) records=1 verdict=verified",
			"    decide verdict=verified decision=accept rule=accept",
		}},
	"denied": {"a denial leaves no send", orders.Native.Options(), hold,
		func(b *bench, _ *tape) {
			out := b.do(order("A-1", intent.Create))
			b.resolve(out.ID, engine.Decision{Word: engine.WordDeny, By: "ada", Reason: "no"})
		}, []string{
			"execute_tool orders.create stage=new status=held sends=0 rule=risk",
			"  reserve",
			"  approval approval=held rule=risk approvals.missing=1",
			"  execute_tool orders.create stage=decision status=denied sends=0 rule=person error.type=denied",
			"    approval approval=denied rule=person approvals.missing=1",
		}},
	"expired": {"no reviewer decided in time", orders.Native.Options(),
		func(o *engine.Options) { o.Risks = []policies.RiskRule{{Name: "all", Within: time.Hour}} },
		func(b *bench, _ *tape) { b.do(order("A-1", intent.Create)); b.work(2 * time.Hour) }, []string{
			"execute_tool orders.create stage=new status=held sends=0 rule=risk",
			"  reserve",
			"  approval approval=held rule=risk approvals.missing=1",
			"  execute_tool orders.create stage=expiry status=expired sends=0 rule=risk error.type=expired",
			"    approval approval=expired rule=risk approvals.missing=1",
		}},
	"review": {"what differs is a reviewer's", orders.Native.Options(), nil,
		func(b *bench, _ *tape) {
			b.set(orders.Fault{Kind: orders.DroppedField, Times: 1})
			b.do(order("A-1", intent.Create))
		}, []string{
			"execute_tool orders.create stage=new status=review sends=1 verdict=mismatched rule=escalate",
			"  read (client) before=true records=0 verdict=indeterminate",
			"  reserve",
			"  send (client) attempt=1 fate=answered code=201",
			"  read (client) records=1 verdict=mismatched",
			"  decide verdict=mismatched decision=escalate rule=escalate",
		}},
	"found later": {"a read settles what is in review", orders.Native.Options(), nil,
		func(b *bench, _ *tape) {
			b.set(orders.Fault{Kind: orders.DroppedField, Times: 1})
			b.do(order("A-1", intent.Create))
			b.edit(order("A-1", intent.Create).Expect)
			b.work(time.Hour)
		}, []string{
			"execute_tool orders.create stage=new status=review sends=1 verdict=mismatched rule=escalate",
			"  read (client) before=true records=0 verdict=indeterminate",
			"  reserve",
			"  send (client) attempt=1 fate=answered code=201",
			"  read (client) records=1 verdict=mismatched",
			"  decide verdict=mismatched decision=escalate rule=escalate",
			"  execute_tool orders.create stage=review status=verified sends=1 verdict=verified rule=accept",
			"    read (client) records=1 verdict=verified",
			"    decide verdict=verified decision=accept rule=accept",
		}},
	"conflict": {"another actor's record is there: nothing is sent", orders.Plain.Options(), nil,
		func(b *bench, _ *tape) {
			b.seed(asStored("A-1"), "")
			b.do(order("A-1", intent.Create))
		}, []string{
			"execute_tool orders.create stage=new status=review sends=0 verdict=mismatched rule=pre-state",
			"  read (client) before=true records=1 verdict=mismatched",
			"  reserve",
		}},
	"recheck": {"a late duplicate is found by the pending recheck", rechecked(), nil,
		func(b *bench, _ *tape) {
			b.set(orders.Fault{Kind: orders.DuplicateByOthers, Delay: time.Minute, Times: 1})
			b.do(order("A-1", intent.Create))
			b.work(20 * time.Minute)
		}, []string{
			"execute_tool orders.create stage=new status=verified sends=1 verdict=verified rule=accept",
			"  read (client) before=true records=0 verdict=indeterminate",
			"  reserve",
			"  send (client) attempt=1 fate=answered code=201",
			"  read (client) records=1 verdict=verified",
			"  decide verdict=verified decision=accept rule=accept",
			"  execute_tool orders.create stage=recheck status=review sends=1 verdict=duplicated rule=recheck",
			"    read (client) records=2 verdict=duplicated",
			"    decide verdict=duplicated decision=escalate rule=recheck",
		}},
	"queued": {"what is only recorded is done by a worker", orders.Native.Options(), nil,
		func(b *bench, _ *tape) { b.enqueue(order("A-1", intent.Create)); b.work(time.Minute) }, []string{
			"execute_tool orders.create stage=new status=in_progress sends=0",
			"  reserve",
			"  execute_tool orders.create stage=resumed status=verified sends=1 verdict=verified rule=accept",
			"    read (client) before=true records=0 verdict=indeterminate",
			"    send (client) attempt=1 fate=answered code=201",
			"    read (client) records=1 verdict=verified",
			"    decide verdict=verified decision=accept rule=accept",
		}},
	"replay": {"who asks again gets the outcome", orders.Native.Options(), nil,
		func(b *bench, _ *tape) { b.do(order("A-1", intent.Create)); b.do(order("A-1", intent.Create)) }, []string{
			"execute_tool orders.create stage=new status=verified sends=1 verdict=verified rule=accept",
			"  read (client) before=true records=0 verdict=indeterminate",
			"  reserve",
			"  send (client) attempt=1 fate=answered code=201",
			"  read (client) records=1 verdict=verified",
			"  decide verdict=verified decision=accept rule=accept",
			"execute_tool orders.create stage=replay status=verified replayed=true sends=1 verdict=verified rule=accept",
			"  reserve replayed=true",
		}},
	"digest mismatch": {"one key cannot ask for two things", orders.Native.Options(), nil,
		func(b *bench, _ *tape) {
			b.do(order("A-1", intent.Create))
			w := order("A-1", intent.Create)
			w.Expect = intent.Fields{"amount_cents": jsonNumber(1)}
			_, _ = b.engine.Do(b.t.Context(), w)
		}, []string{
			"execute_tool orders.create stage=new status=verified sends=1 verdict=verified rule=accept",
			"  read (client) before=true records=0 verdict=indeterminate",
			"  reserve",
			"  send (client) attempt=1 fate=answered code=201",
			"  read (client) records=1 verdict=verified",
			"  decide verdict=verified decision=accept rule=accept",
			"execute_tool orders.create stage=new status=refused sends=0 error.type=digest_mismatch",
			"  reserve error.type=digest_mismatch",
		}},
	"turned away": {"nothing is recorded of what cannot be", orders.Native.Options(), nil,
		func(b *bench, _ *tape) {
			w := order("A-1", intent.Create)
			w.Destination = "nowhere"
			_, _ = b.engine.Do(b.t.Context(), w)
		}, []string{
			"execute_tool orders.create stage=new status=refused sends=0 error.type=unknown_destination",
		}},
	"compensation": {"the undoing is a write of its own in the same trace", orders.Native.Options(), nil,
		func(b *bench, _ *tape) {
			out := b.do(compensable(order("A-1", intent.Create)))
			b.undo(out.ID, unwanted)
		}, []string{
			"execute_tool orders.create stage=new status=verified sends=1 verdict=verified rule=accept",
			"  read (client) before=true records=0 verdict=indeterminate",
			"  reserve",
			"  send (client) attempt=1 fate=answered code=201",
			"  read (client) records=1 verdict=verified",
			"  decide verdict=verified decision=accept rule=accept",
			"  execute_tool orders.create stage=resumed status=compensated sends=1 verdict=verified rule=compensate",
			"    execute_tool orders.create stage=new status=verified sends=1 verdict=verified rule=accept",
			"      read (client) before=true records=1 verdict=indeterminate",
			"      reserve",
			"      send (client) attempt=1 fate=answered code=204",
			"      read (client) records=0 verdict=verified",
			"      decide verdict=verified decision=accept rule=accept",
		}},
}

func TestSpans(t *testing.T) {
	for name, c := range spanCases {
		t.Run(name, func(t *testing.T) { traced(t, c.world, c.opts, c.live, c.want...) })
	}
}

// kept samples the spans of unusual writes only, as a sampler of most traces does.
type kept struct{}

func (kept) Description() string { return "kept" }

func (kept) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	if slices.Contains(p.Attributes, attribute.Bool("readback.unusual", true)) {
		return sdk.AlwaysSample().ShouldSample(p)
	}
	return sdk.NeverSample().ShouldSample(p)
}

// In traces that are not sampled each unusual span of a write is begun again, and no other.
func TestUnusualSpansBeginAgain(t *testing.T) {
	want := map[string][]string{
		"happy path": nil, "retry": nil, "queued": nil, "replay": nil,
		"lost answer":     {"new verified"},
		"approved":        {"decision verified"},
		"denied":          {"decision denied"},
		"expired":         {"expiry expired"},
		"review":          {"new review"},
		"found later":     {"new review", "review verified"},
		"conflict":        {"new review"},
		"recheck":         {"recheck review"},
		"digest mismatch": {"new refused"},
		"turned away":     {"new refused"},
		"compensation":    {"new verified", "resumed compensated"},
	}
	for name, c := range spanCases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spans := newTape(sdk.WithSampler(kept{}))
				options := spans.options()
				if c.opts != nil {
					c.opts(options)
				}
				b := newBench(t, c.world, options)
				c.live(b, spans)
				b.engine.Close()
				var got []string
				for _, s := range spans.Ended() {
					of := attribute.NewSet(s.Attributes()...)
					stage, _ := of.Value("readback.stage")
					status, _ := of.Value("readback.status")
					got = append(got, stage.AsString()+" "+status.AsString())
				}
				if diff := cmp.Diff(want[name], got); diff != "" {
					t.Errorf("spans (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// resolve carries out a reviewer's decision in its own trace.
func (b *bench) resolve(id ledger.ID, d engine.Decision) {
	b.t.Helper()
	if _, err := b.engine.Resolve(engine.WithTraceparent(b.t.Context(), reviewers), "acme", id, d); err != nil {
		b.t.Fatalf("Resolve: %v", err)
	}
}
