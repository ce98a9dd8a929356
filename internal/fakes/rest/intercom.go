package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The collections of [Intercom].
const (
	IntercomConversations = "conversations"
	IntercomParts         = "parts"
)

// intercomWindow is how many parts a conversation shows.
const intercomWindow = 500

// IntercomOptions are the choices of an [Intercom]. The zero value works.
type IntercomOptions struct {
	// Token is the access token. Default "intercom-token".
	Token string
	// KeepsCreatedAt means that a part has the created_at of its request, as is documented. Default: it
	// has the time of its arrival.
	KeepsCreatedAt bool
	// Unsent means that replies are stored and not sent on: notified_at stays empty.
	Unsent bool
}

// Intercom is the fake of Intercom's API (2.15) for replies of admins to conversations.
//
// No part has a member for the client, and a conversation shows its 500 newest parts. Bodies come back
// as sanitised HTML. Members that it does not know are ignored.
type Intercom struct {
	*Fake
	o IntercomOptions
}

// NewIntercom makes one.
func NewIntercom(o IntercomOptions) *Intercom {
	o.Token = cmp.Or(o.Token, "intercom-token")
	s := &Intercom{o: o}
	m := usual(bearer(o.Token), 422, func(status int) Answer {
		code := map[int]string{400: "parameter_invalid", 401: "unauthorized", 403: "api_plan_restricted", 404: "not_found", 422: "parameter_invalid", 429: "rate_limit_exceeded"}[status]
		says := map[int]string{401: "Access Token Invalid", 403: "Active subscription needed.", 404: "Resource Not Found", 429: "Exceeded rate limit of 10000 in 1_minute"}[status]
		return *intercomError(status, code, cmp.Or(says, "The request is not valid."))
	})
	m.Throttled = func(how string, wait time.Duration) (Answer, bool) {
		a := *intercomError(429, "rate_limit_exceeded", "Exceeded rate limit of 10000 in 1_minute")
		return a.With("X-RateLimit-Remaining", "0").With("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(wait).Unix(), 10)), how == ""
	}
	m.RequestID = "X-Request-Id"
	s.Fake = New(m)
	s.HandleWrite("POST /conversations/{id}/reply", s.reply)
	s.handleFixed("GET /me", map[string]any{"type": "admin", "id": "1", "email": "ada@example.com"})
	s.HandleRead("GET /conversations/{id}", false, func(r *Request, seen View) Answer {
		o := seen.Get(IntercomConversations, r.PathValue("id"))
		if o == nil {
			return *intercomError(404, "not_found", "Resource Not Found")
		}
		return Answer{Status: 200, Body: intercomShown(o, seen)}
	})
	return s
}

// Seed opens a conversation as a customer would.
func (s *Intercom) Seed(more Object) Object {
	_, o := s.Put(IntercomConversations, func(now View) (string, Object) {
		at := now.At().Unix()
		o := Object{"type": "conversation", "id": strconv.FormatInt(now.Next(), 10), "created_at": at, "updated_at": at, "open": true, "state": "open", "read": false,
			"title": nil, "priority": "not_priority", "source": map[string]any{"type": "conversation", "id": "1", "body": "<p>hello</p>", "author": map[string]any{"type": "user", "id": "u1"}}}
		for member, v := range more.Clone() {
			o[member] = v
		}
		return o.Text("id"), o
	})
	return o
}

// SeedPart writes a part as another actor would: another admin. more are members that override the
// others.
func (s *Intercom) SeedPart(conversation, body string, more Object) Object {
	_, o := s.Put(IntercomParts, func(now View) (string, Object) {
		o := s.part(conversation, "2", "comment", body, now)
		for member, v := range more.Clone() {
			o[member] = v
		}
		return o.Text("id"), o
	})
	return o
}

func intercomError(status int, code, says string) *Answer {
	return &Answer{Status: status, Body: map[string]any{"type": "error.list", "request_id": "b1", "errors": []any{map[string]any{"code": code, "message": says}}}}
}

var (
	intercomScript = regexp.MustCompile(`(?is)<(script|style)\b.*?</(?:script|style)>`)
	intercomTag    = regexp.MustCompile(`(?i)<(/?)([a-z][a-z0-9]*)\b[^>]*>`)
)

// intercomHTML is a body as it comes back: text becomes a paragraph, tags lose their attributes, and
// those that are not known go.
func intercomHTML(body string) string {
	body = strings.TrimSpace(intercomScript.ReplaceAllString(body, ""))
	if !intercomTag.MatchString(body) {
		return "<p>" + strings.ReplaceAll(html.EscapeString(html.UnescapeString(body)), "\n", "<br>") + "</p>"
	}
	return intercomTag.ReplaceAllStringFunc(body, func(tag string) string {
		m := intercomTag.FindStringSubmatch(tag)
		if name := strings.ToLower(m[2]); slices.Contains([]string{"p", "b", "i", "br", "ul", "ol", "li", "h1", "h2", "a", "code", "pre"}, name) {
			return "<" + m[1] + name + ">"
		}
		return ""
	})
}

func (s *Intercom) part(conversation, admin, kind, body string, now View) Object {
	at := Number(now.At().Unix())
	o := Object{".conversation": conversation, "type": "conversation_part", "id": strconv.FormatInt(now.Next(), 10), "part_type": kind, "body": intercomHTML(body),
		"created_at": at, "updated_at": at, "notified_at": at, "assigned_to": nil, "author": map[string]any{"type": "admin", "id": admin, "name": "Admin " + admin},
		"attachments": []any{}, "external_id": nil, "redacted": false, "metadata": map[string]any{}, "app_package_code": nil}
	if s.o.Unsent {
		o["notified_at"] = nil
	}
	return o
}

// intercomShown is a conversation with its newest parts, the oldest of them first.
func intercomShown(o Object, seen View) Object {
	parts := slices.DeleteFunc(seen.List(IntercomParts), func(p Object) bool { return p[".conversation"] != o["id"] })
	shown, _ := page(parts[max(0, len(parts)-intercomWindow):], intercomWindow)
	o = o.Shown()
	o["conversation_parts"] = map[string]any{"type": "conversation_part.list", "conversation_parts": shown, "total_count": len(parts)}
	return o
}

func (s *Intercom) reply(r *Request, now View) (Plan, *Answer) {
	conversation, given := now.Get(IntercomConversations, r.PathValue("id")), Object(r.Body)
	kind, admin := given.Text("message_type"), fmt.Sprint(cmp.Or(given["admin_id"], any("")))
	switch {
	case conversation == nil:
		return Plan{}, intercomError(404, "not_found", "Resource Not Found")
	case given["type"] != "admin":
		return Plan{}, intercomError(400, "parameter_invalid", "type must be admin")
	case kind != "comment" && kind != "note":
		return Plan{}, intercomError(400, "parameter_invalid", "message_type must be comment or note")
	case admin == "":
		return Plan{}, intercomError(400, "parameter_not_found", "admin_id not specified")
	case given.Text("body") == "":
		return Plan{}, intercomError(400, "parameter_not_found", "body not specified")
	}
	o := s.part(conversation.Text("id"), admin, kind, given.Text("body"), now)
	if at, ok := given["created_at"].(json.Number); ok && s.o.KeepsCreatedAt {
		o["created_at"] = at
	}
	return Plan{
		Collection: IntercomParts, ID: o.Text("id"), After: o, Create: true,
		Answer:    func(Object) Answer { return Answer{Status: 200, Body: intercomShown(conversation, s.now())} },
		Normalise: func(stored Object) { stored["body"] = strings.ToUpper(stored.Text("body")) },
		Duplicate: func(stored Object, now View) (string, Object) {
			stored["id"] = strconv.FormatInt(now.Next(), 10)
			return stored.Text("id"), stored
		},
	}, nil
}
