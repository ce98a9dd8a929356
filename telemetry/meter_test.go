package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/telemetry"
	"github.com/readback-go/readback/verify"
)

type unusedConnector struct{ connectors.Connector }

func registered(t *testing.T) *connectors.Registry {
	t.Helper()
	reg := &connectors.Registry{}
	if err := reg.Register("orders", connectors.Destination{Connector: unusedConnector{}, Profiles: map[string]connectors.Profile{"order": {}}}); err != nil {
		t.Fatal(err)
	}
	return reg
}

// collector is a provider whose values can be read.
func collector(t *testing.T) (*metric.MeterProvider, func() []string) {
	t.Helper()
	reader := metric.NewManualReader()
	return metric.NewMeterProvider(metric.WithReader(reader)), func() []string {
		t.Helper()
		var found metricdata.ResourceMetrics
		if err := reader.Collect(context.Background(), &found); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, scope := range found.ScopeMetrics {
			if scope.Scope.Name != telemetry.Scope {
				t.Errorf("scope %q", scope.Scope.Name)
			}
			for _, m := range scope.Metrics {
				lines = append(lines, points(t, m)...)
			}
		}
		slices.Sort(lines)
		return lines
	}
}

// points are the values of one metric: name, unit, attributes and value.
func points(t *testing.T, m metricdata.Metrics) (lines []string) {
	t.Helper()
	line := func(set attribute.Set, format string, values ...any) {
		var all []string
		for _, kv := range set.ToSlice() {
			all = append(all, string(kv.Key)+"="+kv.Value.String())
		}
		lines = append(lines, fmt.Sprintf("%s [%s] {%s} ", m.Name, m.Unit, strings.Join(all, " "))+fmt.Sprintf(format, values...))
	}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		if !data.IsMonotonic {
			t.Errorf("%s is no counter", m.Name)
		}
		for _, p := range data.DataPoints {
			line(p.Attributes, "%d", p.Value)
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			line(p.Attributes, "%d", p.Value)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			line(p.Attributes, "%g", p.Value)
		}
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			line(p.Attributes, "%d in %d", p.Sum, p.Count)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			line(p.Attributes, "%g in %d", p.Sum, p.Count)
		}
	default:
		t.Errorf("%s is a %T", m.Name, data)
	}
	return lines
}

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func at(lines ...string) []string { slices.Sort(lines); return lines }

// happening is one event, and how it is counted.
type happening struct {
	reason string
	do     func(*telemetry.Meter)
	want   []string
}

