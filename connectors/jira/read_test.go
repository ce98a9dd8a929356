package jira_test

import (
	"encoding/json"
	"errors"
	"fmt"
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

func byIssue(w intent.WriteType, key intent.Fields) intent.WriteIntent {
	in := intent.WriteIntent{Kind: jira.KindIssue, Write: w, Key: key}
	if w != intent.Delete {
		in.Expect = intent.Fields{"summary": "x"}
	}
	return named(in, 5)
}

// TestReadByIssue: an issue that the key names is read directly, by any of its names, and is
// shown under the queried name.
func TestReadByIssue(t *testing.T) {
	for deployment, dataCenter := range deployments {
		for name, key := range map[string]intent.Fields{
			"key": {"issue": "OPS-2"}, "other letters": {"issue": "ops-2"}, "id": {"issue": "10002", "project": "OPS"},
		} {
			t.Run(deployment+"/"+name, func(t *testing.T) {
				_, c := stage(t, dataCenter)
				o := read(t, c, byIssue(intent.Update, key))
				if len(o.Records) != 1 || o.Strength != connectors.Strong || o.Records[0].Ref != "10002" {
					t.Fatalf("%+v, want issue 10002 read strongly", o)
				}
				for name, want := range key {
					if got := o.Records[0].Fields[name]; got != want {
						t.Errorf("%s is %v, want %v as it was asked for", name, got, want)
					}
				}
			})
		}
	}
}

// TestNotFound: a missing issue is absent only if we have permission.
func TestNotFound(t *testing.T) {
	cases := map[string]struct {
		change func(s *fakejira.Site)
		in     intent.WriteIntent
		is     error // nil: absent
		reason string
	}{
		"no issue":           {func(*fakejira.Site) {}, byIssue(intent.Delete, intent.Fields{"issue": "OPS-99"}), nil, "the project can be seen"},
		"hidden":             {func(s *fakejira.Site) { s.Hide("OPS", true) }, byIssue(intent.Delete, intent.Fields{"issue": "OPS-2"}), jira.ErrNoAccess, "404 as if it were gone"},
		"no project":         {func(*fakejira.Site) {}, byIssue(intent.Delete, intent.Fields{"issue": "NONE-2"}), jira.ErrNoAccess, "the project may be hidden"},
		"hidden, by id":      {func(s *fakejira.Site) { s.Hide("OPS", true) }, byIssue(intent.Delete, intent.Fields{"issue": "10002", "project": "OPS"}), jira.ErrNoAccess, "an id names no project"},
		"hidden, search":     {func(s *fakejira.Site) { s.Hide("OPS", true) }, named(issueIntent(intent.Create, 0), 0), connectors.Refused("400", nil), "the search names the project"},
		"no comment":         {func(*fakejira.Site) {}, named(intent.WriteIntent{Kind: jira.KindComment, Write: intent.Delete, Key: intent.Fields{"issue": "OPS-1", "comment": "999"}}, 1), nil, "the issue can be seen"},
		"no issue of it":     {func(s *fakejira.Site) { s.Remove("OPS-1") }, named(commentIntent(intent.Create, 0), 1), jira.ErrNoIssue, "not absence of the comment"},
		"no issue of it, id": {func(s *fakejira.Site) { s.Hide("OPS", true) }, named(intent.WriteIntent{Kind: jira.KindComment, Write: intent.Delete, Key: intent.Fields{"issue": "OPS-1", "comment": "10003"}}, 1), jira.ErrNoIssue, "nor this"},
	}
	for name, c := range cases {
		for deployment, dataCenter := range deployments {
			t.Run(deployment+"/"+name, func(t *testing.T) {
				s, connector := stage(t, dataCenter)
				c.change(s)
				o, err := connector.Read(t.Context(), query(c.in))
				var refusal *connectors.Error
				switch {
				case c.is == nil && (err != nil || len(o.Records) != 0):
					t.Errorf("%v, %v; want absent: %s", o.Records, err, c.reason)
				case errors.As(c.is, &refusal) && err != nil:
				case !errors.Is(err, c.is):
					t.Errorf("%v, want %v: %s", err, c.is, c.reason)
				}
			})
		}
	}
}

// TestOthersHands: other actors' changes to an issue of ours do not make it look absent, nor
// theirs like ours.
func TestOthersHands(t *testing.T) {
	in := named(issueIntent(intent.Create, 0), 0) // what stage made
	cases := map[string]struct {
		do     func(s *fakejira.Site)
		ref    string
		stamps []bool // of the records: whether they have our stamp
		reason string
	}{
		"nothing":               {func(*fakejira.Site) {}, "", []bool{true}, "it is there"},
		"cloned":                {func(s *fakejira.Site) { s.Clone("OPS-2") }, "", []bool{true, false}, "a clone has the labels and not the property"},
		"property gone":         {func(s *fakejira.Site) { s.DropProperties("OPS-2") }, "", []bool{false}, "the label alone proves nothing, and is not nothing"},
		"labels gone":           {func(s *fakejira.Site) { s.Edit("OPS-2", map[string]any{"labels": []any{}}) }, "", nil, "no search finds it"},
		"labels gone, answered": {func(s *fakejira.Site) { s.Edit("OPS-2", map[string]any{"labels": []any{}}) }, "10002", []bool{true}, "the answer had named it"},
		"all gone, answered": {func(s *fakejira.Site) { s.DropProperties("OPS-2"); s.Edit("OPS-2", map[string]any{"labels": []any{}}) },
			"10002", []bool{false}, "the answer had named it"},
		"reference gone": {func(s *fakejira.Site) { s.Edit("OPS-2", map[string]any{"labels": []any{in.Stamp()}}) }, "", []bool{true}, "the stamp finds it"},
		"stamp label alone": {func(s *fakejira.Site) {
			s.DropProperties("OPS-2")
			s.Edit("OPS-2", map[string]any{"labels": []any{in.Stamp()}})
		}, "", []bool{false}, "it proves nothing, and is not nothing"},
		"stamp gone": {func(s *fakejira.Site) { s.Edit("OPS-2", map[string]any{"labels": []any{"Invoice-000"}}) }, "", []bool{true}, "the reference finds it"},
		"moved":      {func(s *fakejira.Site) { s.Move("OPS-2", "DEV") }, "", []bool{true}, "the stamp finds it anywhere"},
		"removed":    {func(s *fakejira.Site) { s.Remove("OPS-2") }, "10002", nil, "it is gone"},
	}
	for name, c := range cases {
		for deployment, dataCenter := range deployments {
			t.Run(deployment+"/"+name, func(t *testing.T) {
				s, connector := stage(t, dataCenter)
				c.do(s)
				q := query(in)
				q.Ref = c.ref
				o, err := connector.Read(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				var got []bool
				for _, r := range o.Records {
					got = append(got, r.Stamp == in.Stamp())
				}
				if d := gocmp.Diff(c.stamps, got); d != "" || o.Strength != connectors.Weak {
					t.Errorf("found %v (%q), want %v: %s", got, o.Strength, c.stamps, c.reason)
				}
			})
		}
	}
}

// TestMoved: an old key leads to the issue, alone and among others.
func TestMoved(t *testing.T) {
	for deployment, dataCenter := range deployments {
		s, c := stage(t, dataCenter)
		if key := s.Move("OPS-2", "DEV"); key != "DEV-1" {
			t.Fatal(key)
		}
		qs := []connectors.Query{query(byIssue(intent.Update, intent.Fields{"issue": "OPS-2"})), query(byIssue(intent.Update, intent.Fields{"issue": "OPS-1"})), query(byIssue(intent.Update, intent.Fields{"issue": "dev-1"}))}
		answers, err := c.ReadMany(t.Context(), qs)
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range []string{"10002", "10001", "10002"} {
			if a := answers[n]; a.Err != nil || len(a.Observation.Records) != 1 || a.Observation.Records[0].Ref != want {
				t.Errorf("%s: answer %d is %+v, want issue %s", deployment, n, a, want)
			}
		}
		if f := answers[0].Observation.Records[0].Fields; f["issue"] != "OPS-2" || f["key"] != "DEV-1" || f["project"] != "DEV" {
			t.Errorf("%s: it is shown as %v", deployment, f)
		}
	}
}

// TestStaleIndex: the index's copy of an issue is not used.
func TestStaleIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, dataCenter := range deployments {
			s := fakejira.New(fakejira.Options{DataCenter: dataCenter, IndexLag: time.Minute})
			c := connect(t, s, nil)
			in := named(issueIntent(intent.Create, 1), 1)
			receipt, err := c.Write(t.Context(), request(in, nil))
			if err != nil {
				t.Fatal(err)
			}
			if o := read(t, c, in); len(o.Records) != 0 || o.Strength == connectors.Strong {
				t.Errorf("the index is behind, and the read finds %d records, %q", len(o.Records), o.Strength)
			}
			q := query(in)
			q.Ref = receipt.Ref
			if o, err := c.Read(t.Context(), q); err != nil || len(o.Records) != 1 {
				t.Errorf("%v, %v: the answer named it, and it can be read itself", o.Records, err)
			}
			<-time.After(2 * time.Minute)
			s.Edit("OPS-1", map[string]any{"summary": "new", "labels": []any{"Invoice-001"}})
			if o := read(t, c, in); len(o.Records) != 1 || o.Records[0].Fields["summary"] != "new" {
				t.Errorf("%v: want it as it is", o.Records)
			}
			s.Edit("OPS-1", map[string]any{"labels": []any{}, "summary": "newer"})
			s.DropProperties("OPS-1")
			if o := read(t, c, in); len(o.Records) != 0 {
				t.Errorf("%v: it has the labels in the index alone", o.Records)
			}
		}
	})
}

