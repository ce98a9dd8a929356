package rest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Issues is the collection of [GitHub].
const Issues = "issues"

// GitHubOptions are the choices of a [GitHub]. The zero value works.
type GitHubOptions struct {
	// Owner and Repo name the one repository. Default "acme", "widgets".
	Owner, Repo string
	// Token is the bearer token. Default "github-token".
	Token string
	// Login is the owner of the token. Default "robot".
	Login string
	// Collaborators can be assigned. Default Login alone.
	Collaborators []string
	// NoPush removes push access: labels, assignees and milestones are then dropped silently.
	NoPush bool
	// Hidden removes read access: everything is 404.
	Hidden bool
	// Disabled switches issues off: 410.
	Disabled bool
	// FormerRepo is a former name of the repository: its paths answer
	// 301. Default none.
	FormerRepo string
}

// GitHub is the fake of GitHub's REST API for issues, comments, pull requests and files, version 2022-11-28.
//
// Lists contain pull requests, come in pages and lag; so does an issue by its
// number. Labels are a set of the repository that takes no notice of letter
// case. There is no deleting of issues. Of pull requests from one branch to another one may be open.
type GitHub struct {
	*Fake
	o      GitHubOptions
	labels map[string]string // canonical name by lower-case name
}

// NewGitHub makes one.
func NewGitHub(o GitHubOptions) *GitHub {
	for _, d := range []struct {
		field *string
		value string
	}{{&o.Owner, "acme"}, {&o.Repo, "widgets"}, {&o.Token, "github-token"}, {&o.Login, "robot"}} {
		if *d.field == "" {
			*d.field = d.value
		}
	}
	if o.Collaborators == nil {
		o.Collaborators = []string{o.Login}
	}
	g := &GitHub{o: o, labels: map[string]string{}}
	g.Fake = New(Manners{
		Authorized: func(r *http.Request) bool {
			kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			return (strings.EqualFold(kind, "bearer") || strings.EqualFold(kind, "token")) && token == o.Token
		},
		Unauthorized: func() Answer { return hubProblem(http.StatusUnauthorized, "Bad credentials") },
		NotFound:     func(*http.Request) Answer { return hubProblem(http.StatusNotFound, "Not Found") },
		Malformed:    func() Answer { return hubProblem(http.StatusBadRequest, "Problems parsing JSON") },
		Refused:      hubRefused,
		Throttled:    hubThrottled,
	})
	g.HandleRead("GET /repos/{owner}/{repo}", true, g.repository)
	g.HandleRead("GET /repos/{owner}/{repo}/issues", false, g.list)
	g.HandleRead("GET /repositories/1/issues", false, g.list) // where Link headers point
	g.HandleRead("GET /repos/{owner}/{repo}/issues/{number}", false, g.get)
	g.HandleRead("GET /search/issues", false, g.search)
	g.HandleWrite("POST /repos/{owner}/{repo}/issues", g.create)
	g.HandleWrite("PATCH /repos/{owner}/{repo}/issues/{number}", g.update)
	g.more()
	return g
}

func hubProblem(status int, message string, errors ...map[string]any) Answer {
	body := map[string]any{
		"message":           message,
		"documentation_url": "https://docs.github.com/rest/issues/issues",
		"status":            strconv.Itoa(status),
	}
	if len(errors) > 0 {
		body["errors"] = errors
	}
	return Answer{Status: status, Body: body}
}

func hubInvalid(field, code string) *Answer {
	a := hubProblem(http.StatusUnprocessableEntity, "Validation Failed",
		map[string]any{"resource": "Issue", "field": field, "code": code})
	return &a
}

func hubRefused(how string) (Answer, bool) {
	switch how {
	case "", "422":
		return *hubInvalid("title", "missing_field"), true
	case "403":
		return hubProblem(http.StatusForbidden, "Resource not accessible by personal access token"), true
	case "404":
		return hubProblem(http.StatusNotFound, "Not Found"), true
	case "410":
		return hubProblem(http.StatusGone, "Issues has been disabled in this repository."), true
	}
	return Answer{}, false
}