func happenings() map[string]happening {
	good := ledger.Record{Tenant: "secret-tenant", ID: "wr_secret", Tool: "create_order", Destination: "orders", Kind: "order", Sends: 1, Reads: 2,
		State: ledger.Settled, Settlement: ledger.Verified, Created: noon, Updated: noon.Add(3 * time.Second), LastFate: ledger.FateAnswered}
	unknown, off, strange := good, good, good
	unknown.LastFate = ledger.FateUnknown
	off.State, off.Settlement, off.Unverified = ledger.Checking, "", true
	strange.Destination, strange.Settlement = "secret", "secret"
	return map[string]happening{
		"a send": {"by what became of it", func(m *telemetry.Meter) {
			m.Observe(engine.Activity{Kind: engine.ActivitySent, Record: good, Sent: engine.Sent{Fate: connectors.FateAnswered, Took: 2 * time.Second}})
		}, at(
			"readback.sends [{send}] {readback.destination=orders readback.fate=answered readback.kind=order} 1",
			"readback.send.duration [s] {readback.destination=orders readback.fate=answered readback.kind=order} 2 in 1")},
		"a send that is in the dark": {"no word is unknown", func(m *telemetry.Meter) {
			m.Observe(engine.Activity{Kind: engine.ActivitySent, Record: good, Sent: engine.Sent{}})
		}, at(
			"readback.sends [{send}] {readback.destination=orders readback.fate=unknown readback.kind=order} 1",
			"readback.send.duration [s] {readback.destination=orders readback.fate=unknown readback.kind=order} 0 in 1")},
		"a read": {"by verdict", func(m *telemetry.Meter) {
			m.Observe(engine.Activity{Kind: engine.ActivityRead, Record: good, Verdict: verify.Duplicated, Took: time.Second, Calls: 1})
		}, at(
			"readback.reads [{call}] {readback.destination=orders readback.kind=order readback.verdict=duplicated} 1",
			"readback.read.duration [s] {readback.destination=orders readback.kind=order readback.verdict=duplicated} 1 in 1")},
		"an end": {"what it took", func(m *telemetry.Meter) { m.Observe(engine.Activity{Kind: engine.ActivityEnded, Record: good}) }, at(
			"readback.writes [{write}] {readback.destination=orders readback.kind=order readback.status=verified} 1",
			"readback.write.duration [s] {readback.destination=orders readback.kind=order readback.status=verified} 3 in 1",
			"readback.write.sends [{send}] {readback.destination=orders readback.kind=order readback.status=verified} 1 in 1",
			"readback.write.reads [{call}] {readback.destination=orders readback.kind=order readback.status=verified} 2 in 1")},
		"unverified": {"is not verified", func(m *telemetry.Meter) { m.Observe(engine.Activity{Kind: engine.ActivityEnded, Record: off}) }, at(
			"readback.writes [{write}] {readback.destination=orders readback.kind=order readback.status=unverified} 1",
			"readback.write.duration [s] {readback.destination=orders readback.kind=order readback.status=unverified} 3 in 1",
			"readback.write.sends [{send}] {readback.destination=orders readback.kind=order readback.status=unverified} 1 in 1",
			"readback.write.reads [{call}] {readback.destination=orders readback.kind=order readback.status=unverified} 2 in 1")},
		"what is on no list": {"no text of a caller becomes a series", func(m *telemetry.Meter) { m.Observe(engine.Activity{Kind: engine.ActivityEnded, Record: strange}) }, at(
			"readback.writes [{write}] {readback.destination=other readback.kind=other readback.status=other} 1",
			"readback.write.duration [s] {readback.destination=other readback.kind=other readback.status=other} 3 in 1",
			"readback.write.sends [{send}] {readback.destination=other readback.kind=other readback.status=other} 1 in 1",
			"readback.write.reads [{call}] {readback.destination=other readback.kind=other readback.status=other} 2 in 1")},
		"a hold": {"by rule", func(m *telemetry.Meter) {
			m.Observe(engine.Activity{Kind: engine.ActivityHeld, Record: good, Hold: engine.Hold{Rule: "breaker"}})
			m.Observe(engine.Activity{Kind: engine.ActivityHeld, Record: good, Hold: engine.Hold{Rule: "secret"}})
		}, at(
			"readback.holds [{send}] {readback.destination=orders readback.kind=order readback.rule=breaker} 1",
			"readback.holds [{send}] {readback.destination=orders readback.kind=order readback.rule=other} 1")},
		"a failure": {"by cause", func(m *telemetry.Meter) {
			m.Observe(engine.Activity{Kind: engine.ActivityFailed, Record: good, Err: fmt.Errorf("x: %w", ledger.ErrUnavailable)})
			m.Observe(engine.Activity{Kind: engine.ActivityFailed, Record: ledger.Record{}, Err: errors.New("secret")})
		}, at(
			"readback.failures [{failure}] {readback.cause=ledger_unavailable readback.destination=orders readback.kind=order} 1",
			"readback.failures [{failure}] {readback.cause=other readback.destination=other readback.kind=other} 1")},
		"a replay": {"it was not sent again", func(m *telemetry.Meter) { m.Observe(engine.Activity{Kind: engine.ActivityRepeated, Record: good}) }, at(
			"readback.replays [{call}] {readback.destination=orders readback.kind=order} 1",
			"readback.duplicates.prevented [{write}] {readback.destination=orders readback.kind=order readback.prevented_by=replay} 1")},
		"seen after an answer": {"that is the lag", func(m *telemetry.Meter) {
			m.Observe(engine.Activity{Kind: engine.ActivityShown, Record: good, Verdict: verify.Verified, Took: 4 * time.Second})
		}, at("readback.visibility.lag [s] {readback.destination=orders readback.kind=order} 4 in 1")},
		"seen after no answer": {"a second send would have duplicated it, and the time of the effect is unknown", func(m *telemetry.Meter) {
			m.Observe(engine.Activity{Kind: engine.ActivityShown, Record: unknown, Verdict: verify.Verified, Took: 4 * time.Second})
		}, at("readback.duplicates.prevented [{write}] {readback.destination=orders readback.kind=order readback.prevented_by=read} 1")},
		"seen twice after no answer": {"nothing was prevented", func(m *telemetry.Meter) {
			m.Observe(engine.Activity{Kind: engine.ActivityShown, Record: unknown, Verdict: verify.Duplicated, Took: time.Second})
		}, nil},
		"a call": {"as the conventions for generative AI have it", func(m *telemetry.Meter) {
			m.Observe(engine.Activity{Kind: engine.ActivityCalled, Record: good, Outcome: engine.Outcome{ID: "wr_1", Status: ledger.Verified}, Err: nil, Took: 5 * time.Second})
		}, at("gen_ai.execute_tool.duration [s] {gen_ai.operation.name=execute_tool gen_ai.tool.name=create_order readback.status=verified} 5 in 1")},
		"a call in vain": {"the tool did not do what it was called for, as its span says", func(m *telemetry.Meter) {
			m.Observe(engine.Activity{Kind: engine.ActivityCalled, Record: good, Outcome: engine.Outcome{ID: "wr_1", Status: ledger.Denied}, Err: nil, Took: 5 * time.Second})
		}, at("gen_ai.execute_tool.duration [s] {error.type=denied gen_ai.operation.name=execute_tool gen_ai.tool.name=create_order readback.status=denied} 5 in 1")},
		"a refused call": {"its tool may be any word", func(m *telemetry.Meter) {
			m.Observe(engine.Activity{Kind: engine.ActivityCalled, Record: ledger.Record{Tool: "secret"}, Outcome: engine.Outcome{}, Err: fmt.Errorf("x: %w", intent.ErrInvalid), Took: time.Second})
		}, at("gen_ai.execute_tool.duration [s] {error.type=invalid gen_ai.operation.name=execute_tool gen_ai.tool.name=other} 1 in 1")},
	}
}

