package jira_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
)

// TestKeys: a key that cannot be queried, or not by this write, is refused with the name of the
// field, and nothing is sent.
func TestKeys(t *testing.T) {
	issue, comment := jira.KindIssue, jira.KindComment
	cases := map[string]struct {
		kind   string
		write  intent.WriteType
		key    intent.Fields
		names  string
		reason string
	}{
		"upsert":                {issue, intent.Upsert, intent.Fields{"project": "OPS", "reference": "a"}, "/write", "Jira has none"},
		"no reference":          {issue, intent.Create, intent.Fields{"project": "OPS"}, "/key/reference", "a whole project is no record"},
		"no project":            {issue, intent.Create, intent.Fields{"reference": "a"}, "/key/project", "a label is everybody's"},
		"create of an issue":    {issue, intent.Create, intent.Fields{"issue": "OPS-1"}, "/key/issue", "Jira chooses the key"},
		"both":                  {issue, intent.Update, intent.Fields{"issue": "OPS-1", "reference": "a"}, "/key/reference", "one of the two"},
		"id alone":              {issue, intent.Update, intent.Fields{"issue": "10001"}, "/key/project", "a 404 would prove nothing"},
		"a path":                {issue, intent.Update, intent.Fields{"issue": "OPS-1/../2"}, "/key/issue", "it is part of a URL"},
		"a query":               {issue, intent.Update, intent.Fields{"issue": "OPS-1?x=1"}, "/key/issue", "likewise"},
		"a number":              {issue, intent.Update, intent.Fields{"issue": true}, "/key/issue", "keys are strings"},
		"small letters":         {issue, intent.Create, intent.Fields{"project": "ops", "reference": "a"}, "/key/project", "keys of projects are compared exactly"},
		"blank in a label":      {issue, intent.Create, intent.Fields{"project": "OPS", "reference": "a b"}, "/key/reference", "labels have none"},
		"no-break space":        {issue, intent.Create, intent.Fields{"project": "OPS", "reference": "a\u00a0b"}, "/key/reference", "nor such"},
		"long label":            {issue, intent.Create, intent.Fields{"project": "OPS", "reference": strings.Repeat("a", 256)}, "/key/reference", "labels end at 255"},
		"a stamp":               {issue, intent.Create, intent.Fields{"project": "OPS", "reference": "rb-" + strings.Repeat("a", 32)}, "/key/reference", "it would be taken for ours"},
		"another field":         {issue, intent.Update, intent.Fields{"project": "OPS", "summary": "a"}, "/key/summary", "no exact lookup"},
		"comment, no issue":     {comment, intent.Create, intent.Fields{"reference": "a"}, "/key/issue", "comments are on issues"},
		"comment, no name":      {comment, intent.Create, intent.Fields{"issue": "OPS-1"}, "/key/reference", "any comment would do"},
		"comment, id at create": {comment, intent.Create, intent.Fields{"issue": "OPS-1", "comment": "1"}, "/key/comment", "Jira chooses it"},
		"comment, odd id":       {comment, intent.Update, intent.Fields{"issue": "OPS-1", "comment": "1/2"}, "/key/comment", "it is part of a URL"},
		"comment, both":         {comment, intent.Update, intent.Fields{"issue": "OPS-1", "comment": "1", "reference": "a"}, "/key/reference", "one of the two"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := fakejira.New(fakejira.Options{})
			in := named(intent.WriteIntent{Kind: c.kind, Write: c.write, Key: c.key, Expect: intent.Fields{"summary": "x"}}, 1)
			refusedWith(t, s, connect(t, s, nil), in, c.names)
			if _, err := connect(t, s, nil).Read(t.Context(), query(in)); !errors.Is(err, jira.ErrIntent) || !strings.Contains(err.Error(), c.names) {
				t.Errorf("the read says %v, want %s named: %s", err, c.names, c.reason)
			}
		})
	}
}

func refusedWith(t *testing.T, s *fakejira.Site, c *jira.Connector, in intent.WriteIntent, names string) {
	t.Helper()
	sends := s.Sends()
	var before *connectors.Observation
	if in.Write != intent.Create {
		before = &connectors.Observation{Records: []connectors.Record{{Ref: "10002", Fields: intent.Fields{"key": "OPS-2", "project": "OPS", "reference": "Invoice-000"}}}}
	}
	_, err := c.Write(t.Context(), request(in, before))
	if fate := word(err); (fate != "-" && fate != "no") || !errors.Is(err, jira.ErrIntent) || !strings.Contains(err.Error(), names) || s.Sends() != sends {
		t.Errorf("%v after %d sends, want it not sent, with %s named", err, s.Sends()-sends, names)
	}
}

