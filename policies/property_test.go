package policies_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"pgregory.net/rapid"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

var (
	writes = []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}
	fates  = []connectors.Fate{connectors.FateUnknown, connectors.FateAnswered, connectors.FateNotSent, connectors.FateRefused, connectors.FateThrottled}
	// times are at and beside every relevant boundary.
	times = []time.Duration{0, 1, settle - 1, settle, horizon - 1, horizon, horizon + settle - 1, horizon + settle,
		time.Minute - 1, time.Minute, time.Hour, fits, fits + 1, 24 * time.Hour, 48 * time.Hour, -1}
)

func anyBound(t *rapid.T, name string, d time.Duration) connectors.Bound {
	if rapid.Bool().Draw(t, name) {
		return connectors.Within(d)
	}
	return connectors.Bound{}
}

func anyOf(t *rapid.T, name string) []intent.WriteType {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(writes), 0, 2, func(w intent.WriteType) intent.WriteType { return w }).Draw(t, name)
}

func anyProfile(t *rapid.T) connectors.Profile {
	p := connectors.Profile{
		Settle: anyBound(t, "settle", settle), Horizon: anyBound(t, "horizon", horizon),
		Unique: anyOf(t, "unique"), Conditional: anyOf(t, "conditional"), Irreversible: anyOf(t, "irreversible"), NeverRepeat: anyOf(t, "never_repeat"),
		Stamped: rapid.Bool().Draw(t, "stamped"), FreshKeys: rapid.Bool().Draw(t, "fresh"),
		ConfirmReads: rapid.IntRange(0, 3).Draw(t, "confirm"), WriteOnly: rapid.IntRange(0, 3).Draw(t, "write_only") == 0,
		NativeWindow: map[intent.WriteType]time.Duration{},
	}
	for _, w := range anyOf(t, "native") {
		p.NativeWindow[w] = rapid.SampledFrom(times).Draw(t, "window")
	}
	return p
}

// anyCase returns any case, even an impossible one.
func anyCase(t *rapid.T) policies.Case {
	flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
	at := func(name string) time.Duration { return rapid.SampledFrom(times).Draw(t, name) }
	c := policies.Case{
		Intent: intent.WriteIntent{
			Write:         rapid.SampledFrom(writes).Draw(t, "write"),
			Reversibility: rapid.SampledFrom([]intent.Reversibility{"", intent.Compensable, intent.Pivot}).Draw(t, "reversibility"),
			OnMismatch:    rapid.SampledFrom([]intent.MismatchPolicy{"", intent.MismatchRetry, intent.MismatchCompensate}).Draw(t, "on_mismatch"),
		},
		Profile: anyProfile(t),
		Judgement: verify.Judgement{
			Verdict: rapid.SampledFrom(verify.Verdicts()).Draw(t, "verdict"), Conflict: flag("conflict"),
			Ours: flag("ours"), Undone: flag("undone"), Failed: flag("failed"), Conclusive: flag("conclusive"), Unused: flag("unused"), Since: at("since"), AsOf: at("as_of"),
		},
		Agreeing: rapid.IntRange(0, 3).Draw(t, "agreeing"),
		Sends:    rapid.IntRange(0, 5).Draw(t, "sends"), EffectSeen: flag("effect_seen"),
		Unknown: flag("unknown"), Answered: flag("answered"), Last: rapid.SampledFrom(fates).Draw(t, "last"), LastConflict: flag("last_conflict"),
		SinceSend: at("since_send"), SinceKey: at("since_key"), Age: at("age"), RetryAfter: at("retry_after"),
		Late: flag("late"), Budget: rapid.IntRange(0, 5).Draw(t, "budget"),
		Directed:   rapid.SampledFrom([]string{"", policies.DirectRetry, policies.DirectForce, policies.DirectCompensate}).Draw(t, "directed"),
		Invertible: flag("invertible"),
	}
	c.Unsent = rapid.IntRange(0, c.Sends).Draw(t, "unsent")
	return c
}

