package rest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// call is one request and what must come of it.
type call struct {
	method, path, body string
	header             map[string]string // in place of the authorization where it has one
	status             int
	has                []string          // what the answer's body contains
	headers            map[string]string // what its headers hold
	reason             string
}

func (c call) on(t *testing.T, f *rest.Fake, base string, always map[string]string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), c.method, base+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, set := range []map[string]string{always, c.header} {
		for name, value := range set {
			r.Header.Set(name, value)
		}
	}
	res, err := f.Transport().RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v: %s", c.method, c.path, err, c.reason)
	}
	text, _ := io.ReadAll(res.Body)
	if res.StatusCode != c.status {
		t.Errorf("%s %s: %d %s, want %d: %s", c.method, c.path, res.StatusCode, text, c.status, c.reason)
	}
	for _, part := range c.has {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s %s: %s, want %s in it: %s", c.method, c.path, text, part, c.reason)
		}
	}
	for name, part := range c.headers {
		if got := res.Header.Get(name); !strings.Contains(got, part) {
			t.Errorf("%s %s: %s is %q, want %q in it: %s", c.method, c.path, name, got, part, c.reason)
		}
	}
	if len(text) > 0 && res.StatusCode != http.StatusNoContent && !json.Valid(text) {
		t.Errorf("%s %s: the answer is no JSON: %s", c.method, c.path, text)
	}
}

// TestGitHubShapes: the answers have the shape that the vendor documents.
func TestGitHubShapes(t *testing.T) {
	g := rest.NewGitHub(rest.GitHubOptions{})
	for n := range 3 {
		g.SeedIssue("seeded", "", []string{"Bug"}, rest.Object{"state": []string{"open", "open", "closed"}[n]})
	}
	const issues = "/repos/acme/widgets/issues"
	for _, c := range []call{
		{"GET", issues, "", map[string]string{"Authorization": "Bearer other"}, 401, []string{`"Bad credentials"`}, nil, "a wrong token"},
		{"GET", "/nowhere", "", nil, 404, []string{`"Not Found"`}, nil, "an unknown path"},
		{"GET", "/repos/acme/other/issues", "", nil, 404, nil, nil, "another repository"},
		{"POST", issues, `{"title":"a","labels":["BUG","new"],"assignees":["stranger"],"unknown":1}`, nil, 201, []string{`"number":4`, `"name":"Bug"`, `"assignees":[]`, `"body":null`}, map[string]string{"Location": "/issues/4"}, "labels take the letters that the repository knows, other accounts are dropped, unknown members passed over"},
		{"POST", issues, `{"body":"a"}`, nil, 422, []string{`"Validation Failed"`, `"title"`}, nil, "no title"},
		{"POST", issues, `{"title":"a","labels":"x"}`, nil, 422, []string{`"labels"`}, nil, "a list that is none"},
		{"POST", issues, `{"title":`, nil, 400, []string{`"Problems parsing JSON"`}, nil, "no JSON"},
		{"PATCH", issues + "/4", `{"state":"closed"}`, nil, 200, []string{`"state_reason":"completed"`}, nil, "closing has a reason"},
		{"PATCH", issues + "/99", `{"state":"closed"}`, nil, 404, nil, nil, "no such issue"},
		{"DELETE", issues + "/4", "", nil, 404, nil, nil, "issues cannot be deleted"},
		{"GET", issues + "?labels=bug&per_page=1", "", nil, 200, []string{`"number":2`}, map[string]string{"Link": `page=2`, "ETag": `W/"`}, "open issues only, newest first, by pages; labels in any letters"},
		{"GET", issues + "?labels=bug,nope", "", nil, 200, []string{`[]`}, nil, "labels with commas are all wanted"},
		{"GET", "/repositories/1/issues?state=all&per_page=1&page=3", "", nil, 200, []string{`"number":2`}, nil, "where links point"},
		{"GET", issues + "?state=some", "", nil, 422, nil, nil, "an unknown state"},
		{"GET", issues + "?since=yesterday", "", nil, 422, nil, nil, "no time"},
		{"GET", issues + "?state=all&since=2100-01-01T00:00:00Z", "", nil, 200, []string{`[]`}, nil, "since is about updates"},
	} {
		c.on(t, g.Fake, "https://api.github.com", map[string]string{"Authorization": "Bearer github-token"})
	}
}

