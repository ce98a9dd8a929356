package rest

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LinearIssues is the collection of [Linear], by id.
const LinearIssues = "issues"

// LinearOptions are the choices of a [Linear]. The zero value works.
type LinearOptions struct {
	// Key is the API key. Default "lin_api_readback".
	Key string
	// Team is the id of the one team. Default "11111111-1111-4111-8111-111111111111".
	Team string
	// Status is that of answers with errors: 200 or 400. Default 200.
	Status int
}

// Linear is the fake of Linear's GraphQL API for issues.
//
// The id may be the client's own, a UUID of version 4; one that is taken is refused, also when its issue is
// in the trash. Deleting puts into the trash. Lists leave out what is archived or in the trash unless they
// include it, and lag; an issue by its id does not, and one that is not there is an error. Markdown is
// rendered anew.
type Linear struct {
	*Fake
	o LinearOptions
}

var uuid4 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// NewLinear makes one.
func NewLinear(o LinearOptions) *Linear {
	o.Key, o.Team, o.Status = cmp.Or(o.Key, "lin_api_readback"), cmp.Or(o.Team, "11111111-1111-4111-8111-111111111111"), cmp.Or(o.Status, 200)
	l := &Linear{o: o}
	m := usual(func(r *http.Request) bool {
		return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") == o.Key
	}, 400, func(status int) Answer {
		return *linearError(status, "INPUT_ERROR", http.StatusText(status))
	})
	m.Unauthorized = func() Answer {
		return *linearError(401, "AUTHENTICATION_ERROR", "Authentication required, not authenticated")
	}
	m.Refused = func(how string) (Answer, bool) {
		switch how {
		case "success": // without an error
			return Answer{Status: 200, Body: map[string]any{"data": map[string]any{"issueCreate": map[string]any{"success": false, "issue": nil}}}}, true
		case "":
			return *linearError(o.Status, "INPUT_ERROR", "Argument Validation Error"), true
		}
		return *linearError(o.Status, "FORBIDDEN", "You don't have permission."), how == "403"
	}
	m.Throttled = func(how string, wait time.Duration) (Answer, bool) {
		reset := strconv.FormatInt(time.Now().Add(wait).UnixMilli(), 10)
		return linearError(400, "RATELIMITED", "Rate limit exceeded").With("X-RateLimit-Requests-Remaining", "0").With("X-RateLimit-Requests-Reset", reset), how == ""
	}
	m.RequestID = "X-Request-Id"
	l.Fake = New(m)
	l.HandleBoth("POST /graphql", func(raw []byte) bool {
		mutation, _, _ := graphQL(raw)
		return mutation
	}, l.mutate, func(r *Request) bool {
		_, fields, _ := graphQL(r.Raw)
		return !slices.ContainsFunc(fields, func(f selected) bool { return f.name == "issues" })
	}, l.query)
	return l
}

func linearError(status int, code, message string) *Answer {
	return &Answer{Status: status, Body: map[string]any{"data": nil, "errors": []any{map[string]any{
		"message": message, "extensions": map[string]any{"code": code, "type": strings.ToLower(strings.ReplaceAll(code, "_", " ")), "userError": true, "userPresentableMessage": message},
	}}}}
}

// Seed stores an issue of another actor. more are members that override the others.
func (l *Linear) Seed(title, description string, more Object) Object {
	_, o := l.Put(LinearIssues, func(now View) (string, Object) {
		o := l.issue(now, "")
		o["title"], o["description"] = title, description
		for member, v := range more.Clone() {
			o[member] = v
		}
		return o.Text("id"), o
	})
	return o
}

func (l *Linear) issue(now View, id string) Object {
	n := now.Next()
	id = cmp.Or(id, fmt.Sprintf("00000000-0000-4000-8000-%012d", n))
	return Object{
		"id": id, "identifier": fmt.Sprintf("OPS-%d", n), "number": Number(n), "url": fmt.Sprintf("https://linear.app/acme/issue/OPS-%d", n), "title": "", "description": nil, "priority": 0,
		"createdAt": instant(now.At()), "updatedAt": instant(now.At()), "archivedAt": nil, "trashed": nil, "labelIds": []any{}, "team": map[string]any{"id": l.o.Team, "key": "OPS"}, "state": map[string]any{"name": "Backlog"},
	}
}

// linearText is Markdown as it comes back.
func linearText(v any) any {
	text, ok := v.(string)
	if !ok {
		return v
	}
	return strings.TrimSpace(strings.ReplaceAll("\n"+text, "\n- ", "\n* "))
}

