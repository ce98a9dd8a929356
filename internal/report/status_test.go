package report_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
)

// hostileFound is a ledger in which everything that an outsider can set is hostile, and
// everything that can be is wrong.
func hostileFound() report.Found {
	bad := []ledger.Refused{{Tenant: hostile, ID: ledger.ID(hostile), Reason: hostile, At: base}}
	act := guards.Act{By: hostile, Reason: hostile, At: base}
	return report.Found{
		Ledger: hostile, Clock: report.Clock{Ledger: base, Ahead: 3, Within: 0.2},
		QueueStats: ledger.QueueStats{Now: base, Outbox: 3, Oldest: base.Add(-time.Hour), Refused: bad, Damaged: bad, Queues: []ledger.Queue{
			{Tenant: hostile, Destination: hostile, State: ledger.Review, Count: 2, Due: 1, Orphaned: 1, OldestDue: base.Add(-time.Hour), OldestCreated: base.Add(-time.Hour)},
		}},
		Status: guards.InForce{Now: base, Stops: []guards.Stopped{
			{Scope: guards.Scope{Tenant: hostile, Destination: hostile, Tool: hostile}, Active: true, Log: []guards.Act{act}}, {Active: true, Damaged: true},
		}, Destinations: []guards.Destination{{
			Name: hostile, Rate: connectors.Rate{Calls: 5, Per: time.Minute}, Pause: base.Add(time.Hour), PauseWhy: hostile, Limit: 4,
			Breaker: guards.BreakerState{State: "open", Since: base, Until: base.Add(time.Minute), Why: hostile, By: hostile}, Damaged: []string{"rate"},
		}}},
		Lags: []lag.PathLag{{Key: lag.Key{Destination: hostile, Kind: hostile, Path: hostile}, Count: 3, P50: time.Second}},
	}
}

func TestNothingHostileReachesTheTerminalFromAStatus(t *testing.T) {
	f := hostileFound()
	s := report.NewStatus(f)
	checks := &report.Checks{}
	for _, c := range report.Stuck(f) {
		checks.Add(c)
	}
	checks.Add(report.Check{Name: hostile, State: report.Warning, What: hostile, Do: hostile})
	for name, text := range map[string]string{"status": s.Text(), "checks": checks.Text(), "stops": report.StopsText(s.Stops, base)} {
		for i, c := range text {
			if c != '\n' && !unicode.IsPrint(c) {
				t.Fatalf("%s: %q at %d: …%q…", name, c, i, text[max(0, i-40):min(len(text), i+40)])
			}
		}
		if !strings.Contains(text, `\u202e`) {
			t.Errorf("%s: the override is hidden and not shown", name)
		}
	}
	for _, m := range s.Attention {
		for _, c := range m.What + m.Do {
			if !unicode.IsPrint(c) {
				t.Fatalf("%q in %q", c, m)
			}
		}
	}
	if len(s.Attention) != 10 { // two stops among them
		t.Errorf("%d matters, want one of each and a second stop: %+v", len(s.Attention), s.Attention)
	}
}

