package v1

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
)

// maxName bounds names in paths and queries, in bytes: as the ledger bounds them.
const maxName = 255

// document is the OpenAPI document, made from the table of routes and the types of their
// requests and responses.
func document(version string) []byte {
	paths := map[string]map[string]any{}
	for _, r := range routes() {
		path := paths[r.pattern]
		if path == nil {
			path = map[string]any{}
			paths[r.pattern] = path
		}
		path[strings.ToLower(r.method)] = r.operation()
	}
	text, err := json.Marshal(map[string]any{
		"openapi":           "3.1.0",
		"jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
		"info": map[string]any{"title": "readback", "version": version,
			"license":     map[string]any{"name": "Apache License 2.0", "identifier": "Apache-2.0"},
			"summary":     "Writes that are declared, sent once, and read back",
			"description": "Errors are problem documents (RFC 9457); each response lists their kinds. An outcome never has the raw response of a destination."},
		"servers":  []any{map[string]any{"url": "/", "description": "the server that this document was read from"}},
		"paths":    paths,
		"security": []any{map[string]any{"token": []any{}}},
		"components": map[string]any{"schemas": schemas(),
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}}},
	})
	if err != nil {
		panic(fmt.Sprintf("v1: the document: %v", err)) // texts and maps of texts always marshal; a test makes it
	}
	return text
}

func (r route) operation() map[string]any {
	op := map[string]any{"operationId": r.name, "summary": r.summary, "responses": r.responses(), "x-act": string(r.act)}
	op["description"] = fmt.Sprintf("Requires the right %q; docs/guide/people.md lists the roles that have it.", r.act)
	if r.act == "" {
		op["description"] = "Requires no credentials."
		op["security"] = []any{}
		delete(op, "x-act")
	}
	if params := r.parameters(); len(params) > 0 {
		op["parameters"] = params
	}
	if r.body != nil {
		op["requestBody"] = map[string]any{"required": true, "content": content(jsonType, r.refTo(r.body.of))}
	}
	return op
}

func (r route) parameters() []any {
	var all []any
	for _, name := range r.parts() {
		all = append(all, map[string]any{"name": name, "in": "path", "required": true, "description": "the " + name + " of the write or saga, as it was answered",
			"schema": map[string]any{"type": "string", "minLength": 1, "maxLength": maxName}})
	}
	for _, p := range r.query {
		s := p.schema()
		if p.many {
			s = map[string]any{"type": "array", "items": s}
		}
		if p.most > 0 {
			s["minItems"], s["maxItems"] = 1, p.most
		}
		all = append(all, map[string]any{"name": p.name, "in": "query", "required": p.most > 0, "description": p.about, "schema": s})
	}
	headers := r.headers
	if r.waits {
		headers = append([]param{{name: headerPrefer, kind: aName, about: "wait=N: for how many seconds to wait for the end; at most what the server allows, which Preference-Applied states. wait=N, final: also for the rechecks that are pending after the end; where they take longer, recheck_until of the outcome says until when"}}, headers...)
	}
	for _, p := range headers {
		all = append(all, map[string]any{"name": p.name, "in": "header", "description": p.about, "schema": p.schema()})
	}
	return all
}

func (p param) schema() map[string]any {
	switch p.kind {
	case aNumber:
		return map[string]any{"type": "integer", "minimum": 1, "maximum": 1000}
	case aTime:
		return map[string]any{"type": "string", "format": "date-time"}
	case aWord:
		return map[string]any{"type": "string", "enum": p.oneOf}
	case aCursor, anObject:
		return map[string]any{"type": "string", "minLength": 1, "maxLength": maxCursor}
	}
	return map[string]any{"type": "string", "minLength": 1, "maxLength": maxName}
}

func (r route) responses() map[string]any {
	all := map[string]any{}
	for _, a := range r.answers {
		kind := jsonType
		if r.stream {
			kind = streamType
		}
		all[strconv.Itoa(a.status)] = map[string]any{"description": a.about, "content": content(kind, r.refTo(a.of)), "headers": r.headersOf(a.status)}
	}
	for status, kinds := range r.statuses() {
		if len(kinds) == 0 {
			continue
		}
		var lines, types []string
		for _, k := range kinds {
			lines = append(lines, k.title)
			types = append(types, k.uri())
		}
		all[strconv.Itoa(status)] = map[string]any{
			"description": strings.Join(lines, "; or: "),
			"content":     content(problemType, map[string]any{"allOf": []any{map[string]any{"$ref": componentBase + "Problem"}, map[string]any{"properties": map[string]any{"type": map[string]any{"enum": types}, "status": map[string]any{"const": status}}}}}),
		}
	}
	return all
}

// headersOf are the documented headers of a response.
func (r route) headersOf(status int) map[string]any {
	headers := map[string]string{}
	if r.waits {
		headers[headerApplied] = "for how long it would have waited"
	}
	if r.method == http.MethodPost && len(r.headers) > 0 {
		headers["Location"] = "where the write is asked for"
		headers[headerReplayed] = "true: another request has begun the write"
	}
	if status == http.StatusAccepted && r.waits {
		headers["Retry-After"] = "when asking can help, in seconds"
	}
	all := map[string]any{}
	for name, about := range headers {
		all[name] = map[string]any{"description": about, "schema": map[string]any{"type": "string"}}
	}
	return all
}

// refTo is the schema of a type of a request or response; [json.RawMessage] is any JSON.
func (route) refTo(t reflect.Type) map[string]any {
	types := known()
	s, there := types[t]
	if !there {
		panic(fmt.Sprintf("v1: %v has no name in the document", t)) // a type of ours; a test makes the document
	}
	return generic(s)
}

func content(kind string, schema map[string]any) map[string]any {
	return map[string]any{kind: map[string]any{"schema": schema}}
}
