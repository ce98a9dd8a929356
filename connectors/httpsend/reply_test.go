package httpsend_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
)

// The bodies have the shapes that the vendors document for their errors.
func TestReply(t *testing.T) {
	for name, tt := range map[string]struct {
		status  int
		header  string
		id      string
		body    string
		refused bool
		want    connectors.Reply
	}{
		"Stripe": {400, "Request-Id", "req_ABC123", `{"error":{"code":"charge_already_refunded","message":"Charge ch_1 has already been refunded.","type":"invalid_request_error"}}`, false,
			connectors.Reply{Code: "charge_already_refunded", Message: "Charge ch_1 has already been refunded.", RequestID: "req_ABC123"}},
		"Jira": {400, "X-AREQUESTID", "abc", `{"errorMessages":["It is closed"],"errors":{"summary":"You must specify a summary of the issue."}}`, false,
			connectors.Reply{Message: "It is closed: summary: You must specify a summary of the issue.", RequestID: "abc"}},
		"Redmine": {422, "", "", `{"errors":["Subject cannot be blank"]}`, false, connectors.Reply{Message: "Subject cannot be blank"}},
		"Zendesk": {422, "X-Zendesk-Request-Id", "z", `{"error":"RecordInvalid","description":"Record validation errors","details":{"base":[{"description":"Subject: cannot be blank"}]}}`, false,
			connectors.Reply{Code: "RecordInvalid", Message: "Record validation errors: base: Subject: cannot be blank", RequestID: "z"}},
		"GitHub": {422, "X-GitHub-Request-Id", "G:1", `{"message":"Validation Failed","errors":[{"resource":"Issue","field":"title","code":"missing_field"}]}`, false,
			connectors.Reply{Code: "missing_field", Message: "Validation Failed: code: missing_field, field: title, resource: Issue", RequestID: "G:1"}},
		"Salesforce": {400, "", "", `[{"message":"No such column","errorCode":"INVALID_FIELD"}]`, false,
			connectors.Reply{Code: "INVALID_FIELD", Message: "No such column"}},
		"HubSpot": {409, "", "", `{"status":"error","message":"Contact already exists. Existing ID: 7","correlationId":"c-1","category":"CONFLICT"}`, false,
			connectors.Reply{Code: "CONFLICT", Message: "Contact already exists. Existing ID: 7", RequestID: "c-1"}},
		"Google": {400, "", "", `{"error":{"code":400,"message":"Invalid value","status":"INVALID_ARGUMENT"}}`, false,
			connectors.Reply{Code: "INVALID_ARGUMENT", Message: "Invalid value"}},
		"Notion": {400, "", "", `{"object":"error","status":400,"code":"validation_error","message":"body failed validation","request_id":"n-1"}`, false,
			connectors.Reply{Code: "validation_error", Message: "body failed validation", RequestID: "n-1"}},
		"problem details":     {403, "", "", `{"type":"https://example.org/out-of-credit","title":"Not enough credit","detail":"Your balance is 30"}`, false, connectors.Reply{Code: "https://example.org/out-of-credit", Message: "Your balance is 30"}},
		"200 that refuses":    {200, "", "", `{"ok":false,"error":"channel_not_found"}`, true, connectors.Reply{Code: "channel_not_found"}},
		"2xx":                 {201, "Request-Id", "req_1", `{"id":"1","message":"a record's own field"}`, false, connectors.Reply{RequestID: "req_1"}},
		"text":                {502, "Content-Type", "text/plain; charset=utf-8", "upstream is down\nmore", false, connectors.Reply{Message: "upstream is down"}},
		"a page":              {502, "Content-Type", "text/html", "<html><body>down</body></html>", false, connectors.Reply{}},
		"nothing":             {500, "", "", "", false, connectors.Reply{}},
		"no object":           {400, "", "", `"no"`, false, connectors.Reply{}},
		"members that lie":    {400, "", "", `{"error":{"code":{"a":1},"message":["x"]},"errors":null}`, false, connectors.Reply{}},
		"nested without end":  {400, "", "", `{"errors":{"a":{"b":{"c":{"d":{"e":"too deep"}}}}}}`, false, connectors.Reply{}},
		"an empty list":       {400, "", "", `[]`, false, connectors.Reply{}},
		"the message is none": {400, "", "", `{"message":""}`, false, connectors.Reply{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			if tt.header != "" {
				h.Set(tt.header, tt.id)
			}
			got := httpsend.Answer{Status: tt.status, Header: h, Body: []byte(tt.body)}.Reply(tt.refused)
			if string(got.Raw) != tt.body {
				t.Errorf("raw is %q", got.Raw)
			}
			got.Raw = nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
