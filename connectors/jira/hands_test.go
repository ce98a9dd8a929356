package jira_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
)

// TestMovedMeanwhile: what the index shows in one project and is in another now
// is shown with the project it is in, alone and among other questions.
func TestMovedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, dataCenter := range deployments {
			s := fakejira.New(fakejira.Options{DataCenter: dataCenter, IndexLag: time.Minute, Projects: []string{"OPS", "DEV"}})
			if _, err := s.Seed("OPS", map[string]any{"summary": "a person's", "labels": []any{"Invoice-001"}}); err != nil {
				t.Fatal(err)
			}
			<-time.After(2 * time.Minute)
			s.Move("OPS-1", "DEV")
			c := connect(t, s, nil)
			one, two := query(named(issueIntent(intent.Create, 1), 1)), query(named(issueIntent(intent.Create, 2), 2))
			answers, err := c.ReadMany(t.Context(), []connectors.Query{two, one})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(answers[0].Observation.Records); n != 0 || answers[0].Err != nil {
				t.Errorf("under another reference there are %d records (%v)", n, answers[0].Err)
			}
			if got := answers[1].Observation.Records; len(got) != 1 || got[0].Fields["project"] != "DEV" {
				t.Errorf("%v, want it with its new project", got)
			}
			// Queried in both projects, it is the other's.
			there := issueIntent(intent.Create, 1)
			there.Key["project"] = "DEV"
			<-time.After(2 * time.Minute)
			answers, err = c.ReadMany(t.Context(), []connectors.Query{query(named(there, 3)), one})
			if err != nil || len(answers[0].Observation.Records) != 1 || len(answers[1].Observation.Records) != 0 {
				t.Errorf("%v %v, want it in DEV alone", answers, err)
			}
		}
	})
}

// TestCommentsMeanwhile: a list that is not of one state is an error.
func TestCommentsMeanwhile(t *testing.T) {
	comment := func(id string) string { return `{"id":"` + id + `","body":"x"}` }
	cases := map[string]struct {
		pages  map[string]string // by startAt
		list   string
		reason string
	}{
		"one deleted between pages": {map[string]string{
			"0": `{"startAt":0,"total":3,"comments":[` + comment("1") + `,` + comment("2") + `]}`,
			"1": `{"startAt":1,"total":3,"comments":[` + comment("3") + `,` + comment("4") + `]}`}, "", "the third was shifted out of sight"},
		"one twice": {map[string]string{"0": `{"startAt":0,"total":2,"comments":[` + comment("1") + `,` + comment("1") + `]}`}, "", "it is not a list"},
		"never all": {map[string]string{
			"0": `{"startAt":0,"total":3,"comments":[` + comment("1") + `]}`,
			"1": `{"startAt":1,"total":3,"comments":[]}`}, "", "there should be more"},
		"the same page again":    {map[string]string{"0": `{"startAt":0,"total":3,"comments":[` + comment("1") + `]}`}, "", "it would go on for ever"},
		"no number":              {map[string]string{"0": `{"startAt":0,"comments":[]}`}, "", "the list may be incomplete"},
		"too many":               {map[string]string{"0": `{"startAt":0,"total":100000,"comments":[` + comment("1") + `]}`}, "", "they are not read"},
		"one without its stamp":  {map[string]string{"0": `{"startAt":0,"total":1,"comments":[` + comment("1") + `]}`}, `{"values":[]}`, "it may be ours"},
		"one without properties": {map[string]string{"0": `{"startAt":0,"total":1,"comments":[` + comment("1") + `]}`}, `{"values":[{"id":"1"}]}`, "it may be ours"},
		"another one":            {map[string]string{"0": `{"startAt":0,"total":1,"comments":[` + comment("1") + `]}`}, `{"values":[{"id":"2","properties":[]}]}`, "not asked for"},
		"no comment":             {map[string]string{"0": `{"startAt":0,"total":1,"comments":[{"id":"1"}]}`}, "", "it has no text"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, _ := stage(t, false)
			connector := connect(t, s, func(o *jira.Options) {
				o.Transport = between{s.Transport(), func(r *http.Request, _ []byte) *http.Response {
					switch {
					case strings.HasSuffix(r.URL.Path, "/OPS-1/comment"):
						return response(200, c.pages[r.URL.Query().Get("startAt")])
					case strings.HasSuffix(r.URL.Path, "/comment/list") && c.list != "":
						return response(200, c.list)
					case strings.HasSuffix(r.URL.Path, "/comment/list"):
						return response(200, `{"values":[{"id":"1","properties":[]},{"id":"2","properties":[]},{"id":"3","properties":[]},{"id":"4","properties":[]}]}`)
					}
					return nil
				}}
			})
			if o, err := connector.Read(t.Context(), query(named(commentIntent(intent.Create, 0), 0))); err == nil {
				t.Errorf("the read finds %d records, want an error: %s", len(o.Records), c.reason)
			}
		})
	}
}

