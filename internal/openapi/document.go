// Package openapi drafts a declaration of connectors/rest from one operation of a vendor's OpenAPI 3
// document. A document says what requests look like, and hardly ever what they do: whether a key is
// unique, how long a list lags, whether a repeat makes a second record. So a draft promises nothing,
// and each of its lines that is more than a copy says that it is a guess.
package openapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/getkin/kin-openapi/openapi3"
)

var (
	// ErrDocument is wrapped by errors about a document that no draft can be made from.
	ErrDocument = errors.New("no OpenAPI 3 document")
	// ErrOperation is wrapped by errors about the operation: there is none, or none that a draft can begin from.
	ErrOperation = errors.New("no operation to draft from")
)

// Draft is the text of a declaration, in the format of connectors/rest, of the operation with that
// operationId, or METHOD /path. It may lack what the document does not say, and then does not load.
// References to other files are not followed.
func Draft(document []byte, operation string) (string, error) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDocument, err)
	}
	switch {
	case doc.OpenAPI == "":
		return "", fmt.Errorf("%w: openapi is missing; want openapi: 3.0 or later (Swagger 2.0 must be converted first)", ErrDocument)
	case !strings.HasPrefix(doc.OpenAPI, "3."):
		return "", fmt.Errorf("%w: openapi is %q; want 3.0 or later", ErrDocument, doc.OpenAPI)
	case doc.Info == nil || doc.Paths.Len() == 0:
		return "", fmt.Errorf("%w: info or paths is missing", ErrDocument)
	}
	d := &drafter{doc: doc, all: endpoints(doc), Params: map[string]string{}}
	if d.endpoint, err = find(d.all, operation); err != nil {
		return "", err
	}
	return d.draft()
}

// endpoint is one operation and where it is.
type endpoint struct {
	Method string
	path   string
	item   *openapi3.PathItem
	op     *openapi3.Operation
}

func (e endpoint) place() string { return e.Method + " " + e.path }

func (e endpoint) name() string { return cmp.Or(e.op.OperationID, e.place()) }

func endpoints(doc *openapi3.T) []endpoint {
	var all []endpoint
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all = append(all, endpoint{method, path, item, op})
		}
	}
	slices.SortFunc(all, func(a, b endpoint) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.Method, b.Method)) })
	return all
}

func find(all []endpoint, wanted string) (endpoint, error) {
	makes := func(e endpoint) bool { return e.Method == "POST" || e.Method == "PUT" }
	nearest := func(shown int, far func(endpoint) int) string {
		near := slices.DeleteFunc(slices.Clone(all), func(e endpoint) bool { return !makes(e) })
		slices.SortStableFunc(near, func(a, b endpoint) int { return cmp.Compare(far(a), far(b)) })
		var names []string
		for _, e := range near[:min(shown, len(near))] {
			names = append(names, fmt.Sprintf("%s (%s)", e.name(), e.place()))
		}
		return strings.Join(names, ", ")
	}
	i := slices.IndexFunc(all, func(e endpoint) bool { return e.name() == wanted || e.place() == wanted })
	if i < 0 {
		return endpoint{}, fmt.Errorf("%w: there is no operation %q; the nearest are %s", ErrOperation, wanted,
			nearest(5, func(e endpoint) int {
				return min(levenshtein.ComputeDistance(e.name(), wanted), levenshtein.ComputeDistance(e.place(), wanted))
			}))
	}
	e, what := all[i], "changes or removes a record that is there"
	switch e.Method {
	case "POST", "PUT":
		return e, nil
	case "GET", "HEAD", "OPTIONS":
		what = "only reads"
	}
	return endpoint{}, fmt.Errorf("%w: %s is a %s, which %s; want the POST or PUT that makes the record, such as %s", ErrOperation, e.name(), e.Method, what,
		nearest(1, func(other endpoint) int { return levenshtein.ComputeDistance(other.path, e.path) }))
}

// answers are the schema and the headers of the first answer that is a success.
func (e endpoint) answers() (*openapi3.Schema, openapi3.Headers) {
	all := e.op.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(all)) {
		if r := all[status].Value; r != nil && status[0] == '2' {
			if s, form := content(r.Content); s != nil && !form {
				return s, r.Headers
			}
			return &openapi3.Schema{}, r.Headers
		}
	}
	return &openapi3.Schema{}, nil
}

// takes are the parameters of an operation that are in that place, its path's too.
func (e endpoint) takes(where string) []member {
	var all []member
	for _, ref := range slices.Concat(e.op.Parameters, e.item.Parameters) {
		p := ref.Value
		if p == nil || p.In != where || slices.ContainsFunc(all, func(m member) bool { return m.name == p.Name }) {
			continue
		}
		all = append(all, member{p.Name, flat(p.Schema, 0), p.Required})
	}
	return all
}
