package contracttest

import (
	"crypto/sha1" //nolint:gosec // the contract's ids are UUIDs of version 5
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// namespace is the namespace of the contract's approval ids.
const namespace = "a1b2c3d4e5f67890abcdef1234567890"

// compare returns how a response differs from the file.
func (v values) compare(want, got string) []string {
	if want == "" {
		if got != "" {
			return []string{"the answer has a body, want none"}
		}
		return nil
	}
	var w, g any
	if err := decode(v.fill(want), &w); err != nil {
		return []string{fmt.Sprintf("the body in the file is not JSON: %v", err)}
	}
	if err := decode(got, &g); err != nil {
		return []string{fmt.Sprintf("the body is not JSON: %v", err)}
	}
	return v.match("", w, g)
}

func decode(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

func (v values) match(at string, want, got any) []string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %v, want an object", place(at), got)}
		}
		return v.members(at, w, g)
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return []string{fmt.Sprintf("%s is %v, want a list of %d", place(at), got, len(w))}
		}
		var problems []string
		for i := range w {
			problems = append(problems, v.match(fmt.Sprintf("%s/%d", at, i), w[i], g[i])...)
		}
		return problems
	case string:
		if problem := v.text(w, got); problem != "" {
			return []string{place(at) + " " + problem}
		}
		return nil
	}
	if want != got {
		return []string{fmt.Sprintf("%s is %v, want %v", place(at), got, want)}
	}
	return nil
}

func place(at string) string {
	if at == "" {
		return "the body"
	}
	return at
}

func (v values) members(at string, want, got map[string]any) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if value, ok := got[name]; ok {
			problems = append(problems, v.match(at+"/"+name, want[name], value)...)
		} else {
			problems = append(problems, fmt.Sprintf("%s/%s is missing", at, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			problems = append(problems, fmt.Sprintf("%s/%s is there (%v), and the file does not name it", at, name, got[name]))
		}
	}
	return problems
}

// text compares with a text, or with the form that a text describes.
func (v values) text(want string, got any) string {
	want = v.fill(want)                                                // also with values of this response
	if m := named.FindStringSubmatch(want); m != nil && m[0] == want { // not known yet
		v[m[1]] = fmt.Sprint(got)
		return ""
	}
	kind, rest, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(want, "<"), ">"), " ")
	if !strings.HasPrefix(want, "<") || !strings.HasSuffix(want, ">") {
		kind = ""
	}
	text, isText := got.(string)
	ok := false
	switch kind {
	case "any":
		ok = true
	case "string":
		ok = isText && text != ""
	case "number":
		_, ok = got.(json.Number)
	case "list":
		_, ok = got.([]any)
	case "object":
		_, ok = got.(map[string]any)
	case "timestamp":
		_, err := time.Parse(time.RFC3339Nano, text)
		ok = isText && err == nil
	case "match":
		ok = isText && regexp.MustCompile(rest).MatchString(text)
	case "uuid5":
		ok = text == uuid5(rest)
	default:
		_, isNumber := got.(json.Number)
		ok = (isText || isNumber) && fmt.Sprint(got) == want
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("is %#v, want %s", got, want)
}

// uuid5 is the UUID of version 5 of a name in the contract's namespace (RFC 9562).
func uuid5(name string) string {
	space, err := hex.DecodeString(namespace)
	if err != nil {
		panic(err)
	}
	sum := sha1.Sum(append(space, name...)) //nolint:gosec // no secret depends on it
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x50, u[8]&0x3f|0x80
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