// anyPolicies returns arbitrary policies, with or without the standard ones among them.
func anyPolicies(t *rapid.T) []policies.Policy {
	var all []policies.Policy
	for range rapid.IntRange(0, 4).Draw(t, "policies") {
		d := policies.Decision{
			Kind:   policies.Kind(rapid.IntRange(0, 9).Draw(t, "kind")),
			Permit: policies.Permit{Allowed: rapid.Bool().Draw(t, "permit")},
		}
		mine := rapid.Bool().Draw(t, "mine")
		all = append(all, policies.Func(func(policies.Case) (policies.Decision, bool) { return d, mine }))
	}
	if rapid.Bool().Draw(t, "standard") {
		all = slices.Insert(all, rapid.IntRange(0, len(all)).Draw(t, "where"), policies.Standard()...)
	}
	return all
}

// TestMain makes the properties check more cases than rapid's default: a case has thirty parts,
// and one costs microseconds.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "20000"); err != nil {
		panic(err)
	}
	flag.Parse() // after it, so that the command line takes precedence
	m.Run()
}

// For any policies and any case: nothing is sent again that the table does not allow, nothing
// is accepted that was not observed, nothing is called not applied that may have been, and
// nothing is undone that is not ours.
func TestNoPolicyOverridesTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCase(t)
		d := policies.Decide(c, anyPolicies(t))
		_, known := policies.KnownNotApplied(c)
		permit := policies.SecondSend(c)
		switch d.Kind {
		case policies.Accept:
			if c.Profile.WriteOnly || c.Verdict != verify.Verified && c.Verdict != verify.Vacuous {
				t.Fatalf("accepted on %s, write-only %v", c.Verdict, c.Profile.WriteOnly)
			}
		case policies.Retry:
			if !permit.Allowed || d.Permit != permit {
				t.Fatalf("sent again with %+v; the table says %+v", d.Permit, permit)
			}
		case policies.Fail:
			if !known {
				t.Fatal("called not applied")
			}
		case policies.Compensate:
			if c.Intent.Reversibility != intent.Compensable || !c.Invertible || !c.Effect() || !c.Conclusive || c.Profile.WriteOnly {
				t.Fatal("undone without right")
			}
		case policies.Report:
			if !c.Profile.WriteOnly || !c.Answered {
				t.Fatal("reported where it can be read, or without an acceptance")
			}
		case policies.Escalate, policies.Wait:
		default:
			t.Fatalf("decided %d", d.Kind)
		}
		if d.Kind != policies.Retry && d.Permit.Allowed {
			t.Fatalf("%s with a permit", d.Kind)
		}
	})
}

// The table, stated another way: what must be true of every send that it allows.
func TestEveryPermittedSendIsHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCase(t)
		p := policies.SecondSend(c)
		if !p.Allowed {
			return
		}
		mayBeApplied := c.Unknown || c.Answered
		asBefore := (c.Verdict == verify.Absent || c.Verdict == verify.Stale) && !c.Conflict
		proven := asBefore && !c.EffectSeen && c.Conclusive && c.Profile.Horizon.Passed(c.AsOf)
		window := c.Profile.NativeWindow[c.Intent.Write]
		conditional := p.Conditional && slices.Contains(c.Profile.Conditional, c.Intent.Write)
		recognised := slices.Contains(c.Profile.Unique, c.Intent.Write) || c.SinceKey < window && !p.NewKey
		vouched := c.Directed == policies.DirectForce && (asBefore && p.NeedsRecheck || c.Profile.WriteOnly && p.Row == policies.RowReviewer)
		switch {
		case c.Profile.WriteOnly && c.Sends > 0 && mayBeApplied && p.Row != policies.RowNativeKey && !vouched:
			t.Fatalf("it cannot be read, and %s", p.Row)
		case c.Late, c.Conflict, c.Sends > 0 && c.Sends-c.Unsent >= c.Budget:
			t.Fatal("late, in conflict, or over budget")
		case c.Sends > 0 && mayBeApplied && !(proven && p.NeedsRecheck) && !recognised && !conditional && !vouched:
			t.Fatalf("nothing makes it harmless: %+v", p)
		case c.Sends > 0 && mayBeApplied && slices.Contains(c.Profile.Irreversible, c.Intent.Write) && !c.Unused && !recognised && !conditional && !vouched:
			t.Fatal("irreversible, and nothing makes the repeat harmless")
		case c.Sends > 0 && mayBeApplied && slices.Contains(c.Profile.NeverRepeat, c.Intent.Write) && !p.Repair && c.Directed != policies.DirectForce:
			t.Fatalf("it is never to be repeated: %+v", p)
		case p.NewKey && c.Last != connectors.FateAnswered:
			t.Fatal("a new key after an unanswered send")
		case p.NewKey && !proven && !vouched:
			t.Fatal("a new key without conclusive absence")
		}
	})
}

