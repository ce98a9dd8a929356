package policies_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

// unread is a create whose one send to a destination that cannot be read was not
// answered.
func unread() policies.Case {
	return policies.Case{Intent: intent.WriteIntent{Write: intent.Create}, Profile: connectors.Profile{WriteOnly: true},
		Sends: 1, Unknown: true, Budget: 4, LastRefusal: "no answer"}
}

func since(d time.Duration) func(*policies.Case) {
	return func(c *policies.Case) { c.SinceSend, c.SinceKey, c.Age = d, d, d }
}

// A send to a destination that cannot be read is reported when it was answered, and sent again
// only where the destination deduplicates.
func TestWriteOnly(t *testing.T) {
	asked := func(directed string) func(*policies.Case) {
		return func(c *policies.Case) { c.Directed = directed }
	}
	sent := func(n int) func(*policies.Case) { return func(c *policies.Case) { c.Sends = n } }
	both := func(c *policies.Case) { c.Unknown, c.Answered = true, true }
	for name, d := range map[string]struct {
		reason string
		c      policies.Case
		want   policies.Kind
		says   string
	}{
		"answered":                       {"an acceptance is all there is", with(unread(), fate(connectors.FateAnswered)), policies.Report, "accepted it"},
		"answered after an unknown one":  {"it accepted the same key", with(unread(), fate(connectors.FateAnswered), both, sent(2)), policies.Report, "accepted it"},
		"refused at once":                {"nothing was applied", with(unread(), fate(connectors.FateRefused)), policies.Fail, "no answer"},
		"refused after an unknown one":   {"a later no erases nothing", with(unread(), func(c *policies.Case) { c.Last = connectors.FateRefused }, sent(2)), policies.Escalate, "may have arrived"},
		"throttled":                      {"it is tried again", with(unread(), fate(connectors.FateThrottled)), policies.Wait, ""},
		"not sent, for a day":            {"it is known that nothing was", with(unread(), fate(connectors.FateNotSent), since(25*time.Hour)), policies.Fail, ""},
		"not answered":                   {"nothing shows whether it arrived", unread(), policies.Escalate, "does not deduplicate"},
		"not answered, much later":       {"no time proves absence where nothing can be read", with(unread(), since(1000*time.Hour)), policies.Escalate, "does not deduplicate"},
		"deduplicated":                   {"it makes one of two", with(unread(), native), policies.Wait, "recognises the repeat by its key"},
		"deduplicated, its pause over":   {"it makes one of two", with(unread(), native, since(time.Minute)), policies.Retry, "recognises the repeat by its key"},
		"deduplicated, window over":      {"it has forgotten the key", with(unread(), native, since(1000*time.Hour)), policies.Escalate, "may be over"},
		"deduplicated, budget used up":   {"a lifetime budget", with(unread(), native, sent(4), since(time.Minute)), policies.Escalate, "budget"},
		"deduplicated, too late":         {"the deadline has passed", with(unread(), native, late, since(time.Minute)), policies.Escalate, "deadline"},
		"deduplicated, and irreversible": {"it makes one of two", with(unread(), native, irreversible, since(time.Minute)), policies.Retry, "recognises the repeat by its key"},
		"unique, which no read shows":    {"only the key makes one of two", with(unread(), unique, since(time.Hour)), policies.Escalate, "does not deduplicate"},
		"a reviewer asks":                {"nothing shows it harmless", with(unread(), asked(policies.DirectRetry)), policies.Escalate, "does not deduplicate"},
		"a reviewer vouches":             {"it is their word", with(unread(), asked(policies.DirectForce)), policies.Retry, ""},
		"a reviewer has it undone":       {"there is nothing to go by", with(unread(), asked(policies.DirectCompensate)), policies.Escalate, "the destination cannot be read"},
		"never sent, a reviewer asks":    {"it was never sent", with(unread(), sent(0), fate(connectors.FateUnknown), asked(policies.DirectRetry)), policies.Retry, ""},
		"a verdict from nowhere":         {"it cannot have been seen", with(read(unread(), verify.Verified, 0), fate(connectors.FateUnknown)), policies.Escalate, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := policies.Decide(d.c, policies.Standard())
			if got.Kind != d.want || !strings.Contains(got.Reason, d.says) {
				t.Errorf("%s: %q, want %s with %q: %s", got.Kind, got.Reason, d.want, d.says, d.reason)
			}
		})
	}
}

// The caller reads why the destination refused, once.
func TestReasonOfARefusal(t *testing.T) {
	refusal := connectors.Refused("422", errors.New("the destination answered 422 Unprocessable Entity")).Error()
	c := with(lost(), fate(connectors.FateRefused), func(c *policies.Case) { c.LastRefusal = refusal })
	if d := policies.Decide(c, policies.Standard()); d.Kind != policies.Fail || d.Reason != "the destination refused it: 422 Unprocessable Entity" {
		t.Errorf("%s: %q", d.Kind, d.Reason)
	}
}

// Pauses grow, so that a receiver that is down for hours gets the write when it is back.
func TestWriteOnlyPauses(t *testing.T) {
	var got []time.Duration
	for n := range 9 {
		c := with(unread(), native, func(c *policies.Case) {
			c.Sends, c.Budget = n+1, 20
			c.Profile.NativeWindow = map[intent.WriteType]time.Duration{intent.Create: 48 * time.Hour}
		})
		d := policies.Decide(c, policies.Standard())
		if d.Kind != policies.Wait {
			t.Fatalf("after %d sends: %s", n+1, d.Kind)
		}
		got = append(got, d.After)
	}
	s, m, h := time.Second, time.Minute, time.Hour
	want := []time.Duration{5 * s, 20 * s, 80 * s, 320 * s, 21*m + 20*s, h, h, h, h}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The key stays the same: another one would make a second effect.
func TestWriteOnlyKeepsItsKey(t *testing.T) {
	for name, c := range map[string]policies.Case{
		"by the window": with(unread(), native, since(time.Minute)),
		"by a reviewer": with(unread(), forced),
	} {
		if p := policies.SecondSend(c); !p.Allowed || p.NewKey || p.NeedsRecheck {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// A policy can report only an answered send to a destination that cannot be read.
func TestReportIsBounded(t *testing.T) {
	answered := with(unread(), fate(connectors.FateAnswered))
	for name, d := range map[string]struct {
		c    policies.Case
		want policies.Kind
	}{
		"answered, write-only": {answered, policies.Report},
		"not answered":         {unread(), policies.Escalate},
		"it could be read":     {with(answered, func(c *policies.Case) { c.Profile.WriteOnly = false }), policies.Escalate},
		"it was not read":      {with(unread(), func(c *policies.Case) { c.Profile = connectors.Profile{} }), policies.Escalate},
	} {
		if got := policies.Decide(d.c, []policies.Policy{saying(policies.Report)}); got.Kind != d.want {
			t.Errorf("%s: %s, want %s", name, got.Kind, d.want)
		}
	}
}
