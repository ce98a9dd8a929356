package intent

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkValues finds values other than those that Fields promise, and more of them than the
// bounds allow. It reports whether the rest may be traversed.
func checkValues(r reporter, w WriteIntent) bool {
	c := valueCheck{reporter: r, left: MaxMembers, problems: maxValueProblems, walkable: true}
	for _, part := range w.parts() {
		if len(part.fields) == 0 {
			continue
		}
		c.object((*place)(nil).member(part.name), part.fields, 2)
	}
	if c.left < 0 {
		r.reportf("", wantMembers, tooMany)
		c.walkable = false
	}
	return c.walkable
}

var wantName = fmt.Sprintf("1 to %d bytes of UTF-8 without control characters", MaxMemberName)

const tooMany = "has too many values"

var wantMembers = fmt.Sprintf("at most %d in key, expect, payload and require together", MaxMembers)

// part is one of the four sets of fields.
type part struct {
	name   string
	fields Fields
}

func (w WriteIntent) parts() []part {
	return []part{{"key", w.Key}, {"expect", w.Expect}, {"payload", w.Payload}, {"require", w.Require}}
}

type valueCheck struct {
	reporter
	left     int  // how many more values are allowed
	problems int  // how many more problems to report
	walkable bool // nothing was deeper or larger than allowed
}

func (c *valueCheck) say(at *place, want, format string, args ...any) {
	if c.problems--; c.problems >= 0 {
		c.reportf(at.pointer(), want, format, args...)
	}
}

func (c *valueCheck) object(at *place, m map[string]any, depth int) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if c.left < 0 {
			return
		}
		if c.name(at, name) {
			c.value(at.member(name), m[name], depth)
		}
	}
}

// name checks a member name and reports whether it can be part of a path.
func (c *valueCheck) name(at *place, name string) bool {
	switch {
	case name == "":
		c.say(at, wantName, "has a member without a name")
	case len(name) > MaxMemberName:
		c.say(at, wantName, "has a member name of %d bytes", len(name))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		c.say(at, wantName, "has the member name %q", name)
	default:
		return true
	}
	return false
}

func (c *valueCheck) value(at *place, v any, depth int) {
	if c.left--; c.left < 0 {
		return
	}
	switch v := v.(type) {
	case nil, bool:
	case string:
		if !utf8.ValidString(v) {
			c.say(at, wantUTF8, "is not valid UTF-8")
		}
	case stdjson.Number:
		if !isNumber(string(v)) {
			c.say(at, "a JSON number", "is %q, which is no JSON number", clip(string(v)))
		} else if !exact(v) {
			c.say(at, wantExact, "is %s, which canonical JSON cannot hold exactly", clip(string(v)))
		}
	case map[string]any:
		if c.levelAllowed(at, depth) {
			c.object(at, v, depth+1)
		}
	case []any:
		if c.levelAllowed(at, depth) {
			for i, e := range v {
				c.value(at.element(i), e, depth+1)
			}
		}
	default:
		c.say(at, "nil, bool, string, json.Number, []any or map[string]any; intent.Normalize and intent.From convert", "is a Go %T", v)
	}
}

// levelAllowed reports whether another level is allowed.
func (c *valueCheck) levelAllowed(at *place, depth int) bool {
	if depth < MaxDepth {
		return true
	}
	c.walkable = false
	c.say(at, fmt.Sprintf("at most %d levels", MaxDepth), "is nested too deep")
	return false
}

const (
	wantUTF8  = "UTF-8 text; encode other bytes, for example as Base64"
	wantExact = "a number that fits an IEEE double (about 15 digits); send it as a string"
)
