package jira_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
	"github.com/readback-go/readback/readbacktest/fault"
)

// between is a transport that shows what is sent and may answer itself.
type between struct {
	under  http.RoundTripper
	answer func(r *http.Request, body []byte) *http.Response // nil: ask under
}

func (b between) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if res := b.answer(r, body); res != nil {
		res.Request = r
		return res, nil
	}
	return b.under.RoundTrip(r)
}

func response(status int, body string, headers ...string) *http.Response {
	res := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for n := 0; n < len(headers); n += 2 {
		res.Header.Set(headers[n], headers[n+1])
	}
	return res
}

// TestClearing: null, an empty text and an empty list clear a field, which the
// library's own update would leave out of the request.
func TestClearing(t *testing.T) {
	for name, c := range map[string]struct {
		field string
		value any
		was   any
	}{
		"null text": {"description", nil, "text"}, "empty text": {"description", "", "text"}, "null date": {"duedate", nil, "2026-01-02"},
		"null user":  {"assignee", nil, map[string]any{"accountId": "5b10"}},
		"empty list": {"labels", []any{}, []any{"a", "b"}}, "empty components": {"components", []any{}, []any{map[string]any{"name": "db"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, c2 := stage(t, false)
			labels := []any{"rb-" + strings.Repeat("a", 32)}
			s.Edit("OPS-2", map[string]any{"labels": labels})
			if c.field == "labels" {
				labels = append(labels, c.was.([]any)...)
				c.was = labels
			}
			s.Edit("OPS-2", map[string]any{c.field: c.was})
			in := named(intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Update, Key: intent.Fields{"issue": "OPS-2"}, Expect: intent.Fields{c.field: c.value}}, 1)
			before := read(t, c2, in)
			if _, err := c2.Write(t.Context(), request(in, &before)); err != nil {
				t.Fatal(err)
			}
			got := read(t, c2, in).Records[0]
			if list, isList := got.Fields[c.field].([]any); got.Fields[c.field] != nil && (!isList || len(list) > 0) {
				t.Errorf("it is %v after it was cleared", got.Fields[c.field])
			}
			if got.Stamp != before.Records[0].Stamp || got.Stamp == "" {
				t.Errorf("the stamp is %q, was %q", got.Stamp, before.Records[0].Stamp)
			}
		})
	}
}

// TestLabelsKeepOurs: an update of the labels keeps those by which the issue is
// found, whatever key it is addressed by.
func TestLabelsKeepOurs(t *testing.T) {
	for name, key := range map[string]intent.Fields{"by issue": {"issue": "OPS-2"}, "by reference": {"project": "OPS", "reference": "Invoice-000"}} {
		s, c := stage(t, false)
		in := named(intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Update, Key: key, Expect: intent.Fields{"labels": []any{"new"}}}, 1)
		before := read(t, c, in)
		if _, err := c.Write(t.Context(), request(in, &before)); err != nil {
			t.Fatal(err)
		}
		again := read(t, c, named(issueIntent(intent.Create, 0), 0))
		if len(again.Records) != 1 || again.Records[0].Stamp == "" {
			t.Errorf("%s: the create finds %d records after the update", name, len(again.Records))
		}
		if labels := s.Issues()[1].Fields["labels"].([]any); len(labels) != 3 {
			t.Errorf("%s: the labels are %v, want the new one and ours", name, labels)
		}
	}
}

