package rest

import (
	"cmp"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// More collections of [GitHub]. A comment's issue is its member ".issue". A file's key is its branch, a
// colon and its path; its contents are ".text".
const (
	HubComments = "comments"
	HubPulls    = "pulls"
	HubFiles    = "files"
)

// more adds comments, pull requests and files.
func (g *GitHub) more() {
	const repo = "/repos/{owner}/{repo}"
	g.HandleWrite("POST "+repo+"/issues/{number}/comments", g.comment)
	g.HandleWrite("PATCH "+repo+"/issues/comments/{id}", g.comment)
	g.HandleWrite("DELETE "+repo+"/issues/comments/{id}", g.comment)
	g.HandleWrite("POST "+repo+"/pulls", g.pull)
	g.HandleWrite("PATCH "+repo+"/pulls/{number}", g.pull)
	g.HandleWrite("PUT "+repo+"/contents/{path...}", g.file)
	g.HandleWrite("DELETE "+repo+"/contents/{path...}", g.file)
	for _, repo := range []string{repo, "/repositories/1"} {
		g.HandleRead("GET "+repo+"/issues/{number}/{what}", false, g.comments)
		g.HandleRead("GET "+repo+"/pulls", false, g.pulls)
		g.HandleRead("GET "+repo+"/pulls/{number}", false, func(r *Request, seen View) Answer { return g.one(r, seen, HubPulls, r.PathValue("number")) })
	}
	g.HandleRead("GET "+repo+"/contents/{path...}", false, func(r *Request, seen View) Answer {
		return g.one(r, seen, HubFiles, cmp.Or(r.URL.Query().Get("ref"), "main")+":"+r.PathValue("path"))
	})
}

func (g *GitHub) one(r *Request, seen View, collection, id string) Answer {
	if a := g.in(r); a != nil {
		return *a
	}
	o := seen.Get(collection, id)
	if o == nil {
		return hubProblem(http.StatusNotFound, "Not Found")
	}
	if collection == HubFiles {
		text := o.Text(".text")
		o["encoding"], o["content"] = "base64", base64.StdEncoding.EncodeToString([]byte(text))+"\n"
	}
	return hubTagged(r, o.Shown())
}

func (g *GitHub) comment(r *Request, now View) (Plan, *Answer) {
	missing := hubProblem(http.StatusNotFound, "Not Found")
	id, issue, status := r.PathValue("id"), r.PathValue("number"), 200
	before := now.Get(HubComments, id)
	switch a := g.in(r); {
	case a != nil:
		return Plan{}, a
	case id == "" && now.Get(Issues, issue) == nil && now.Get(HubPulls, issue) == nil, id != "" && before == nil:
		return Plan{}, &missing
	case r.Method == http.MethodDelete:
		return removing(HubComments, id, Answer{Status: 204}), nil
	}
	text := textAt(r.Body, "body")
	if strings.TrimSpace(text) == "" || len(text) > hubMaxBody {
		return Plan{}, hubInvalid("body", "missing_field")
	}
	o := before
	if id == "" {
		o, status = hubComment(now, issue, g.o.Login), 201
		id = fmt.Sprint(o["id"])
	}
	o = o.Clone()
	o["body"], o["updated_at"] = text, instant(now.At())
	return storing(HubComments, id, before, o, "body", func(stored Object) Answer {
		return shows(status)(stored).With("Location", stored.Text("url"))
	}).again(func(now View) (string, Object) {
		fresh := hubComment(now, issue, g.o.Login)
		return fmt.Sprint(fresh["id"]), only(fresh, []string{"id", "url", "html_url"})
	}), nil
}

// SeedComment stores a comment of another actor.
func (g *GitHub) SeedComment(issue int, body string) Object {
	_, o := g.Put(HubComments, func(now View) (string, Object) {
		o := hubComment(now, strconv.Itoa(issue), "outsider")
		o["body"] = body
		return fmt.Sprint(o["id"]), o
	})
	return o
}

func hubComment(now View, issue, login string) Object {
	n := 5_000_000 + now.Next()
	id, at := strconv.FormatInt(n, 10), instant(now.At())
	return Object{
		"id": Number(n), "node_id": "IC_" + id, "body": "", "user": hubUser(login), "created_at": at, "updated_at": at, ".issue": issue, "author_association": "MEMBER",
		"url": "https://api.github.com/repos/acme/widgets/issues/comments/" + id, "html_url": "https://github.com/acme/widgets/issues/" + issue + "#issuecomment-" + id,
		"issue_url": "https://api.github.com/repos/acme/widgets/issues/" + issue,
	}
}

// comments lists those of an issue, oldest first, or shows one.
func (g *GitHub) comments(r *Request, seen View) Answer {
	issue, what := r.PathValue("number"), r.PathValue("what")
	if issue == "comments" {
		return g.one(r, seen, HubComments, what)
	}
	if a := g.in(r); a != nil {
		return *a
	}
	if what != "comments" || seen.Get(Issues, issue) == nil && seen.Get(HubPulls, issue) == nil {
		return hubProblem(http.StatusNotFound, "Not Found")
	}
	since, _ := time.Parse(time.RFC3339, r.URL.Query().Get("since")) // none: all
	return hubPage(r, visible(seen.List(HubComments), func(o Object) bool {
		updated, _ := time.Parse(time.RFC3339, o.Text("updated_at"))
		return o.Text(".issue") == issue && !updated.Before(since)
	}))
}

func (g *GitHub) pull(r *Request, now View) (Plan, *Answer) {
	id, status := r.PathValue("number"), 200
	before := now.Get(HubPulls, id)
	o := before.Clone()
	if a := g.in(r); a != nil {
		return Plan{}, a
	}
	if id != "" && o == nil {
		a := hubProblem(http.StatusNotFound, "Not Found")
		return Plan{}, &a
	}
	if id == "" {
		for _, name := range []string{"title", "head", "base"} {
			if textAt(r.Body, name) == "" {
				return Plan{}, hubInvalid(name, "missing_field")
			}
		}
		if o, status = g.pullRequest(now, textAt(r.Body, "head"), textAt(r.Body, "base")), 201; at(o, "head", "label") == at(o, "base", "label") {
			return Plan{}, hubInvalid("head", "invalid")
		}
		id = fmt.Sprint(o["number"])
	}
	for _, name := range []string{"title", "body", "state", "draft"} {
		if v, given := r.Body[name]; given {
			o[name] = v
		}
	}
	for _, other := range now.List(HubPulls) {
		if other["state"] == "open" && o["state"] == "open" && !same(other["number"], id) && textAt(other, "head", "label") == textAt(o, "head", "label") && textAt(other, "base", "ref") == textAt(o, "base", "ref") {
			a := hubProblem(422, "Validation Failed", map[string]any{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for " + textAt(o, "head", "label") + "."})
			return Plan{}, &a
		}
	}
	o["updated_at"] = instant(now.At())
	return storing(HubPulls, id, before, o, "body", func(stored Object) Answer {
		return shows(status)(stored).With("Location", stored.Text("url"))
	}), nil
}

// SeedPull stores an open pull request of another actor. more are members that override the others.
func (g *GitHub) SeedPull(title, head, base string, more Object) Object {
	_, o := g.Put(HubPulls, func(now View) (string, Object) {
		o := g.pullRequest(now, head, base)
		o["title"], o["user"] = title, hubUser("outsider")
		for name, v := range more.Clone() {
			o[name] = v
		}
		return fmt.Sprint(o["number"]), o
	})
	return o
}

func (g *GitHub) pullRequest(now View, head, base string) Object {
	n, at := now.Next(), instant(now.At())
	side := func(branch string) map[string]any {
		owner, ref, ok := strings.Cut(branch, ":")
		if !ok {
			owner, ref = g.o.Owner, branch
		}
		return map[string]any{"label": owner + ":" + ref, "ref": ref, "sha": blob(ref), "user": hubUser(owner)}
	}
	number := strconv.FormatInt(n, 10)
	return Object{
		"id": Number(4_000_000 + n), "number": Number(n), "state": "open", "title": "", "body": nil, "draft": false, "merged": false, "user": hubUser(g.o.Login), "head": side(head), "base": side(base),
		"created_at": at, "updated_at": at, "url": "https://api.github.com/repos/acme/widgets/pulls/" + number, "html_url": "https://github.com/acme/widgets/pull/" + number,
	}
}

// pulls ignores a head without its owner.
func (g *GitHub) pulls(r *Request, seen View) Answer {
	if a := g.in(r); a != nil {
		return *a
	}
	q := r.URL.Query()
	head, state := q.Get("head"), cmp.Or(q.Get("state"), "open")
	return hubPage(r, newest(visible(seen.List(HubPulls), func(o Object) bool {
		return (state == "all" || o["state"] == state) && (!strings.Contains(head, ":") || textAt(o, "head", "label") == head) &&
			(q.Get("base") == "" || textAt(o, "base", "ref") == q.Get("base"))
	})))
}

// blob is the name that git gives to contents.
func blob(text string) string {
	sum := sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(text), text)))
	return hex.EncodeToString(sum[:])
}