// hubThrottled has the forms in which GitHub reports limits: by Retry-After, by the time at which
// the hour begins, or not at all.
func hubThrottled(how string, wait time.Duration) (Answer, bool) {
	secondary := "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
	after := strconv.Itoa(max(1, int(wait.Seconds())))
	switch how {
	case "", "429":
		return hubProblem(http.StatusTooManyRequests, secondary).With("Retry-After", after), true
	case "secondary":
		return hubProblem(http.StatusForbidden, secondary).With("Retry-After", after), true
	case "primary":
		return hubProblem(http.StatusForbidden, "API rate limit exceeded for user ID 1.").
			With("X-RateLimit-Limit", "5000").With("X-RateLimit-Remaining", "0").
			With("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(wait).Unix()+1, 10)), true
	case "bare":
		return hubProblem(http.StatusForbidden, secondary), true
	}
	return Answer{}, false
}

// in checks that a request is about the repository.
func (g *GitHub) in(r *Request) *Answer {
	owner, repo := r.PathValue("owner"), r.PathValue("repo")
	var a Answer
	switch {
	case g.o.Hidden:
		a = hubProblem(http.StatusNotFound, "Not Found")
	case owner == "" && repo == "": // by the repository's id
		return nil
	case strings.EqualFold(owner, g.o.Owner) && g.o.FormerRepo != "" && strings.EqualFold(repo, g.o.FormerRepo):
		at := "https://" + r.Host + "/repositories/1" + strings.TrimPrefix(r.URL.Path, "/repos/"+owner+"/"+repo)
		a = hubProblem(http.StatusMovedPermanently, "Moved Permanently").With("Location", at)
	case !strings.EqualFold(owner, g.o.Owner) || !strings.EqualFold(repo, g.o.Repo):
		a = hubProblem(http.StatusNotFound, "Not Found")
	default:
		return nil
	}
	return &a
}

func (g *GitHub) repository(r *Request, _ View) Answer {
	if a := g.in(r); a != nil {
		return *a
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{
		"id": 1, "name": g.o.Repo, "full_name": g.o.Owner + "/" + g.o.Repo, "private": true,
		"owner": hubUser(g.o.Owner), "has_issues": !g.o.Disabled, "archived": false, "default_branch": "main",
		"permissions": map[string]any{"admin": false, "maintain": false, "push": !g.o.NoPush, "triage": !g.o.NoPush, "pull": true},
	}}
}

func hubUser(login string) map[string]any {
	return map[string]any{"login": login, "id": 7, "node_id": "U_" + login, "type": "User", "site_admin": false,
		"url": "https://api.github.com/users/" + login, "html_url": "https://github.com/" + login}
}

func (g *GitHub) get(r *Request, seen View) Answer {
	if a := g.in(r); a != nil {
		return *a
	}
	o := seen.Get(Issues, r.PathValue("number"))
	if o == nil {
		return hubProblem(http.StatusNotFound, "Not Found")
	}
	return hubTagged(r, o.Shown())
}

// hubTagged answers with an ETag, and with 304 to a client that has the same.
func hubTagged(r *Request, body any) Answer {
	raw, _ := json.Marshal(body) // it was JSON when it came
	sum := sha256.Sum256(raw)
	tag := `W/"` + hex.EncodeToString(sum[:]) + `"`
	a := Answer{Status: http.StatusOK, Body: body}
	if r.Header.Get("If-None-Match") == tag {
		a = Answer{Status: http.StatusNotModified}
	}
	return a.With("ETag", tag).With("X-RateLimit-Limit", "5000").With("X-RateLimit-Remaining", "4999")
}

// search exists, and is an index that lags by minutes.
func (g *GitHub) search(_ *Request, _ View) Answer {
	return Answer{Status: http.StatusOK, Body: map[string]any{"total_count": 0, "incomplete_results": false, "items": []any{}}}
}

func (g *GitHub) list(r *Request, seen View) Answer {
	if a := g.in(r); a != nil {
		return *a
	}
	if g.o.Disabled {
		return hubProblem(http.StatusGone, "Issues has been disabled in this repository.")
	}
	q := r.URL.Query()
	state := q.Get("state")
	if !slices.Contains([]string{"", "open", "closed", "all"}, state) {
		return *hubInvalid("state", "invalid")
	}
	since, err := time.Parse(time.RFC3339, q.Get("since"))
	if q.Get("since") != "" && err != nil {
		return *hubInvalid("since", "invalid")
	}
	found := []Object{}
	for _, o := range seen.List(Issues) {
		updated, _ := time.Parse(time.RFC3339, o.Text("updated_at"))
		switch {
		case state != "all" && state != "closed" && o.Text("state") != "open",
			state == "closed" && o.Text("state") != "closed",
			q.Get("creator") != "" && !strings.EqualFold(hubLogin(o["user"]), q.Get("creator")),
			q.Get("since") != "" && updated.Before(since), // by the last update, not by the creation
			!hubHas(o, q.Get("labels")):
			continue
		}
		found = append(found, o.Shown())
	}
	if q.Get("direction") != "asc" {
		slices.Reverse(found)
	}
	return hubPage(r, found)
}

func hubLogin(user any) string {
	u, _ := user.(map[string]any)
	login, _ := u["login"].(string)
	return login
}

// hubHas reports whether an issue has all labels of a list with commas, in any
// letter case.
func hubHas(o Object, labels string) bool {
	if labels == "" {
		return true
	}
	have := HubLabels(o)
	for want := range strings.SplitSeq(labels, ",") {
		if !slices.ContainsFunc(have, func(name string) bool { return strings.EqualFold(name, want) }) {
			return false
		}
	}
	return true
}

// HubLabels lists the names of an issue's labels.
func HubLabels(o Object) []string {
	names := []string{}
	list, _ := o["labels"].([]any)
	for _, l := range list {
		label, _ := l.(map[string]any)
		name, _ := label["name"].(string)
		names = append(names, name)
	}
	return names
}

// hubPage cuts a list into pages and links them.
func hubPage(r *Request, all []Object) Answer {
	q := r.URL.Query()
	size, err := strconv.Atoi(q.Get("per_page"))
	if err != nil || size < 1 {
		size = 30
	}
	size = min(size, 100)
	page, err := strconv.Atoi(q.Get("page"))
	if err != nil || page < 1 {
		page = 1
	}
	from, to := min((page-1)*size, len(all)), min(page*size, len(all))
	a := hubTagged(r, all[from:to])
	if to >= len(all) {
		return a
	}
	link := func(n int, rel string) string {
		q.Set("page", strconv.Itoa(n))
		list := r.URL.Path // that of the repository by name, or by its id already
		if parts := strings.SplitN(list, "/", 5); parts[1] == "repos" {
			list = "/repositories/1/" + parts[4]
		}
		return fmt.Sprintf(`<https://%s%s?%s>; rel="%s"`, r.Host, list, q.Encode(), rel)
	}
	return a.With("Link", link(page+1, "next")+", "+link((len(all)+size-1)/size, "last"))
}
