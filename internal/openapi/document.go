// Package openapi drafts a declaration of connectors/rest from one operation of a vendor's OpenAPI 3
// document. A document says what requests look like, and hardly ever what they do: whether a key is
// unique, how long a list lags, whether a repeat makes a second record. So a draft promises nothing,
// and each of its lines that is more than a copy says that it is a guess.
package openapi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(document)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrDocument, err)
	}
	switch {
	case doc.OpenAPI == "":
		return "", fmt.Errorf("%w: openapi is missing; want openapi: 3.0 or later (Swagger 2.0 must be converted first)", ErrDocument)
	case !strings.HasPrefix(doc.OpenAPI, "3."):
		return "", fmt.Errorf("%w: openapi is %q; want 3.0 or later", ErrDocument, doc.OpenAPI)
	}
	if doc.Info == nil || doc.Paths.Len() == 0 {
		return "", fmt.Errorf("%w: info or paths is missing", ErrDocument)
	}
	o, err := find(doc, operation)
	if err != nil {
		return "", err
	}
	d := &drafter{doc: doc, op: o, params: map[string]parameter{}, scope: map[string]bool{}}
	return d.draft(), nil
}

// endpoint is one operation and where it is.
type endpoint struct {
	method, path string
	item         *openapi3.PathItem
	op           *openapi3.Operation
}

// name is what calls it.
func (e endpoint) name() string {
	if e.op.OperationID != "" {
		return e.op.OperationID
	}
	return e.method + " " + e.path
}

func endpoints(doc *openapi3.T) []endpoint {
	var all []endpoint
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all = append(all, endpoint{method, path, item, op})
		}
	}
	slices.SortFunc(all, func(a, b endpoint) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.method, b.method)) })
	return all
}

func find(doc *openapi3.T, wanted string) (endpoint, error) {
	all := endpoints(doc)
	i := slices.IndexFunc(all, func(e endpoint) bool { return e.name() == wanted || e.method+" "+e.path == wanted })
	if i < 0 {
		return endpoint{}, fmt.Errorf("%w: there is no operation %q; the nearest are %s", ErrOperation, wanted, nearest(all, wanted))
	}
	e := all[i]
	if e.method == "POST" || e.method == "PUT" {
		return e, nil
	}
	what := "changes or removes a record that is there"
	if e.method == "GET" || e.method == "HEAD" || e.method == "OPTIONS" {
		what = "only reads"
	}
	var same []endpoint
	for _, other := range all {
		begins, here := segments(other.path), segments(e.path)
		if (other.method == "POST" || other.method == "PUT") && len(begins) <= len(here) && slices.Equal(begins, here[:len(begins)]) {
			same = append(same, other)
		}
	}
	slices.SortStableFunc(same, func(a, b endpoint) int { return cmp.Compare(len(b.path), len(a.path)) })
	near := ""
	if len(same) > 0 {
		near = ", such as " + same[0].name()
	}
	return endpoint{}, fmt.Errorf("%w: %s is a %s, which %s; want the POST or PUT that makes the record%s", ErrOperation, e.name(), e.method, what, near)
}

// nearest names the operations whose names have most in common with a word.
func nearest(all []endpoint, wanted string) string {
	const shown = 5
	score := func(e endpoint) int {
		parts, n := pieces(wanted), 0
		for _, p := range pieces(e.name() + " " + e.path) {
			if slices.Contains(parts, p) {
				n += 2 // a whole word
			}
		}
		n += len(common(strings.ToLower(wanted), strings.ToLower(e.name())))
		if e.method == "POST" || e.method == "PUT" {
			n += 4
		}
		return n
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b endpoint) int { return cmp.Compare(score(b), score(a)) })
	var names []string
	for _, e := range all[:min(shown, len(all))] {
		names = append(names, fmt.Sprintf("%s (%s %s)", e.name(), e.method, e.path))
	}
	return strings.Join(names, ", ")
}

// common is what two texts begin with.
func common(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// pieces are the words of a name in whatever style, in lower case.
func pieces(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		switch {
		case r >= 'A' && r <= 'Z':
			if lower {
				b.WriteByte(' ')
			}
			b.WriteRune(r + 'a' - 'A')
			lower = false
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
			lower = true
		default:
			b.WriteByte(' ')
			lower = false
		}
	}
	return strings.Fields(b.String())
}
