package rest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/internal/jsonplace"
	"github.com/readback-go/readback/internal/yamlfile"
)

// graphql is the envelope of GraphQL: a POST of a query and its variables, answered with data, with
// errors or with both. It stands for a body, and for what answers mean.
type graphql struct {
	result     *jsonplace.Place // of a write: what it made or changed
	userErrors *jsonplace.Place // of a write: why the API did not do it
	codes      *jsonplace.Place
}

// Codes of errors[].extensions.code, in lower case without underscores.
var (
	// graphqlInvalid: the request was refused before anything was executed.
	graphqlInvalid = []string{"graphqlvalidationfailed", "graphqlparsefailed", "badrequest", "baduserinput", "invalidinput", "inputerror",
		"argumentliteralsincompatible", "undefinedfield", "undefinedtype", "missingrequiredarguments", "argumentnotaccepted",
		"invalidvariable", "variablemismatch", "variablerequiresvalidtype", "persistedquerynotfound", "maxcostexceeded"}
	graphqlThrottled = []string{"throttled", "ratelimited", "ratelimitexceeded", "toomanyrequests"}
)

func (l *loader) newGraphQL(r *request, f fileRequest, at yamlfile.Place, writes bool, allowed known) {
	g, place := f.GraphQL, f.GraphQL.At
	r.graphql = &graphql{codes: l.newPlace(yamlfile.Text{Value: "$.errors[*].extensions.code", Place: place})}
	if l.d.shape != nil {
		l.At(place, "is set, and read_as is xml; answers of GraphQL are JSON")
	}
	if f.Method.Value != "" && f.Method.Value != http.MethodPost {
		l.At(f.Method.Place, "is set together with graphql, which is a POST; want it taken out")
	}
	if f.Body.There() || f.Form != nil {
		l.Say(at.Line, at.Field+".body", "is set together with graphql, which is the body; want it taken out")
	}
	r.method = http.MethodPost
	l.Required(g.Query, place, "query", "the text of a query or a mutation; braces are written once in it")
	r.body = &tree{at: place, kind: objectTree, members: []member{{name: "query", value: &tree{at: g.Query.Place, fixed: g.Query.Value}}}}
	if g.Variables.There() {
		v := l.newTree(g.Variables, place.Field+".variables", allowed)
		if v.kind != objectTree {
			l.Say(g.Variables.Line(), place.Field+".variables", "is %s; want names with values", g.Variables.Kind())
		}
		r.body.members = append(r.body.members, member{name: "variables", value: v})
	}
	if !writes {
		l.onlyReads(g.Query)
		if g.Result.Value+g.UserErrors.Value != "" {
			l.At(place, "has result or user_errors, which are of writes; want record or records of the read")
		}
		return
	}
	if g.Query.Value != "" && !slices.Contains(operations(g.Query.Value), "mutation") {
		l.At(g.Query.Place, "is no mutation, and writes nothing; want one that begins with mutation")
	}
	if l.Required(g.Result, place, "result", "where the answer has what the mutation did, such as $.data.issueCreate") {
		r.graphql.result = l.singular(g.Result)
	}
	r.graphql.userErrors = l.singular(g.UserErrors)
	name := g.UserErrors.Value[strings.LastIndex(g.UserErrors.Value, ".")+1:]
	switch {
	case name != "" && !strings.Contains(g.Query.Value, name):
		l.At(g.UserErrors.Place, "is not asked for by the query; want %s { message } in it", yamlfile.Clip(name))
	case name == "" && strings.Contains(strings.ToLower(g.Query.Value), "usererrors"):
		l.warn(place, "asks for user errors and does not say where they are; want user_errors, or a refusal is taken for success")
	}
}

// refusal is where a GraphQL answer says why it refuses, if the declaration names nothing else.
func (l *loader) graphqlRefusal(f *fileGraphQL) *refusal {
	from := func(name string) (all []source) {
		paths := []string{"$.errors[*]." + map[string]string{"code": "extensions.code"}[name]}
		if name != "code" {
			paths = []string{"$.errors[*]." + name}
		}
		if f.UserErrors.Value != "" {
			paths = append([]string{f.UserErrors.Value + "[*]." + name}, paths...)
		}
		for _, path := range paths {
			if p := l.newPlace(yamlfile.Text{Value: path, Place: f.At}); p != nil {
				all = append(all, source{place: p})
			}
		}
		return all
	}
	return &refusal{code: from("code"), text: from("message")}
}

