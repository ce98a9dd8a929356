package jira_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/fakes/jira"
	"github.com/readback-go/readback/readbacktest/fault"
)

// ask makes one request and returns status and body.
func ask(t *testing.T, s *jira.Site, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "https://jira.invalid/rest/api/"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Transport().RoundTrip(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, "cut"
	}
	return res.StatusCode, string(text)
}

func seeded(t *testing.T, o jira.Options) *jira.Site {
	t.Helper()
	o.Projects = []string{"OPS", "DEV"}
	s := jira.New(o)
	for n := range 3 {
		if _, err := s.Seed("OPS", map[string]any{"summary": fmt.Sprint(n), "description": "two\nlines", "labels": []any{"a", fmt.Sprintf("l%d", n)}}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestAnswers: what the vendor documents, and what was seen of the real one.
func TestAnswers(t *testing.T) {
	const create = `{"fields":{"project":{"key":"OPS"},"issuetype":{"name":"Task"},"summary":" x "}}`
	cases := map[string]struct {
		dataCenter   bool
		method, path string
		body         string
		status       int
		has, hasNot  string
		reason       string
	}{
		"old search on Cloud":      {false, "POST", "2/search", `{}`, 410, "The requested API has been removed", "", "the real words"},
		"old search elsewhere":     {true, "POST", "2/search", `{"jql":"labels = \"a\""}`, 200, `"total":3`, "", "it stays"},
		"new search elsewhere":     {true, "POST", "2/search/jql", `{"jql":"labels = \"a\""}`, 404, "", "issues", "there is none"},
		"bulk fetch elsewhere":     {true, "POST", "2/issue/bulkfetch", `{"issueIdsOrKeys":["10001"]}`, 405, "", "issues", "it is taken for an issue of that name"},
		"ids alone":                {false, "POST", "2/search/jql", `{"jql":"labels = \"l1\""}`, 200, `"id":"10002"`, "fields", "no field was asked for"},
		"named fields":             {false, "POST", "2/search/jql", `{"jql":"labels = \"l1\"","fields":["summary"]}`, 200, `"summary":"1"`, "labels", "one was"},
		"unbounded":                {false, "POST", "2/search/jql", `{"jql":""}`, 400, "Unbounded", "", "Cloud refuses it"},
		"unknown project":          {false, "POST", "2/search/jql", `{"jql":"project = \"NONE\""}`, 400, "does not exist", "", "no empty answer"},
		"broken JQL":               {false, "POST", "2/search/jql", `{"jql":"labels = \"a"}`, 400, "not been completed", "", ""},
		"and, or, brackets":        {false, "POST", "2/search/jql", `{"jql":"(project = \"OPS\" AND labels = \"l0\") OR labels = \"L2\""}`, 200, `"id":"10003"`, "10002", "an index folds case"},
		"page tokens":              {false, "POST", "2/search/jql", `{"jql":"labels = \"a\"","maxResults":2}`, 200, "nextPageToken", "10003", ""},
		"too many to reconcile":    {false, "POST", "2/search/jql", `{"jql":"labels = \"a\"","reconcileIssues":[` + strings.Repeat("1,", 50) + `1]}`, 400, "50", "", "the vendor's number"},
		"bulk, one missing":        {false, "POST", "2/issue/bulkfetch", `{"issueIdsOrKeys":["10003","9","ops-1"],"fields":["summary"]}`, 200, `"id":"10001","key":"OPS-1"`, `"9"`, "it is simply not there, and the order is of ids"},
		"bulk, too many":           {false, "POST", "2/issue/bulkfetch", `{"issueIdsOrKeys":["1"` + strings.Repeat(`,"1"`, 100) + `]}`, 400, "100", "", ""},
		"bulk in version 3":        {false, "POST", "3/issue/bulkfetch", `{"issueIdsOrKeys":["10001"]}`, 200, `"type":"doc"`, "two\\r", "texts are documents"},
		"status by edit":           {false, "PUT", "2/issue/OPS-1", `{"fields":{"status":{"name":"Done"}}}`, 204, "", "", "ignored without a word"},
		"unknown field":            {false, "PUT", "2/issue/OPS-1", `{"fields":{"wrong":1}}`, 400, "wrong", "", "it is named"},
		"document in version 2":    {false, "PUT", "2/issue/OPS-1", `{"fields":{"description":{"type":"doc"}}}`, 400, "description", "", "texts are strings"},
		"no summary":               {false, "POST", "2/issue", `{"fields":{"project":{"key":"OPS"}}}`, 400, "summary", "", ""},
		"create":                   {false, "POST", "2/issue", create, 201, `"key":"OPS-4"`, "", ""},
		"permissions unasked":      {false, "GET", "2/mypermissions?projectKey=OPS", "", 400, "permissions", "", "Cloud requires their names"},
		"permissions":              {true, "GET", "2/mypermissions?projectKey=OPS", "", 200, "BROWSE_PROJECTS", "", ""},
		"permissions, no project":  {false, "GET", "2/mypermissions?projectKey=NONE&permissions=BROWSE_PROJECTS", "", 404, "No project", "", ""},
		"comment without text":     {false, "POST", "2/issue/OPS-1/comment", `{"body":" "}`, 400, "comment", "", ""},
		"transition not available": {false, "POST", "2/issue/OPS-1/transitions", `{"transition":{"id":"31"}}`, 400, "not valid", "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := seeded(t, jira.Options{DataCenter: c.dataCenter})
			status, body := ask(t, s, c.method, c.path, c.body)
			if status != c.status || !strings.Contains(body, c.has) || (c.hasNot != "" && strings.Contains(body, c.hasNot)) {
				t.Errorf("%d %s\nwant %d with %q and without %q: %s", status, body, c.status, c.has, c.hasNot, c.reason)
			}
			if done := s.Issues()[0].Fields["status"].(map[string]any)["name"]; done != jira.ToDo {
				t.Errorf("the status is %v", done)
			}
		})
	}
}

// TestIndexLags: a search lags, an issue itself does not, and neither does what is reconciled.
func TestIndexLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seeded(t, jira.Options{IndexLag: time.Minute})
		search := func(more string) string {
			_, body := ask(t, s, "POST", "2/search/jql", `{"jql":"labels = \"a\""`+more+`}`)
			return body
		}
		if body := search(""); strings.Contains(body, "10001") {
			t.Errorf("found at once: %s", body)
		}
		if body := search(`,"reconcileIssues":[10001]`); !strings.Contains(body, "10001") || strings.Contains(body, "10002") {
			t.Errorf("reconciled: %s", body)
		}
		if status, _ := ask(t, s, "GET", "2/issue/10001", ""); status != 200 {
			t.Errorf("the issue itself: %d", status)
		}
		<-time.After(time.Minute)
		if body := search(""); !strings.Contains(body, "10003") {
			t.Errorf("not found after a minute: %s", body)
		}
		s.Remove("OPS-1")
		if body := search(""); !strings.Contains(body, "10001") {
			t.Errorf("gone at once: %s", body)
		}
	})
}