// TestReconcile: the id of an answer is sent with the search.
func TestReconcile(t *testing.T) {
	s, _ := stage(t, false)
	var body struct {
		JQL       string        `json:"jql"`
		Fields    []string      `json:"fields"`
		Reconcile []json.Number `json:"reconcileIssues"`
	}
	c := connect(t, s, func(o *jira.Options) {
		o.Transport = between{s.Transport(), func(r *http.Request, sent []byte) *http.Response {
			if strings.HasSuffix(r.URL.Path, "/search/jql") {
				_ = json.Unmarshal(sent, &body)
			}
			return nil
		}}
	})
	q := query(named(issueIntent(intent.Create, 0), 0))
	q.Ref = "10002"
	if _, err := c.Read(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	want := `(project = "OPS" AND labels = "Invoice-000") OR labels = "` + q.Stamp + `"`
	if body.JQL != want || len(body.Reconcile) != 1 || body.Reconcile[0] != "10002" || len(body.Fields) == 0 {
		t.Errorf("%+v, want %s, the id and named fields", body, want)
	}
}

// TestPages: a search and a list are read to their end.
func TestPages(t *testing.T) {
	for deployment, dataCenter := range deployments {
		s := fakejira.New(fakejira.Options{DataCenter: dataCenter, PageSize: 2})
		c := connect(t, s, nil)
		for n := range 5 {
			if _, err := s.Seed("OPS", map[string]any{"summary": fmt.Sprint(n), "labels": []any{"Invoice-001"}}); err != nil {
				t.Fatal(err)
			}
			property := map[string]any{"readback": map[string]any{"reference": "Note-001"}}
			if err := s.SeedComment("OPS-1", "again", property); err != nil {
				t.Fatal(err)
			}
		}
		for _, in := range []intent.WriteIntent{issueIntent(intent.Create, 1), commentIntent(intent.Create, 1)} {
			if o := read(t, c, named(in, 1)); len(o.Records) != 5 {
				t.Errorf("%s: %d of kind %s, want all five", deployment, len(o.Records), in.Kind)
			}
		}
	}
}

// TestOddAnswers: an answer of an unexpected form is an error, and never absence.
func TestOddAnswers(t *testing.T) {
	in := named(issueIntent(intent.Create, 0), 0)
	for path, bodies := range map[string][]string{
		"/search/jql": {`{}`, `{"isLast":true}`, `{"issues":null,"isLast":true}`, `{"issues":[],"isLast":false}`, `{"issues":[{"key":"OPS-2"}]}`,
			`{"issues":[{"id":"10002/../1"}],"isLast":true}`, `{"issues":[]} trailing`, `[]`, `{"issues":{},"isLast":true}`},
		"/issue/10002": {`{}`, `{"id":"10002","key":"OPS-2"}`, `{"id":"10003","key":"OPS-3","fields":{}}`, `{"errorMessages":[]}`},
		"/mypermissions": {`{}`, `{"permissions":{}}`, `{"permissions":{"BROWSE_PROJECTS":{"havePermission":false}}}`,
			`{"permissions":{"BROWSE_PROJECTS":{"havePermission":"yes"}}}`},
	} {
		for _, body := range bodies {
			s, _ := stage(t, false)
			if path == "/mypermissions" {
				s.Remove("OPS-2")
			}
			c := connect(t, s, func(o *jira.Options) {
				o.Transport = between{s.Transport(), func(r *http.Request, _ []byte) *http.Response {
					if strings.HasSuffix(r.URL.Path, path) {
						return response(200, body)
					}
					return nil
				}}
			})
			if o, err := c.Read(t.Context(), query(in)); err == nil {
				t.Errorf("%s answers %s, and the read finds %d records", path, body, len(o.Records))
			}
		}
	}
}

// TestAnonymousAnswerIsNoRead: with a login that is not accepted, or does not get through, Jira answers as it does
// to anonymous users: 200 and no issues.
func TestAnonymousAnswerIsNoRead(t *testing.T) {
	for name, c := range map[string]struct {
		header []string
		is     error
	}{
		"failed":      {[]string{"X-Seraph-LoginReason", "AUTHENTICATED_FAILED"}, jira.ErrNoAccess},
		"denied":      {[]string{"X-Seraph-LoginReason", "AUTHENTICATION_DENIED"}, jira.ErrNoAccess},
		"not a user":  {[]string{"X-Seraph-LoginReason", "AUTHORISATION_FAILED"}, jira.ErrNoAccess},
		"logged out":  {[]string{"X-Seraph-LoginReason", "OUT"}, jira.ErrNoAccess},
		"anonymous":   {[]string{"X-AUSERNAME", "anonymous"}, jira.ErrNoAccess},
		"with a user": {[]string{"X-Seraph-LoginReason", "OK", "X-AUSERNAME", "robot"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := stage(t, false)
			connector := connect(t, s, func(o *jira.Options) {
				o.Transport = between{s.Transport(), func(r *http.Request, _ []byte) *http.Response {
					if strings.HasSuffix(r.URL.Path, "/search/jql") {
						return response(200, `{"issues":[],"isLast":true}`, c.header...)
					}
					return nil
				}}
			})
			if _, err := connector.Read(t.Context(), query(named(issueIntent(intent.Create, 0), 0))); !errors.Is(err, c.is) {
				t.Errorf("%v, want %v", err, c.is)
			}
		})
	}
}

// TestBulk: many queries take few calls, and are assigned by their queries.
func TestBulk(t *testing.T) {
	const issues = 60
	s := fakejira.New(fakejira.Options{Projects: []string{"OPS", "DEV"}})
	c := connect(t, s, nil)
	var qs []connectors.Query
	for n := range issues {
		project := []string{"OPS", "DEV"}[n%2]
		if _, err := s.Seed(project, map[string]any{"summary": fmt.Sprint(n), "labels": []any{fmt.Sprintf("Invoice-%03d", n/2)}}); err != nil {
			t.Fatal(err)
		}
		in := issueIntent(intent.Create, n/2)
		in.Key["project"] = project
		qs = append(qs, query(named(in, n)))
	}
	s.Remove("OPS-3")
	qs = append(qs, query(byIssue(intent.Update, intent.Fields{"issue": "OPS-1"})), query(byIssue(intent.Update, intent.Fields{"issue": "OPS-3"})),
		query(byIssue(intent.Update, intent.Fields{"issue": "NONE-1"})))
	asked := len(s.Requests())
	answers, err := c.ReadMany(t.Context(), qs)
	if err != nil {
		t.Fatal(err)
	}
	for n, a := range answers[:issues] {
		want := 1
		if n == 4 { // OPS-3
			want = 0
		}
		if a.Err != nil || len(a.Observation.Records) != want {
			t.Errorf("answer %d: %d records (%v), want %d", n, len(a.Observation.Records), a.Err, want)
		}
		if want == 1 && len(a.Observation.Records) == 1 && a.Observation.Records[0].Fields["summary"] != fmt.Sprint(n) {
			t.Errorf("answer %d is of the issue %v", n, a.Observation.Records[0].Fields["summary"])
		}
	}
	rest := answers[issues:]
	if len(rest[0].Observation.Records) != 1 || len(rest[1].Observation.Records) != 0 || rest[1].Err != nil || !errors.Is(rest[2].Err, jira.ErrNoAccess) {
		t.Errorf("by key: %+v, want there, absent, and unknown", rest)
	}
	if n := len(s.Requests()) - asked; n > 20 {
		t.Errorf("%d calls for %d queries", n, len(qs))
	}
}
