package rest

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ResendEmails is the collection of [Resend].
const ResendEmails = "emails"

// ResendOptions are the choices of a [Resend]. The zero value works.
type ResendOptions struct {
	// Token is the API key. Default "re_readback".
	Token string
	// Window is how long an idempotency key is remembered. Default 24 hours.
	Window time.Duration
	// DeliveredAfter is how long the last event is "sent". Default 2 s.
	DeliveredAfter time.Duration
	// Bounces means that mail bounces instead of being delivered.
	Bounces bool
}

// Resend is the fake of Resend's API for e-mails.
//
// An Idempotency-Key holds for one method and path; bodies are compared byte by byte. What is read
// shows neither tags nor headers, and no list has a filter. Members that it does not know are ignored.
type Resend struct {
	*Fake
	o ResendOptions
}

// NewResend makes one.
func NewResend(o ResendOptions) *Resend {
	o.Token, o.Window, o.DeliveredAfter = cmp.Or(o.Token, "re_readback"), cmp.Or(o.Window, 24*time.Hour), cmp.Or(o.DeliveredAfter, 2*time.Second)
	s := &Resend{o: o}
	m := usual(bearer(o.Token), 422, func(status int) Answer {
		name := map[int]string{401: "missing_api_key", 404: "not_found", 429: "rate_limit_exceeded", 500: "internal_server_error"}[status]
		says := map[int]string{401: "Missing API Key", 403: "The domain is not verified.", 404: "Email not found", 422: "Invalid `to` field.",
			429: "Too many requests. You can only make 2 requests per second.", 500: "Internal server error."}[status]
		return *resendError(status, cmp.Or(name, "validation_error"), cmp.Or(says, "The request is not valid."))
	})
	m.Throttled = func(how string, wait time.Duration) (Answer, bool) {
		a := *resendError(429, "rate_limit_exceeded", "Too many requests. You can only make 2 requests per second.")
		return a.With("Retry-After", seconds(wait)).With("Ratelimit-Reset", seconds(wait)), how == ""
	}
	m.Key = func(r *Request) string {
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			return r.Method + " " + r.URL.Path + " " + key
		}
		return ""
	}
	m.Busy = func(r *Request) Answer {
		return *resendError(409, "concurrent_idempotent_requests", "Another request with the same idempotency key is currently in progress.")
	}
	m.RequestID = "X-Request-Id"
	s.Fake = New(m)
	s.HandleWrite("POST /emails", s.create)
	s.HandleWrite("POST /emails/{id}/cancel", s.cancel)
	s.HandleRead("GET /emails", false, s.list)
	s.handleFixed("GET /domains", map[string]any{"object": "list", "has_more": false, "data": []any{}})
	s.HandleRead("GET /emails/{id}", true, func(r *Request, seen View) Answer {
		if o := seen.Get(ResendEmails, r.PathValue("id")); o != nil {
			return Answer{Status: 200, Body: o.Shown()}
		}
		return *resendError(404, "not_found", "Email not found")
	})
	return s
}

func resendError(status int, name, says string) *Answer {
	return &Answer{Status: status, Body: map[string]any{"statusCode": status, "name": name, "message": says}}
}

// resendList is one address or several.
func resendList(v any) []any {
	switch v := v.(type) {
	case string:
		return []any{v}
	case []any:
		return v
	}
	return []any{}
}

func (s *Resend) create(r *Request, now View) (Plan, *Answer) {
	if given, ok := r.Header["Idempotency-Key"]; ok && (len(given[0]) < 1 || len(given[0]) > 256) {
		return Plan{}, resendError(400, "invalid_idempotency_key", "Idempotency keys, if present, must have between 1 and 256 characters.")
	}
	key := s.keyOf(r)
	if a, same, known := s.Used(key, s.o.Window, r); known && same {
		return Plan{}, &a
	} else if known {
		return Plan{}, resendError(409, "invalid_idempotent_request", "This idempotency key was used with another request body.")
	}
	given := Object(r.Body)
	for _, name := range []string{"from", "to", "subject"} {
		if len(resendList(given[name])) == 0 {
			return Plan{}, resendError(422, "missing_required_field", "Missing `"+name+"` field.")
		}
	}
	if given["html"] == nil && given["text"] == nil && given["template"] == nil {
		return Plan{}, resendError(422, "missing_required_field", "Missing `html` or `text` field.")
	}
	if to := resendList(given["to"]); len(to) > 50 || !strings.Contains(fmt.Sprint(to[0]), "@") {
		return Plan{}, resendError(422, "validation_error", "Invalid `to` field.")
	}
	id := fmt.Sprintf("%08x-0000-4000-8000-000000000000", now.Next())
	o := Object{
		"object": "email", "id": id, "message_id": "<" + id + "@resend.example>", "created_at": now.At().UTC().Format("2006-01-02 15:04:05.999999+00"),
		"from": given["from"], "to": resendList(given["to"]), "cc": resendList(given["cc"]), "bcc": resendList(given["bcc"]), "reply_to": resendList(given["reply_to"]),
		"subject": given["subject"], "html": given["html"], "text": given["text"], "last_event": "sent",
		".tags": given["tags"], ".headers": given["headers"],
	}
	end := "delivered"
	if s.o.Bounces {
		end = "bounced"
	}
	p := Plan{
		Collection: ResendEmails, ID: id, After: o, Create: true, Key: key,
		Answer:    func(Object) Answer { return Answer{Status: 200, Body: map[string]any{"id": id}} },
		Drop:      func(stored Object) { stored["text"] = nil },
		Normalise: func(stored Object) { stored["subject"] = strings.ToUpper(stored.Text("subject")) },
		Duplicate: func(stored Object, now View) (string, Object) {
			stored["id"] = fmt.Sprintf("%08x-0000-4000-8000-000000000000", now.Next())
			return stored.Text("id"), stored
		},
	}
	if given["scheduled_at"] != nil {
		o["last_event"], o["scheduled_at"] = "scheduled", given["scheduled_at"]
	} else {
		p.Later = []Later{{s.o.DeliveredAfter, func(o Object) { o["last_event"] = end }}}
	}
	return p, nil
}

// cancel is for scheduled mail; there is no clock that sends it.
func (s *Resend) cancel(r *Request, now View) (Plan, *Answer) {
	id := r.PathValue("id")
	switch o := now.Get(ResendEmails, id); {
	case o == nil:
		return Plan{}, resendError(404, "not_found", "Email not found")
	case o["last_event"] != "scheduled":
		return Plan{}, resendError(http.StatusUnprocessableEntity, "validation_error", "Only scheduled emails can be canceled.")
	default:
		o["last_event"] = "canceled"
		return Plan{Collection: ResendEmails, ID: id, After: o, Answer: func(Object) Answer {
			return Answer{Status: 200, Body: map[string]any{"object": "email", "id": id}}
		}}, nil
	}
}

// list shows the newest first.
func (s *Resend) list(r *Request, seen View) Answer {
	size := limit(r.URL.Query().Get("limit"), 20, 100)
	all, known := after(newest(seen.List(ResendEmails)), "id", r.URL.Query().Get("after"))
	if size == 0 || !known {
		return *resendError(422, "validation_error", "The pagination parameters are not valid.")
	}
	shown, more := page(all, size)
	return Answer{Status: 200, Body: map[string]any{"object": "list", "has_more": more, "data": shown}}
}
