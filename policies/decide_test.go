package policies_test

import (
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

// always is a policy with one fixed decision.
func always(d policies.Decision) policies.Policy {
	return policies.Func(func(policies.Case) (policies.Decision, bool) { return d, true })
}

func saying(k policies.Kind) policies.Policy {
	return always(policies.Decision{Kind: k, Rule: "mine", Reason: "because"})
}

// A decision that no policy may take is overruled: a reviewer decides.
func TestDecideBounds(t *testing.T) {
	undoable := func(c *policies.Case) { c.Intent.Reversibility, c.Invertible = intent.Compensable, true }
	differs := with(read(lost(), verify.Mismatched, 0), fate(connectors.FateAnswered), undoable, own)
	for name, d := range map[string]struct {
		reason string
		c      policies.Case
		says   policies.Kind
		want   policies.Kind
	}{
		"accept what was seen":            {"verified", read(lost(), verify.Verified, 0), policies.Accept, policies.Accept},
		"accept what was true":            {"vacuous", read(lost(), verify.Vacuous, 0), policies.Accept, policies.Accept},
		"retry with a permit":             {"a row allows it", with(lost(), native), policies.Retry, policies.Retry},
		"retry without":                   {"no row allows it", lost(), policies.Retry, policies.Escalate},
		"fail with knowledge":             {"refused", with(lost(), fate(connectors.FateRefused)), policies.Fail, policies.Fail},
		"fail without":                    {"unknown", lost(), policies.Fail, policies.Escalate},
		"fail what is there":              {"it was applied", read(lost(), verify.Verified, 0), policies.Fail, policies.Escalate},
		"undo with right":                 {"compensable, invertible, seen", differs, policies.Compensate, policies.Compensate},
		"undo a verified write":           {"it was seen", with(read(differs, verify.Verified, 0), own), policies.Compensate, policies.Compensate},
		"undo a pivot":                    {"the intent does not allow it", with(differs, func(c *policies.Case) { c.Intent.Reversibility = intent.Pivot }), policies.Compensate, policies.Escalate},
		"undo a retryable":                {"the intent does not allow it", with(differs, func(c *policies.Case) { c.Intent.Reversibility = intent.Retryable }), policies.Compensate, policies.Escalate},
		"undo by a connector that cannot": {"there is no way back", with(differs, func(c *policies.Case) { c.Invertible = false }), policies.Compensate, policies.Escalate},
		"undo another actor's":            {"not ours", with(differs, conflict), policies.Compensate, policies.Escalate},
		"undo nothing":                    {"nothing is there", read(differs, verify.Absent, 0), policies.Compensate, policies.Escalate},
		"undo what is as before":          {"nothing was done", read(differs, verify.Stale, 0), policies.Compensate, policies.Escalate},
		"undo the unread":                 {"it was not read", read(differs, verify.Unavailable, 0), policies.Compensate, policies.Escalate},
		"undo the unproven":               {"it was not seen", read(differs, verify.Indeterminate, 0), policies.Compensate, policies.Escalate},
		"undo by a weak read":             {"it may be older than the send", readWeakly(differs, verify.Mismatched, 0), policies.Compensate, policies.Escalate},
		"undo the unknown":                {"the send may land after the undoing", with(differs, fate(connectors.FateUnknown)), policies.Compensate, policies.Escalate},
		"undo after the horizon":          {"nothing can land any more", with(read(differs, verify.Mismatched, horizon), fate(connectors.FateUnknown), own), policies.Compensate, policies.Compensate},
		"undo what may be another's":      {"nothing proves that it is ours", with(read(differs, verify.Mismatched, horizon), fate(connectors.FateUnknown)), policies.Compensate, policies.Escalate},
		"wait":                            {"waiting is harmless", lost(), policies.Wait, policies.Wait},
		"a word that is none":             {"a reviewer decides about what is unknown", read(lost(), verify.Verified, 0), policies.Kind(99), policies.Escalate},
		"the zero decision":               {"a forgotten field hands it to a reviewer", read(lost(), verify.Verified, 0), policies.Kind(0), policies.Escalate},
	} {
		t.Run(name, func(t *testing.T) {
			got := policies.Decide(d.c, []policies.Policy{saying(d.says)})
			if got.Kind != d.want || got.Rule != "mine" || got.Reason == "" {
				t.Errorf("%+v, want %s: %s", got, d.want, d.reason)
			}
			if got.Permit.Allowed != (d.want == policies.Retry) {
				t.Errorf("permit %+v with %s", got.Permit, got.Kind)
			}
		})
	}
	for _, v := range verify.Verdicts() {
		got := policies.Decide(read(lost(), v, 0), []policies.Policy{saying(policies.Accept)})
		if seen := v == verify.Verified || v == verify.Vacuous; (got.Kind == policies.Accept) != seen {
			t.Errorf("accepted on %s: %s", v, got.Kind)
		}
	}
}

func TestDecideOrder(t *testing.T) {
	pass := policies.Func(func(policies.Case) (policies.Decision, bool) {
		return policies.Decision{Kind: policies.Accept}, false
	})
	crash := policies.Func(func(policies.Case) (policies.Decision, bool) { panic("division by zero") })
	seen := read(lost(), verify.Verified, 0)
	for name, d := range map[string]struct {
		reason string
		asked  []policies.Policy
		want   policies.Kind
		says   string
	}{
		"the first that decides":   {"in order", []policies.Policy{pass, saying(policies.Wait), saying(policies.Accept)}, policies.Wait, "because"},
		"a policy that passes":     {"a reviewer decides", []policies.Policy{pass}, policies.Escalate, "no policy"},
		"none":                     {"a reviewer decides", nil, policies.Escalate, "no policy"},
		"one that panics":          {"it might have stopped it", []policies.Policy{crash, saying(policies.Accept)}, policies.Escalate, "division by zero"},
		"one that is not there":    {"its decision is unknown", []policies.Policy{nil, saying(policies.Accept)}, policies.Escalate, "panicked"},
		"a permit it wrote itself": {"only the table permits", []policies.Policy{always(policies.Decision{Kind: policies.Retry, Permit: policies.Permit{Allowed: true}})}, policies.Escalate, "not sent again"},
	} {
		t.Run(name, func(t *testing.T) {
			got := policies.Decide(seen, d.asked)
			if got.Kind != d.want || !strings.Contains(got.Reason, d.says) || got.Permit.Allowed {
				t.Errorf("%+v, want %s saying %q: %s", got, d.want, d.says, d.reason)
			}
		})
	}
}

func TestKindWords(t *testing.T) {
	want := []string{"escalate", "accept", "wait", "retry", "compensate", "fail", "report"}
	for i, word := range want {
		if got := policies.Kind(i).String(); got != word {
			t.Errorf("kind %d is %q, want %q", i, got, word)
		}
	}
	if got := policies.Kind(200).String(); got != "escalate" {
		t.Errorf("an unknown kind reads %q", got)
	}
}

func TestRecheck(t *testing.T) {
	conclusive := func(v verify.Verdict) verify.Judgement { return verify.Judgement{Verdict: v, Conclusive: true} }
	undone := verify.Judgement{Verdict: verify.Mismatched, Conclusive: true, Undone: true}
	weak := func(v verify.Verdict, since time.Duration) verify.Judgement {
		return verify.Judgement{Verdict: v, Since: since}
	}
	failed := verify.Judgement{Verdict: verify.Mismatched, Conflict: true, Ours: true, Failed: true}
	for name, d := range map[string]struct {
		reason   string
		verified bool
		write    intent.WriteType
		j        verify.Judgement
		want     policies.Kind
	}{
		"still there":                 {"as it should be", true, intent.Create, conclusive(verify.Verified), policies.Accept},
		"gone":                        {"rolled back", true, intent.Create, conclusive(verify.Absent), policies.Escalate},
		"gone, weak and early":        {"the read may be older than the send", true, intent.Create, weak(verify.Absent, time.Second), policies.Wait},
		"there, weak and early":       {"a second record may be there by now", true, intent.Create, weak(verify.Verified, time.Second), policies.Wait},
		"gone, weak and late":         {"no read will ever say more, and what was there is not found", true, intent.Create, weak(verify.Absent, time.Hour), policies.Escalate},
		"as before":                   {"rolled back", true, intent.Update, conclusive(verify.Stale), policies.Escalate},
		"as before, written to":       {"rolled back under a new version", true, intent.Update, undone, policies.Escalate},
		"deleted and back":            {"rolled back", true, intent.Delete, conclusive(verify.Stale), policies.Escalate},
		"deleted and back, otherwise": {"rolled back under a new version", true, intent.Delete, undone, policies.Escalate},
		"deleted, another there":      {"another actor made a new one", true, intent.Delete, conclusive(verify.Mismatched), policies.Accept},
		"deleted":                     {"as it should be", true, intent.Delete, conclusive(verify.Verified), policies.Accept},
		"doubled":                     {"a late duplicate", true, intent.Create, conclusive(verify.Duplicated), policies.Escalate},
		"duplicated, weak":            {"a duplicate is there, however weak the read that shows it", true, intent.Create, weak(verify.Duplicated, 0), policies.Escalate},
		"changed since":               {"others may change it", true, intent.Create, conclusive(verify.Mismatched), policies.Accept},
		"changed beside":              {"others may change it", true, intent.Update, conclusive(verify.Collateral), policies.Accept},
		"failed":                      {"it bounced, says a report", true, intent.Create, failed, policies.Escalate},
		"failed, not applied":         {"it came, and failed", false, intent.Create, failed, policies.Escalate},
		"unreadable":                  {"nothing was seen", true, intent.Create, conclusive(verify.Unavailable), policies.Wait},
		"proves nothing":              {"nothing was seen", true, intent.Delete, conclusive(verify.Indeterminate), policies.Wait},
		"not applied, absent":         {"as it should be", false, intent.Create, conclusive(verify.Absent), policies.Accept},
		"not applied, weak and early": {"it may have landed by now", false, intent.Create, weak(verify.Absent, time.Second), policies.Wait},
		"not applied, came":           {"it landed late", false, intent.Create, conclusive(verify.Verified), policies.Escalate},
		"not applied, differing":      {"it landed late", false, intent.Create, conclusive(verify.Mismatched), policies.Escalate},
		"not applied, collateral":     {"it landed late, on a record that changed", false, intent.Update, conclusive(verify.Collateral), policies.Escalate},
		"not applied, theirs":         {"another actor's record", false, intent.Create, verify.Judgement{Verdict: verify.Mismatched, Conflict: true, Conclusive: true}, policies.Accept},
		"not applied, duplicated":     {"it landed twice", false, intent.Create, conclusive(verify.Duplicated), policies.Escalate},
		"not applied, written to":     {"the fields are as before, whatever happened between", false, intent.Update, undone, policies.Accept},
		"not deleted, changed":        {"it is still there", false, intent.Delete, conclusive(verify.Mismatched), policies.Accept},
		"not deleted, gone":           {"it landed late", false, intent.Delete, conclusive(verify.Verified), policies.Escalate},
		"not applied, as before":      {"as it should be", false, intent.Update, conclusive(verify.Stale), policies.Accept},
	} {
		t.Run(name, func(t *testing.T) {
			got := policies.Recheck(policies.Case{Intent: intent.WriteIntent{Write: d.write}, Judgement: d.j}, d.verified)
			if got.Kind != d.want || got.Reason == "" {
				t.Errorf("%s (%s), want %s: %s", got.Kind, got.Reason, d.want, d.reason)
			}
			changed := d.verified && (d.j.Verdict == verify.Mismatched || d.j.Verdict == verify.Collateral)
			if got.Kind == policies.Accept && strings.HasSuffix(got.Reason, " since") != changed {
				t.Errorf("%q of a read that is %s", got.Reason, d.j.Verdict)
			}
		})
	}
}

// The reason of a recheck that confirms an outcome does not contradict the read.
func TestARecheckDoesNotContradictItself(t *testing.T) {
	found := map[verify.Verdict]string{verify.Verified: "found exactly as requested", verify.Mismatched: "1 field differs from what was expected",
		verify.Collateral: "2 fields that the write does not name have changed", verify.Absent: "no record has the stamp", verify.Stale: "the record still is as it was before the send",
		verify.Vacuous: "the record was as expected before"}
	for verdict, reason := range found {
		for _, write := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete} {
			for _, settled := range []bool{true, false} {
				for _, proof := range []string{"", "a copy"} {
					for _, undone := range []bool{true, false} {
						c := policies.Case{Intent: intent.WriteIntent{Write: write}, Profile: connectors.Profile{Proof: proof},
							Judgement: verify.Judgement{Verdict: verdict, Reason: reason, Conclusive: true, Undone: undone, Conflict: !settled}}
						d := policies.Recheck(c, settled)
						agrees := verdict == verify.Verified || verdict == verify.Vacuous ||
							(!settled || write == intent.Delete) && (verdict == verify.Absent || verdict == verify.Stale && !settled)
						if says := strings.Contains(d.Reason, "agrees"); d.Kind == policies.Accept && says != agrees {
							t.Errorf("%s of a %s, settled as verified %v: %s", verdict, write, settled, d.Reason)
						}
					}
				}
			}
		}
	}
}

