package rest

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// hole is one placeholder.
type hole struct {
	name string   // as it is written
	path []string // its words
	// optional leaves the member out when there is no value; blank inserts nothing.
	optional, blank bool
	encode          string // "", base64 or base64url
	spans           bool   // several segments of a path
}

// holeForm is the content of a pair of braces.
var holeForm = regexp.MustCompile(`^([a-z_]+(?:\.[A-Za-z0-9_]+)*)(?:([?|])|\|(base64|base64url)|(/))?$`)

// pattern is text with placeholders in it.
type pattern struct {
	at     yamlfile.Place
	pieces []piece
	// escape makes a value fit to its text, if it can; nil: it is as it is.
	escape func(string) (string, bool)
}

// piece is literal text, or a placeholder.
type piece struct {
	literal string
	hole    *hole
}

// known are the placeholders that are allowed at a place, by their first word, and whether names
// may follow it.
type known map[string]below

// below is what may follow the first word of a placeholder.
type below int

const (
	alone  below = iota // nothing
	named               // a name
	object              // nothing, or any names
)

var (
	forWrites = known{"key": object, "fields": object, "expect": object, "payload": object, "stamp": alone,
		"stamp_before": alone, "prepared": alone, "ref": alone, "version": alone, "idempotency_key": alone, "first_sent": alone, "param": named, "before": named, "absent": alone}
	forAccount = known{"param": named}
	forSample  = known{"sample": alone, "sample_hex": alone}
)

// newPattern parses text with placeholders. A brace of its own is written
// twice.
func (l *loader) newPattern(t yamlfile.Text, allowed known) (pattern, bool) {
	p := pattern{at: t.Place}
	before := len(l.Problems)
	rest, literal := t.Value, ""
	for rest != "" {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			literal, rest = literal+rest, ""
			break
		}
		literal += rest[:i]
		brace, end := rest[i:], strings.IndexByte(rest[i:], '}')
		switch {
		case strings.HasPrefix(brace, "{{"), strings.HasPrefix(brace, "}}"):
			literal, rest = literal+brace[:1], brace[2:]
		case brace[0] == '}' || end < 0:
			l.At(t.Place, "has a brace that belongs to no placeholder; write it twice if it is text")
			return p, false
		default:
			if literal != "" {
				p.pieces = append(p.pieces, piece{literal: literal})
			}
			literal, rest = "", brace[end+1:]
			if h, ok := l.newHole(brace[1:end], t.Place, allowed); ok && h.spans {
				l.At(t.Place, "{%s/} spans segments of a path; want {%s}", h.name, h.name)
			} else if ok {
				p.pieces = append(p.pieces, piece{hole: h})
			}
		}
	}
	if literal != "" {
		p.pieces = append(p.pieces, piece{literal: literal})
	}
	return p, len(l.Problems) == before
}

// newText parses text with placeholders that stays text, whatever it is made of.
func (l *loader) newText(t yamlfile.Text, allowed known) (pattern, bool) {
	p, ok := l.newPattern(t, allowed)
	return p, l.inText(p) && ok
}

// inText refuses placeholders that no text can hold.
func (l *loader) inText(p pattern) bool {
	ok := true
	for _, h := range p.holes() {
		ok = l.noObject(h, p.at) && ok
	}
	return ok
}

func (l *loader) noObject(h *hole, at yamlfile.Place) bool {
	if h.isObject() {
		l.At(at, "{%s} is an object, and no text; want one of its members, such as {%s.NAME}", h.name, h.name)
	}
	return !h.isObject()
}

// isObject reports whether the placeholder always is an object, isText whether it
// never is more than text.
func (h *hole) isObject() bool { return len(h.path) == 1 && forWrites[h.path[0]] == object }
func (h *hole) isText() bool {
	follows, known := forWrites[h.path[0]]
	return !known || h.path[0] == "param" || follows == alone && h.path[0] != "absent"
}

