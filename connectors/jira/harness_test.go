package jira_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
	"github.com/readback-go/readback/readbacktest/fault"
)

func token(context.Context) (string, error) { return "secret-token", nil }

// connect makes a connector to a site in this process; change may be nil.
func connect(t *testing.T, s *fakejira.Site, change func(o *jira.Options)) *jira.Connector {
	t.Helper()
	o := jira.Options{URL: "https://jira.invalid", User: "robot@example.org", Token: token, Transport: s.Transport()}
	if change != nil {
		change(&o)
	}
	c, err := jira.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bench is a site as the suite sees it, read without the connector.
type bench struct {
	t    *testing.T
	s    *fakejira.Site
	kind string
}

// fixture opens an empty site for one kind of record. Comments need an issue
// to be on.
func fixture(t *testing.T, s *fakejira.Site, c *jira.Connector, kind string) *connectortest.Fixture {
	b := bench{t, s, kind}
	f := &connectortest.Fixture{
		Connector: c, Profile: c.Profiles()[kind],
		Set: b.set, Effects: b.effects, Sends: s.Sends, Same: b.same,
		Scope: &connectors.Scope{Kind: kind, Within: intent.Fields{"project": "OPS"}},
	}
	if kind == jira.KindComment {
		f.Unlisted = "Jira lists comments by their issue alone"
		if _, err := s.Seed("OPS", map[string]any{"summary": "the issue of the comments"}); err != nil {
			t.Fatal(err)
		}
		f.Intent, f.Near, f.Seed, f.Change, f.Records = commentIntent, nearComments, b.seedComment, b.changeComment, b.comments
		return f
	}
	f.Intent, f.Near, f.Seed, f.Change, f.Records = issueIntent, nearIssues, b.seedIssue, b.change, b.issues
	return f
}

// issueIntent is a good intent on issue n.
func issueIntent(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{
		Kind: jira.KindIssue, Write: w,
		Key: intent.Fields{"project": "OPS", "reference": fmt.Sprintf("Invoice-%03d", n)},
	}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{
			"summary": fmt.Sprintf(" Invoice %d ", n), "description": "Two lines,\nGrüße & <b>",
			"labels": []any{"finance", "urgent"}, "priority": "High",
		}
		in.Payload = intent.Fields{"issuetype": "Task"}
	case intent.Update:
		in.Expect = intent.Fields{"summary": "Changed", "description": "other", "labels": []any{"finance", "late"}}
	}
	return in
}

