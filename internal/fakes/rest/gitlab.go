package rest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// GitLabIssues is the collection of [GitLab], by iid.
const GitLabIssues = "issues"

// GitLabOptions are the choices of a [GitLab]. The zero value works.
type GitLabOptions struct {
	// Token is the access token. Default "glpat-readback".
	Token string
	// Project is the one project's id. Default "42".
	Project string
	// Owner means that the token is an owner's: its iid and created_at count, those of others are ignored.
	Owner bool
	// TakenIgnored means that a taken iid is ignored and another given; otherwise it is refused.
	TakenIgnored bool
}

// GitLab is the fake of GitLab's API v4 for the issues of one project.
//
// The message of an error is a string, a list or an object, or the error's name is "error". What may not be
// seen is 404. Lists lag; an issue by its number does not.
type GitLab struct {
	*Fake
	o GitLabOptions
}

// NewGitLab makes one.
func NewGitLab(o GitLabOptions) *GitLab {
	o.Token, o.Project = cmp.Or(o.Token, "glpat-readback"), cmp.Or(o.Project, "42")
	g := &GitLab{o: o}
	m := usual(func(r *http.Request) bool { return r.Header.Get("PRIVATE-TOKEN") == o.Token || bearer(o.Token)(r) }, 400, func(status int) Answer {
		return *gitlabError(status, strconv.Itoa(status)+" "+http.StatusText(status))
	})
	refused := m.Refused
	m.Refused = func(how string) (Answer, bool) {
		switch how {
		case "":
			return *gitlabError(400, map[string]any{"title": []any{"can't be blank"}}), true
		case "list":
			return *gitlabError(400, []any{"Title can't be blank"}), true
		case "error":
			return Answer{Status: 400, Body: map[string]any{"error": "title is missing"}}, true
		}
		return refused(how)
	}
	m.RequestID = "X-Request-Id"
	g.Fake = New(m)
	path := "/api/v4/projects/" + o.Project + "/issues"
	g.HandleWrite("POST "+path, g.save)
	g.HandleWrite("PUT "+path+"/{iid}", g.save)
	g.HandleWrite("DELETE "+path+"/{iid}", func(r *Request, now View) (Plan, *Answer) {
		switch o := now.Get(GitLabIssues, r.PathValue("iid")); {
		case o == nil:
			return Plan{}, gitlabError(404, "404 Issue Not Found")
		case !g.o.Owner:
			return Plan{}, gitlabError(403, "403 Forbidden")
		}
		return removing(GitLabIssues, r.PathValue("iid"), Answer{Status: 204}), nil
	})
	g.HandleRead("GET "+path, false, g.list)
	g.HandleRead("GET "+path+"/{iid}", true, func(r *Request, seen View) Answer {
		if o := seen.Get(GitLabIssues, r.PathValue("iid")); o != nil {
			return Answer{Status: 200, Body: o.Shown()}
		}
		return *gitlabError(404, "404 Not found")
	})
	return g
}

func gitlabError(status int, message any) *Answer {
	return &Answer{Status: status, Body: map[string]any{"message": message}}
}

// Seed stores an issue of another actor. more are members that override the others.
func (g *GitLab) Seed(title string, more Object) Object {
	_, o := g.Put(GitLabIssues, func(now View) (string, Object) {
		o := g.issue(now, "")
		o["title"] = title
		maps.Copy(o, more)
		return fmt.Sprint(o["iid"]), o
	})
	return o
}

func (g *GitLab) issue(now View, iid string) Object {
	n := now.Next()
	if number, err := strconv.ParseInt(iid, 10, 64); err == nil {
		n = number
	}
	for iid == "" && now.Get(GitLabIssues, strconv.FormatInt(n, 10)) != nil {
		n = now.Next()
	}
	return Object{
		"id": Number(1000 + now.Next()), "iid": Number(n), "project_id": 42, "title": "", "description": nil, "state": "opened", "labels": []any{}, "author": map[string]any{"username": "robot"},
		"created_at": instant(now.At()), "updated_at": instant(now.At()), "closed_at": nil, "web_url": fmt.Sprintf("https://gitlab.example.com/acme/ops/-/issues/%d", n),
	}
}

func (g *GitLab) save(r *Request, now View) (Plan, *Answer) {
	id := r.PathValue("iid")
	before := now.Get(GitLabIssues, id)
	o, status := before.Clone(), 200
	if id != "" && o == nil {
		return Plan{}, gitlabError(404, "404 Not found")
	}
	if id == "" {
		iid := ""
		if v := r.Body["iid"]; v != nil && g.o.Owner {
			iid = fmt.Sprint(v)
		}
		if _, ok := r.Body["title"]; !ok {
			return Plan{}, &Answer{Status: 400, Body: map[string]any{"error": "title is missing"}}
		}
		if taken := now.Get(GitLabIssues, iid) != nil; taken && !g.o.TakenIgnored {
			return Plan{}, gitlabError(400, map[string]any{"iid": []any{"has already been taken"}})
		} else if taken {
			iid = ""
		}
		o, status = g.issue(now, iid), 201
		if v := r.Body["created_at"]; v != nil && g.o.Owner {
			o["created_at"] = v
		}
	}
	for _, name := range []string{"title", "description"} {
		if v, ok := r.Body[name]; ok {
			o[name] = v
		}
	}
	switch labels := r.Body["labels"].(type) {
	case string:
		o["labels"] = []any{}
		all := strings.FieldsFunc(labels, func(c rune) bool { return c == ',' })
		slices.Sort(all)
		for _, label := range slices.Compact(all) {
			o["labels"] = append(o["labels"].([]any), strings.TrimSpace(label))
		}
	case []any:
		o["labels"] = labels
	}
	switch r.Body["state_event"] {
	case "close":
		o["state"], o["closed_at"] = "closed", instant(now.At())
	case "reopen":
		o["state"], o["closed_at"] = "opened", nil
	}
	if title := o.Text("title"); strings.TrimSpace(title) == "" || len(title) > 255 {
		return Plan{}, gitlabError(400, map[string]any{"title": []any{"can't be blank"}})
	}
	o["updated_at"] = instant(now.At())
	return storing(GitLabIssues, fmt.Sprint(o["iid"]), before, o, "description", shows(status)).again(func(now View) (string, Object) {
		fresh := g.issue(now, "")
		return fmt.Sprint(fresh["iid"]), only(fresh, []string{"id", "iid", "web_url"})
	}), nil
}

func (g *GitLab) list(r *Request, seen View) Answer {
	q := r.URL.Query()
	found := newest(visible(seen.List(GitLabIssues), func(o Object) bool {
		for label := range strings.SplitSeq(q.Get("labels"), ",") {
			if label != "" && !slices.Contains(strs(listAt(o, "labels")), label) {
				return false
			}
		}
		return (q.Get("state") == "" || q.Get("state") == "all" || o["state"] == q.Get("state")) &&
			(len(q["iids[]"]) == 0 || slices.Contains(q["iids[]"], fmt.Sprint(o["iid"]))) &&
			strings.Contains(strings.ToLower(o.Text("title")+" "+o.Text("description")), strings.ToLower(q.Get("search")))
	}))
	size, number := min(cmp.Or(limit(q.Get("per_page"), 20, 1<<30), 20), 100), cmp.Or(limit(q.Get("page"), 1, 1<<30), 1)
	next := ""
	if number*size < len(found) {
		next = strconv.Itoa(number + 1)
	}
	return Answer{Status: 200, Body: slice(found, (number-1)*size, size)}.With("X-Total", strconv.Itoa(len(found))).With("X-Next-Page", next)
}
