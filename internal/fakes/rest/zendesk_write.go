package rest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	zendeskMaxKey     = 255 // of an idempotency key
	zendeskMaxSubject = 150
)

// SeedTicket creates a ticket as another actor would. more are members that override the others.
func (z *Zendesk) SeedTicket(externalID string, more Object) Object {
	_, o := z.Put(Tickets, func(now View) (string, Object) {
		n := now.Next()
		o := zendeskTicket(n)
		o["external_id"] = externalID
		maps.Copy(o, more)
		return strconv.FormatInt(n, 10), o
	})
	return o
}

func zendeskTicket(n int64) Object {
	id := strconv.FormatInt(n, 10)
	at := time.Now().UTC().Format(time.RFC3339)
	return Object{
		"url": "https://acme.zendesk.com/api/v2/tickets/" + id + ".json", "id": n, "external_id": nil,
		"via":        map[string]any{"channel": "api", "source": map[string]any{"from": map[string]any{}, "to": map[string]any{}, "rel": nil}},
		"created_at": at, "updated_at": at, "type": nil, "subject": "", "raw_subject": "", "description": "",
		"priority": nil, "status": "new", "recipient": nil, "requester_id": 9001, "submitter_id": 9001, "assignee_id": nil,
		"organization_id": nil, "group_id": 77, "collaborator_ids": []any{}, "follower_ids": []any{}, "due_at": nil,
		"is_public": true, "tags": []any{}, "custom_fields": []any{}, "brand_id": 5, "ticket_form_id": 6,
		"allow_channelback": false, "has_incidents": false, "problem_id": nil, "satisfaction_rating": nil,
	}
}

func (z *Zendesk) create(r *Request, now View) (Plan, *Answer) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > zendeskMaxKey {
		a := zendeskProblem(http.StatusBadRequest, "IdempotentRequestError", "Idempotency key is too long")
		return Plan{}, &a
	}
	if a, same, known := z.Used(key, z.o.Window, r); key != "" && known {
		if !same {
			a = zendeskProblem(http.StatusBadRequest, "IdempotentRequestError", "Request parameters do not match those of the first request with this key")
		}
		a = a.With("X-Idempotency-Lookup", "hit")
		return Plan{}, &a
	}
	given, a := ticketOf(r)
	if a != nil {
		return Plan{}, a
	}
	n := now.Next()
	o := zendeskTicket(n)
	comment, _ := given["comment"].(map[string]any)
	text, _ := comment["body"].(string)
	if text = tidy(text); text == "" {
		return Plan{}, zendeskInvalid("base", "BlankValue", "Description: cannot be blank")
	}
	o["description"] = text
	if a := zendeskFill(o, given); a != nil {
		return Plan{}, a
	}
	p := Plan{
		Collection: Tickets, ID: strconv.FormatInt(n, 10), After: o, Create: true, Key: key,
		Answer: func(stored Object) Answer {
			a := Answer{Status: http.StatusCreated, Body: map[string]any{"ticket": stored.Shown(), "audit": map[string]any{"id": 1, "ticket_id": stored["id"]}}}
			if a = a.With("Location", stored.Text("url")); key != "" {
				a = a.With("X-Idempotency-Lookup", "miss")
			}
			return a
		},
		Drop:      func(stored Object) { stored["priority"] = nil },
		Normalise: func(stored Object) { stored["subject"] = strings.ToUpper(stored.Text("subject")) },
		Duplicate: func(stored Object, now View) (string, Object) {
			n := now.Next()
			stored["id"] = n
			return strconv.FormatInt(n, 10), stored
		},
	}
	if tag := z.o.TriggerTag; tag != "" {
		p.Later = []Later{{z.o.TriggerAfter, func(o Object) {
			o["tags"] = Tags(append(texts(o["tags"]), tag))
			o["updated_at"] = time.Now().UTC().Format(time.RFC3339)
		}}}
	}
	return p, nil
}