// How each event is counted: dashboards depend on names, units and attributes.
func TestWhatIsCounted(t *testing.T) {
	for name, c := range happenings() {
		t.Run(name, func(t *testing.T) {
			mp, lines := collector(t)
			c.do(telemetry.NewMeter(mp, registered(t)))
			if diff := cmp.Diff(c.want, lines()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestToolsAreBounded(t *testing.T) {
	mp, lines := collector(t)
	m := telemetry.NewMeter(mp, registered(t))
	for i := range 1000 {
		m.Observe(engine.Activity{Kind: engine.ActivityCalled, Record: ledger.Record{Tool: fmt.Sprint("tool-", i)}, Outcome: engine.Outcome{ID: "wr_1", Status: ledger.Verified}, Err: nil, Took: time.Second})
	}
	got := lines()
	if len(got) != 201 || !strings.Contains(strings.Join(got, "\n"), "gen_ai.tool.name=other readback.status=verified} 800 in 800") {
		t.Errorf("%d series, such as %s", len(got), got[0])
	}
}

// surveyed is a ledger that can be counted, or fails.
type surveyed struct {
	ledger.Maintenance
	err error
}

func (s surveyed) QueueStats(context.Context) (ledger.QueueStats, error) {
	return ledger.QueueStats{Now: noon, Outbox: 3, Queues: []ledger.Queue{
		{Tenant: "acme", Destination: "orders", State: ledger.Queued, Count: 5, OldestDue: noon.Add(-time.Hour), OldestCreated: noon.Add(-2 * time.Hour)},
		{Tenant: "secret-tenant", Destination: "orders", State: ledger.Queued, Count: 7, OldestDue: noon.Add(-time.Second), OldestCreated: noon.Add(-3 * time.Hour)},
		{Tenant: "acme", Destination: "orders", State: ledger.Review, Count: 2, OldestCreated: noon.Add(-time.Minute)},
		{Tenant: "acme", Destination: "gone", State: ledger.Held, Count: 1},
	}}, s.err
}

func TestWhatIsOpen(t *testing.T) {
	queue := func(destination, state string, count, due, oldest any) []string {
		set := fmt.Sprintf("{readback.destination=%s readback.state=%s}", destination, state)
		return []string{
			fmt.Sprintf("readback.queue.writes [{write}] %s %v", set, count),
			fmt.Sprintf("readback.queue.due.age [s] %s %v", set, due),
			fmt.Sprintf("readback.queue.oldest.age [s] %s %v", set, oldest),
		}
	}
	want := slices.Concat(
		queue("orders", "queued", 12, 3600, 10800), queue("orders", "review", 2, 0, 60), queue("orders", "held", 0, 0, 0), queue("other", "held", 1, 0, 0),
		[]string{
			"readback.ledger.up [1] {} 1",
			"readback.outbox.entries [{write}] {} 3",
			"readback.reviews.open [{write}] {readback.destination=orders} 2",
			"readback.held.open [{write}] {readback.destination=orders} 0",
			"readback.held.open [{write}] {readback.destination=other} 1",
		})
	for name, c := range map[string]struct {
		reason string
		from   surveyed
		want   []string
	}{
		"counted":     {"tenants are added up, and what is gone is other", surveyed{}, at(want...)},
		"unreachable": {"old or made up numbers are worse than none", surveyed{err: ledger.ErrUnavailable}, []string{"readback.ledger.up [1] {} 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			mp, lines := collector(t)
			stop, err := telemetry.Gauges(mp, registered(t), c.from)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, lines()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if got := lines(); len(got) != 0 {
				t.Errorf("after the end: %q", got)
			}
		})
	}
}

func TestTeeCallsEach(t *testing.T) {
	first, one := collector(t)
	second, other := collector(t)
	calls := 0
	all := telemetry.Tee(telemetry.NewMeter(first, registered(t)).Observe, nil, func(engine.Activity) { calls++ }, telemetry.NewMeter(second, registered(t)).Observe)
	rec := ledger.Record{Destination: "orders", Kind: "order"}
	all(engine.Activity{Kind: engine.ActivitySent, Record: rec, Sent: engine.Sent{}})
	all(engine.Activity{Kind: engine.ActivityRead, Record: rec, Verdict: verify.Verified, Took: time.Second, Calls: 1})
	all(engine.Activity{Kind: engine.ActivityEnded, Record: rec})
	all(engine.Activity{Kind: engine.ActivityHeld, Record: rec, Hold: engine.Hold{}})
	all(engine.Activity{Kind: engine.ActivityFailed, Record: rec, Err: errors.New("x")})
	all(engine.Activity{Kind: engine.ActivityRepeated, Record: rec})
	all(engine.Activity{Kind: engine.ActivityShown, Record: ledger.Record{LastFate: ledger.FateAnswered}, Verdict: verify.Verified, Took: time.Second})
	all(engine.Activity{Kind: engine.ActivityCalled, Record: rec, Outcome: engine.Outcome{}, Err: nil, Took: time.Second})
	if diff := cmp.Diff(one(), other()); diff != "" || calls != 8 {
		t.Errorf("the meters counted different things, or %d calls are not 8: %s", calls, diff)
	}
	names := map[string]bool{}
	for _, line := range one() {
		names[strings.Fields(line)[0]] = true
	}
	if len(names) != 14 {
		t.Errorf("%d names were reported: %v", len(names), names)
	}
}

// Every name, with its unit and attributes, matches the documentation.
func TestTheDocumentation(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "operate", "observe.md"))
	if err != nil {
		t.Fatal(err)
	}
	mp, lines := collector(t)
	m := telemetry.NewMeter(mp, registered(t))
	rec := ledger.Record{Destination: "orders", Kind: "order", LastFate: ledger.FateAnswered}
	m.Observe(engine.Activity{Kind: engine.ActivitySent, Record: rec, Sent: engine.Sent{}})
	m.Observe(engine.Activity{Kind: engine.ActivityRead, Record: rec, Verdict: verify.Verified, Took: time.Second, Calls: 1})
	m.Observe(engine.Activity{Kind: engine.ActivityEnded, Record: rec})
	m.Observe(engine.Activity{Kind: engine.ActivityHeld, Record: rec, Hold: engine.Hold{}})
	m.Observe(engine.Activity{Kind: engine.ActivityFailed, Record: rec, Err: errors.New("x")})
	m.Observe(engine.Activity{Kind: engine.ActivityRepeated, Record: rec})
	m.Observe(engine.Activity{Kind: engine.ActivityShown, Record: rec, Verdict: verify.Verified, Took: time.Second})
	m.Observe(engine.Activity{Kind: engine.ActivityCalled, Record: rec, Outcome: engine.Outcome{Status: ledger.Denied}, Err: nil, Took: time.Second})
	if _, err := telemetry.Gauges(mp, registered(t), surveyed{}); err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| (\\S+) \\| \\w+ \\| ([^|]*)\\|").FindAllStringSubmatch(string(page), -1) {
		documented[row[1]] = row[2] + " " + strings.TrimSpace(row[3])
	}
	reported := map[string]string{}
	for _, line := range lines() {
		parts := regexp.MustCompile(`^(\S+) \[(\S+)\] \{(.*)\}`).FindStringSubmatch(line)
		var attributes []string
		for _, a := range strings.Fields(parts[3]) {
			name, _, _ := strings.Cut(a, "=")
			attributes = append(attributes, strings.TrimPrefix(name, "readback."))
		}
		reported[parts[1]] = parts[2] + " " + strings.Join(sorted(attributes), ", ")
	}
	for name, text := range documented {
		unit, attributes, _ := strings.Cut(text, " ")
		documented[name] = unit + " " + strings.Join(sorted(strings.Split(attributes, ", ")), ", ")
	}
	if diff := cmp.Diff(reported, documented); diff != "" {
		t.Errorf("docs/operate/observe.md (-reported +documented):\n%s", diff)
	}
}

func sorted(all []string) []string { slices.Sort(all); return all }

// Without an SDK nothing is counted, and nothing breaks.
func TestWithoutAnSDK(t *testing.T) {
	m := telemetry.NewMeter(noop.NewMeterProvider(), registered(t))
	m.Observe(engine.Activity{Kind: engine.ActivityEnded, Record: ledger.Record{}})
	if _, err := telemetry.Gauges(noop.NewMeterProvider(), registered(t), surveyed{}); err != nil {
		t.Error(err)
	}
}
