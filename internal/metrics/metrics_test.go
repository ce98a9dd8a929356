package metrics

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

var update = flag.Bool("update", false, "write docs/operate/observe.md anew")

type noConnector struct{ connectors.Connector }

func registered(t *testing.T) *connectors.Registry {
	t.Helper()
	reg := &connectors.Registry{}
	err := reg.Register("orders", connectors.Destination{Connector: noConnector{}, Profiles: map[string]connectors.Profile{
		"order": {Reads: []connectors.ReadPath{{Path: "get"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// surveyed is a ledger that can be counted, or not.
type surveyed struct {
	ledger.Maintenance
	err   error
	times int
}

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func (s *surveyed) QueueStats(context.Context) (ledger.QueueStats, error) {
	s.times++
	return ledger.QueueStats{
		Now: noon, Outbox: 3, Oldest: noon.Add(-time.Minute), Refused: make([]ledger.Refused, 1), Damaged: make([]ledger.Refused, 2),
		Queues: []ledger.Queue{
			{Tenant: "acme", Destination: "orders", State: ledger.Queued, Count: 5, Due: 2, Leased: 1, Orphaned: 1, Waiting: 1, OldestDue: noon.Add(-time.Hour), OldestCreated: noon.Add(-2 * time.Hour)},
			{Tenant: "secret-tenant", Destination: "orders", State: ledger.Queued, Count: 7, Due: 1, OldestDue: noon.Add(-time.Second)},
			{Tenant: "acme", Destination: "gone", State: ledger.Settled, Count: 1},
		},
	}, s.err
}

func inForce(context.Context) (Status, error) {
	return Status{
		Breakers: map[string]string{"orders": "open", "gone": "open"}, Paused: []string{"orders"},
		LoginRefused: map[string]time.Duration{"orders": 90 * time.Second, "gone": time.Second},
		Stops:        map[string]int{"tenant": 2, "secret-tenant": 1},
		Lags: []Lag{
			{Destination: "orders", Kind: "order", Path: "get", P50: time.Second, P90: 4 * time.Second, P99: time.Minute},
			{Destination: "orders", Kind: "order", P50: time.Second},
			{Destination: "orders", Kind: "order", Path: "secret-a"}, {Destination: "orders", Kind: "order", Path: "secret-b"},
			{Destination: "secret", Kind: "order", Path: "get"},
		},
	}, nil
}

// used is a meter that recorded every event, with hostile words among them.
func used(t *testing.T) *Meter {
	t.Helper()
	m := New(registered(t), Sources{Ledger: &surveyed{}, InForce: inForce,
		Telemetry: func() map[string]Exported {
			return map[string]Exported{"traces": {Delivered: 7, Failed: 2, Dropped: 3}}
		},
		Audit: func() (Audit, bool) {
			return Audit{Unsealed: time.Second, Failures: 4, Kept: 5, Failed: 6, Dropped: 7, Waiting: 8}, true
		}})
	good := ledger.Record{Tenant: "secret-tenant", ID: "wr_secret", Destination: "orders", Kind: "order", State: ledger.Settled, Settlement: ledger.Verified, Reads: 2,
		Created: noon, Updated: noon.Add(time.Second)}
	strange := ledger.Record{Destination: "secret", Kind: "secret", State: ledger.Settled, Settlement: "secret"}
	off := ledger.Record{Destination: "orders", Kind: "order", State: ledger.Checking, Unverified: true}
	for _, rec := range []ledger.Record{good, strange, off} {
		for _, fate := range []connectors.Fate{connectors.FateAnswered, connectors.FateUnknown, "secret"} {
			m.Observe(engine.Activity{Kind: engine.ActivitySent, Record: rec, Sent: engine.Sent{Fate: fate, Took: time.Second}})
		}
		m.Observe(engine.Activity{Kind: engine.ActivityRead, Record: rec, Verdict: verify.Verified, Took: time.Second, Calls: 1})
		m.Observe(engine.Activity{Kind: engine.ActivityRead, Record: rec, Verdict: verify.Verdict(99), Took: time.Second, Calls: 1})
		m.Observe(engine.Activity{Kind: engine.ActivityEnded, Record: rec})
		m.Observe(engine.Activity{Kind: engine.ActivityRepeated, Record: rec})
		for _, fate := range []string{ledger.FateAnswered, ledger.FateUnknown} {
			shown := rec
			shown.Sends, shown.LastFate = 1, fate
			m.Observe(engine.Activity{Kind: engine.ActivityShown, Record: shown, Verdict: verify.Verified, Took: 2 * time.Second})
		}
		m.Observe(engine.Activity{Kind: engine.ActivityHeld, Record: rec, Hold: engine.Hold{Rule: "rate"}})
		m.Observe(engine.Activity{Kind: engine.ActivityHeld, Record: rec, Hold: engine.Hold{Rule: "secret"}})
		m.Observe(engine.Activity{Kind: engine.ActivityFailed, Record: rec, Err: ledger.ErrFenced})
		m.Observe(engine.Activity{Kind: engine.ActivityFailed, Record: rec, Err: errors.New("secret")})
	}
	return m
}

// TestTheTableIsWhatIsServed compares names, types and labels with the documented table,
// and lints them.
func TestTheTableIsWhatIsServed(t *testing.T) {
	m := used(t)
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "readback_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "go_") || strings.HasPrefix(f.GetName(), "process_") {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		got[f.GetName()] = strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ",")
	}
	want := map[string]string{}
	for _, m := range metrics {
		labels := slices.Sorted(slices.Values(m.labels))
		want[m.name] = m.kind + " " + strings.Join(labels, ",")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table, and what is served (-table +served):\n%s", diff)
	}
}

func TestTheTableIsWritten(t *testing.T) {
	need.Document(t, filepath.Join("..", "..", "docs", "operate", "observe.md"), "go test ./internal/metrics -update", table(), *update)
}

// scrape is a scraper's response.
func scrape(t *testing.T, m *Meter) string {
	t.Helper()
	s, err := Start("127.0.0.1:0", m, func(context.Context) error { return nil }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	_, text := get(t, s, http.MethodGet, "/metrics")
	return text
}

func get(t *testing.T, s *Server, method, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestWhatAScrapeSays(t *testing.T) {
	text := scrape(t, used(t))
	for reason, line := range map[string]string{
		"a send":                           `readback_sends_total{destination="orders",fate="answered",kind="order"} 2`,
		"what has no word is unknown":      `readback_sends_total{destination="orders",fate="unknown",kind="order"} 2`,
		"what is not registered":           `readback_sends_total{destination="other",fate="other",kind="other"} 1`,
		"an end":                           `readback_writes_ended_total{destination="orders",kind="order",status="verified"} 1`,
		"an unknown outcome":               `readback_writes_ended_total{destination="other",kind="other",status="other"} 1`,
		"unverified is not verified":       `readback_writes_ended_total{destination="orders",kind="order",status="unverified"} 1`,
		"reads of verified writes alone":   `readback_write_reads_sum{destination="orders",kind="order"} 2`,
		"how long it took":                 `readback_write_duration_seconds_sum{destination="orders",kind="order",status="verified"} 1`,
		"tenants are added up":             `readback_queue_writes{destination="orders",state="queued"} 12`,
		"the oldest of all tenants":        `readback_queue_oldest_due_age_seconds{destination="orders",state="queued"} 3600`,
		"a destination that is gone":       `readback_queue_writes{destination="other",state="settled"} 1`,
		"reserved long ago":                `readback_queue_oldest_age_seconds{destination="orders",state="queued"} 7200`,
		"sends that a write took":          `readback_write_sends_count{destination="orders",kind="order"} 2`,
		"when it was seen":                 `readback_write_shown_seconds_sum{destination="orders",kind="order"} 4`,
		"a replay was not sent":            `readback_duplicates_prevented_total{by="replay",destination="orders",kind="order"} 2`,
		"a read was not a send":            `readback_duplicates_prevented_total{by="read",destination="orders",kind="order"} 2`,
		"an alert sees the first":          `readback_reads_total{destination="orders",kind="order",verdict="duplicated"} 0`,
		"delivered telemetry":              `readback_telemetry_delivered_total{signal="traces"} 7`,
		"failed telemetry":                 `readback_telemetry_lost_total{cause="failed",signal="traces"} 2`,
		"dropped telemetry":                `readback_telemetry_lost_total{cause="dropped",signal="traces"} 3`,
		"what is not sealed":               `readback_audit_unsealed_seconds 1`,
		"what could not be sealed":         `readback_audit_failures_total 4`,
		"heads that are kept":              `readback_audit_heads_total{result="kept"} 5`,
		"heads that are not":               `readback_audit_heads_total{result="failed"} 6`,
		"superseded heads":                 `readback_audit_heads_total{result="dropped"} 7`,
		"heads that wait":                  `readback_audit_heads_waiting 8`,
		"due":                              `readback_queue_due_writes{destination="orders",state="queued"} 3`,
		"the outbox":                       `readback_outbox_oldest_age_seconds 60`,
		"refused":                          `readback_outbox_refused_entries 1`,
		"damaged":                          `readback_damaged_writes 2`,
		"one state of a breaker at a time": `readback_breaker_state{destination="orders",state="open"} 1`,
		"and not another":                  `readback_breaker_state{destination="orders",state="closed"} 0`,
		"a refused login":                  `readback_login_refused_seconds{destination="orders"} 90`,
		"stops":                            `readback_stops{scope="tenant"} 2`,
		"paused":                           `readback_destination_paused{destination="orders"} 1`,
		"lag":                              `readback_visibility_lag_seconds{destination="orders",kind="order",part="0.9",path="get"} 4`,
		"lag, all ways":                    `readback_visibility_lag_seconds{destination="orders",kind="order",part="0.5",path="any"} 1`,
		"the ledger could be counted":      "readback_survey_up 1",
		"the runtime":                      "go_goroutines ",
		"the process":                      "process_open_fds ",
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("%s: want %q", reason, line)
		}
	}
	if strings.Contains(text, "secret") {
		t.Error("a label or value holds what is on no list")
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestALedgerThatCannotBeCounted(t *testing.T) {
	text := scrape(t, New(registered(t), Sources{Ledger: &surveyed{err: ledger.ErrUnavailable}}))
	if !strings.Contains(text, "\nreadback_survey_up 0") || strings.Contains(text, "readback_queue_writes{") || strings.Contains(text, "readback_outbox_entries 3") {
		t.Errorf("old or made up numbers are served:\n%s", text)
	}
}

func TestAnAuditLogThatIsSealedElsewhere(t *testing.T) {
	for reason, c := range map[string]struct {
		here bool
		want string
	}{"a stale number is exported": {true, "readback_audit_heads_waiting"}, "there is none here": {false, "readback_survey_up"}} {
		text := scrape(t, New(registered(t), Sources{Ledger: &surveyed{}, Audit: func() (Audit, bool) { return Audit{Unsealed: -1}, c.here }}))
		if !strings.Contains(text, "\n"+c.want) || strings.Contains(text, "\nreadback_audit_unsealed_seconds") || strings.Contains(text, "\nreadback_audit_heads") != c.here {
			t.Errorf("%s:\n%s", reason, text)
		}
	}
}

func gatherer(t *testing.T, c prometheus.Collector) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestScrapesShareACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &surveyed{}
		c := &collector{meter: New(registered(t), Sources{}), from: Sources{Ledger: l}, now: time.Now}
		for range 10 {
			if n, err := testutil.GatherAndCount(gatherer(t, c)); err != nil || n == 0 {
				t.Fatal(n, err)
			}
		}
		if l.times != 1 {
			t.Errorf("%d counts for 10 scrapes in a moment", l.times)
		}
		<-time.After(statsEvery)
		_, _ = testutil.GatherAndCount(gatherer(t, c))
		if l.times != 2 {
			t.Errorf("%d counts after %s, want 2", l.times, statsEvery)
		}
	})
}

func TestTheServerAnswers(t *testing.T) {
	var log strings.Builder
	ready := errors.New("the password is hunter2")
	s, err := Start("127.0.0.1:0", New(registered(t), Sources{}), func(context.Context) error { return ready }, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path string
		code         int
	}{
		{"GET", "/healthz", 200}, {"GET", "/readyz", 503}, {"GET", "/metrics", 200}, {"POST", "/metrics", 405}, {"GET", "/", 404}, {"GET", "/debug/pprof/", 404},
	} {
		if code, text := get(t, s, c.method, c.path); code != c.code || strings.Contains(text, "hunter2") {
			t.Errorf("%s %s: %d, want %d\n%s", c.method, c.path, code, c.code, text)
		}
	}
	for host, want := range map[string]int{"evil.example.org": 403, "127.0.0.1:1": 200, "localhost": 200, "[::1]:1": 200, "10.0.0.1": 403} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := (&http.Client{Timeout: time.Minute}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("host %s: %d, want %d: a name can be made to point here", host, res.StatusCode, want)
		}
	}
	ready = nil
	if code, _ := get(t, s, "GET", "/readyz"); code != 200 {
		t.Errorf("ready: %d", code)
	}
	if _, err := Start(s.Addr(), New(registered(t), Sources{}), nil, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("two servers on one port")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "not ready") {
		t.Errorf("why it was not ready is nowhere: %q", log.String())
	}
}

// metrics is every name, in the order of the table.
var metrics = []metric{
	sends, sendSeconds, reads, readSeconds, ended, lifeSeconds, writeReads, writeSends, shownSeconds, prevented, held, failed, replays, reloads, limited,
	statsUp, queued, queueDue, queueLeased, queueOrphaned, queueWaiting, queueOldest, queueAge, outbox, outboxOldest, outboxRefused, damaged,
	breaker, loginRefused, stops, paused, visibility, delivered, lost, unsealed, sealFailures, heads, headsWaiting,
}

// table lists every name with its meaning, as a table in Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| name | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range metrics {
		var labels []string
		for _, l := range m.labels {
			labels = append(labels, "`"+l+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(labels, ", "), m.help)
	}
	return b.String()
}
