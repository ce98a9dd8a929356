package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/yamlfile"
)

// maxBody bounds the body of a request: an intent holds 1 MiB, which forms
// can triple.
const maxBody = 4 << 20

// request is one declared request.
type request struct {
	at      yamlfile.Place
	method  string
	route   *route
	query   []namedValue
	headers []header
	form    []namedValue
	isForm  bool
	body    *tree
	graphql *graphql // nil: it is no GraphQL
	text    *pattern // nil: the body is none, JSON or a form
	kind    string   // the type of text
	shape   *shape   // of its answer, nil: JSON
}

// namedValue is a named value of a query or a form.
type namedValue struct {
	name  string
	value *pattern
	// each and join make one value of many queries.
	each *pattern
	join string
}

// header is a header of a request.
type header struct {
	name  string
	value pattern
}

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// newRequest compiles a request. otherwise is the method when none is named.
func (l *loader) newRequest(f fileRequest, at yamlfile.Place, otherwise string, allowed known) *request {
	r := &request{at: at, method: f.Method.Value, shape: l.d.shape}
	if f.GraphQL != nil {
		l.newGraphQL(r, f, at, otherwise == "", allowed)
	}
	if r.method == "" {
		r.method = otherwise
	}
	reads := r.method == http.MethodGet || r.method == http.MethodHead
	if !slices.Contains(methods, r.method) && r.method != http.MethodHead || otherwise == "" && reads {
		where := f.Method.Place
		if where.Field == "" {
			where = yamlfile.Place{Line: at.Line, Field: at.Field + ".method"}
		}
		l.At(where, "is %q; want one of %s", yamlfile.Clip(r.method), strings.Join(methods[1:], ", "))
	}
	if f.Path.Value == "" && f.Path.Line == 0 {
		l.Say(at.Line, at.Field+".path", "is missing; want the path of the request, such as /items")
	} else if f.Path.Value != "" {
		r.route, _ = l.newRoute(f.Path, allowed)
	}
	r.query = l.newNamed(f.Query, at.Field+".query", allowed)
	r.headers = l.newHeaders(f.Headers, allowed)
	r.form, r.isForm = l.newNamed(f.Form, at.Field+".form", allowed), f.Form != nil
	if f.Body.There() {
		r.body = l.newTree(f.Body, at.Field+".body", allowed)
	}
	l.newBodyText(r, f, at, allowed)
	switch {
	case r.body != nil && r.isForm:
		l.Say(at.Line, at.Field+".form", "is set together with body; want one of the two")
	case (r.body != nil || r.isForm || r.text != nil) && reads:
		l.Say(at.Line, at.Field+".body", "a %s has no body; want another method", r.method)
	}
	return r
}

func (l *loader) newNamed(from map[string]yamlfile.Node, field string, allowed known) []namedValue {
	var all []namedValue
	for _, name := range slices.Sorted(maps.Keys(from)) {
		one, place := namedValue{name: name}, yamlfile.Place{Line: from[name].Line(), Field: field + "." + yamlfile.Clip(name)}
		if strings.ContainsAny(name, "{}") {
			l.At(place, "names have no placeholders; write the name out")
			continue
		}
		if from[name].IsMapping() {
			if l.joined(&one, from[name], place, allowed) {
				all = append(all, one)
			}
			continue
		}
		v, ok := l.Scalar(from[name], place.Field)
		text, isScalar := scalarText(v)
		if !ok || !isScalar {
			l.At(place, "is %s; want a single value", from[name].Kind())
			continue
		}
		p, ok := l.newText(yamlfile.Text{Value: text, Place: place}, allowed)
		if literal, fixed := p.literal(); ok && fixed && literal != "" && yamlfile.IsSecret(name) {
			l.At(place, "looks like a secret written out; want auth with the name of a secret")
		}
		one.value = &p
		all = append(all, one)
	}
	return all
}

// joined reads {"[...]": "{key.id}", join: ","}.
func (l *loader) joined(one *namedValue, n yamlfile.Node, at yamlfile.Place, allowed known) bool {
	var each yamlfile.Text
	one.join = ","
	for _, e := range l.Mapping(n, at.Field) {
		switch e.Name {
		case eachName:
			each = yamlfile.Text{Value: l.Text(e, at.Field), Place: yamlfile.Place{Line: e.Line, Field: at.Field}}
		case joinName:
			one.join = l.Text(e, at.Field)
		default:
			l.Unknown(e, at.Field, []string{eachName, joinName})
		}
	}
	p, ok := l.newText(each, allowed)
	one.each = &p
	return ok
}

// ownHeaders are set by the HTTP client or by this package.
var ownHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Idempotency-Key", "X-Idempotency-Key", "Cookie", "Proxy-Authorization"}

