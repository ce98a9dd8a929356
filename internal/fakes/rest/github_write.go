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

// Bounds that GitHub sets.
const (
	hubMaxTitle = 256
	hubMaxBody  = 65536
	hubMaxLabel = 50
)

// SeedIssue creates an issue as another actor would. more are members that override the others.
func (g *GitHub) SeedIssue(title, body string, labels []string, more Object) Object {
	_, o := g.Put(Issues, func(now View) (string, Object) {
		n := now.Next()
		o := hubIssue(n, "outsider")
		o["title"], o["labels"] = title, g.known(labels)
		if body != "" {
			o["body"] = body
		}
		maps.Copy(o, more)
		return strconv.FormatInt(n, 10), o
	})
	return o
}

func hubIssue(n int64, login string) Object {
	number := strconv.FormatInt(n, 10)
	at := time.Now().UTC().Format(time.RFC3339)
	return Object{
		"id": 3_000_000 + n, "node_id": "I_" + number, "number": n,
		"url":      "https://api.github.com/repos/acme/widgets/issues/" + number,
		"html_url": "https://github.com/acme/widgets/issues/" + number,
		"title":    "", "body": nil, "user": hubUser(login), "labels": []any{}, "state": "open", "state_reason": nil,
		"locked": false, "assignee": nil, "assignees": []any{}, "milestone": nil, "comments": 0,
		"author_association": "MEMBER", "active_lock_reason": nil, "closed_by": nil,
		"created_at": at, "updated_at": at, "closed_at": nil,
	}
}

// known makes label objects of names; those that the repository does not have
// yet are made.
func (g *GitHub) known(names []string) []any {
	labels := []any{}
	var seen []string
	for _, name := range names {
		low := strings.ToLower(name)
		if slices.Contains(seen, low) {
			continue
		}
		seen = append(seen, low)
		if g.labels[low] == "" {
			g.labels[low] = name
		}
		labels = append(labels, map[string]any{"id": 100 + len(low), "node_id": "LA_" + low, "name": g.labels[low],
			"color": "ededed", "default": false, "description": nil})
	}
	return labels
}

func (g *GitHub) create(r *Request, now View) (Plan, *Answer) {
	if a := g.open(r); a != nil {
		return Plan{}, a
	}
	n := now.Next()
	id, o := strconv.FormatInt(n, 10), hubIssue(n, g.o.Login)
	if title, _ := r.Body["title"].(string); strings.TrimSpace(title) == "" {
		return Plan{}, hubInvalid("title", "missing_field")
	}
	if a := g.fill(o, r.Body); a != nil {
		return Plan{}, a
	}
	return Plan{
		Collection: Issues, ID: id, After: o, Create: true,
		Answer: func(stored Object) Answer {
			return Answer{Status: http.StatusCreated, Body: stored.Shown()}.With("Location", stored.Text("url"))
		},
		Drop:      func(stored Object) { stored["assignee"], stored["assignees"] = nil, []any{} },
		Normalise: func(stored Object) { stored["title"] = strings.ToUpper(stored.Text("title")) },
		Duplicate: func(stored Object, now View) (string, Object) {
			n := now.Next()
			duplicate := hubIssue(n, g.o.Login)
			for _, name := range []string{"title", "body", "labels", "assignees", "assignee", "milestone"} {
				duplicate[name] = stored[name]
			}
			return strconv.FormatInt(n, 10), duplicate
		},
	}, nil
}

func (g *GitHub) update(r *Request, now View) (Plan, *Answer) {
	if a := g.open(r); a != nil {
		return Plan{}, a
	}
	id := r.PathValue("number")
	before := now.Get(Issues, id)
	if before == nil {
		a := hubProblem(http.StatusNotFound, "Not Found")
		return Plan{}, &a
	}
	o := before.Clone()
	if a := g.fill(o, r.Body); a != nil {
		return Plan{}, a
	}
	o["updated_at"] = now.At().UTC().Format(time.RFC3339)
	return Plan{
		Collection: Issues, ID: id, After: o,
		Answer:    func(stored Object) Answer { return Answer{Status: http.StatusOK, Body: stored.Shown()} },
		Drop:      func(stored Object) { stored["title"] = before["title"] },
		Normalise: func(stored Object) { stored["title"] = strings.ToUpper(stored.Text("title")) },
	}, nil
}