// TestGitHubNotModified: a request with a tag gets no body.
func TestGitHubNotModified(t *testing.T) {
	g := rest.NewGitHub(rest.GitHubOptions{})
	g.SeedIssue("seeded", "", nil, nil)
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "https://api.github.com/repos/acme/widgets/issues/1", http.NoBody)
	r.Header.Set("Authorization", "token github-token")
	res, err := g.Transport().RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	call{"GET", "/repos/acme/widgets/issues/1", "", map[string]string{"If-None-Match": res.Header.Get("ETag")}, 304, nil, nil, "nothing has changed"}.
		on(t, g.Fake, "https://api.github.com", map[string]string{"Authorization": "token github-token"})
}

// TestZendeskShapes is about tickets.
func TestZendeskShapes(t *testing.T) {
	z := rest.NewZendesk(rest.ZendeskOptions{})
	z.SeedTicket("x", nil)
	z.SeedTicket("x", nil)
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "https://acme.zendesk.com/", http.NoBody)
	r.SetBasicAuth("agent@example.com/token", "zendesk-token")
	basic := map[string]string{"Authorization": r.Header.Get("Authorization")}
	const body = `{"ticket":{"subject":" a ","comment":{"body":"b"},"tags":["Big Deal","b","B"]}}`
	key := map[string]string{"Idempotency-Key": "k1"}
	for _, c := range []call{
		{"GET", "/api/v2/tickets.json", "", map[string]string{"Authorization": "Basic eDp5"}, 401, []string{`"Couldn't authenticate you"`}, nil, "wrong credentials"},
		{"GET", "/api/v2/nowhere", "", nil, 404, []string{`"InvalidEndpoint"`}, nil, "an unknown path"},
		{"POST", "/api/v2/tickets.json", body, key, 201, []string{`"subject":"a"`, `"tags":["b","big_deal"]`, `"audit"`}, map[string]string{"X-Idempotency-Lookup": "miss", "Location": "/tickets/3"}, "tags are tidied"},
		{"POST", "/api/v2/tickets.json", body, key, 201, []string{`"id":3`}, map[string]string{"X-Idempotency-Lookup": "hit"}, "a replay"},
		{"POST", "/api/v2/tickets.json", `{"ticket":{"comment":{"body":"c"}}}`, key, 400, []string{`"IdempotentRequestError"`}, nil, "the key with other parameters"},
		{"POST", "/api/v2/tickets", `{"ticket":{"subject":"a"}}`, nil, 422, []string{`"RecordInvalid"`, `"BlankValue"`}, nil, "no comment"},
		{"POST", "/api/v2/tickets", `{"subject":"a"}`, nil, 400, nil, nil, "no ticket"},
		{"PUT", "/api/v2/tickets/3.json", `{"ticket":{"priority":"highest"}}`, nil, 422, []string{`"priority"`}, nil, "no such priority"},
		{"PUT", "/api/v2/tickets/3", `{"ticket":{"priority":"low","safe_update":true,"updated_stamp":"2000-01-01T00:00:00Z"}}`, nil, 409, []string{`"UpdateConflict"`}, nil, "an outdated stamp"},
		{"GET", "/api/v2/tickets.json?external_id=x&per_page=1", "", nil, 200, []string{`"count":2`, `"next_page":"https://acme.zendesk.com/api/v2/tickets.json?`}, nil, "external ids are not unique"},
		{"GET", "/api/v2/tickets.json?external_id=a,x", "", nil, 200, []string{`"count":2`}, nil, "commas make several"},
		{"GET", "/api/v2/tickets/show_many.json?ids=1,99,2", "", nil, 200, []string{`"count":2`}, nil, "what is missing is left out"},
		{"DELETE", "/api/v2/tickets/3.json", "", nil, 204, nil, nil, "a soft delete"},
		{"GET", "/api/v2/tickets/3.json", "", nil, 404, []string{`"RecordNotFound"`}, nil, "it is gone"},
		{"GET", "/api/v2/search.json?query=x", "", nil, 200, []string{`"results":[]`}, nil, "the search does not show it yet"},
	} {
		c.on(t, z.Fake, "https://acme.zendesk.com", basic)
	}
}

