package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SendGridMessages is the collection of [SendGrid]: one record for each recipient.
const SendGridMessages = "messages"

// SendGridOptions are the choices of a [SendGrid]. The zero value works.
type SendGridOptions struct {
	// Token is the API key. Default "SG.readback".
	Token string
	// Messages means that the account may read its messages. Default: it may only send.
	Messages bool
	// MessagesLag is how long that list lags. Default 2 minutes; negative: not at all.
	MessagesLag time.Duration
	// DeliveredAfter is how long a message is "processed". Default 2 s.
	DeliveredAfter time.Duration
	// Bounces means that mail is not delivered.
	Bounces bool
}

// SendGrid is the fake of SendGrid's API for mail/send and, for accounts that have it, messages.
//
// A send is answered with 202 and no body. No header makes a repeat harmless. The client's mark is in
// custom_args, which only a message by its id shows (as unique_args). Members that it does not know are
// ignored. It knows one recipient for each request.
type SendGrid struct {
	*Fake
	o SendGridOptions
}

// NewSendGrid makes one.
func NewSendGrid(o SendGridOptions) *SendGrid {
	o.Token, o.MessagesLag, o.DeliveredAfter = cmp.Or(o.Token, "SG.readback"), cmp.Or(o.MessagesLag, 2*time.Minute), cmp.Or(o.DeliveredAfter, 2*time.Second)
	s := &SendGrid{o: o}
	m := usual(bearer(o.Token), 400, func(status int) Answer {
		return *sendGridError(status, "", map[int]string{400: "Bad Request", 401: "The provided authorization grant is invalid, expired, or revoked",
			403: "access forbidden", 404: "Not Found", 429: "too many requests"}[status])
	})
	m.Throttled = func(how string, wait time.Duration) (Answer, bool) {
		a := *sendGridError(429, "", "too many requests")
		return a.With("X-RateLimit-Remaining", "0").With("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(wait).Unix(), 10)), how == ""
	}
	s.Fake = New(m)
	s.SetLag(max(0, o.MessagesLag))
	s.HandleWrite("POST /v3/mail/send", s.send)
	s.handleFixed("GET /v3/scopes", map[string]any{"scopes": []any{"mail.send", "user.profile.read"}})
	s.HandleRead("GET /v3/messages", false, s.list)
	s.HandleRead("GET /v3/messages/{id}", false, func(r *Request, seen View) Answer {
		o := seen.Get(SendGridMessages, r.PathValue("id"))
		switch {
		case !s.o.Messages:
			return *sendGridError(403, "", "access forbidden")
		case o == nil:
			return *sendGridError(404, "", "Not Found")
		}
		o["unique_args"] = o[".args"]
		return Answer{Status: 200, Body: o.Shown()}
	})
	return s
}

func sendGridError(status int, field, says string) *Answer {
	e := map[string]any{"message": says, "field": nil, "help": nil}
	if field != "" {
		e["field"] = field
	}
	return &Answer{Status: status, Body: map[string]any{"errors": []any{e}}}
}

// sendGridEmail is the address of {"email": …}.
func sendGridEmail(v any) string {
	o, _ := v.(map[string]any)
	email, _ := o["email"].(string)
	return email
}

func (s *SendGrid) send(r *Request, now View) (Plan, *Answer) {
	given := Object(r.Body)
	all, _ := given["personalizations"].([]any)
	if len(all) == 0 {
		return Plan{}, sendGridError(400, "personalizations", "You must have at least one personalization.")
	}
	one, _ := all[0].(map[string]any)
	to, _ := one["to"].([]any)
	subject := cmp.Or(Object(one).Text("subject"), given.Text("subject"))
	content, _ := given["content"].([]any)
	switch {
	case len(all) != 1 || len(to) > 1:
		return Plan{}, sendGridError(400, "personalizations", "This fake knows one recipient for each request.")
	case len(to) == 0:
		return Plan{}, sendGridError(400, "personalizations.0.to", "The to array is required for all personalization objects, and must have at least one email object with a valid email address.")
	case !strings.Contains(sendGridEmail(to[0]), "@"):
		return Plan{}, sendGridError(400, "personalizations.0.to.0.email", "Does not contain a valid address.")
	case !strings.Contains(sendGridEmail(given["from"]), "@"):
		return Plan{}, sendGridError(400, "from.email", "The from email does not contain a valid address.")
	case subject == "" && given["template_id"] == nil:
		return Plan{}, sendGridError(400, "subject", "The subject is required.")
	case len(content) == 0 && given["template_id"] == nil:
		return Plan{}, sendGridError(400, "content", "The content is required.")
	}
	args := map[string]any{}
	for _, from := range []any{given["custom_args"], one["custom_args"]} {
		pairs, ok := from.(map[string]any)
		if from != nil && !ok {
			return Plan{}, sendGridError(400, "custom_args", "Invalid type. Expected: object, given: string.")
		}
		for name, v := range pairs {
			args[name] = v
		}
	}
	if raw, _ := json.Marshal(args); len(raw) > 10_000 {
		return Plan{}, sendGridError(400, "custom_args", "The custom_args exceed 10000 bytes.")
	}
	settings, _ := given["mail_settings"].(map[string]any)
	if sandbox, _ := settings["sandbox_mode"].(map[string]any); sandbox["enable"] == true {
		return Plan{}, &Answer{Status: 200}
	}
	id := s.id(now)
	o := Object{
		"msg_id": id, "from_email": sendGridEmail(given["from"]), "to_email": sendGridEmail(to[0]), "subject": subject, "status": "processed",
		"opens_count": 0, "clicks_count": 0, "last_event_time": now.At().UTC().Format(time.RFC3339), ".args": args, ".content": content,
	}
	end := "delivered"
	if s.o.Bounces {
		end = "not_delivered"
	}
	return Plan{
		Collection: SendGridMessages, ID: id, After: o, Create: true,
		Later: []Later{{s.o.DeliveredAfter, func(o Object) {
			o["status"], o["last_event_time"] = end, time.Now().UTC().Format(time.RFC3339)
		}}},
		Answer: func(Object) Answer {
			short, _, _ := strings.Cut(id, ".")
			return Answer{Status: http.StatusAccepted}.With("X-Message-Id", short)
		},
		Drop:      func(stored Object) { stored[".args"] = map[string]any{} },
		Normalise: func(stored Object) { stored["subject"] = strings.ToUpper(stored.Text("subject")) },
		Duplicate: func(stored Object, now View) (string, Object) {
			stored["msg_id"] = s.id(now)
			return stored.Text("msg_id"), stored
		},
	}, nil
}

func (s *SendGrid) id(now View) string { return fmt.Sprintf("m%d.recvd-1-0", now.Next()) }

// list takes a query such as to_email="a@b.c" AND unique_args['readback']="k", and does not show the
// arguments.
func (s *SendGrid) list(r *Request, seen View) Answer {
	if !s.o.Messages {
		return *sendGridError(403, "", "access forbidden")
	}
	query := r.URL.Query().Get("query")
	all, rest := conditions(query)
	size := limit(r.URL.Query().Get("limit"), 10, 1000)
	if size == 0 || rest != "" || len(all) == 0 && query != "" {
		return *sendGridError(400, "query", "The query is not valid.")
	}
	found := slices.DeleteFunc(newest(seen.List(SendGridMessages)), func(o Object) bool {
		return slices.ContainsFunc(all, func(c clause) bool {
			v := o[c.field]
			if name, ok := strings.CutPrefix(c.field, "unique_args['"); ok {
				args, _ := o[".args"].(map[string]any)
				v = args[strings.TrimSuffix(name, "']")]
			}
			return !c.holds(v)
		})
	})
	shown, _ := page(found, size)
	return Answer{Status: 200, Body: map[string]any{"messages": shown}}
}