func (l *loader) newHole(inside string, at yamlfile.Place, allowed known) (*hole, bool) {
	m := holeForm.FindStringSubmatch(inside)
	if m == nil {
		if inside != "" && strings.ContainsAny(inside[:1], "+#./;?&") {
			l.At(at, "{%s} would escape its position; want a plain {name}", yamlfile.Clip(inside))
		} else {
			l.At(at, "{%s} is no placeholder; want a name of letters, digits and underscores, such as {key.id}", yamlfile.Clip(inside))
		}
		return nil, false
	}
	h := &hole{name: m[1], path: strings.Split(m[1], "."), optional: m[2] == "?", blank: m[2] == "|", encode: m[3], spans: m[4] != ""}
	follows, ok := allowed[h.path[0]]
	switch {
	case !ok:
		l.At(at, "{%s} is not known here; want one of %s", yamlfile.Clip(h.name), strings.Join(slices.Sorted(maps.Keys(allowed)), ", "))
	case follows == alone && len(h.path) > 1, follows == named && len(h.path) != 2 && (h.path[0] == "param" || h.path[0] == "secret"):
		l.At(at, "{%s} is not known here; want %s", yamlfile.Clip(h.name), wantedHole(h.path[0], follows))
		ok = false
	case follows == named && len(h.path) < 2:
		l.At(at, "{%s} is not known here; want %s", yamlfile.Clip(h.name), wantedHole(h.path[0], follows))
		ok = false
	case h.path[0] == "param":
		ok = l.parameterKnown(h.path[1], at)
	case h.path[0] == "prepared" && !l.prepares:
		l.At(at, "{prepared} is not known here; want prepare: {…, ref: $.id} in the write, which makes it before")
		ok = false
	case h.path[0] == "first_sent" && !l.timed:
		l.At(at, "{first_sent} is not known here; want first_sent: {skew: 60s, form: rfc3339} in the kind, which says how the time is written")
		ok = false
	case h.path[0] == "key" && len(h.path) > 1:
		ok = l.keyKnown(h.path[1], at)
	}
	return h, ok
}

func wantedHole(root string, follows below) string {
	if follows == named {
		return "{" + root + ".NAME}"
	}
	return "{" + root + "}"
}

// holes lists the placeholders.
func (p pattern) holes() []*hole {
	var all []*hole
	for _, piece := range p.pieces {
		if piece.hole != nil {
			all = append(all, piece.hole)
		}
	}
	return all
}

// only is the placeholder that is the whole text, nil when there is more.
func (p pattern) only() *hole {
	if len(p.pieces) == 1 {
		return p.pieces[0].hole
	}
	return nil
}

// literal is the text when it has no placeholder.
func (p pattern) literal() (string, bool) {
	text := ""
	for _, piece := range p.pieces {
		if piece.hole != nil {
			return "", false
		}
		text += piece.literal
	}
	return text, true
}

// missing is the error about a placeholder without a value.
func missing(h *hole) error {
	return unserved(h.place(), "%s is missing", h.field())
}

// field is the place in an intent that a placeholder refers to, if it is one.
func (h *hole) field() string {
	switch h.path[0] {
	case "key", "expect", "payload":
		return "/" + strings.Join(h.path, "/")
	}
	return "{" + h.name + "}"
}

// place is the JSON Pointer to what a placeholder refers to, "" if that is no place of an intent.
// A field that is expected or carried is named as expected.
func (h *hole) place() string {
	path := h.path
	switch path[0] {
	case "key", "expect", "payload":
	case "fields":
		if len(path) > 2 { // below a field of either part
			return ""
		}
		path = append([]string{"expect"}, path[1:]...)
	default:
		return ""
	}
	return "/" + strings.Join(path, "/")
}

// plainText is what may occur inside a longer text of a read: text that no query language
// interprets.
var plainText = regexp.MustCompile(`^[A-Za-z0-9_.:@-]+$`)

// plain reports whether a value may occur there. A parameter may be a list with commas: an account gives
// it, and no intent.
func (h *hole) plain(s string) bool {
	if h.path[0] == "param" {
		s = strings.ReplaceAll(s, ",", "")
	}
	return plainText.MatchString(s)
}

// expand inserts values. guarded accepts only plain text where a placeholder is not the whole. It
// reports false when the member must be left out.
func (p pattern) expand(v values, guarded bool) (string, bool, error) {
	for _, h := range p.holes() {
		if _, there := v.get(*h); !there && h.optional {
			return "", false, nil
		}
	}
	var b strings.Builder
	for _, piece := range p.pieces {
		h := piece.hole
		if h == nil {
			b.WriteString(piece.literal)
			continue
		}
		got, there := v.get(*h)
		switch {
		case there:
		case h.blank && h.path[0] != "key": // without its key a record is another one
			continue
		case p.only() != nil && mayLack(h):
			return "", false, nil
		default:
			return "", false, missing(h)
		}
		s, ok := scalarText(got)
		if !ok {
			return "", false, unserved(h.place(), "%s is %s; want text, a number, true or false", h.field(), declared.KindOf(got))
		}
		if guarded && p.only() == nil && !h.plain(s) {
			return "", false, unfit(h.place(), nil, "%s has other characters than letters, digits and -_.:@, which the text around it in a query may take for more than a value", h.field())
		}
		s = h.encoded(s)
		if p.escape != nil {
			if s, ok = p.escape(s); !ok {
				return "", false, unfit(h.place(), "x", "%s has a character that the type of the body has no place for", h.field())
			}
		}
		b.WriteString(s)
	}
	return b.String(), true, nil
}

// mayLack reports whether a placeholder without a value leaves its member out.
// What addresses the record is not among them: a request without it would mean
// something else.
func mayLack(h *hole) bool {
	switch h.path[0] {
	case "fields", "expect", "payload", "before", "stamp_before", "absent":
		return true
	}
	return false
}