// TestZendeskTrigger: the tag comes later, by itself.
func TestZendeskTrigger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := rest.NewZendesk(rest.ZendeskOptions{TriggerTag: "routed"})
		r, _ := http.NewRequestWithContext(t.Context(), "POST", "https://acme.zendesk.com/", http.NoBody)
		r.SetBasicAuth("agent@example.com/token", "zendesk-token")
		call{"POST", "/api/v2/tickets", `{"ticket":{"comment":{"body":"b"}}}`, nil, 201, []string{`"tags":[]`}, nil, "made"}.
			on(t, z.Fake, "https://acme.zendesk.com", map[string]string{"Authorization": r.Header.Get("Authorization")})
		<-time.After(3 * time.Second)
		e := z.Effects()
		if len(e) != 2 || e[1].By != fault.ByItself || len(e[1].After["tags"].([]any)) != 1 {
			t.Errorf("%+v, want a tag of the trigger's", e)
		}
	})
}

// TestNotionShapes is about pages.
func TestNotionShapes(t *testing.T) {
	n := rest.NewNotion(rest.NotionOptions{})
	const source = "11111111-2222-4333-8444-555555555555"
	const page = "/v1/pages/00000000-0000-4000-8000-000000000001"
	const query = "/v1/data_sources/" + source + "/query"
	always := map[string]string{"Authorization": "Bearer notion-token", "Notion-Version": "2025-09-03"}
	create := func(properties string) string {
		return `{"parent":{"type":"data_source_id","data_source_id":"` + source + `"},"properties":{` + properties + `}}`
	}
	for _, c := range []call{
		{"GET", page, "", map[string]string{"Authorization": "Bearer other"}, 401, []string{`"unauthorized"`}, nil, "a wrong token"},
		{"GET", page, "", map[string]string{"Notion-Version": ""}, 400, []string{`"missing_version"`}, nil, "no version"},
		{"GET", "/v1/nowhere", "", nil, 400, []string{`"invalid_request_url"`}, nil, "an unknown path"},
		{"POST", "/v1/pages", create(`"Name":{"title":[{"text":{"content":"rather a long name"}}]},"Due":{"date":{"start":"2026-12-24T18:00:00Z"}}`), nil, 200, []string{`"plain_text":"rather a lon"`, `"start":"2026-12-24T18:00:00.000+00:00"`, `"checkbox":false`, `"select":null`}, nil, "runs, dates, and every property"},
		{"POST", "/v1/pages", create(`"Colour":{"select":{"name":"red"}}`), nil, 400, []string{`"validation_error"`, "not a property that exists"}, nil, "an unknown property"},
		{"POST", "/v1/pages", create(`"Status":{"select":{"name":"a,b"}}`), nil, 400, nil, nil, "no commas"},
		{"POST", "/v1/pages", create(`"Amount":{"number":"1"}`), nil, 400, nil, nil, "a text for a number"},
		{"POST", "/v1/pages", `{"properties":{}}`, nil, 400, nil, nil, "no parent"},
		{"POST", query, `{"filter":{"property":"Name","title":{"equals":"RATHER a long name"}}}`, nil, 200, []string{`"has_more":false`, `"rather a lon"`}, nil, "whether equals minds letter case is not published"},
		{"POST", query, `{"filter":{"property":"Nome","title":{"equals":"x"}}}`, nil, 400, []string{"Could not find property"}, nil, "an unknown property, be there pages or not"},
		{"POST", query, `{"page":2}`, nil, 400, []string{`"validation_error"`}, nil, "an unknown member"},
		{"POST", query, `{"page_size":101}`, nil, 400, nil, nil, "at most 100"},
		{"PATCH", page, `{"in_trash":true}`, nil, 200, []string{`"in_trash":true`}, nil, "the trash"},
		{"PATCH", page, `{"properties":{"Done":{"checkbox":true}}}`, nil, 400, []string{"archived"}, nil, "in the trash nothing can be edited"},
		{"POST", query, `{}`, nil, 200, []string{`"results":[]`}, nil, "queries do not show the trash"},
		{"GET", page, "", nil, 200, []string{`"in_trash":true`}, nil, "by its id it is there"},
		{"DELETE", page, "", nil, 400, nil, nil, "there is no deleting"},
	} {
		c.on(t, n.Fake, "https://api.notion.com", always)
	}
}
