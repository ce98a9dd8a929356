package rest

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// route is a path below the base URL with placeholders in it.
type route struct {
	at       yamlfile.Place
	template *uritemplate.Template
	holes    []*hole
	segments int
}

// expression is one expression of a URI template.
var expression = regexp.MustCompile(`\{([^{}]*)\}`)

// newRoute compiles a path.
func (l *loader) newRoute(t yamlfile.Text, allowed known) (*route, bool) {
	before := len(l.Problems)
	r := &route{at: t.Place, segments: strings.Count(expression.ReplaceAllString(t.Value, "x"), "/")}
	bare := expression.ReplaceAllString(t.Value, "x")
	switch {
	case !strings.HasPrefix(t.Value, "/"), strings.HasPrefix(t.Value, "//"):
		l.At(t.Place, "is no path; want one that begins with a single slash, such as /items/{ref}")
	case strings.Contains(bare, "?"):
		l.At(t.Place, "has a query; want it as the member query: {name: value}")
	case strings.ContainsAny(bare, "{}#\\"), strings.ContainsFunc(bare, func(r rune) bool { return r <= ' ' || r > '~' }):
		l.At(t.Place, "has a character that no path has; escape it as in a URL")
	}
	text := t.Value
	allowed = maps.Clone(allowed)
	allowed["secret"] = named
	for _, m := range expression.FindAllStringSubmatch(t.Value, -1) {
		if h, ok := l.newHole(m[1], t.Place, allowed); ok {
			if h.encode != "" {
				l.At(t.Place, "{%s}: a part of a path is not encoded; want it in a body", m[1])
			}
			if h.optional || h.blank {
				l.At(t.Place, "{%s}: a part of a path cannot be left out", m[1])
			}
			l.noObject(h, t.Place)
			if h.path[0] == "secret" {
				l.pathSecret(h, t.Place)
			}
			if h.spans {
				whole := regexp.MustCompile(`/\{` + regexp.QuoteMeta(h.name) + `/\}(/|$)`)
				if h.path[0] != "key" || !whole.MatchString(text) {
					l.At(t.Place, "{%s/} spans segments; want a member of the key, with a slash before it, and one behind it or the end", h.name)
				}
				text = whole.ReplaceAllString(text, "{/"+h.name+"*}$1")
			}
			r.holes = append(r.holes, h)
		}
	}
	if len(l.Problems) > before {
		return nil, false
	}
	if err := plainSegments(bare); err != nil {
		l.At(t.Place, "%s", err)
		return nil, false
	}
	var err error
	if r.template, err = uritemplate.New(text); err != nil {
		l.At(t.Place, "is no URI template: %s", yamlfile.Clip(err.Error()))
		return nil, false
	}
	return r, true
}

// expand inserts values. The resulting path has as many segments as the template and the values that
// span several, and none of them leads to another place.
func (r *route) expand(v values) (string, error) {
	vars, segments := uritemplate.Values{}, r.segments
	for _, h := range r.holes {
		if h.path[0] == "secret" {
			vars.Set(h.name, uritemplate.String(mark+h.path[1]+mark))
			continue
		}
		got, there := v.get(*h)
		if !there {
			return "", missing(h)
		}
		s, ok := scalarText(got)
		if !ok {
			return "", unserved(h.place(), "%s is %s; want text, a number, true or false", h.field(), declared.KindOf(got))
		}
		parts := []string{s}
		if h.spans {
			parts = strings.Split(s, "/")
			segments += len(parts) - 1
		}
		for i, s := range parts {
			switch {
			case s == "", s == ".", s == "..":
				return "", unfit(h.place(), "x", "%s is or has the segment %q, which would make the URL another one", h.field(), s)
			case strings.ContainsAny(s, `/\`), strings.ContainsFunc(s, isControl):
				return "", unfit(h.place(), "x", "%s has a slash, a backslash or a control character, which servers take for more than a value even when it is escaped", h.field())
			}
			parts[i] = octets(s)
		}
		if h.spans {
			vars.Set(h.name, uritemplate.List(parts...))
		} else {
			vars.Set(h.name, uritemplate.String(parts[0]))
		}
	}
	path, err := r.template.Expand(vars)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", errIntent, r.at.Field, err)
	}
	if strings.Count(path, "/") != segments || strings.ContainsAny(path, "?#") {
		return "", fmt.Errorf("%w: %s: the values would make it another path", errIntent, r.at.Field)
	}
	return path, plainSegments(path)
}

// octets is a text with a rune for each of its bytes. The library escapes the
// number of a rune where RFC 6570 wants its UTF-8: it would make "%01%2F", with a
// slash, of "\u012f", and another key of every letter that is not ASCII.
func octets(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// plainSegments refuses segments that mean another place than themselves.
func plainSegments(path string) error {
	for _, s := range strings.Split(path, "/")[1:] {
		plain, err := url.PathUnescape(s)
		if err != nil {
			return fmt.Errorf("%w: a segment of the path is not escaped as in a URL", errIntent)
		}
		if plain == "." || plain == ".." {
			return fmt.Errorf("%w: a segment of the path is %q, which means another place", errIntent, plain)
		}
	}
	return nil
}