// TestFields: a value that Jira cannot store unchanged is refused with the name of the field.
func TestFields(t *testing.T) {
	cases := map[string]struct {
		kind            string
		write           intent.WriteType
		expect, payload intent.Fields
		absent          []string
		names           string
	}{
		"document":           {jira.KindIssue, intent.Create, intent.Fields{"description": map[string]any{"type": "doc"}}, nil, nil, "/expect/description"},
		"object":             {jira.KindIssue, intent.Create, intent.Fields{"priority": map[string]any{"name": "High"}}, nil, nil, "/expect/priority"},
		"no list":            {jira.KindIssue, intent.Create, intent.Fields{"labels": "a"}, nil, nil, "/expect/labels"},
		"null list":          {jira.KindIssue, intent.Update, intent.Fields{"components": nil}, nil, nil, "/expect/components"},
		"blank in a label":   {jira.KindIssue, intent.Create, intent.Fields{"labels": []any{"a b"}}, nil, nil, "/expect/labels"},
		"a stamp as label":   {jira.KindIssue, intent.Create, intent.Fields{"labels": []any{"rb-" + strings.Repeat("a", 32)}}, nil, nil, "/expect/labels"},
		"the reference":      {jira.KindIssue, intent.Create, intent.Fields{"labels": []any{"Invoice-000"}}, nil, nil, "/expect/labels"},
		"the reference, too": {jira.KindIssue, intent.Update, intent.Fields{"labels": []any{"Invoice-000"}}, nil, nil, "/expect/labels"},
		"status at create":   {jira.KindIssue, intent.Create, intent.Fields{"summary": "a", "status": "Done"}, nil, nil, "/expect/status"},
		"time of creation":   {jira.KindIssue, intent.Create, intent.Fields{"created": "2026-01-01"}, nil, nil, "/expect/created"},
		"key":                {jira.KindIssue, intent.Create, intent.Fields{"key": "OPS-7"}, nil, nil, "/expect/key"},
		"no field":           {jira.KindIssue, intent.Create, intent.Fields{"a b": 1}, nil, nil, "/expect/a b"},
		"in the payload":     {jira.KindIssue, intent.Create, intent.Fields{"summary": "a"}, intent.Fields{"assignee": true}, nil, "/payload/assignee"},
		"absent":             {jira.KindIssue, intent.Update, intent.Fields{"summary": "a"}, nil, []string{"/duedate"}, "/absent"},
		"comment summary":    {jira.KindComment, intent.Create, intent.Fields{"body": "a", "summary": "a"}, nil, nil, "/expect/summary"},
		"comment document":   {jira.KindComment, intent.Create, intent.Fields{"body": map[string]any{}}, nil, nil, "/expect/body"},
		"comment visibility": {jira.KindComment, intent.Create, intent.Fields{"body": "a", "visibility": "all"}, nil, nil, "/expect/visibility"},
		"comment, no text":   {jira.KindComment, intent.Create, intent.Fields{"visibility": nil}, nil, nil, "/expect/body"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, connector := stage(t, false)
			in := issueIntent(c.write, 0)
			if c.kind == jira.KindComment {
				in = commentIntent(c.write, 0)
			}
			in.Expect, in.Payload, in.Absent = c.expect, c.payload, c.absent
			refusedWith(t, s, connector, named(in, 1), c.names)
		})
	}
}

// TestUsers: by account ID on Cloud, by name on Data Center.
func TestUsers(t *testing.T) {
	for deployment, dataCenter := range deployments {
		s, c := stage(t, dataCenter)
		in := named(intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Update, Key: intent.Fields{"issue": "OPS-2"}, Expect: intent.Fields{"assignee": "ada"}}, 1)
		before := read(t, c, in)
		if _, err := c.Write(t.Context(), request(in, &before)); err != nil {
			t.Fatal(err)
		}
		stored, _ := s.Issues()[1].Fields["assignee"].(map[string]any)
		if field := map[bool]string{false: "accountId", true: "name"}[dataCenter]; stored[field] != "ada" {
			t.Errorf("%s: stored is %v", deployment, stored)
		}
		if got := read(t, c, in).Records[0].Fields["assignee"]; got != "ada" {
			t.Errorf("%s: read is %v", deployment, got)
		}
	}
}

