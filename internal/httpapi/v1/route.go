package v1

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/access"
)

// maxCursor bounds, in bytes, a cursor that a caller hands back, and a business key in a
// query.
const maxCursor = 4 << 10

// route is one route: its method and path, its request and its responses. The handlers,
// the list of [Routes] and the document are made from it.
type route struct {
	method, pattern string
	act             access.Act
	name            string // in the document only
	summary         string
	query           []param
	headers         []param
	body            *payload
	waits           bool // it supports Prefer: wait
	stream          bool // it responds with events
	optional        bool // it needs a part that not every service has
	// answers are the successful responses. problems are those that only this route has;
	// those of all routes of its kind are not repeated here.
	answers  []answer
	problems []*kind
	do       func(*call, context.Context) (reply, error)
}

// payload is the body of a route's request.
type payload struct {
	of   reflect.Type
	most int64 // bytes
}

// answer is a response of a route.
type answer struct {
	status int
	of     reflect.Type
	about  string
}

// param is a part of the query, or a header.
type param struct {
	name, about string
	kind        paramKind
	oneOf       []string
	many        bool // may be repeated
	most        int  // of many: 1 to so many are required; 0 bounds nothing
}

// paramKind is the kind of a value.
type paramKind string

const (
	aName    paramKind = "name"   // text of 1 to 255 bytes
	anID     paramKind = "id"     // of a resource; one that is no name is not found
	aCursor  paramKind = "cursor" // from an earlier response
	aTime    paramKind = "time"   // RFC 3339
	aNumber  paramKind = "number" // 1 to 1000
	aLength  paramKind = "length" // a duration of Go
	aWord    paramKind = "word"   // one of oneOf
	anObject paramKind = "object" // a JSON object
)

// wildcard is a part of a path that is a name.
var wildcard = regexp.MustCompile(`\{([a-z_]+)\}`)

// parts are the names of the path's wildcards.
func (r route) parts() []string {
	var names []string
	for _, found := range wildcard.FindAllStringSubmatch(r.pattern, -1) {
		names = append(names, found[1])
	}
	return names
}

// check refuses a query parameter that this route does not know, before the query is
// used: a misspelt filter would be ignored.
func (r route) check(q url.Values) error {
	for name, values := range q {
		at := slices.IndexFunc(r.query, func(p param) bool { return p.name == name })
		switch {
		case at < 0:
			return badField(clip(name), "is no part of this query; "+r.known())
		case len(values) > 1 && !r.query[at].many:
			return badField(name, "is there twice; want it once")
		}
		for _, v := range values {
			if err := r.query[at].check(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r route) known() string {
	if len(r.query) == 0 {
		return "it has none"
	}
	var names []string
	for _, p := range r.query {
		names = append(names, p.name)
	}
	return "want " + strings.Join(names, ", ")
}

func (p param) check(v string) error {
	var err error
	switch p.kind {
	case aTime:
		if _, err = time.Parse(time.RFC3339Nano, v); err != nil {
			return badField(p.name, "is no time; want RFC 3339, such as 2026-01-31T12:00:00Z")
		}
	case aNumber:
		if n, err := strconv.Atoi(v); err != nil || n < 1 || n > 1000 {
			return badField(p.name, "is no such number; want a whole one from 1 to 1000")
		}
	case aLength:
		if d, err := time.ParseDuration(v); err != nil || d <= 0 {
			return badField(p.name, "is no duration; want one above zero, such as 15m or 24h")
		}
	case aWord:
		if !slices.Contains(p.oneOf, v) {
			return badField(p.name, fmt.Sprintf("is %s; want one of %s", shown(v), strings.Join(p.oneOf, ", ")))
		}
	case aName:
		if !isText(v, maxName) {
			return badField(p.name, fmt.Sprintf("is no name; want 1 to %d bytes of text", maxName))
		}
	case aCursor, anObject:
		if !isText(v, maxCursor) {
			return badField(p.name, fmt.Sprintf("is empty or too long; want 1 to %d bytes of text", maxCursor))
		}
	}
	return err
}

// statuses are all statuses of the route's responses, with their kinds of problems.
func (r route) statuses() map[int][]*kind {
	all := map[int][]*kind{}
	for _, a := range r.answers {
		all[a.status] = nil
	}
	for _, k := range r.kinds() {
		all[k.status] = append(all[k.status], k)
	}
	return all
}

// kinds are the problems that the route can return.
func (r route) kinds() []*kind {
	all := []*kind{invalidRequest, notAcceptable}
	if r.act != "" {
		all = append(all, unauthorized, forbidden, tooManyAttempts, tooManyRequests, unavailable, newer, broken)
	}
	if strings.Contains(r.pattern, "{") {
		all = append(all, notFound)
	}
	if r.body != nil {
		all = append(all, tooLarge, unsupportedType, bodyTimeout)
	}
	if r.optional {
		all = append(all, unsupported)
	}
	for _, k := range r.problems {
		if !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return all
}

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

func ok[T any](about string) answer { return answer{http.StatusOK, of[T](), about} }