// What an operator is notified of, and what needs no attention at night.
func TestWhatNeedsAttention(t *testing.T) {
	ago := func(d time.Duration) time.Time { return base.Add(-d) }
	queue := func(q ledger.Queue) ledger.QueueStats {
		q.Tenant, q.Destination = "acme", "orders"
		return ledger.QueueStats{Now: base, Queues: []ledger.Queue{q}}
	}
	late := ledger.Queue{State: ledger.Queued, Count: 3, Due: 3, OldestDue: ago(10 * time.Minute)}
	stop := func(s guards.Scope) guards.InForce {
		return guards.InForce{Now: base, Stops: []guards.Stopped{{Scope: s, Active: true, Log: []guards.Act{{By: "ann", Reason: "bad batch", At: ago(time.Hour)}}}}}
	}
	login := func(until time.Duration) guards.InForce {
		return guards.InForce{Now: base, Destinations: []guards.Destination{{Name: "orders",
			Breaker: guards.BreakerState{State: "open", Since: ago(time.Minute), Until: base.Add(until), Login: ago(2 * time.Hour), Why: "401"}}}}
	}
	refused, tried := login(time.Minute), login(0)
	tests := map[string]struct {
		reason  string
		survey  ledger.QueueStats
		inForce guards.InForce
		want    []string
	}{
		"nothing":            {"an idle ledger", ledger.QueueStats{Now: base}, guards.InForce{}, nil},
		"just due":           {"a worker takes a moment", queue(ledger.Queue{State: ledger.Queued, Count: 1, Due: 1, OldestDue: ago(time.Second)}), guards.InForce{}, nil},
		"due later":          {"a wait", queue(ledger.Queue{State: ledger.Checking, Count: 1}), guards.InForce{}, nil},
		"in hand":            {"at work", queue(ledger.Queue{State: ledger.Sending, Count: 1, Leased: 1}), guards.InForce{}, nil},
		"late":               {"no worker runs", queue(late), guards.InForce{}, []string{"3 writes are due, and no worker takes them up: the oldest since 10 minutes."}},
		"late for a stop":    {"the stop is the matter", queue(late), stop(guards.Scope{}), []string{`Stopped: all sends, by ann 1 hour ago: bad batch. What was sent is still read back.`}},
		"late for another":   {"it does not hold these", queue(late), stop(guards.Scope{Tenant: "other"}), []string{"3 writes are due", `Stopped: tenant "other"`}},
		"late for a tool":    {"whether it holds these is not known", queue(late), stop(guards.Scope{Tool: "t"}), []string{"3 writes are due", `Stopped: tool "t"`}},
		"late looks, a stop": {"reads are not held", queue(ledger.Queue{State: ledger.Checking, Count: 1, Due: 1, OldestDue: ago(time.Hour)}), stop(guards.Scope{}), []string{"1 write is due", "Stopped: all sends"}},
		"late for a breaker": {"the breaker is the matter", queue(late), guards.InForce{Now: base, Destinations: []guards.Destination{{Name: "orders", Breaker: guards.BreakerState{State: "open", Since: ago(time.Minute), Until: base.Add(time.Minute), Why: "5 of 5 sends failed"}}}},
			[]string{`Nothing is sent to "orders": its sends failed, and its circuit breaker opened 1 minute ago (5 of 5 sends failed); one send is tried 1 minute from now.`}},
		"a refused login": {"since when, and how many of its own writes wait", ledger.QueueStats{Now: base, Queues: []ledger.Queue{
			{Tenant: "acme", Destination: "orders", State: ledger.Queued, Count: 3, Due: 3, OldestDue: ago(time.Hour)},
			{Tenant: "acme", Destination: "orders", State: ledger.Checking, Count: 2},
			{Tenant: "other", Destination: "orders", State: ledger.Queued, Count: 4},
			{Tenant: "acme", Destination: "orders", State: ledger.Sending, Count: 1, Leased: 1}, {Tenant: "acme", Destination: "orders", State: ledger.Settled, Count: 9}}},
			refused, []string{`"orders" has refused our login since 2026-01-31 16:00:00.000Z (401); 9 writes wait, and nothing is sent; one send is tried 1 minute from now.`}},
		"a refused login, tried": {"the breaker lets one through", ledger.QueueStats{Now: base, Queues: []ledger.Queue{{Tenant: "acme", Destination: "orders", State: ledger.Queued, Count: 1}}},
			tried, []string{`"orders" has refused our login since 2026-01-31 16:00:00.000Z (401); 1 write waits, and nothing is sent; one send is being tried now.`}},
		"late for a pause": {"the destination asked for it", queue(late), guards.InForce{Now: base, Destinations: []guards.Destination{{Name: "orders", Breaker: guards.BreakerState{State: "closed"}, Pause: base.Add(time.Second)}}}, nil},
		"a long pause": {"an operator may want to know", ledger.QueueStats{Now: base}, guards.InForce{Now: base, Destinations: []guards.Destination{{Name: "orders", Breaker: guards.BreakerState{State: "closed"}, Pause: base.Add(time.Hour), PauseWhy: "429"}}},
			[]string{`"orders" asked for a pause until 2026-01-31 19:00:00.000Z (1 hour from now): 429.`}},
		"orphans":            {"dead workers", queue(ledger.Queue{State: ledger.Sending, Count: 1, Orphaned: 1, OldestDue: ago(time.Hour)}), guards.InForce{}, []string{"Workers that held 1 of them are gone."}},
		"outbox":             {"no worker takes it", ledger.QueueStats{Now: base, Outbox: 1, Oldest: ago(time.Hour)}, guards.InForce{}, []string{"1 write is due, and no worker takes them up: the oldest since 1 hour."}},
		"outbox, fresh":      {"a worker takes a moment", ledger.QueueStats{Now: base, Outbox: 1, Oldest: ago(time.Second)}, guards.InForce{}, nil},
		"outbox, refused":    {"it waits for ever", ledger.QueueStats{Now: base, Refused: []ledger.Refused{{ID: "wr_1", Tenant: "acme", Reason: "no intent"}}}, guards.InForce{}, []string{"The outbox holds 1 entry that can never be taken in (wr_1 of tenant acme: no intent)."}},
		"many refused":       {"a survey counts no further", ledger.QueueStats{Now: base, Refused: make([]ledger.Refused, 100)}, guards.InForce{}, []string{"at least 100 entries"}},
		"review":             {"a person decides", queue(ledger.Queue{State: ledger.Review, Count: 2, OldestCreated: ago(time.Hour)}), guards.InForce{}, []string{"Tenant acme: 2 writes wait for a reviewer, the oldest begun 1 hour ago."}},
		"released":           {"over", ledger.QueueStats{Now: base}, guards.InForce{Stops: []guards.Stopped{{Log: []guards.Act{{Released: true}}}}}, nil},
		"another's":          {"who has no such destination cannot send", ledger.QueueStats{Now: base, Queues: []ledger.Queue{{Tenant: "acme", Destination: "gone", State: ledger.Queued, Count: 1}}}, guards.InForce{}, []string{`1 open write is for "gone", which is not in this configuration`}},
		"notes, unreadable":  {"another program writes there", ledger.QueueStats{Now: base}, guards.InForce{Destinations: []guards.Destination{{Name: "orders", Breaker: guards.BreakerState{State: "closed"}, Damaged: []string{"slots"}}}}, []string{`What the workers noted about "orders" cannot be read (slots).`}},
		"all at once, order": {"what cannot go on by itself comes first", ledger.QueueStats{Now: base, Damaged: []ledger.Refused{{ID: "wr_1", Reason: "x"}}, Queues: []ledger.Queue{{Tenant: "acme", Destination: "orders", State: ledger.Held, Count: 1}}}, stop(guards.Scope{}), []string{"The ledger holds 1 write that cannot be read", "Stopped: all sends", "Tenant acme: 1 write waits"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := report.NewStatus(report.Found{QueueStats: tt.survey, Status: tt.inForce, Serves: func(_, name string) bool { return name == "orders" }, Clock: report.Clock{Ledger: base}})
			if len(s.Attention) != len(tt.want) {
				t.Fatalf("%s: %+v, want %q", tt.reason, s.Attention, tt.want)
			}
			for i, want := range tt.want {
				if m := s.Attention[i]; !strings.Contains(m.What, want) || m.Do == "" {
					t.Errorf("%s: matter %d is %+v, want %q and what to do", tt.reason, i+1, m, want)
				}
			}
			if calm := strings.HasPrefix(s.Text(), "Nothing needs attention.\n"); calm != (len(tt.want) == 0) {
				t.Errorf("%s: the text says something else:\n%s", tt.reason, s.Text())
			}
		})
	}
}