func (z *Zendesk) update(r *Request, now View) (Plan, *Answer) {
	given, a := ticketOf(r)
	if a != nil {
		return Plan{}, a
	}
	id := ticketID(r)
	before := now.Get(Tickets, id)
	if before == nil {
		a := zendeskProblem(http.StatusNotFound, "RecordNotFound", "Not found")
		return Plan{}, &a
	}
	if given["safe_update"] == true && given["updated_stamp"] != before["updated_at"] {
		a := zendeskProblem(http.StatusConflict, "UpdateConflict", "Safe Update prevented the update due to outdated ticket data. Please fetch the latest ticket data and try again.")
		return Plan{}, &a
	}
	o := before.Clone()
	if a := zendeskFill(o, given); a != nil {
		return Plan{}, a
	}
	o["updated_at"] = now.At().UTC().Format(time.RFC3339)
	return Plan{
		Collection: Tickets, ID: id, After: o,
		Answer: func(stored Object) Answer {
			return Answer{Status: http.StatusOK, Body: map[string]any{"ticket": stored.Shown(), "audit": map[string]any{"id": 2}}}
		},
		Drop:      func(stored Object) { stored["priority"] = before["priority"] },
		Normalise: func(stored Object) { stored["subject"] = strings.ToUpper(stored.Text("subject")) },
	}, nil
}

// delete is soft: the ticket is not found any more.
func (z *Zendesk) delete(r *Request, now View) (Plan, *Answer) {
	id := ticketID(r)
	if now.Get(Tickets, id) == nil {
		a := zendeskProblem(http.StatusNotFound, "RecordNotFound", "Not found")
		return Plan{}, &a
	}
	return Plan{Collection: Tickets, ID: id, Answer: func(Object) Answer { return Answer{Status: http.StatusNoContent} }}, nil
}

func ticketOf(r *Request) (map[string]any, *Answer) {
	given, ok := r.Body["ticket"].(map[string]any)
	if !ok {
		a := zendeskProblem(http.StatusBadRequest, "ParameterMissing", "Required parameter missing: ticket")
		return nil, &a
	}
	return given, nil
}

// choices are the members with a closed list of values.
var choices = map[string][]any{
	"priority": {nil, "urgent", "high", "normal", "low"},
	"type":     {nil, "problem", "incident", "question", "task"},
	"status":   {"new", "open", "pending", "hold", "solved", "closed"},
}

// zendeskFill stores a request. Unknown members are ignored.
func zendeskFill(o Object, given map[string]any) *Answer {
	for name, allowed := range choices {
		v, ok := given[name]
		if !ok {
			continue
		}
		if !slices.Contains(allowed, v) {
			return zendeskInvalid(name, "InvalidValue", name+": is invalid")
		}
		o[name] = v
	}
	if v, ok := given["subject"]; ok {
		subject, isText := v.(string)
		if !isText || len(subject) > zendeskMaxSubject {
			return zendeskInvalid("subject", "InvalidValue", "Subject: is invalid")
		}
		o["subject"], o["raw_subject"] = tidy(subject), tidy(subject)
	}
	if v, ok := given["tags"]; ok {
		if _, isList := v.([]any); !isList {
			return zendeskInvalid("tags", "InvalidValue", "Tags: are invalid")
		}
		o["tags"] = Tags(texts(v))
	}
	if v, ok := given["external_id"]; ok {
		switch n := v.(type) {
		case json.Number:
			v = string(n) // it is a text, whatever is given
		case string, nil:
		default:
			return zendeskInvalid("external_id", "InvalidValue", "External: is invalid")
		}
		o["external_id"] = v
	}
	for _, name := range []string{"requester_id", "assignee_id", "group_id", "organization_id"} {
		v, ok := given[name]
		if _, number := v.(json.Number); ok && !number && v != nil {
			return zendeskInvalid(name, "InvalidValue", name+": is invalid")
		}
		if ok {
			o[name] = v
		}
	}
	return nil
}

// tidy is text as it is kept: one form of line ends, no blanks around.
func tidy(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }

func texts(list any) []string {
	var all []string
	items, _ := list.([]any)
	for _, v := range items {
		if s, ok := v.(string); ok {
			all = append(all, s)
		}
	}
	return all
}