func (l *loader) newHeaders(from map[string]yamlfile.Text, allowed known) []header {
	var all []header
	for _, name := range slices.Sorted(maps.Keys(from)) {
		text := from[name]
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !headerName(name):
			l.At(text.Place, "is no name of a header")
			continue
		case canonical == "Authorization" || isCredential(canonical):
			l.At(text.Place, "holds a credential; want auth with the name of a secret")
			continue
		case slices.Contains(ownHeaders, canonical):
			l.At(text.Place, "cannot be set here%s", map[bool]string{true: "; want idempotency, since clients resend what carries it"}[strings.HasSuffix(canonical, "Idempotency-Key")])
			continue
		}
		if p, ok := l.newText(text, allowed); ok {
			all = append(all, header{canonical, p})
		}
	}
	return all
}

func isCredential(name string) bool {
	return yamlfile.IsSecret(name) || strings.Contains(strings.ToLower(name), "api-key") || strings.HasSuffix(strings.ToLower(name), "-auth")
}

func headerName(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// holes lists all placeholders of a request.
func (r *request) holes() []*hole {
	var all []*hole
	if r.route != nil {
		all = append(all, r.route.holes...)
	}
	for _, n := range slices.Concat(r.query, r.form) {
		for _, p := range []*pattern{n.value, n.each} {
			if p != nil {
				all = append(all, p.holes()...)
			}
		}
	}
	for _, h := range r.headers {
		all = append(all, h.value.holes()...)
	}
	if r.text != nil {
		all = append(all, r.text.holes()...)
	}
	return append(all, r.body.holes()...)
}

// uses reports whether a placeholder is among them.
func uses(holes []*hole, name string) bool {
	return slices.ContainsFunc(holes, func(h *hole) bool { return h.name == name || h.path[0] == name })
}

// draft is a request with values, before it has an address and credentials.
type draft struct {
	method string
	path   string
	query  url.Values
	header http.Header
	body   any // JSON, nil when there is none
	form   url.Values
	text   string
	kind   string // of text, "" when there is none
}

// fill inserts values.
func (r *request) fill(f filling) (*draft, error) {
	d := &draft{method: r.method, header: http.Header{}}
	var err error
	if d.path, err = r.route.expand(f.values); err != nil {
		return nil, err
	}
	if d.query, err = fillNamed(r.query, f); err != nil {
		return nil, err
	}
	if err := d.addHeaders(r.headers, f); err != nil {
		return nil, err
	}
	if r.text != nil {
		d.kind = r.kind
		d.text, _, err = r.text.expand(f.values, false)
	} else if r.isForm {
		d.form, err = fillNamed(r.form, f)
	} else if r.body != nil {
		d.body, err = r.body.body(f)
	}
	return d, err
}

func (d *draft) addHeaders(from []header, f filling) error {
	for _, h := range from {
		s, there, err := h.value.expand(f.values, f.guarded)
		switch {
		case err != nil:
			return err
		case !there:
			continue
		}
		if err := d.setHeader(h.name, s); err != nil {
			return err
		}
	}
	return nil
}

// setHeader refuses what would end the header, and what does not arrive as it
// was sent: blanks at the ends are cut, and of letters outside of ASCII every
// server makes something else.
func (d *draft) setHeader(name, value string) error {
	if len(value) > maxHeader || strings.Trim(value, " ") != value || strings.ContainsFunc(value, func(r rune) bool { return isControl(r) || r > '~' }) {
		return fmt.Errorf("%w: the header %s would hold a control character, one that is not ASCII, a blank at an end, or more than %d bytes", errIntent, name, maxHeader)
	}
	d.header.Set(name, value)
	return nil
}

func fillNamed(from []namedValue, f filling) (url.Values, error) {
	all := url.Values{}
	for _, n := range from {
		if n.each != nil {
			joined, err := fillEach(n, f)
			if err != nil {
				return nil, err
			}
			all.Set(n.name, joined)
			continue
		}
		s, there, err := n.value.expand(f.values, f.guarded)
		if err != nil {
			return nil, err
		}
		if there {
			all.Set(n.name, s)
		}
	}
	return all, nil
}

// fillEach joins the values of many queries. What would hold the separator is
// refused.
func fillEach(n namedValue, f filling) (string, error) {
	var all []string
	for _, v := range f.each {
		s, _, err := n.each.expand(v, true)
		if err != nil {
			return "", err
		}
		if !plainText.MatchString(s) || strings.Contains(s, n.join) {
			return "", fmt.Errorf("%w: a value of the list %s has other characters than letters, digits and -_.:@", errIntent, n.name)
		}
		all = append(all, s)
	}
	return strings.Join(all, n.join), nil
}

// encoded is the body as it is sent and its type, nothing when there is none.
func (d *draft) encoded() (body []byte, contentType string, err error) {
	switch {
	case d.kind != "":
		body, contentType = []byte(d.text), d.kind+"; charset=utf-8"
	case d.form != nil:
		body, contentType = []byte(d.form.Encode()), "application/x-www-form-urlencoded"
	case d.body != nil:
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(d.body); err != nil {
			return nil, "", fmt.Errorf("%w: the body: %w", errIntent, err)
		}
		body, contentType = bytes.TrimSuffix(b.Bytes(), []byte("\n")), "application/json"
	}
	if len(body) > maxBody {
		return nil, "", fmt.Errorf("%w: the body would have %d bytes; want at most %d", errIntent, len(body), maxBody)
	}
	return body, contentType, nil
}