// Where a record proves a copy, its removal contradicts nothing.
func TestRecheckOfACopy(t *testing.T) {
	for proof, want := range map[string]policies.Kind{"": policies.Escalate, "a copy": policies.Accept} {
		c := policies.Case{Intent: intent.WriteIntent{Write: intent.Create}, Profile: connectors.Profile{Proof: proof}, Judgement: verify.Judgement{Verdict: verify.Absent, Conclusive: true}}
		if got := policies.Recheck(c, true); got.Kind != want {
			t.Errorf("proof %q: %s (%s), want %s", proof, got.Kind, got.Reason, want)
		}
	}
}

func TestPaces(t *testing.T) {
	pace := policies.ReadPace()
	last := time.Duration(0)
	for i := range 40 {
		pause := pace.NextBackOff()
		if pause < 40*time.Millisecond || pause > 18*time.Second {
			t.Errorf("pause %d is %s; want between readFirst and readMost, give or take a fifth", i, pause)
		}
		last = pause
	}
	if last < 12*time.Second {
		t.Errorf("the pause has grown to %s only", last)
	}
	if first := policies.ResumePace(0).NextBackOff(); first > 60*time.Millisecond {
		t.Errorf("a write just sent is read after %s", first)
	}
	if later := policies.ResumePace(time.Hour).NextBackOff(); later < 12*time.Second {
		t.Errorf("a write sent an hour ago is read after %s", later)
	}
	for age, want := range map[time.Duration]time.Duration{0: time.Second, time.Minute: 30 * time.Second, time.Hour: 5 * time.Minute} {
		if got := policies.PausePreparing(age, verify.Judgement{}); got != want {
			t.Errorf("a write accepted %s ago is prepared after %s, want %s", age, got, want)
		}
		if got := policies.PausePreparing(age, verify.Judgement{ReadAfter: 20 * time.Minute}); got != 20*time.Minute {
			t.Errorf("a write accepted %s ago is prepared after %s, want when the destination takes reads again", age, got)
		}
	}
}

