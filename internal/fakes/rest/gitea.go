package rest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// Collections of [Gitea]. A comment's issue is its member ".issue".
const (
	GiteaIssues   = "issues"
	GiteaComments = "comments"
)

// GiteaOptions are the choices of a [Gitea]. The zero value works.
type GiteaOptions struct {
	// Owner and Repo name the one repository. Default "acme", "widgets".
	Owner, Repo string
	// Token of the account. Default "gitea-token".
	Token string
}

// Gitea is the fake of Gitea's API for issues and their comments.
//
// The filter q looks for a text, in any letter case, in titles, bodies and comments: what quotes a text is
// found as well as what it is about. It is an index, so the list lags; an issue by its number does not.
// Unknown parameters and members are ignored.
type Gitea struct {
	*Fake
	path string
}

// NewGitea makes one.
func NewGitea(o GiteaOptions) *Gitea {
	o.Owner, o.Repo, o.Token = cmp.Or(o.Owner, "acme"), cmp.Or(o.Repo, "widgets"), cmp.Or(o.Token, "gitea-token")
	g := &Gitea{path: "/api/v1/repos/" + o.Owner + "/" + o.Repo + "/issues"}
	g.Fake = New(usual(func(r *http.Request) bool {
		kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		return (kind == "token" || kind == "Bearer") && token == o.Token
	}, 422, func(status int) Answer { return *giteaError(status, http.StatusText(status)) }))
	g.HandleWrite("POST "+g.path, g.save)
	g.HandleWrite("PATCH "+g.path+"/{number}", g.save)
	g.HandleWrite("POST "+g.path+"/{number}/comments", g.comment)
	g.HandleWrite("DELETE "+g.path+"/{number}", func(r *Request, now View) (Plan, *Answer) {
		if now.Get(GiteaIssues, r.PathValue("number")) == nil {
			return Plan{}, giteaMissing()
		}
		return removing(GiteaIssues, r.PathValue("number"), Answer{Status: 204}), nil
	})
	g.HandleRead("GET "+g.path, false, g.list)
	g.HandleRead("GET "+g.path+"/{number}", true, func(r *Request, seen View) Answer {
		if o := seen.Get(GiteaIssues, r.PathValue("number")); o != nil {
			return Answer{Status: 200, Body: o.Shown()}
		}
		return *giteaMissing()
	})
	g.HandleRead("GET "+g.path+"/{number}/comments", true, func(r *Request, seen View) Answer {
		return Answer{Status: 200, Body: visible(seen.List(GiteaComments), func(o Object) bool { return o.Text(".issue") == r.PathValue("number") })}
	})
	return g
}

func giteaError(status int, message string) *Answer {
	return &Answer{Status: status, Body: map[string]any{"message": message, "url": "https://gitea.example.com/api/swagger"}}
}

func giteaMissing() *Answer {
	return giteaError(404, "issue does not exist [id: 0, repo_id: 1, index: 0]")
}

// Seed stores an issue of another actor, and a comment under it unless that is "". more are members that
// override the others; "pull_request" makes it a pull request.
func (g *Gitea) Seed(title, body, comment string, more Object) Object {
	_, o := g.Put(GiteaIssues, func(now View) (string, Object) {
		o := giteaIssue(now, title, body)
		maps.Copy(o, more)
		return fmt.Sprint(o["number"]), o
	})
	if comment != "" {
		g.Put(GiteaComments, func(now View) (string, Object) { return giteaComment(now, fmt.Sprint(o["number"]), comment) })
	}
	return o
}

func giteaIssue(now View, title, body string) Object {
	n := now.Next()
	return Object{
		"id": Number(1000 + n), "number": Number(n), "title": title, "body": body, "state": "open", "labels": []any{}, "user": map[string]any{"id": 1, "login": "robot"},
		"pull_request": nil, "created_at": instant(now.At()), "updated_at": instant(now.At()), "html_url": "https://gitea.example.com/issues/" + strconv.FormatInt(n, 10),
	}
}

func giteaComment(now View, issue, body string) (string, Object) {
	n := now.Next()
	return strconv.FormatInt(n, 10), Object{"id": Number(n), "body": body, ".issue": issue, "created_at": instant(now.At()), "user": map[string]any{"id": 1, "login": "robot"}}
}

func (g *Gitea) save(r *Request, now View) (Plan, *Answer) {
	id := r.PathValue("number")
	before := now.Get(GiteaIssues, id)
	o, status := before.Clone(), 200
	switch {
	case id != "" && o == nil:
		return Plan{}, giteaMissing()
	case id == "":
		o, status = giteaIssue(now, "", ""), 201
		id = fmt.Sprint(o["number"])
	}
	for _, name := range []string{"title", "body", "state"} {
		if v, ok := r.Body[name].(string); ok {
			o[name] = v
		}
	}
	if o.Text("title") == "" {
		return Plan{}, giteaError(422, "[Title]: Required")
	}
	o["updated_at"] = instant(now.At())
	return storing(GiteaIssues, id, before, o, "body", shows(status)).again(func(now View) (string, Object) {
		fresh := giteaIssue(now, "", "")
		return fmt.Sprint(fresh["number"]), only(fresh, []string{"id", "number", "html_url"})
	}), nil
}

func (g *Gitea) comment(r *Request, now View) (Plan, *Answer) {
	if now.Get(GiteaIssues, r.PathValue("number")) == nil {
		return Plan{}, giteaMissing()
	}
	id, o := giteaComment(now, r.PathValue("number"), textAt(r.Body, "body"))
	return storing(GiteaComments, id, nil, o, "body", shows(201)).again(func(now View) (string, Object) {
		id, fresh := giteaComment(now, "", "")
		return id, only(fresh, []string{"id"})
	}), nil
}

func (g *Gitea) list(r *Request, seen View) Answer {
	q := r.URL.Query()
	text, state, kind := strings.ToLower(q.Get("q")), cmp.Or(q.Get("state"), "open"), q.Get("type")
	comments := map[string]string{}
	for _, c := range seen.List(GiteaComments) {
		comments[c.Text(".issue")] += "\n" + c.Text("body")
	}
	found := newest(visible(seen.List(GiteaIssues), func(o Object) bool {
		all := o.Text("title") + "\n" + o.Text("body") + comments[fmt.Sprint(o["number"])]
		return strings.Contains(strings.ToLower(all), text) && (state == "all" || o["state"] == state) &&
			(kind == "" || (kind == "pulls") == (o["pull_request"] != nil))
	}))
	size, number := min(cmp.Or(limit(q.Get("limit"), 30, 1<<30), 30), 50), cmp.Or(limit(q.Get("page"), 1, 1<<30), 1)
	return Answer{Status: 200, Body: slice(found, (number-1)*size, size)}.With("X-Total-Count", strconv.Itoa(len(found)))
}