func TestReleaseCommandsNameTheScope(t *testing.T) {
	for want, scope := range map[string]guards.Scope{
		"readback release --all --reason TEXT":                        {},
		"readback release --tenant acme --tool t --reason TEXT":       {Tenant: "acme", Tool: "t"},
		`readback release --destination 'o'\''x; rm' --reason TEXT`:   {Destination: "o'x; rm"},
		`readback release --destination '\x1b[2J$HOME' --reason TEXT`: {Destination: "\x1b[2J$HOME"},
	} {
		s := report.NewStatus(report.Found{Status: guards.InForce{Stops: []guards.Stopped{{Scope: scope, Active: true}}}})
		if len(s.Attention) != 1 || !strings.HasPrefix(s.Attention[0].Do, want) {
			t.Errorf("%+v, want %s", s.Attention, want)
		}
	}
}

func TestClockInWords(t *testing.T) {
	for want, c := range map[string]report.Clock{
		"this machine agrees to 5ms":                        {Ahead: 0.004, Within: 0.005},
		"this machine is 3s ahead (give or take 200ms)":     {Ahead: 3, Within: 0.2},
		"this machine is 1m30s behind (give or take 1ms)":   {Ahead: -90},
		"2026-01-31 18:00:00.000Z; this machine agrees to ": {Ledger: base},
	} {
		if got := c.Text(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestChecksInWords(t *testing.T) {
	c := &report.Checks{}
	c.Add(report.Check{Name: "a", State: report.OK, What: "fine"})
	if got := c.Text(); got != "ok       a  fine\n\nEverything is in order.\n" {
		t.Errorf("%q", got)
	}
	c.Add(report.Check{Name: "longer", State: report.Warning, What: "so so", Do: "mend it"})
	want := "ok       a       fine\nwarning  longer  so so\n                 mend it\n\nNothing failed. 1 of 2 checks ended with a warning.\n"
	if diff := cmp.Diff(want, c.Text()); diff != "" {
		t.Error(diff)
	}
	c.Add(report.Check{Name: "b", State: report.Failed, What: "bad", Do: "mend it"})
	if got := c.Text(); !strings.HasSuffix(got, "1 of 3 checks failed.\n") || c.Failed != 1 {
		t.Errorf("%q", got)
	}
}

// The table of destinations shows since when the login is refused, and not since when the
// breaker is open.
func TestARefusedLoginIsInTheTable(t *testing.T) {
	for name, tt := range map[string]struct {
		login time.Time
		want  string
	}{"refused": {base.Add(-2 * time.Hour), "orders  login refused since 2 hours"}, "another reason": {time.Time{}, "orders  open since 1 minute"}} {
		s := report.NewStatus(report.Found{Status: guards.InForce{Now: base, Destinations: []guards.Destination{{Name: "orders",
			Breaker: guards.BreakerState{State: "open", Since: base.Add(-time.Minute), Until: base.Add(time.Minute), Login: tt.login, Why: "401"}}}},
			Serves: func(string, string) bool { return true }, Clock: report.Clock{Ledger: base}})
		if !strings.Contains(s.Text(), tt.want) {
			t.Errorf("%s: %q is not in\n%s", name, tt.want, s.Text())
		}
	}
}