func (g *GitHub) file(r *Request, now View) (Plan, *Answer) {
	name, branch := r.PathValue("path"), cmp.Or(textAt(r.Body, "branch"), r.URL.Query().Get("branch"), "main")
	sha := cmp.Or(textAt(r.Body, "sha"), r.URL.Query().Get("sha"))
	before := now.Get(HubFiles, branch+":"+name)
	refuse := func(status int, message string) (Plan, *Answer) {
		a := hubProblem(status, message)
		return Plan{}, &a
	}
	text, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(textAt(r.Body, "content"), "\n", ""))
	switch a := g.in(r); {
	case a != nil:
		return Plan{}, a
	case g.o.NoPush:
		return refuse(http.StatusForbidden, "Resource not accessible by personal access token")
	case cmp.Or(textAt(r.Body, "message"), r.URL.Query().Get("message")) == "":
		return refuse(422, "Invalid request.\n\n\"message\" wasn't supplied.")
	case err != nil:
		return refuse(422, "content is not valid Base64")
	case before == nil && r.Method == http.MethodDelete:
		return refuse(http.StatusNotFound, "Not Found")
	case before != nil && sha == "":
		return refuse(422, "Invalid request.\n\n\"sha\" wasn't supplied.")
	case sha != "" && before.Text("sha") != sha:
		return refuse(http.StatusConflict, name+" does not match "+sha)
	}
	commit := map[string]any{"sha": blob(branch + name + numbered(now)), "message": r.Body["message"]}
	if r.Method == http.MethodDelete {
		return removing(HubFiles, branch+":"+name, Answer{Status: 200, Body: map[string]any{"content": nil, "commit": commit}}), nil
	}
	o := Object{"type": "file", "name": path.Base(name), "path": name, "sha": blob(string(text)), "size": len(text), ".text": string(text)}
	status := 200
	if before == nil {
		status = 201
	}
	p := storing(HubFiles, branch+":"+name, before, o, "", func(Object) Answer {
		return Answer{Status: status, Body: map[string]any{"content": o.Shown(), "commit": commit}}
	})
	p.Drop, p.Normalise = nil, nil // git keeps contents as they are
	return p, nil
}