func nearIssues(n int) []intent.WriteIntent {
	own := fmt.Sprintf("Invoice-%03d", n)
	elsewhere := issueIntent(intent.Create, n)
	elsewhere.Key["project"] = "DEV"
	return append(connectortest.Near(issueIntent, "reference", strings.ToLower(own), own[:len(own)-1], own+"0", "x"+own, own+"%", own+`"`, own+`\`, "Invoice_001", "Invoicé-001"), elsewhere)
}

func commentIntent(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{
		Kind: jira.KindComment, Write: w,
		Key: intent.Fields{"issue": "OPS-1", "reference": fmt.Sprintf("Note-%03d", n)},
	}
	role := map[string]any{"type": "role", "value": "Administrators"}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{"body": fmt.Sprintf("Note %d,\nsecond line", n), "visibility": role}
	case intent.Update:
		in.Expect = intent.Fields{"body": "changed", "visibility": map[string]any{"type": "role", "value": "Users"}}
	}
	return in
}

func nearComments(n int) []intent.WriteIntent {
	own := fmt.Sprintf("Note-%03d", n)
	return connectortest.Near(commentIntent, "reference", strings.ToLower(own), own[:len(own)-1], own+"0", "x"+own)
}

func (b bench) set(v fault.Kind, variant string) error {
	return b.s.Set(fault.Fault{Kind: v, How: variant, Times: 1, Delay: map[fault.Kind]time.Duration{
		fault.LaggingRead: 100 * time.Millisecond}[v]})
}

// seedIssue makes an issue as a user would, with the label of the reference.
func (b bench) seedIssue(w intent.WriteIntent) {
	b.t.Helper()
	fields := map[string]any{
		"summary": w.Expect["summary"], "description": w.Expect["description"],
		"priority": map[string]any{"name": w.Expect["priority"]},
		"labels":   append(slices.Clone(w.Expect["labels"].([]any)), w.Key["reference"]),
	}
	if _, err := b.s.Seed(w.Key["project"].(string), fields); err != nil {
		b.t.Fatal(err)
	}
}

// seedComment makes a comment as another program would, that has the reference
// and not our stamp.
func (b bench) seedComment(w intent.WriteIntent) {
	b.t.Helper()
	property := map[string]any{"readback": map[string]any{"reference": w.Key["reference"]}}
	if err := b.s.SeedComment("OPS-1", w.Expect["body"].(string), property); err != nil {
		b.t.Fatal(err)
	}
}

func (b bench) change(key intent.Fields) {
	for _, r := range b.issues(key) {
		b.s.Edit(r.Ref, map[string]any{"environment": "another actor's"})
	}
}

func (b bench) changeComment(key intent.Fields) {
	for _, r := range b.comments(key) {
		b.s.EditComment(key["issue"].(string), r.Ref, "another actor's")
	}
}

// issues reads the store in a way of its own.
func (b bench) issues(key intent.Fields) []connectors.Record {
	var all []connectors.Record
	for _, i := range b.s.Issues() {
		labels, _ := i.Fields["labels"].([]any)
		if i.Project != key["project"] || !slices.Contains(labels, key["reference"]) {
			continue
		}
		f := intent.Fields{"project": i.Project, "reference": key["reference"],
			"summary": i.Fields["summary"], "description": i.Fields["description"], "labels": others(labels, key["reference"])}
		if p, ok := i.Fields["priority"].(map[string]any); ok {
			f["priority"] = p["name"]
		}
		all = append(all, connectors.Record{Ref: i.ID, Stamp: stampIn(i.Properties), Fields: f})
	}
	return all
}

func others(labels []any, reference any) []any {
	return slices.DeleteFunc(slices.Clone(labels), func(l any) bool {
		return l == reference || strings.HasPrefix(l.(string), "rb-")
	})
}

func stampIn(properties map[string]any) string {
	mark, _ := properties["readback"].(map[string]any)
	stamp, _ := mark["stamp"].(string)
	return stamp
}

func referenceIn(properties map[string]any) any {
	mark, _ := properties["readback"].(map[string]any)
	return mark["reference"]
}

func (b bench) comments(key intent.Fields) []connectors.Record {
	var all []connectors.Record
	for _, c := range b.s.Comments(key["issue"].(string)) {
		if referenceIn(c.Properties) != key["reference"] {
			continue
		}
		f := intent.Fields{"issue": key["issue"], "reference": key["reference"], "body": c.Fields["body"]}
		if v, ok := c.Fields["visibility"]; ok {
			f["visibility"] = v
		}
		all = append(all, connectors.Record{Ref: c.ID, Stamp: stampIn(c.Properties), Fields: f})
	}
	return all
}

func (b bench) effects(key intent.Fields) int {
	n := 0
	for _, e := range b.s.Effects() {
		project, _, _ := strings.Cut(e.Key, "-")
		switch {
		case e.Itself:
		case b.kind == jira.KindComment && e.Comment != "" && referenceIn(e.Properties) == key["reference"]:
			n++
		case b.kind == jira.KindIssue && project == key["project"] && slices.Contains(e.Labels, key["reference"].(string)):
			n++
		}
	}
	return n
}

// same compares as Jira stores: one that is not set is null, labels are a set,
// line ends and blanks around do not count.
func (b bench) same(field string, want, got any) bool {
	want, got = plainValue(want), plainValue(got)
	if field == "labels" {
		return gocmp.Equal(sorted(want), sorted(got))
	}
	return gocmp.Equal(want, got)
}

func plainValue(v any) any {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(strings.ReplaceAll(v, "\r\n", "\n"))
	case map[string]any:
		return maps.Clone(v)
	case []any, nil:
		return v
	}
	if strings.Contains(fmt.Sprintf("%T", v), "absent") {
		return nil // what the suite calls not there, Jira calls null
	}
	return v
}

func sorted(v any) []any {
	list, ok := v.([]any)
	if !ok {
		return []any{v}
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return list
}