// TestCommentEdit: an edit replaces text, visibility and property together; what
// the intent does not name stays all the same.
func TestCommentEdit(t *testing.T) {
	for deployment, dataCenter := range deployments {
		for _, expect := range []intent.Fields{{"body": "new"}, {"visibility": map[string]any{"type": "role", "value": "Users"}}, {"visibility": nil}} {
			_, c := stage(t, dataCenter)
			in := named(commentIntent(intent.Update, 0), 1)
			in.Expect = expect
			before := read(t, c, in)
			if _, err := c.Write(t.Context(), request(in, &before)); err != nil {
				t.Fatal(err)
			}
			was, is := before.Records[0], read(t, c, in).Records[0]
			for _, name := range []string{"body", "visibility"} {
				want, named := expect[name]
				if !named {
					want = was.Fields[name]
				}
				b := bench{}
				if !b.same(name, want, is.Fields[name]) {
					t.Errorf("%s: after %v the %s is %v, want %v", deployment, expect, name, is.Fields[name], want)
				}
			}
			if is.Stamp != was.Stamp || is.Stamp == "" {
				t.Errorf("%s: the stamp is %q, was %q", deployment, is.Stamp, was.Stamp)
			}
		}
	}
}

// TestUnseen: a field that is to be empty and that Jira does not show cannot be
// seen to be empty.
func TestUnseen(t *testing.T) {
	s, _ := stage(t, false)
	body := `{"id":"10002","key":"OPS-2","fields":{"summary":"x","labels":[],"project":{"key":"OPS"}}}`
	c := connect(t, s, func(o *jira.Options) {
		o.Transport = between{s.Transport(), func(r *http.Request, _ []byte) *http.Response {
			if strings.HasSuffix(r.URL.Path, "/issue/OPS-2") {
				return response(200, body)
			}
			return nil
		}}
	})
	for value, wrong := range map[any]bool{nil: true, "": true, "text": false} {
		in := named(intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Update, Key: intent.Fields{"issue": "OPS-2"}, Expect: intent.Fields{"description": value}}, 1)
		if _, err := c.Read(t.Context(), query(in)); wrong != (err != nil) {
			t.Errorf("expecting %#v: %v", value, err)
		}
	}
}

func byID(id string) connectors.Query {
	return query(byIssue(intent.Delete, intent.Fields{"issue": id, "project": "OPS"}))
}

// TestGateway: a 404 or a list of errors that is not Jira's word on the record
// is not absence.
func TestGateway(t *testing.T) {
	comment := named(commentIntent(intent.Create, 0), 0)
	one, two := query(byIssue(intent.Delete, intent.Fields{"issue": "OPS-1"})), query(byIssue(intent.Delete, intent.Fields{"issue": "OPS-2"}))
	for path, c := range map[string]struct {
		dataCenter bool
		status     int
		body       string
		qs         []connectors.Query
	}{
		"/properties/readback": {true, 404, "<html>not here</html>", []connectors.Query{query(comment)}},
		"/issue/OPS-2":         {false, 404, "", []connectors.Query{two}},
		"/issue/bulkfetch":     {false, 200, `{"issues":[],"issueErrors":[{"id":"10001"}]}`, []connectors.Query{one, two}},
		"/issue/bulkfetch?":    {false, 200, `{"issues":[],"issueErrors":[{"id":"10001"}]}`, []connectors.Query{byID("10001"), byID("10002")}},
	} {
		s, _ := stage(t, c.dataCenter)
		connector := connect(t, s, func(o *jira.Options) {
			o.Transport = between{s.Transport(), func(r *http.Request, _ []byte) *http.Response {
				if strings.HasSuffix(r.URL.Path, strings.TrimSuffix(path, "?")) {
					return response(c.status, c.body)
				}
				return nil
			}}
		})
		answers, err := connector.ReadMany(t.Context(), c.qs)
		if err != nil {
			t.Fatal(err)
		}
		absent := slices.ContainsFunc(answers, func(a connectors.BulkAnswer) bool { return a.Err == nil && len(a.Observation.Records) == 0 })
		if absent {
			t.Errorf("%s answers %d %s, and something is called absent: %+v", path, c.status, c.body, answers)
		}
	}
}
