package rest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// RedmineIssues is the collection of [Redmine].
const RedmineIssues = "issues"

// RedmineOptions are the choices of a [Redmine]. The zero value works.
type RedmineOptions struct {
	// Key is the API key. Default "redmine-key".
	Key string
	// Project is the one project's identifier. Default "ops".
	Project string
	// Fields are the names of custom fields, whose ids count from 1. Default "Readback", "Amount".
	Fields []string
}

// Redmine is the fake of Redmine's REST API for issues.
//
// What does not exist is 404 without a body, and so are 401 and 403; a change and a removal are 204. Custom
// fields that the tracker does not have are ignored, by writes and by filters, and a filter that is ignored
// finds everything. Lists lag, and hide closed issues unless status_id is "*".
type Redmine struct {
	*Fake
	o RedmineOptions
}

// NewRedmine makes one.
func NewRedmine(o RedmineOptions) *Redmine {
	o.Key, o.Project = cmp.Or(o.Key, "redmine-key"), cmp.Or(o.Project, "ops")
	if o.Fields == nil {
		o.Fields = []string{"Readback", "Amount"}
	}
	m := &Redmine{o: o}
	m.Fake = New(usual(func(r *http.Request) bool { return r.Header.Get("X-Redmine-API-Key") == o.Key }, 422, func(status int) Answer {
		if status == 422 {
			return *redmineInvalid("Subject is not valid")
		}
		return Answer{Status: status}
	}))
	m.HandleWrite("POST /issues.json", m.save)
	m.HandleWrite("PUT /issues/{id}", m.save)
	m.HandleWrite("DELETE /issues/{id}", func(r *Request, now View) (Plan, *Answer) {
		if now.Get(RedmineIssues, redmineID(r)) == nil {
			return Plan{}, &Answer{Status: 404}
		}
		return removing(RedmineIssues, redmineID(r), Answer{Status: 204}), nil
	})
	m.HandleRead("GET /issues/{id}", true, func(r *Request, seen View) Answer {
		if o := seen.Get(RedmineIssues, redmineID(r)); o != nil {
			return redmineIssue(200)(o)
		}
		return Answer{Status: 404}
	})
	m.HandleRead("GET /issues.json", false, m.list)
	return m
}

func redmineID(r *Request) string { return strings.TrimSuffix(r.PathValue("id"), ".json") }

func redmineIssue(status int) func(Object) Answer {
	return func(o Object) Answer { return Answer{Status: status, Body: map[string]any{"issue": o.Shown()}} }
}

func redmineInvalid(says ...any) *Answer {
	return &Answer{Status: 422, Body: map[string]any{"errors": says}}
}

func (m *Redmine) save(r *Request, now View) (Plan, *Answer) {
	given, id := objectAt(r.Body, "issue"), redmineID(r)
	before := now.Get(RedmineIssues, id)
	o := before.Clone()
	answer := func(Object) Answer { return Answer{Status: 204} }
	switch {
	case id != "" && o == nil, id == "" && !slices.Contains([]any{m.o.Project, "1"}, given["project_id"]) && !same(given["project_id"], 1):
		return Plan{}, &Answer{Status: 404}
	case id == "":
		n := now.Next()
		id, answer = strconv.FormatInt(n, 10), redmineIssue(201)
		ref := func(name string) map[string]any { return map[string]any{"id": 1, "name": name} }
		o = Object{
			"id": Number(n), "project": ref(m.o.Project), "tracker": ref("Task"), "status": ref("New"), "priority": ref("Normal"), "author": ref("Robot"),
			"subject": "", "description": "", "done_ratio": 0, "is_private": false, "created_on": instant(now.At()), "closed_on": nil,
		}
		fields := []any{}
		for i, name := range m.o.Fields {
			fields = append(fields, map[string]any{"id": i + 1, "name": name, "value": ""})
		}
		o["custom_fields"] = fields
	}
	for _, name := range []string{"subject", "description"} {
		if v, ok := given[name].(string); ok {
			o[name] = v
		}
	}
	if strings.TrimSpace(o.Text("subject")) == "" {
		return Plan{}, redmineInvalid("Subject cannot be blank")
	}
	if len(o.Text("subject")) > 255 {
		return Plan{}, redmineInvalid("Subject is too long (maximum is 255 characters)")
	}
	if v := given["status_id"]; same(v, 5) {
		o["status"], o["closed_on"] = map[string]any{"id": 5, "name": "Closed"}, instant(now.At())
	}
	for _, set := range listAt(given, "custom_fields") {
		for _, f := range listAt(o, "custom_fields") {
			if f := f.(map[string]any); same(f["id"], at(set, "id")) {
				f["value"] = at(set, "value")
			}
		}
	}
	o["updated_on"] = instant(now.At())
	return storing(RedmineIssues, id, before, o, "description", answer).again(func(now View) (string, Object) {
		n := now.Next()
		return strconv.FormatInt(n, 10), Object{"id": Number(n)}
	}), nil
}

func (m *Redmine) list(r *Request, seen View) Answer {
	q := r.URL.Query()
	found := newest(visible(seen.List(RedmineIssues), func(o Object) bool {
		for _, f := range listAt(o, "custom_fields") {
			if want := q.Get("cf_" + fmt.Sprint(at(f, "id"))); want != "" && !same(at(f, "value"), want) {
				return false
			}
		}
		return (q.Get("status_id") == "*" || o["closed_on"] == nil) && (q.Get("subject") == "" || o.Text("subject") == q.Get("subject"))
	}))
	size, from := min(cmp.Or(limit(q.Get("limit"), 25, 1<<30), 25), 100), limit(q.Get("offset"), 0, 1<<30)
	return Answer{Status: 200, Body: map[string]any{"issues": slice(found, from, size), "total_count": len(found), "offset": from, "limit": size}}
}
