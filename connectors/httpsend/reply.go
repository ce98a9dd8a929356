package httpsend

import (
	"cmp"
	"maps"
	"mime"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
)

// maxDetails is how many levels of an error's details are searched for texts.
const maxDetails = 4

// requestIDs are the headers in which APIs name a request, the plain name first.
var requestIDs = []string{
	"Request-Id", "X-Request-Id", "X-Github-Request-Id", "X-Hubspot-Correlation-Id", "X-Zendesk-Request-Id",
	"X-Arequestid", "X-Amzn-Requestid", "X-Ms-Request-Id", "X-Correlation-Id",
}

// Reply is the destination's own text in the answer: the id of the request and, if the status is
// not a 2xx or refused is set, its code and message. They are taken from the members that most
// APIs use in a JSON body; other bodies are kept unchanged. Default nothing.
func (a Answer) Reply(refused bool) connectors.Reply {
	var s connectors.Reply
	for _, name := range requestIDs {
		s.RequestID = cmp.Or(s.RequestID, a.Header.Get(name))
	}
	s.Raw = a.Body
	if a.Status/100 == 2 && !refused {
		return s
	}
	var doc any
	if a.Decode(&doc) == nil {
		s.Code, s.Message = textIn(doc, "code", "error_code", "errorCode", "category", "reason", "type", "status", "error"), messageOf(doc)
		s.RequestID = cmp.Or(s.RequestID, textIn(doc, "request_id", "requestId", "correlationId"))
	} else if kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type")); kind == "text/plain" {
		s.Message, _, _ = strings.Cut(strings.TrimSpace(string(a.Body)), "\n")
	}
	return s
}

// inner are the objects of a body in which an error is found: the one that a
// member "error" holds, or the first of a list, before the body itself.
func inner(doc any) []map[string]any {
	switch v := doc.(type) {
	case []any:
		if len(v) > 0 {
			return inner(v[0])
		}
	case map[string]any:
		var all []map[string]any
		for _, name := range []string{"error", "errors"} {
			if _, plain := v[name].(string); !plain && v[name] != nil {
				all = append(all, inner(v[name])...)
			}
		}
		return append(all, v)
	}
	return nil
}

// textIn is the first member of these names that is text.
func textIn(doc any, names ...string) string {
	for _, object := range inner(doc) {
		for _, name := range names {
			if v, _ := object[name].(string); v != "" {
				return v
			}
		}
	}
	return ""
}

// messageOf is the sentence of an error with the details next to it.
func messageOf(doc any) string {
	text := textIn(doc, "message", "error_message", "errorMessage", "error_description", "description", "detail", "title", "msg")
	object, _ := doc.(map[string]any)
	for _, name := range []string{"errorMessages", "errors", "details"} {
		if more := details(object[name], maxDetails); more != "" && !strings.Contains(text, more) {
			text = strings.TrimPrefix(text+": "+more, ": ")
		}
	}
	return text
}

// Words are the texts in a JSON value that describes an error, "" if there is none.
func Words(v any) string { return details(v, maxDetails) }

// details are the texts in a value with the fields that they are about.
func details(v any, deep int) string {
	if deep == 0 {
		return ""
	}
	var all []string
	switch v := v.(type) {
	case string:
		return v
	case []any:
		for _, e := range v {
			all = append(all, details(e, deep-1))
		}
	case map[string]any:
		if text := textIn(v, "message", "description", "detail"); text != "" {
			return text
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if text := details(v[name], deep-1); text != "" {
				all = append(all, name+": "+text)
			}
		}
	}
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), ", ")
}