// TestErrorAnswers: in every form of an error the status counts, and its text stays out of ours.
func TestErrorAnswers(t *testing.T) {
	cases := map[string]struct {
		res    func() *http.Response
		says   string
		wait   time.Duration
		shows  string
		reason string
	}{
		"list of errors":   {func() *http.Response { return response(400, `{"errors":{"summary":["top secret"]}}`) }, "no", 0, "summary", "the library cannot parse it"},
		"no errors":        {func() *http.Response { return response(400, `{"errorMessages":["top secret"]}`) }, "no", 0, "400", ""},
		"page":             {func() *http.Response { return response(403, "<html>top secret</html>", "Content-Type", "text/html") }, "no", 0, "403", ""},
		"captcha":          {func() *http.Response { return response(403, "", "X-Seraph-LoginReason", "AUTHENTICATION_DENIED") }, "no", 0, "AUTHENTICATION_DENIED", "a person must log in"},
		"empty 429":        {func() *http.Response { return response(429, "", "Retry-After", "9") }, "wait", 9 * time.Second, "", ""},
		"429 with reset":   {func() *http.Response { return reset("2026-01-02T15:04Z") }, "wait", 4 * time.Minute, "jira-per-issue-on-write", "no seconds"},
		"429 with seconds": {func() *http.Response { return reset("2026-01-02T15:04:30Z") }, "wait", 4*time.Minute + 30*time.Second, "", ""},
		"429 long ago":     {func() *http.Response { return reset("2020-01-02T15:04Z") }, "wait", 0, "", "a wait is not negative"},
		"429 far away":     {func() *http.Response { return reset("9020-01-02T15:04Z") }, "wait", httpsend.MaxRetryAfter, "", "a wait has a bound"},
		"429 nonsense":     {func() *http.Response { return reset("soon") }, "wait", 0, "", ""},
		"410":              {func() *http.Response { return response(410, "{}") }, "no", 0, "", "it is gone for good"},
		"413":              {func() *http.Response { return response(413, "") }, "no", 0, "", ""},
		"408":              {func() *http.Response { return response(408, "") }, "?", 0, "", "the server may have received it"},
		"500":              {func() *http.Response { return response(500, `{"errors":{}}`) }, "?", 0, "", ""},
		"503 with a wait":  {func() *http.Response { return response(503, "", "Retry-After", "3") }, "?", 3 * time.Second, "", "when, not whether"},
		"307":              {func() *http.Response { return response(307, "", "Location", "/x") }, "no", 0, "", "not followed"},
		"303":              {func() *http.Response { return response(303, "", "Location", "/x") }, "?", 0, "", "how forms are answered"},
		"200 for a 201":    {func() *http.Response { return response(200, `{"id":"10009","key":"OPS-9"}`) }, "yes", 0, "", "a yes all the same"},
		"201, a page":      {func() *http.Response { return response(201, "<html>") }, "yes", 0, "", ""},
		"201, odd ids":     {func() *http.Response { return response(201, `{"id":"../x","key":"<b>"}`) }, "yes", 0, "", "ids go into addresses"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := fakejira.New(fakejira.Options{})
			connector := connect(t, s, func(o *jira.Options) {
				o.Transport = between{s.Transport(), func(r *http.Request, _ []byte) *http.Response {
					if r.Method == http.MethodPost {
						return c.res()
					}
					return nil
				}}
			})
			receipt, err := connector.Write(t.Context(), request(named(issueIntent(intent.Create, 1), 1), nil))
			if got := word(err); got != c.says {
				t.Errorf("it says %q (%v), want %q: %s", got, err, c.says, c.reason)
			}
			var e *connectors.Error
			if errors.As(err, &e) && e.RetryAfter != c.wait {
				t.Errorf("it waits %v, want %v", e.RetryAfter, c.wait)
			}
			if err != nil && (!strings.Contains(err.Error(), c.shows) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%q: want %q and nothing of the text", err, c.shows)
			}
			if name != "200 for a 201" && receipt.Ref != "" {
				t.Errorf("the receipt names %q", receipt.Ref)
			}
		})
	}
}

func reset(at string) *http.Response {
	return response(429, "", "X-RateLimit-Reset", at, "Date", "Fri, 02 Jan 2026 15:00:00 GMT", "RateLimit-Reason", "jira-per-issue-on-write")
}