// A read is due when a verdict can change its meaning, and not long before.
func TestReadPauseMeetsTheMoments(t *testing.T) {
	slow := policies.ResumePace(time.Hour) // about 15 s
	for name, d := range map[string]struct {
		reason string
		c      policies.Case
		want   time.Duration
	}{
		"before the settle time":  {"a second is left", readWeakly(lost(), verify.Absent, settle-time.Second), time.Second},
		"before the horizon":      {"a second is left", read(lost(), verify.Absent, horizon-time.Second), time.Second},
		"before both":             {"a second is left", readWeakly(lost(), verify.Absent, horizon+settle-time.Second), time.Second},
		"a read that took longer": {"it was begun before the horizon and ended after: at once, but not in a tight loop", with(read(lost(), verify.Absent, horizon-time.Second), func(c *policies.Case) { c.SinceSend = horizon + time.Second }), 50 * time.Millisecond},
		"throttled":               {"it asked not to be read before", with(read(lost(), verify.Unavailable, horizon-time.Second), func(c *policies.Case) { c.ReadAfter = 10 * time.Minute }), 10 * time.Minute},
		"throttled, absurdly":     {"a destination cannot keep a write from being read for ever", with(read(lost(), verify.Unavailable, horizon-time.Second), func(c *policies.Case) { c.ReadAfter = 1000 * time.Hour }), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policies.ReadPause(d.c, slow); got != d.want {
				t.Errorf("%s, want %s: %s", got, d.want, d.reason)
			}
		})
	}
	if got := policies.ReadPause(read(lost(), verify.Absent, time.Hour), slow); got < 12*time.Second {
		t.Errorf("long after all moments a read is made after %s; want the pace", got)
	}
}

