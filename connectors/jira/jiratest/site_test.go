package jiratest_test

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

	"github.com/readback-go/readback/connectors/jira/jiratest"
)

// ask makes one request and returns status and body.
func ask(t *testing.T, s *jiratest.Site, method, path, body string) (int, string) {
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

func seeded(t *testing.T, o jiratest.Options) *jiratest.Site {
	t.Helper()
	o.Projects = []string{"OPS", "DEV"}
	s := jiratest.New(o)
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
		"permissions unasked":      {false, "GET", "2/mypermissions?projectKey=OPS", "", 400, "permissions", "", "Cloud wants to be told which"},
		"permissions":              {true, "GET", "2/mypermissions?projectKey=OPS", "", 200, "BROWSE_PROJECTS", "", ""},
		"permissions, no project":  {false, "GET", "2/mypermissions?projectKey=NONE&permissions=BROWSE_PROJECTS", "", 404, "No project", "", ""},
		"comment without text":     {false, "POST", "2/issue/OPS-1/comment", `{"body":" "}`, 400, "comment", "", ""},
		"transition not available": {false, "POST", "2/issue/OPS-1/transitions", `{"transition":{"id":"31"}}`, 400, "not valid", "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := seeded(t, jiratest.Options{DataCenter: c.dataCenter})
			status, body := ask(t, s, c.method, c.path, c.body)
			if status != c.status || !strings.Contains(body, c.has) || (c.hasNot != "" && strings.Contains(body, c.hasNot)) {
				t.Errorf("%d %s\nwant %d with %q and without %q: %s", status, body, c.status, c.has, c.hasNot, c.reason)
			}
			if done := s.Issues()[0].Fields["status"].(map[string]any)["name"]; done != jiratest.ToDo {
				t.Errorf("the status is %v", done)
			}
		})
	}
}

// TestIndexLags: a search is behind, an issue itself is not, and what is
// reconciled is not either.
func TestIndexLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seeded(t, jiratest.Options{IndexLag: time.Minute})
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

// TestHidden: who may not see a project is told what he is told of nothing.
func TestHidden(t *testing.T) {
	s := seeded(t, jiratest.Options{})
	_, missing := ask(t, s, "GET", "2/issue/OPS-99", "")
	s.Hide("OPS", true)
	if status, body := ask(t, s, "GET", "2/issue/OPS-1", ""); status != 404 || body != missing {
		t.Errorf("%d %s, want what is said of a missing issue: %s", status, body, missing)
	}
	if _, body := ask(t, s, "POST", "2/issue/bulkfetch", `{"issueIdsOrKeys":["10001"]}`); strings.Contains(body, "10001") {
		t.Errorf("the bulk fetch shows %s", body)
	}
}

// TestVices: each does what it says, once, and the log tells the truth.
func TestVices(t *testing.T) {
	const create = `{"fields":{"project":{"key":"OPS"},"issuetype":{"name":"Task"},"summary":"x"}}`
	for vice, want := range map[jiratest.Vice]struct{ status, effects int }{
		jiratest.LostAnswer: {0, 1}, jiratest.DroppedBefore: {0, 0}, jiratest.BadGateway: {502, 1}, jiratest.Unavailable: {503, 1},
		jiratest.ConflictDone: {409, 1}, jiratest.ConflictUndone: {409, 0}, jiratest.Redirected: {301, 0}, jiratest.PhantomSuccess: {201, 0},
		jiratest.Refused: {400, 0}, jiratest.Throttled: {429, 0}, jiratest.Unauthorized: {401, 0}, jiratest.NotFound: {404, 0},
		jiratest.CutBody: {201, 1}, jiratest.Unreachable: {0, 0},
	} {
		s := jiratest.New(jiratest.Options{})
		if err := s.Set(jiratest.Fault{Vice: vice}); err != nil {
			t.Fatal(err)
		}
		status, body := ask(t, s, "POST", "2/issue", create)
		if status != want.status || len(s.Effects()) != want.effects || len(s.Issues()) != want.effects {
			t.Errorf("%s: %d %s with %d effects, want %+v", vice, status, body, len(s.Effects()), want)
		}
		if s.Waits(vice) {
			t.Errorf("%s is still set", vice)
		}
		if status, _ := ask(t, s, "POST", "2/issue", create); status != 201 {
			t.Errorf("%s: the next request is answered %d", vice, status)
		}
	}
	if err := jiratest.New(jiratest.Options{}).Set(jiratest.Fault{Vice: jiratest.UnreadableRead, How: "no such form"}); err == nil {
		t.Error("a form that does not exist is taken")
	}
}

// TestLater: what comes late comes.
func TestLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for vice, want := range map[jiratest.Vice]int{jiratest.Duplicate: 2, jiratest.Rollback: 0} {
			s := jiratest.New(jiratest.Options{})
			if err := s.Set(jiratest.Fault{Vice: vice, Delay: time.Minute}); err != nil {
				t.Fatal(err)
			}
			if status, _ := ask(t, s, "POST", "2/issue", `{"fields":{"project":{"key":"OPS"},"issuetype":{"name":"Task"},"summary":"x"}}`); status != 201 {
				t.Fatal(status)
			}
			if n := len(s.Issues()); n != 1 {
				t.Errorf("%s: %d issues at first", vice, n)
			}
			<-time.After(2 * time.Minute)
			if n := len(s.Issues()); n != want {
				t.Errorf("%s: %d issues later, want %d", vice, n, want)
			}
			for _, e := range s.Effects()[1:] {
				if !e.Itself {
					t.Errorf("%s: the log says that a request did it", vice)
				}
			}
		}
	})
}

// TestStoreIsNotShared: who reads the store cannot change it.
func TestStoreIsNotShared(t *testing.T) {
	s := seeded(t, jiratest.Options{})
	s.Issues()[0].Fields["summary"] = "changed"
	text, err := json.Marshal(s.Issues()[0].Fields["summary"])
	if err != nil || string(text) != `"0"` {
		t.Errorf("%s %v", text, err)
	}
}