// TestHidden: a hidden project gives the same answer as a missing one.
func TestHidden(t *testing.T) {
	s := seeded(t, jira.Options{})
	_, missing := ask(t, s, "GET", "2/issue/OPS-99", "")
	s.Hide("OPS", true)
	if status, body := ask(t, s, "GET", "2/issue/OPS-1", ""); status != 404 || body != missing {
		t.Errorf("%d %s, want the answer for a missing issue: %s", status, body, missing)
	}
	if _, body := ask(t, s, "POST", "2/issue/bulkfetch", `{"issueIdsOrKeys":["10001"]}`); strings.Contains(body, "10001") {
		t.Errorf("the bulk fetch shows %s", body)
	}
}

// TestFaults: each fault works as documented, once, and the log is true.
func TestFaults(t *testing.T) {
	const create = `{"fields":{"project":{"key":"OPS"},"issuetype":{"name":"Task"},"summary":"x"}}`
	for _, c := range []struct {
		fault           fault.Fault
		status, effects int
	}{
		{fault.Fault{Kind: fault.LostAnswer}, 0, 1},
		{fault.Fault{Kind: fault.DroppedBefore}, 0, 0},
		{fault.Fault{Kind: fault.BadGateway}, 502, 1},
		{fault.Fault{Kind: fault.BadGateway, How: "503"}, 503, 1},
		{fault.Fault{Kind: fault.BadGateway, How: "409"}, 409, 1},
		{fault.Fault{Kind: fault.Refused, How: "409"}, 409, 0},
		{fault.Fault{Kind: fault.Refused, How: "301"}, 301, 0},
		{fault.Fault{Kind: fault.PhantomSuccess}, 201, 0},
		{fault.Fault{Kind: fault.Refused}, 400, 0},
		{fault.Fault{Kind: fault.Throttled}, 429, 0},
		{fault.Fault{Kind: fault.Refused, How: "401"}, 401, 0},
		{fault.Fault{Kind: fault.Refused, How: "404"}, 404, 0},
		{fault.Fault{Kind: fault.CutBody}, 201, 1},
		{fault.Fault{Kind: fault.Unreachable}, 0, 0},
	} {
		s := jira.New(jira.Options{})
		if err := s.Set(c.fault.Once()); err != nil {
			t.Fatal(err)
		}
		status, body := ask(t, s, "POST", "2/issue", create)
		if status != c.status || len(s.Effects()) != c.effects || len(s.Issues()) != c.effects {
			t.Errorf("%s: %d %s with %d effects, want %+v", c.fault, status, body, len(s.Effects()), c)
		}
		if s.Left(c.fault.Kind) != 0 {
			t.Errorf("%s is still set", c.fault)
		}
		if status, _ := ask(t, s, "POST", "2/issue", create); status != 201 {
			t.Errorf("%s: the next request is answered %d", c.fault, status)
		}
	}
	if err := jira.New(jira.Options{}).Set(fault.Fault{Kind: fault.UnreadableRead, How: "no such form"}.Once()); err == nil {
		t.Error("a form that does not exist is taken")
	}
}