// Where the last read would have shown the effect, only a late arrival is read for before the
// moment that decides. Where it showed what is wanted, nothing is.
func TestReadPauseAwaitsArrivals(t *testing.T) {
	for name, d := range map[string]struct {
		reason string
		c      policies.Case
		want   time.Duration
	}{
		"at once":     {"the read showed all that had arrived", read(lost(), verify.Absent, 0), time.Second},
		"later":       {"four times the time since the send", read(lost(), verify.Stale, 5*time.Second), 15 * time.Second},
		"it differs":  {"only what is still on its way can change it", read(lost(), verify.Mismatched, 5*time.Second), 15 * time.Second},
		"last":        {"absence is decided at the horizon", read(lost(), verify.Absent, 10*time.Second), horizon - 10*time.Second},
		"last, weak":  {"a read at the horizon need not show what arrived by then", readWeakly(lost(), verify.Absent, 11*time.Second), horizon + settle - 11*time.Second},
		"no horizon":  {"our patience ends it", with(read(lost(), verify.Absent, 30*time.Second), func(c *policies.Case) { c.Profile.Horizon = connectors.Bound{} }), 30 * time.Second},
		"as wanted":   {"it is proven when it cannot be older than the send", readWeakly(lost(), verify.Indeterminate, settle/4), settle - settle/4},
		"of a reader": {"it is asked again when it takes reads", with(read(lost(), verify.Absent, 0), func(c *policies.Case) { c.ReadAfter = time.Minute }), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policies.ReadPause(d.c, policies.ReadPace()); got != d.want {
				t.Errorf("%s, want %s: %s", got, d.want, d.reason)
			}
		})
	}
	for name, c := range map[string]policies.Case{
		"may lag":     readWeakly(lost(), verify.Absent, time.Second),
		"not decided": with(readWeakly(lost(), verify.Indeterminate, time.Second), func(c *policies.Case) { c.Open = true }),
		"no settle":   with(readWeakly(lost(), verify.Indeterminate, time.Second), func(c *policies.Case) { c.Profile.Settle = connectors.Bound{} }),
		"unreadable":  with(readWeakly(lost(), verify.Unavailable, time.Second), func(c *policies.Case) { c.Conclusive = false }),
		"to be shown": read(lost(), verify.Verified, time.Second),
	} {
		if got := policies.ReadPause(c, policies.ReadPace()); got > 60*time.Millisecond {
			t.Errorf("%s: read after %s; want the pace", name, got)
		}
	}
}

func TestPreparingTooLong(t *testing.T) {
	unread, weak := verify.Judgement{Verdict: verify.Unavailable}, verify.Judgement{Verdict: verify.Absent}
	for name, d := range map[string]struct {
		reason string
		p      connectors.Profile
		j      verify.Judgement
		age    time.Duration
		want   bool
	}{
		"unreadable":       {"a day's patience: nothing was sent", plain(), unread, 24 * time.Hour, false},
		"unreadable, more": {"who still wants it says so again", plain(), unread, 24*time.Hour + 1, true},
		"weak":             {"a later read is conclusive", plain(), weak, settle, false},
		"weak, settled":    {"it was conclusive", plain(), weak, settle + 1, true},
		"undeclared":       {"a minute's patience", connectors.Profile{}, weak, time.Minute, false},
		"undeclared, more": {"no read will ever be conclusive", connectors.Profile{}, weak, time.Minute + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policies.PreparingTooLong(d.p, d.j, d.age); got != d.want {
				t.Errorf("%t, want %t: %s", got, d.want, d.reason)
			}
		})
	}
}