// meaning is what an answer to a write means, and whether that is decided: what is not JSON, or of a
// status that is no success and has no error known here, is judged by its status.
func (g *graphql) meaning(a httpsend.Answer, doc any, isJSON bool, byStatus error) (error, bool) {
	unknown := func(why string) (error, bool) {
		return &connectors.Error{Code: a.Code(), Err: errors.New(why)}, true
	}
	object, _ := doc.(map[string]any)
	switch {
	case a.Status >= http.StatusInternalServerError:
		return nil, false
	case !isJSON || object == nil:
		if byStatus != nil {
			return byStatus, false
		}
		return unknown("the answer is no GraphQL answer")
	}
	result, _ := g.result.Value(doc)
	if failed, _ := object["errors"].([]any); len(failed) > 0 || object["errors"] != nil && !isList(object["errors"]) {
		codes, all := g.codesOf(doc, failed)
		switch {
		case g.mayHaveRun(doc):
			return unknown("the answer has errors, and data or errors of a field of the result: a part of the mutation may have been done")
		case all && allAmong(codes, graphqlThrottled):
			return &connectors.Error{Fate: connectors.FateThrottled, Code: a.Code(), Err: errors.New("the destination answered that its limit is reached")}, true
		case all && allAmong(codes, graphqlInvalid):
			return connectors.Refused(a.Code(), errors.New("the destination did not accept the mutation")), true
		case byStatus != nil:
			return byStatus, false
		}
		return unknown("the answer has errors that do not say that nothing was done")
	}
	if byStatus != nil {
		return byStatus, false
	}
	if g.userErrors != nil {
		v, _ := g.userErrors.Value(doc)
		switch list, isList := v.([]any); {
		case len(list) > 0 && result != nil:
			return unknown("the answer has a result, and errors of the input: it may have been done")
		case len(list) > 0:
			return connectors.Refused(a.Code(), errors.New("the destination names errors of the input")), true
		case !isList && result != nil:
			return unknown(fmt.Sprintf("the answer has no list %s", g.userErrors.Text()))
		}
	}
	if result == nil {
		return unknown(fmt.Sprintf("the answer has no %s", g.result.Text()))
	}
	return nil, true
}

// mayHaveRun reports whether an answer shows that the mutation was begun: by a result, by other data
// beside errors, or by an error of a field of the result. No code or text of such an answer says that
// nothing was done.
func (g *graphql) mayHaveRun(doc any) bool {
	object, _ := doc.(map[string]any)
	result, _ := g.result.Value(doc)
	failed, _ := object["errors"].([]any)
	return result != nil || object["errors"] != nil && (hasData(object["data"]) || slices.ContainsFunc(failed, within))
}

// within reports whether an error is about a field below the mutation, which ran before that.
func within(failed any) bool {
	object, _ := failed.(map[string]any)
	path, _ := object["path"].([]any)
	return len(path) > 1
}

func isList(v any) bool { _, ok := v.([]any); return ok }

// hasData reports whether some member of the data is not null.
func hasData(data any) bool {
	object, isObject := data.(map[string]any)
	if !isObject {
		return data != nil
	}
	for _, v := range object {
		if v != nil {
			return true
		}
	}
	return false
}

// codesOf lists the codes of errors, and reports whether each of them has one.
func (g *graphql) codesOf(doc any, failed []any) (codes []string, all bool) {
	found, err := g.codes.All(doc)
	for _, v := range found {
		s, _ := v.(string)
		codes = append(codes, strings.ReplaceAll(strings.ToLower(s), "_", ""))
	}
	return codes, err == nil && len(codes) == len(failed) && len(codes) > 0
}

func allAmong(codes, known []string) bool {
	return !slices.ContainsFunc(codes, func(code string) bool { return !slices.Contains(known, code) })
}

// graphqlThrottle is the rule by which GraphQL says "not now" to reads.
func (l *loader) graphqlThrottle(at yamlfile.Place) throttleRule {
	place := l.newPlace(yamlfile.Text{Value: "$.errors[*].extensions.code", Place: at})
	c := &condition{place: place}
	for _, code := range []string{"THROTTLED", "RATELIMITED", "RATE_LIMITED"} {
		c.equals = append(c.equals, code)
	}
	return throttleRule{answerRule: answerRule{statuses: []int{http.StatusOK, http.StatusBadRequest}, where: c, means: "throttled"}}
}

// noErrors is the condition that a read has no errors: with some, a part of the data is missing.
func (l *loader) noErrors(at yamlfile.Place) *condition {
	no := false
	return &condition{place: l.newPlace(yamlfile.Text{Value: "$.errors[*]", Place: at}), exists: &no}
}