// TestLater: what comes late comes.
func TestLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kind, want := range map[fault.Kind]int{fault.DuplicateBehindOurBack: 2, fault.Rollback: 0} {
			s := jira.New(jira.Options{})
			if err := s.Set(fault.Fault{Kind: kind, Delay: time.Minute}.Once()); err != nil {
				t.Fatal(err)
			}
			if status, _ := ask(t, s, "POST", "2/issue", `{"fields":{"project":{"key":"OPS"},"issuetype":{"name":"Task"},"summary":"x"}}`); status != 201 {
				t.Fatal(status)
			}
			if n := len(s.Issues()); n != 1 {
				t.Errorf("%s: %d issues at first", kind, n)
			}
			<-time.After(2 * time.Minute)
			if n := len(s.Issues()); n != want {
				t.Errorf("%s: %d issues later, want %d", kind, n, want)
			}
			for _, e := range s.Effects()[1:] {
				if !e.Itself {
					t.Errorf("%s: the log says that a request did it", kind)
				}
			}
		}
	})
}

// TestStoreIsNotShared: a reader of the store cannot change it.
func TestStoreIsNotShared(t *testing.T) {
	s := seeded(t, jira.Options{})
	s.Issues()[0].Fields["summary"] = "changed"
	text, err := json.Marshal(s.Issues()[0].Fields["summary"])
	if err != nil || string(text) != `"0"` {
		t.Errorf("%s %v", text, err)
	}
}