// TestRequests: the requests are as documented.
func TestRequests(t *testing.T) {
	s, _ := stage(t, false)
	var sent []string
	var created map[string]any
	c := connect(t, s, func(o *jira.Options) {
		o.Transport = between{s.Transport(), func(r *http.Request, body []byte) *http.Response {
			sent = append(sent, r.Method+" "+r.URL.Path)
			if r.Method == http.MethodDelete && len(body) > 0 {
				t.Errorf("a delete has the body %q", body)
			}
			if user, password, _ := r.BasicAuth(); user != "robot@example.org" || password != "secret-token" {
				t.Error("a request goes without who asks")
			}
			for name := range r.Header {
				if strings.Contains(strings.ToLower(name), "idempotency") {
					t.Errorf("the header %s is not honoured, and has net/http send twice", name)
				}
			}
			if r.URL.Path == "/rest/api/2/issue" {
				_ = json.Unmarshal(body, &created)
			}
			if strings.HasSuffix(r.URL.Path, "/search") {
				t.Error("Cloud has no such search any more")
			}
			return nil
		}}
	})
	in := named(issueIntent(intent.Create, 3), 3)
	before := read(t, c, in)
	if _, err := c.Write(t.Context(), request(in, &before)); err != nil {
		t.Fatal(err)
	}
	after := read(t, c, in)
	gone := named(issueIntent(intent.Delete, 3), 4)
	if _, err := c.Write(t.Context(), request(gone, &after)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(strings.Join(sent, "\n"), "serverInfo"); n != 1 {
		t.Errorf("serverInfo was asked %d times, want once", n)
	}
	properties, _ := json.Marshal(created["properties"])
	want := `[{"key":"readback","value":{"reference":"Invoice-003","stamp":"` + in.Stamp() + `"}}]`
	if string(properties) != want {
		t.Errorf("the properties are %s, want %s at the top", properties, want)
	}
	fields, _ := created["fields"].(map[string]any)
	labels, _ := json.Marshal(fields["labels"])
	if string(labels) != `["finance","urgent","Invoice-003","`+in.Stamp()+`"]` {
		t.Errorf("the labels are %s", labels)
	}
}

// TestServerInfoIsAskedAgain: a failure is not remembered.
func TestServerInfoIsAskedAgain(t *testing.T) {
	s := fakejira.New(fakejira.Options{})
	var down atomic.Bool
	down.Store(true)
	c := connect(t, s, func(o *jira.Options) {
		o.Transport = between{s.Transport(), func(r *http.Request, _ []byte) *http.Response {
			if down.Load() && strings.HasSuffix(r.URL.Path, "serverInfo") {
				return response(503, "")
			}
			return nil
		}}
	})
	in := named(issueIntent(intent.Create, 1), 1)
	if _, err := c.Read(t.Context(), query(in)); err == nil {
		t.Error("a read without knowing what to ask")
	}
	if _, err := c.Write(t.Context(), request(in, nil)); word(err) != "-" || s.Sends() > 0 {
		t.Errorf("%v, want not sent", err)
	}
	down.Store(false)
	if _, err := c.Write(t.Context(), request(in, nil)); err != nil {
		t.Errorf("%v, and Jira is back", err)
	}
}

// TestNoLeakedConnections: the bodies of refusals are read and closed, so one
// connection serves them all.
func TestNoLeakedConnections(t *testing.T) {
	s := fakejira.New(fakejira.Options{})
	server := httptest.NewUnstartedServer(s)
	var opened atomic.Int64
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	c := connect(t, s, func(o *jira.Options) { o.URL, o.Transport = server.URL, transport })
	in := named(issueIntent(intent.Create, 1), 1)
	for range 50 {
		if err := s.Set(fault.Fault{Kind: fault.Refused}.Once()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(t.Context(), request(in, nil)); word(err) != "no" {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n > 2 {
		t.Errorf("%d connections for 51 calls one after the other", n)
	}
}

// TestEndlessAnswer: ten gigabytes are not read.
func TestEndlessAnswer(t *testing.T) {
	s, _ := stage(t, false)
	server := httptest.NewServer(s)
	defer server.Close()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	c := connect(t, s, func(o *jira.Options) { o.URL, o.Transport = server.URL, transport })
	if err := s.Set(fault.Fault{Kind: fault.UnreadableRead, How: "endless"}.Once()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(t.Context(), query(named(issueIntent(intent.Create, 0), 0))); !errors.Is(err, httpsend.ErrTooLong) {
		t.Errorf("%v, want it too long", err)
	}
}

// TestNoAnswer: a call without a deadline of its own ends all the same.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := stage(t, false)
		for _, v := range []fault.Kind{fault.HangingRead, fault.LateCommit} {
			if err := s.Set(fault.Fault{Kind: v}.Once()); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		in := named(issueIntent(intent.Create, 1), 1)
		if _, err := c.Read(t.Context(), query(in)); err == nil {
			t.Error("a read that was not answered finds something")
		}
		if _, err := c.Write(t.Context(), request(in, nil)); word(err) != "?" {
			t.Errorf("%v, want unknown", err)
		}
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("it took %v", took)
		}
	})
}
