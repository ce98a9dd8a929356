package reviewui

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

func TestHealthOfADestination(t *testing.T) {
	s := newShop(t)
	s.held(t, "A-1")
	s.review(t, "A-2")
	s.write(t, order("A-3", nil))
	s.write(t, order("A-4", nil), orders.Fault{Kind: orders.Refused, Key: "A-4"})
	a := reviewer.get(t, s, "/destinations/orders/health")
	checkPage(t, a)
	for _, want := range []string{"orders simulated", "reachable Nothing holds sends to it.", "Verified share", "What is promised of " + orders.Kind, "held10now", "review10now", `code "refused", message "the destination does not want this"`, "held for approval: 1", "Stops minutes"} {
		if !strings.Contains(a.text(), want) {
			t.Errorf("the page lacks %q: %s", want, a.text())
		}
	}
	if !strings.Contains(a.Body, `href="/search?destination=orders&amp;state=held"`) {
		t.Error("the count of held writes does not lead to them")
	}
	if strings.Contains(a.Body, "/destinations/stop") {
		t.Error("a reviewer may not stop, and is offered to")
	}
	if a := operator.get(t, s, "/destinations/orders/health"); !strings.Contains(a.Body, "/destinations/stop?destination=orders") {
		t.Error("an operator is not offered to stop it")
	}
	for _, path := range []string{"/destinations/nowhere/health", "/destinations/%00/health"} {
		if a := reviewer.get(t, s, path); a.Status != http.StatusNotFound {
			t.Errorf("%s: status %d", path, a.Status)
		}
	}
	if a := outsider.get(t, s, "/destinations/orders/health"); strings.Contains(a.text(), "held10now") {
		t.Error("another tenant sees the writes")
	}
	if a := agent.get(t, s, "/destinations/orders/health"); a.Status != http.StatusForbidden {
		t.Errorf("an agent: status %d", a.Status)
	}
}

// A stop is possible when its effect cannot be counted: what was typed is still there.
func TestStopWithoutAPreview(t *testing.T) {
	h := (&fake{err: errors.New("disk full in secret.go")}).newApp(nil)
	a := operator.get(t, h, "/destinations/stop?destination=orders")
	checkPage(t, a)
	if a.Status != http.StatusOK || !strings.Contains(a.text(), "It can be made all the same") || strings.Contains(a.text(), "secret.go") {
		t.Errorf("status %d: %s", a.Status, a.text())
	}
	a.form(t, "/destinations/stop")
	a = operator.send(t, h, http.MethodPost, "/destinations/stop", url.Values{"destination": {"orders"}, "tool": {"refund"}, "reason": {"short"}})
	if form := a.form(t, "/destinations/stop"); a.Status != http.StatusUnprocessableEntity || form.Get("reason") != "short" || form.Get("tool") != "refund" {
		t.Errorf("status %d, form %v", a.Status, form)
	}
}

// The strongest reason is the status.
func TestHealthStatus(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	open := guards.BreakerState{State: "open", Until: now.Add(time.Minute), Why: "it answered 503"}
	login := guards.BreakerState{State: "closed", Login: now.Add(-time.Hour)}
	stop := []guards.Stopped{{Active: true, Log: []guards.Act{{By: "olga", Reason: "a double import", At: now.Add(-time.Hour)}}}}
	for name, c := range map[string]struct {
		d    service.Destination
		word string
		says []string
	}{
		"reachable": {service.Destination{Breaker: guards.BreakerState{State: "closed"}}, "reachable", nil},
		"stopped":   {service.Destination{Breaker: login, Stops: stop}, "stopped", []string{"olga stopped it 1 hour ago", "double import"}},
		"login":     {service.Destination{Breaker: login, Pause: now.Add(time.Hour)}, "login refused", []string{"1 hour ago", "credentials"}},
		"open":      {service.Destination{Breaker: open, Pause: now.Add(time.Hour)}, "not reachable", []string{"t answered 503", "1 minute from now"}},
		"half open": {service.Destination{Breaker: guards.BreakerState{State: "half-open", Why: "it answered 503"}}, "being tried", []string{"t answered 503"}},
		"paused":    {service.Destination{Breaker: guards.BreakerState{State: "closed"}, Pause: now.Add(time.Hour), PauseWhy: "slow down"}, "paused", []string{"low down", "1 hour from now"}},
	} {
		b, says := healthStatus(c.d, now)
		if b.Word != c.word {
			t.Errorf("%s: %q, want %q", name, b.Word, c.word)
		}
		for _, want := range c.says {
			if !strings.Contains(says, want) {
				t.Errorf("%s: %q lacks %q", name, says, want)
			}
		}
	}
}

// Minutes in which several stops hold count once; a stop of one tool holds a part only.
func TestStopChart(t *testing.T) {
	at := func(minutes int) time.Time {
		return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC).Add(time.Duration(minutes) * time.Minute)
	}
	act := func(minutes int, released bool) guards.Act { return guards.Act{At: at(minutes), Released: released} }
	stops := []guards.Stopped{
		{Log: []guards.Act{act(10, false), act(20, false), act(30, true), act(90, false), act(100, true)}},
		{Scope: guards.Scope{Destination: "orders"}, Log: []guards.Act{act(25, false), act(70, true)}},
		{Scope: guards.Scope{Tool: "refund"}, Active: true, Log: []guards.Act{act(0, false)}},
		{Active: true, Log: []guards.Act{act(150, false)}},
	}
	w := window{back: 3 * time.Hour, step: time.Hour}
	c := stopChart(stops, []time.Time{at(0), at(60), at(120)}, w, at(170))
	want := [][]string{{"2026-05-04 12:00", "50"}, {"2026-05-04 13:00", "20"}, {"2026-05-04 14:00", "20"}}
	if diff := cmp.Diff(want, c.Rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The share is of what was settled, and where nothing was there is none.
func TestShareChart(t *testing.T) {
	times := []time.Time{time.Unix(0, 0), time.Unix(3600, 0), time.Unix(7200, 0)}
	filled := []ledger.Span{{Settled: map[ledger.Status]int{ledger.Verified: 2, ledger.NotApplied: 1}}, {}, {Settled: map[ledger.Status]int{ledger.Denied: 1}}}
	c := shareChart(filled, times, window{step: time.Hour})
	want := [][]string{{"1970-01-01 00:00", "66.70", "33.30"}, {"1970-01-01 02:00", "0", "100"}}
	if diff := cmp.Diff(want, c.Rows); diff != "" || c.Legend[0].Total != "50 %" {
		t.Errorf("legend %v (-want +got):\n%s", c.Legend, diff)
	}
	if fmt.Sprint(c.Most) != "" {
		t.Errorf("the most is %q; every sum is 100", c.Most)
	}
}