func (l *Linear) mutate(r *Request, now View) (Plan, *Answer) {
	_, fields, err := graphQL(r.Raw)
	if err != nil || len(fields) != 1 {
		return Plan{}, linearError(400, "GRAPHQL_PARSE_FAILED", fmt.Sprint("one field, please: ", err))
	}
	f := fields[0]
	input, id := objectAt(f.args, "input"), textAt(f.args, "id")
	before := now.Get(LinearIssues, id)
	o, member := before.Clone(), "issue"
	switch f.name {
	case "issueCreate":
		id = textAt(input, "id")
		switch {
		case id != "" && !uuid4.MatchString(id):
			return Plan{}, linearError(l.o.Status, "INPUT_ERROR", "Argument Validation Error: id must be a UUID")
		case id != "" && now.Get(LinearIssues, id) != nil:
			return Plan{}, linearError(l.o.Status, "INPUT_ERROR", "conflict on insert of Issue: an entity with this id already exists")
		case textAt(input, "teamId") != l.o.Team:
			return Plan{}, linearError(l.o.Status, "INPUT_ERROR", "Entity not found: Team")
		case strings.TrimSpace(textAt(input, "title")) == "":
			return Plan{}, linearError(400, "GRAPHQL_VALIDATION_FAILED", `Field "title" of required type "String!" was not provided.`)
		}
		o = l.issue(now, id)
	case "issueUpdate", "issueDelete", "issueArchive":
		if o == nil {
			return Plan{}, linearError(l.o.Status, "INPUT_ERROR", "Entity not found: Issue")
		}
		if f.name != "issueUpdate" {
			o["archivedAt"], member = instant(now.At()), "entity"
		}
		if f.name == "issueDelete" {
			o["trashed"] = true
		}
	default:
		return Plan{}, linearError(400, "GRAPHQL_VALIDATION_FAILED", `Cannot query field "`+f.name+`" on type "Mutation".`)
	}
	if name := unknown(input, "id teamId title description labelIds priority stateId assigneeId"); name != "" {
		return Plan{}, linearError(400, "GRAPHQL_VALIDATION_FAILED", `Field "`+name+`" is not defined by type "IssueCreateInput".`)
	}
	for _, name := range []string{"title", "description", "labelIds", "priority"} {
		if v, given := input[name]; given {
			o[name] = v
		}
	}
	o["description"], o["updatedAt"] = linearText(o["description"]), instant(now.At())
	p := storing(LinearIssues, o.Text("id"), before, o, "description", func(stored Object) Answer {
		return l.data(fields, map[string]any{f.name: map[string]any{"success": true, "lastSyncId": 1, member: stored.Shown()}})
	})
	if textAt(input, "id") == "" {
		p = p.again(func(now View) (string, Object) {
			fresh := l.issue(now, "")
			return fresh.Text("id"), only(fresh, []string{"id", "identifier", "number", "url"})
		})
	}
	return p, nil
}

func (l *Linear) data(fields []selected, v any) Answer {
	data, err := selects(fields, v)
	if err != nil {
		return *linearError(l.o.Status, "INPUT_ERROR", err.Error())
	}
	return Answer{Status: 200, Body: map[string]any{"data": data}}
}

func (l *Linear) query(r *Request, seen View) Answer {
	_, fields, err := graphQL(r.Raw)
	if err != nil {
		return *linearError(400, "GRAPHQL_PARSE_FAILED", err.Error())
	}
	return l.data(fields, map[string]any{
		"viewer": map[string]any{"id": "u1", "name": "Robot"},
		"issue": resolver(func(args map[string]any) (any, error) {
			if o := seen.Get(LinearIssues, textAt(args, "id")); o != nil {
				return o.Shown(), nil
			}
			return nil, graphQLProblem("Entity not found: Issue")
		}),
		"issues": resolver(func(args map[string]any) (any, error) {
			found := []any{}
			for _, o := range newest(seen.List(LinearIssues)) {
				holds, err := linearHolds(o, objectAt(args, "filter"))
				if err != nil {
					return nil, err
				}
				if holds && (args["includeArchived"] == true || o["archivedAt"] == nil) {
					found = append(found, map[string]any(o.Shown()))
				}
			}
			if args["first"] == nil {
				args["first"] = 50
			}
			return connection(found)(args)
		}),
	})
}

// linearHolds knows comparisons of texts.
func linearHolds(o Object, filter map[string]any) (bool, error) {
	for name, comparison := range filter {
		if unknown(map[string]any{name: 1}, "id title description number") != "" {
			return false, graphQLProblem(`Field "` + name + `" is not defined by type "IssueFilter".`)
		}
		for op, want := range objectAt(filter, name) {
			holds, known := map[string]bool{
				"eq": same(o[name], want), "in": slices.Contains(strs(listAt(comparison, op)), fmt.Sprint(o[name])), "contains": strings.Contains(o.Text(name), fmt.Sprint(want)),
			}[op]
			if !known {
				return false, graphQLProblem(`Field "` + op + `" is not defined by type "StringComparator".`)
			}
			if !holds {
				return false, nil
			}
		}
	}
	return true, nil
}