// TestCommentEditSendsProperty: an edit carries the property, whether or not
// Jira would keep it.
func TestCommentEditSendsProperty(t *testing.T) {
	s, _ := stage(t, false)
	var body struct {
		Properties []struct {
			Key   string
			Value map[string]string
		}
	}
	c := connect(t, s, func(o *jira.Options) {
		o.Transport = between{s.Transport(), func(r *http.Request, sent []byte) *http.Response {
			if r.Method == http.MethodPut {
				_ = json.Unmarshal(sent, &body)
			}
			return nil
		}}
	})
	in := named(commentIntent(intent.Update, 0), 1)
	before := read(t, c, in)
	if _, err := c.Write(t.Context(), request(in, &before)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"stamp": before.Records[0].Stamp, "reference": "Note-000"}
	if len(body.Properties) != 1 || body.Properties[0].Key != "readback" || gocmp.Diff(want, body.Properties[0].Value) != "" {
		t.Errorf("%+v, want the stamp and the reference", body.Properties)
	}
}

// TestInvert: only our own record is taken back, and only as it was left.
func TestInvert(t *testing.T) {
	_, c := stage(t, false)
	in := named(issueIntent(intent.Create, 0), 0)
	after := read(t, c, in)
	undo, err := c.Invert(in, nil, after)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"id", "status", "updated", "summary", "description", "labels", "priority"} {
		if d := gocmp.Diff(after.Records[0].Fields[name], undo.Require[name]); d != "" || undo.Require[name] == nil {
			t.Errorf("the delete does not require %s as it is: %s", name, d)
		}
	}
	if d := gocmp.Diff(intent.Fields{"issue": "OPS-2"}, undo.Key); d != "" {
		t.Errorf("the key: %s", d)
	}
	update := named(issueIntent(intent.Update, 0), 1)
	hidden := read(t, c, update)
	hidden.Records[0].Fields = intent.Fields{"summary": "x"} // as Jira shows it to few
	elsewhere := after
	elsewhere.Records = []connectors.Record{{Ref: "10099", Fields: after.Records[0].Fields}}
	two := connectors.Observation{Records: append(after.Records[:1:1], after.Records...)}
	for name, f := range map[string]func() (intent.WriteIntent, error){
		"another's": func() (intent.WriteIntent, error) {
			return c.Invert(named(issueIntent(intent.Create, 0), 8), nil, after)
		},
		"several": func() (intent.WriteIntent, error) { return c.Invert(in, nil, two) },
		"none":    func() (intent.WriteIntent, error) { return c.Invert(in, nil, connectors.Observation{}) },
		"a delete": func() (intent.WriteIntent, error) {
			return c.Invert(named(issueIntent(intent.Delete, 0), 1), &after, after)
		},
		"not seen":    func() (intent.WriteIntent, error) { return c.Invert(update, nil, after) },
		"another one": func() (intent.WriteIntent, error) { return c.Invert(update, &elsewhere, after) },
		"hidden":      func() (intent.WriteIntent, error) { return c.Invert(update, &hidden, after) },
	} {
		if undo, err := f(); !errors.Is(err, jira.ErrNoUndo) {
			t.Errorf("%s: %v, %v; want it refused", name, undo, err)
		}
	}
}

// TestInvertClears: what was not set before is cleared again.
func TestInvertClears(t *testing.T) {
	_, c := stage(t, false)
	in := named(intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Update, Key: intent.Fields{"issue": "OPS-2"},
		Expect: intent.Fields{"duedate": "2026-01-02", "assignee": "ada", "customfield_10010": "x"}}, 1)
	before := read(t, c, in)
	if _, err := c.Write(t.Context(), request(in, &before)); err != nil {
		t.Fatal(err)
	}
	after := read(t, c, in)
	undo, err := c.Invert(in, &before, after)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(t.Context(), request(named(undo, 2), &after)); err != nil {
		t.Fatal(err)
	}
	for name := range in.Expect {
		if v := read(t, c, in).Records[0].Fields[name]; v != nil {
			t.Errorf("%s is %v, want null again", name, v)
		}
	}
}