// open checks that issues can be written at all.
func (g *GitHub) open(r *Request) *Answer {
	if a := g.in(r); a != nil {
		return a
	}
	if g.o.Disabled {
		a, _ := hubRefused("410")
		return &a
	}
	if r.Body == nil {
		a := hubProblem(http.StatusBadRequest, "Problems parsing JSON")
		return &a
	}
	return nil
}

// fill stores the body of a request. Unknown members are ignored.
func (g *GitHub) fill(o Object, body map[string]any) *Answer {
	for _, part := range []func(Object, map[string]any) *Answer{g.fillText, g.fillState, g.fillSets} {
		if a := part(o, body); a != nil {
			return a
		}
	}
	return nil
}

func (g *GitHub) fillText(o Object, body map[string]any) *Answer {
	if v, ok := body["title"]; ok {
		title, isText := v.(string)
		if title = strings.TrimSpace(title); !isText || title == "" || len(title) > hubMaxTitle {
			return hubInvalid("title", "invalid")
		}
		o["title"] = title
	}
	switch v := body["body"].(type) {
	case nil:
		if _, ok := body["body"]; ok {
			o["body"] = nil
		}
	case string:
		if len(v) > hubMaxBody {
			return hubInvalid("body", "too_long")
		}
		if o["body"] = v; v == "" {
			o["body"] = nil
		}
	default:
		return hubInvalid("body", "invalid")
	}
	return nil
}

func (g *GitHub) fillState(o Object, body map[string]any) *Answer {
	state, ok := body["state"]
	if !ok {
		return nil
	}
	reason := body["state_reason"]
	switch state {
	case "closed":
		if reason == nil {
			reason = "completed"
		}
		if !slices.Contains([]any{"completed", "not_planned", "duplicate"}, reason) {
			return hubInvalid("state_reason", "invalid")
		}
		o["state"], o["state_reason"], o["closed_by"] = "closed", reason, hubUser(g.o.Login)
		o["closed_at"] = time.Now().UTC().Format(time.RFC3339)
	case "open":
		if o["state"] == "closed" {
			o["state_reason"] = "reopened"
		}
		o["state"], o["closed_at"], o["closed_by"] = "open", nil, nil
	default:
		return hubInvalid("state", "invalid")
	}
	return nil
}

// fillSets stores what requires push access; without it, the values are dropped.
func (g *GitHub) fillSets(o Object, body map[string]any) *Answer {
	labels, a := hubNames(body, "labels")
	if a != nil {
		return a
	}
	logins, a := hubNames(body, "assignees")
	if a != nil {
		return a
	}
	if _, number := body["milestone"].(json.Number); body["milestone"] != nil && !number {
		return hubInvalid("milestone", "invalid")
	}
	if g.o.NoPush {
		return nil
	}
	if labels != nil {
		for _, name := range labels {
			if name == "" || len(name) > hubMaxLabel {
				return hubInvalid("labels", "invalid")
			}
		}
		o["labels"] = g.known(labels)
	}
	if logins != nil {
		g.assign(o, logins)
	}
	if number, ok := body["milestone"]; ok {
		o["milestone"] = nil
		if number != nil {
			o["milestone"] = map[string]any{"number": number, "title": "M", "state": "open"}
		}
	}
	return nil
}

// assign drops logins that the repository does not know.
func (g *GitHub) assign(o Object, logins []string) {
	users := []any{}
	for _, login := range logins {
		i := slices.IndexFunc(g.o.Collaborators, func(c string) bool { return strings.EqualFold(c, login) })
		if i >= 0 {
			users = append(users, hubUser(g.o.Collaborators[i]))
		}
	}
	o["assignees"], o["assignee"] = users, nil
	if len(users) > 0 {
		o["assignee"] = users[0]
	}
}

// hubNames reads a list of names, each a string or an object with a name; nil
// where the member is not there.
func hubNames(body map[string]any, member string) ([]string, *Answer) {
	v, ok := body[member]
	if !ok || v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, hubInvalid(member, "invalid")
	}
	names := []string{}
	for _, item := range list {
		if o, ok := item.(map[string]any); ok {
			item = o["name"]
		}
		name, ok := item.(string)
		if !ok {
			return nil, hubInvalid(member, "invalid")
		}
		names = append(names, name)
	}
	return names, nil
}