// "Not applied" is only a write that was never sent, provably refused, or proven absent.
func TestNotAppliedIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyCase(t)
		if _, known := policies.KnownNotApplied(c); !known || c.Sends == 0 || !c.Unknown && !c.Answered {
			return
		}
		switch {
		case c.Verdict != verify.Absent && c.Verdict != verify.Stale, c.Conflict, c.EffectSeen:
			t.Fatalf("%s is not the state from before", c.Verdict)
		case !c.Conclusive, !c.Profile.Horizon.Passed(c.AsOf):
			t.Fatal("a send may have landed unseen")
		case slices.Contains(c.Profile.Irreversible, c.Intent.Write) && !c.Unused:
			t.Fatal("irreversible effects cannot be searched for")
		}
	})
}

// Whatever the pause before the next read, no read in between would have decided, unless a plain
// pace had missed that moment as well.
func TestReadPauseSkipsNoDecision(t *testing.T) {
	const plain = time.Second
	waits := 0
	rapid.Check(t, func(t *rapid.T) {
		c := anyCase(t)
		c.Verdict = rapid.SampledFrom([]verify.Verdict{verify.Absent, verify.Stale, verify.Mismatched}).Draw(t, "shown")
		c.Sends, c.Unsent, c.Directed, c.RetryAfter = max(c.Sends, 1), 0, "", 0
		c.Intent.OnMismatch = rapid.SampledFrom([]intent.MismatchPolicy{"", intent.MismatchCompensate, intent.MismatchRepair}).Draw(t, "differing")
		c.Own, c.MadeBy = rapid.Bool().Draw(t, "own"), rapid.SampledFrom([]string{"", "wr_1"}).Draw(t, "made by")
		c.Profile.WriteOnly, c.Profile.Rollback = false, anyBound(t, "rollback", time.Minute)
		strong := rapid.Bool().Draw(t, "strong")
		deadline, before := rapid.SampledFrom([]time.Duration{10 * time.Second, 3 * horizon, time.Hour}).Draw(t, "deadline"), max(rapid.SampledFrom(times).Draw(t, "before"), 0)
		at := func(since time.Duration) (policies.Case, policies.Decision) {
			c := c
			c.Since, c.SinceSend, c.SinceByClock, c.SinceKey, c.Age = since, since, since, before+since, before+since
			c.Late = since >= deadline
			lag, settles := c.Profile.Settle.Declared()
			if strong {
				lag, settles = 0, true
			}
			c.AsOf = since - lag
			if c.Conclusive = settles && c.AsOf >= 0; !c.Conclusive {
				c.AsOf = 0
			}
			return c, policies.Decide(c, policies.Standard())
		}
		since := time.Duration(rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "since"))
		now, d := at(since)
		if d.Kind != policies.Wait || d.After > 0 {
			return
		}
		waits++
		pause := policies.ReadPause(now, backoff.NewConstantBackOff(plain))
		if !now.Conclusive { // learned lags may place the next read late
			pause = policies.WithinReason(now, time.Hour)
		}
		for step := plain; step < pause; step += max(pause/100, time.Millisecond) {
			if _, earlier := at(since + step); (earlier.Kind != policies.Wait || earlier.After > 0) && pause-step > max(pause/100, 50*time.Millisecond) {
				t.Fatalf("%s after the send the next read is %s later; %s after it a read had decided: %s (%s)", since, pause, since+step, earlier.Kind, earlier.Reason)
			}
		}
	})
	if waits < 100 {
		t.Errorf("%d cases waited; want more, or this shows nothing", waits)
	}
}
