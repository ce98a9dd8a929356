package rest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/fakes/rest"
)

// step is one request and the expected answer: "201" alone, or "201 text of the body".
type step struct {
	method, path, body string
	want               string
	header             string // "Name: value", sent with it
}

func play(t *testing.T, f *rest.Fake, token string, steps []step) {
	t.Helper()
	client := http.Client{
		Transport:     f.Transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for i, s := range steps {
		req, err := http.NewRequestWithContext(t.Context(), s.method, "http://127.0.0.1:1"+s.path, strings.NewReader(s.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		if s.body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		if name, value, ok := strings.Cut(s.header, ": "); ok {
			req.Header.Set(name, value)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close() // a body in memory
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if len(body) > 0 && !json.Valid(body) {
			t.Errorf("step %d: the body is no JSON: %s", i, body)
		}
		status, text, _ := strings.Cut(s.want, " ")
		if strconv.Itoa(res.StatusCode) != status || !strings.Contains(string(body), text) {
			t.Errorf("step %d, %s %s: %d %s\nwant %s", i, s.method, s.path, res.StatusCode, body, s.want)
		}
	}
}

func TestHubSpot(t *testing.T) {
	const contacts = "/crm/v3/objects/contacts"
	const ada = `{"properties":{"email":"Ada@Example.com ","lastname":"L","annualrevenue":100,"phone":"","lifecyclestage":"customer"}}`
	for name, tc := range map[string]struct {
		reason string
		steps  []step
	}{
		"taken e-mail": {"the other one's id is in the text alone", []step{
			{"POST", contacts, ada, `201 "email":"ada@example.com"`, ""},
			{"POST", contacts, `{"properties":{"email":"ADA@example.com"}}`, "409 Contact already exists. Existing ID: 101", ""},
		}},
		"taken value": {"a unique property is no 409", []step{
			{"POST", contacts, `{"properties":{"mark":"x"}}`, "201", ""},
			{"POST", contacts, `{"properties":{"mark":"X"}}`, "400 already has that value", ""},
		}},
		"everything is text": {"values come back changed", []step{
			{"POST", contacts, ada, `201 "annualrevenue":"100"`, ""},
			{"GET", contacts + "/ada@example.com?idProperty=email&properties=phone,annualrevenue", "", `200 "phone":null`, ""},
		}},
		"default properties": {"what is not asked for is not shown", []step{
			{"POST", contacts, ada, "201", ""},
			{"GET", contacts + "/101", "", `200 "lastname":"L"}`, ""},
		}},
		"stage": {"it does not move back, without an error", []step{
			{"POST", contacts, ada, "201", ""},
			{"PATCH", contacts + "/101", `{"properties":{"lifecyclestage":"lead"}}`, `200 "lifecyclestage":"customer"`, ""},
		}},
		"archive": {"twice is fine, and the contact cannot be read", []step{
			{"POST", contacts, ada, "201", ""},
			{"DELETE", contacts + "/101", "", "204", ""},
			{"DELETE", contacts + "/101", "", "204", ""},
			{"GET", contacts + "/101", "", "404 OBJECT_NOT_FOUND", ""},
		}},
		"upsert": {"new says which it was, and a failed input is a 207", []step{
			{"POST", contacts + "/batch/upsert", `{"inputs":[{"idProperty":"email","id":"a@b.c","properties":{"mark":"m"}}]}`, `200 "new":true`, ""},
			{"POST", contacts + "/batch/upsert", `{"inputs":[{"idProperty":"email","id":"A@b.c","properties":{"lastname":"N"}}]}`, `200 "new":false`, ""},
			{"POST", contacts + "/batch/upsert", `{"inputs":[{"idProperty":"email","id":"x@b.c","properties":{"mark":"m"}}]}`, `207 already has that value`, ""},
			{"POST", contacts + "/batch/upsert", `{"inputs":[{"idProperty":"lastname","id":"x","properties":{}}]}`, `400 non-unique`, ""},
		}},
		"batch read": {"what is missing is an error of its own", []step{
			{"POST", contacts, ada, "201", ""},
			{"POST", contacts + "/batch/read", `{"idProperty":"email","inputs":[{"id":"ada@example.com"}],"properties":["lastname"]}`, `200 "lastname":"L"`, ""},
			{"POST", contacts + "/batch/read", `{"idProperty":"email","inputs":[{"id":"ada@example.com"},{"id":"no@example.com"}],"properties":["lastname"]}`, `207 {"ids":["no@example.com"]}`, ""},
		}},
		"unknown": {"names that HubSpot does not have", []step{
			{"POST", contacts, `{"properties":{"nick":"x"}}`, "400 PROPERTY_DOESNT_EXIST", ""},
			{"POST", contacts, `{"name":"x"}`, "400 Unrecognized field", ""},
			{"GET", contacts + "/1?idProperty=lastname", "", "400 non-unique", ""},
			{"GET", "/crm/v3/objects/people/1", "", "404", ""},
			{"GET", contacts + "/1", "", "401", "Authorization: Bearer no"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			play(t, rest.NewHubSpot("token", nil, []string{"mark"}).Fake, "token", tc.steps)
		})
	}
}

// TestHubSpotSearch: the index knows of a contact later than the store.
func TestHubSpotSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := rest.NewHubSpot("token", nil, nil)
		h.SetLag(10 * time.Second)
		const search = `{"filterGroups":[{"filters":[{"propertyName":"email","operator":"EQ","value":"a@b.c"}]}]}`
		play(t, h.Fake, "token", []step{
			{"POST", "/crm/v3/objects/contacts", `{"properties":{"email":"a@b.c"}}`, "201", ""},
			{"POST", "/crm/v3/objects/contacts/search", search, `200 "total":0`, ""},
		})
		<-time.After(11 * time.Second)
		play(t, h.Fake, "token", []step{{"POST", "/crm/v3/objects/contacts/search", search, `200 "total":1`, ""}})
	})
}

func TestCalendar(t *testing.T) {
	const events = "/calendar/v3/calendars/team@example.com/events"
	const meet = `{"id":"abc123","summary":"Meet","start":{"dateTime":"2030-06-01T10:00:00Z"},"end":{"dateTime":"2030-06-01T11:00:00Z"},` +
		`"description":"<b onclick=\"x\">hi</b><script>x</script>","attendees":[{"email":"B@x.org"},{"email":"a@x.org"}],"extendedProperties":{"private":{"ref":"7"}}}`
	for name, tc := range map[string]struct {
		reason string
		steps  []step
	}{
		"taken id": {"a repeat is a duplicate", []step{
			{"POST", events, meet, "200", ""}, {"POST", events, meet, "409 duplicate", ""},
		}},
		"deleted id": {"a deleted event keeps its id and can be read", []step{
			{"POST", events, meet, "200", ""}, {"DELETE", events + "/abc123?sendUpdates=none", "", "204", ""},
			{"GET", events + "/abc123", "", `200 "status":"cancelled"`, ""},
			{"POST", events, meet, "409 duplicate", ""}, {"DELETE", events + "/abc123", "", "410 deleted", ""},
			{"PATCH", events + "/abc123", `{"summary":"x"}`, "403 forbidden", ""},
			{"PATCH", events + "/abc123", `{"status":"confirmed"}`, `200 "status":"confirmed"`, ""},
		}},
		"bad id": {"only a to v and digits", []step{
			{"POST", events, `{"id":"wxyz1","start":{"date":"2030-01-01"},"end":{"date":"2030-01-02"}}`, "400 Invalid resource id value.", ""},
			{"POST", events, `{"id":"ab-cd","start":{"date":"2030-01-01"},"end":{"date":"2030-01-02"}}`, "400 Invalid resource id value.", ""},
		}},
		"values": {"times in the calendar's zone, markup sanitised, attendees in an order of their own", []step{
			{"POST", events, meet, `200 "dateTime":"2030-06-01T12:00:00+02:00"`, ""},
			{"GET", events + "/abc123", "", `200 "attendees":[{"email":"a@x.org","responseStatus":"needsAction"},{"email":"b@x.org"`, ""},
			{"GET", events + "/abc123", "", `200 "reminders":{"useDefault":true}`, ""},
			{"PATCH", events + "/abc123", `{"start":{"timeZone":"Europe/London"},"location":"x"}`, `200 "timeZone":"Europe/London"`, ""},
		}},
		"condition": {"an etag that is not the event's", []step{
			{"POST", events, meet, "200", ""},
			{"PATCH", events + "/abc123", `{"summary":"x"}`, "412 conditionNotMet", `If-Match: "1"`},
			{"DELETE", events + "/abc123", "", "412 conditionNotMet", `If-Match: "1"`},
			{"PATCH", events + "/abc123", `{"summary":"x"}`, `200 "summary":"x"`, "If-Match: *"},
		}},
		"private property": {"found by it, by pages, without the deleted ones", []step{
			{"POST", events, meet, "200", ""},
			{"POST", events, strings.Replace(meet, "abc123", "abc124", 1), "200", ""},
			{"GET", events + "?maxResults=1&privateExtendedProperty=" + url.QueryEscape("ref=7"), "", `200 "nextPageToken":"page-1"`, ""},
			{"GET", events + "?maxResults=1&pageToken=page-1&privateExtendedProperty=" + url.QueryEscape("ref=7"), "", `200 "id":"abc124"`, ""},
			{"GET", events + "?privateExtendedProperty=" + url.QueryEscape("ref=8"), "", `200 "items":[]`, ""},
		}},
		"elsewhere": {"another calendar is not found, and unknown parameters are refused", []step{
			{"GET", "/calendar/v3/calendars/other@example.com/events/abc123", "", "404 notFound", ""},
			{"GET", "/calendar/v3/calendars/team@example.com", "", `200 "id":"team@example.com"`, ""},
			{"GET", events + "/abc123?q=1", "", "400 Unknown name", ""},
			{"POST", events, `{"summary":"x"}`, "400 required", ""},
			{"GET", events, "", "401 authError", "Authorization: Bearer no"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			zone, err := time.LoadLocation("Europe/Berlin")
			if err != nil {
				t.Fatal(err)
			}
			play(t, rest.NewCalendar("token", "team@example.com", zone).Fake, "token", tc.steps)
		})
	}
}

// TestCalendarOverlooks: the id of an event may be given twice when two
// inserts meet, and there still is one event.
func TestCalendarOverlooks(t *testing.T) {
	c := rest.NewCalendar("token", "team@example.com", time.UTC)
	c.Overlook(1)
	const events = "/calendar/v3/calendars/team@example.com/events"
	const meet = `{"id":"abc123","summary":"One","start":{"date":"2030-01-01"},"end":{"date":"2030-01-02"}}`
	play(t, c.Fake, "token", []step{
		{"POST", events, meet, "200", ""},
		{"POST", events, strings.Replace(meet, "One", "Two", 1), "409", ""},
	})
	c.Overlook(1)
	play(t, c.Fake, "token", []step{
		{"POST", events, strings.Replace(meet, "One", "Two", 1), "200", ""},
		{"POST", events, meet, "409", ""},
		{"GET", events + "/abc123", "", `200 "summary":"Two"`, ""},
	})
	if n := len(c.Now("events")); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

func TestSalesforce(t *testing.T) {
	const rows = "/services/data/v62.0/sobjects/Account"
	soql := func(q string) string { return "/services/data/v62.0/query?q=" + url.QueryEscape(q) }
	for name, tc := range map[string]struct {
		reason string
		steps  []step
	}{
		"upsert": {"201 with created, 200 without", []step{
			{"PATCH", rows + "/Key__c/K-1", `{"Name":" A "}`, `201 "created":true`, ""},
			{"PATCH", rows + "/Key__c/k-1", `{"Phone":""}`, `200 "created":false`, ""},
			{"GET", rows + "/Key__c/K-1", "", `200 "Name":"A"`, ""},
			{"GET", rows + "/Key__c/K-1", "", `200 "Phone":null`, ""},
			{"PATCH", rows + "/Key__c/K-1", `{"Key__c":"K-1"}`, "400 INVALID_FIELD", ""},
			{"PATCH", rows + "/Key__c/K-1", `{"Id":"x"}`, "400 INVALID_FIELD", ""},
		}},
		"unique": {"letter case aside", []step{
			{"POST", rows, `{"Name":"A","Key__c":"K-1"}`, `201 "id":"001Ws0000000001`, ""},
			{"POST", rows, `{"Name":"B","Key__c":"k-1"}`, "400 DUPLICATE_VALUE", ""},
		}},
		"not unique": {"an external id alone keeps nothing apart, and then nothing more can be done", []step{
			{"POST", rows, `{"Name":"A","Loose__c":"L"}`, "201", ""},
			{"POST", rows, `{"Name":"B","Loose__c":"L"}`, "201", ""},
			{"PATCH", rows + "/Loose__c/L", `{"Name":"C"}`, `300 ["/services/data/v62.0/sobjects/Account/001`, ""},
			{"GET", rows + "/Loose__c/L", "", "300", ""},
			{"GET", soql("SELECT FIELDS(ALL) FROM Account WHERE Loose__c = 'L' LIMIT 200"), "", `200 "totalSize":2`, ""},
		}},
		"dots": {"a value with a dot passes for a file, in a path", []step{
			{"POST", rows, `{"Name":"A","Key__c":"ada@mail.inc"}`, "201", ""},
			{"GET", rows + "/Key__c/ada@mail.inc", "", "404 NOT_FOUND", ""},
			{"GET", soql("SELECT Id FROM Account WHERE Key__c = 'ada@mail.inc'"), "", `200 "totalSize":1`, ""},
		}},
		"rows": {"204 for changes, 404 for what is gone", []step{
			{"POST", rows, `{"Name":"A","Key__c":"K"}`, "201", ""},
			{"PATCH", rows + "/001Ws0000000001AAA", `{"Name":"B"}`, "404 ENTITY_IS_DELETED", ""},
			{"PATCH", rows + "/001Ws0000000001IAA", `{"Name":"B"}`, "204", ""},
			{"PATCH", rows + "/001Ws0000000001IAA", `{"Name":"C"}`, "412", "If-Unmodified-Since: Mon, 01 Jan 1990 00:00:00 GMT"},
			{"PATCH", rows + "/001Ws0000000001IAA", `{"Name":"C"}`, "400 INVALID_HEADER", "If-Unmodified-Since: yesterday"},
			{"POST", "/services/data/v62.0/composite/sobjects/Account", `{"ids":["001Ws0000000001IAA","x"],"fields":["Name"]}`, `200 "Name":"B"`, ""},
			{"DELETE", rows + "/001Ws0000000001IAA", "", "204", ""},
			{"DELETE", rows + "/001Ws0000000001IAA", "", "404 ENTITY_IS_DELETED", ""},
		}},
		"literals": {"quotes end a string unless they are escaped", []step{
			{"POST", rows, `{"Name":"O'Neil"}`, "201", ""},
			{"GET", soql(`SELECT Id FROM Account WHERE Name = 'O\'Neil'`), "", `200 "totalSize":1`, ""},
			{"GET", soql(`SELECT Id FROM Account WHERE Name = 'O'Neil'`), "", "400 MALFORMED_QUERY", ""},
			{"GET", soql(`SELECT Id FROM Account WHERE Name IN ('x','O\'Neil') LIMIT 5`), "", `200 "totalSize":1`, ""},
			{"GET", soql(`SELECT Id FROM Account WHERE Name = 'x' OR Name = 'o\'neil'`), "", `200 "totalSize":1`, ""},
			{"GET", soql(`SELECT FIELDS(ALL) FROM Account WHERE Name = 'x'`), "", "400 MALFORMED_QUERY", ""},
			{"GET", soql(`SELECT Id FROM Account WHERE Nick = 'x'`), "", "400 INVALID_FIELD", ""},
			{"GET", soql(`SELECT Id FROM Lead WHERE Name = 'x'`), "", "400 INVALID_TYPE", ""},
		}},
		"fields": {"what the object does not have, and what may not be set", []step{
			{"POST", rows, `{"Nick":"x"}`, "400 INVALID_FIELD", ""},
			{"POST", rows, `{"SystemModstamp":"2030-01-01T00:00:00Z"}`, "400 INVALID_FIELD_FOR_INSERT_UPDATE", ""},
			{"POST", rows, `{"Name":1}`, "400 JSON_PARSER_ERROR", ""},
			{"POST", rows, `{"Due__c":"2030-01-01T12:00:00+02:00"}`, "201", ""},
			{"GET", soql(`SELECT FIELDS(ALL) FROM Account LIMIT 1`), "", `200 "Due__c":"2030-01-01T10:00:00.000+0000"`, ""},
			{"GET", rows + "/describe", "", `200 "externalId":true,"label":"Key__c","name":"Key__c","type":"string","unique":true`, ""},
			{"GET", rows + "/describe", "", "401 INVALID_SESSION_ID", "Authorization: Bearer no"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			play(t, account().Fake, "00D-session", tc.steps)
		})
	}
}

func account() *rest.Salesforce {
	return rest.NewSalesforce("client", "secret", "Account", map[string]rest.SalesforceField{
		"Key__c": {ExternalID: true, Unique: true}, "Loose__c": {ExternalID: true}, "Due__c": {Type: "datetime"},
	})
}

// TestSalesforcePages: the rest of a long answer is at a relative address.
func TestSalesforcePages(t *testing.T) {
	s := account()
	s.SetPage(1)
	const rows = "/services/data/v62.0/sobjects/Account"
	play(t, s.Fake, "00D-session", []step{
		{"POST", rows, `{"Name":"A","Loose__c":"L"}`, "201", ""},
		{"POST", rows, `{"Name":"B","Loose__c":"L"}`, "201", ""},
		{"GET", "/services/data/v62.0/query?q=" + url.QueryEscape("SELECT FIELDS(ALL) FROM Account WHERE Loose__c = 'L' LIMIT 200"), "",
			`200 "nextRecordsUrl":"/services/data/v62.0/query/01gWs0000000003-1"`, ""},
		{"GET", "/services/data/v62.0/query/01gWs0000000003-1", "", `200 "Name":"B"`, ""},
	})
}
