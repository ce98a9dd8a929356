package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// What watches the numbers lies beside the other files for running it.
var (
	dashboard = filepath.Join("..", "..", "deploy", "grafana", "readback.json")
	alerts    = filepath.Join("..", "..", "deploy", "prometheus", "alerts.yaml")
	runbook   = filepath.Join("..", "..", "docs", "operate", "observe.md")
)

// content is the content of a file.
func content(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// alert is one rule as Prometheus has it.
type alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func rules(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string  `yaml:"name"`
			Rules []alert `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.UnmarshalWithOptions(content(t, alerts), &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) < 10 {
		t.Fatalf("%+v", file)
	}
	return file.Groups[0].Rules
}

// panels are the queries of the dashboard by the title of their panel.
func panels(t *testing.T) map[string][]string {
	t.Helper()
	var file struct {
		UID    string `json:"uid"`
		Panels []struct {
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(content(t, dashboard), &file); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for i, p := range file.Panels {
		for _, other := range file.Panels[:i] {
			a, b := p.GridPos, other.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("%q lies on %q", p.Title, other.Title)
			}
		}
		for _, q := range p.Targets {
			all[p.Title] = append(all[p.Title], q.Expr)
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%q shows nothing", p.Title)
		}
	}
	return all
}

var (
	inQuery = regexp.MustCompile(`(readback_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	matched = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
	grouped = regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`)
	suffix  = regexp.MustCompile(`_(bucket|sum|count)$`)
	rates   = regexp.MustCompile(`\b(?:rate|increase)\(([a-z0-9_]+)`)
)

// named is the metric of a name in a query.
func named(name string) (metric, bool) {
	for _, m := range metrics {
		if m.name == name && m.kind != "histogram" || m.kind == "histogram" && suffix.MatchString(name) && m.name == suffix.ReplaceAllString(name, "") {
			return m, true
		}
	}
	return metric{}, false
}

// check holds a query against the table: names, labels, and what may be asked of
// which kind.
func check(t *testing.T, what, query string) {
	t.Helper()
	labels := []string{"le"}
	found := inQuery.FindAllStringSubmatch(query, -1)
	if len(found) == 0 {
		t.Errorf("%s asks for nothing: %s", what, query)
	}
	for _, f := range found {
		m, ok := named(f[1])
		if !ok {
			t.Errorf("%s asks for %s, which is not served", what, f[1])
			continue
		}
		labels = append(labels, m.labels...)
		for _, pair := range matched.FindAllStringSubmatch(f[2], -1) {
			if !slices.Contains(m.labels, pair[1]) {
				t.Errorf("%s asks for the label %s of %s, which has %v", what, pair[1], f[1], m.labels)
			}
		}
		rated := slices.ContainsFunc(rates.FindAllStringSubmatch(query, -1), func(r []string) bool { return r[1] == f[1] })
		if rated != (m.kind != "gauge") {
			t.Errorf("%s: %s is a %s, which is rated: %v", what, f[1], m.kind, rated)
		}
	}
	for _, g := range grouped.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			if !slices.Contains(labels, strings.TrimSpace(label)) {
				t.Errorf("%s groups by %q, which nothing in it has: %s", what, label, query)
			}
		}
	}
	if strings.Count(query, "(") != strings.Count(query, ")") {
		t.Errorf("%s: brackets: %s", what, query)
	}
}

func TestTheDashboardAsksForWhatIsServed(t *testing.T) {
	all := panels(t)
	asked := map[string]bool{}
	for title, queries := range all {
		for _, query := range queries {
			check(t, "the panel "+title, query)
			for _, f := range inQuery.FindAllStringSubmatch(query, -1) {
				m, _ := named(f[1])
				asked[m.name] = true
			}
		}
	}
	for _, m := range metrics { // a new one is shown, or left out on purpose
		if !asked[m.name] && !slices.Contains([]string{statsUp.name, queueDue.name, queueLeased.name, outboxOldest.name, reloads.name}, m.name) {
			t.Errorf("no panel shows %s", m.name)
		}
	}
}

var words = regexp.MustCompile(`\$labels\.([a-z_]+)`)

func TestAlertsAskForWhatIsServed(t *testing.T) {
	text := string(content(t, runbook))
	seen := map[string]bool{}
	for _, a := range rules(t) {
		check(t, a.Alert, a.Expr)
		if seen[a.Alert] || a.Labels["severity"] == "" || a.Annotations["summary"] == "" {
			t.Errorf("%+v: want a name of its own, a severity and a summary", a)
		}
		seen[a.Alert] = true
		if !strings.Contains(text, "\n| `"+a.Alert+"` |") {
			t.Errorf("docs/operate/observe.md does not say what to do about %s", a.Alert)
		}
		for _, w := range words.FindAllStringSubmatch(a.Annotations["summary"], -1) {
			if by := grouped.FindStringSubmatch(a.Expr); by == nil || !strings.Contains(by[1], w[1]) {
				t.Errorf("%s says %s, which its result does not have", a.Alert, w[1])
			}
		}
	}
	for _, found := range regexp.MustCompile("\n\\| `(Readback[A-Za-z]+)` \\|").FindAllStringSubmatch(text, -1) {
		if !seen[found[1]] {
			t.Errorf("docs/operate/observe.md says what to do about %s, which no rule raises", found[1])
		}
	}
}
