package jira

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzQuoted: no value can end its string.
func FuzzQuoted(f *testing.F) {
	for _, seed := range []string{"", "invoice-7721", `a" OR project = "X`, `\`, `\"`, `a\\" OR labels = "b`, "line\nend", "tab\t", "\x00\x7f\u2028", "\xff\xfe", "𝒳", `"))(("`, `' OR 1=1`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		text := quoted(value)
		if !utf8.ValidString(text) || len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
			t.Fatalf("%q is no string", text)
		}
		inner := text[1 : len(text)-1]
		var back strings.Builder
		for len(inner) > 0 {
			r, size := utf8.DecodeRuneInString(inner)
			switch {
			case r == '"' || r < ' ':
				t.Fatalf("%q: %q is unquoted in it", text, r)
			case r != '\\':
				back.WriteRune(r)
				inner = inner[size:]
			case strings.HasPrefix(inner, `\u`):
				code := rune(0)
				for _, digit := range inner[2:6] {
					code = code<<4 + rune(strings.IndexRune("0123456789abcdef", digit))
				}
				back.WriteRune(code)
				inner = inner[6:]
			case inner[1] == '"' || inner[1] == '\\':
				back.WriteByte(inner[1])
				inner = inner[2:]
			default:
				t.Fatalf("%q: an escape that JQL does not know", text)
			}
		}
		if want := strings.ToValidUTF8(value, "\ufffd"); back.String() != want {
			t.Errorf("%q comes back as %q, want %q", text, back.String(), want)
		}
	})
}

func TestShow(t *testing.T) {
	doc := func(content ...any) map[string]any {
		return map[string]any{"type": "doc", "version": 1, "content": content}
	}
	text := func(s string) any { return map[string]any{"type": "text", "text": s} }
	block := func(kind string, content ...any) any { return map[string]any{"type": kind, "content": content} }
	deep := block("paragraph", text("deep"))
	for range maxDocument + 1 {
		deep = block("panel", deep)
	}
	cases := map[string]struct {
		field  string
		value  any
		d      Deployment
		want   any
		reason string
	}{
		"adf":              {"description", doc(block("paragraph", text("a"), text("b")), block("heading", text("c"))), Cloud, "ab\nc", "a line for each block"},
		"adf break":        {"description", doc(block("paragraph", text("a"), map[string]any{"type": "hardBreak"}, text("b"))), Cloud, "a\nb", ""},
		"adf mention":      {"customfield_1", doc(block("paragraph", map[string]any{"type": "mention", "attrs": map[string]any{"text": "@Ada"}})), Cloud, "@Ada", "custom fields too"},
		"adf picture":      {"description", doc(block("paragraph", text("a")), block("mediaSingle", map[string]any{"type": "media"})), Cloud, doc(block("paragraph", text("a")), block("mediaSingle", map[string]any{"type": "media"})), "text cannot stand for it"},
		"adf date":         {"description", doc(block("paragraph", text("due "), map[string]any{"type": "date", "attrs": map[string]any{"timestamp": "1"}})), Cloud, doc(block("paragraph", text("due "), map[string]any{"type": "date", "attrs": map[string]any{"timestamp": "1"}})), "nor for this"},
		"adf table":        {"description", doc(block("table", block("tableRow", block("tableCell"), block("tableCell", block("paragraph", text("a")))))), Cloud, "a", "an empty cell is nothing that is missing"},
		"adf empty":        {"description", doc(), Cloud, "", ""},
		"wiki":             {"description", "*bold*", Cloud, "*bold*", "unchanged"},
		"null":             {"description", nil, Cloud, nil, "null is null"},
		"user":             {"assignee", map[string]any{"accountId": "5b", "name": "ada"}, Cloud, "5b", "by account ID"},
		"user there":       {"assignee", map[string]any{"accountId": "5b", "name": "ada"}, DataCenter, "ada", "by name"},
		"names":            {"components", []any{map[string]any{"name": "db"}}, Cloud, []any{"db"}, ""},
		"parent":           {"parent", map[string]any{"id": "1", "key": "OPS-1"}, Cloud, "OPS-1", ""},
		"time":             {"created", "2026-01-02T03:04:05.000+0000", Cloud, "2026-01-02T03:04:05Z", "the offset without a colon"},
		"time with offset": {"created", "2026-01-02T03:04:05.120+0130", Cloud, "2026-01-02T01:34:05.12Z", ""},
		"time with Z":      {"updated", "2026-01-02T03:04:05Z", Cloud, "2026-01-02T03:04:05Z", "the library cannot parse it"},
		"date":             {"duedate", "2026-01-02", Cloud, "2026-01-02", "no time of day comes to it"},
		"another shape":    {"priority", "High", Cloud, "High", "unchanged"},
		"an option":        {"customfield_2", map[string]any{"value": "x"}, Cloud, map[string]any{"value": "x"}, "no document"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := show(c.field, c.value, c.d)
			if !cmp.Equal(got, c.want) {
				t.Errorf("%#v, want %#v: %s", got, c.want, c.reason)
			}
		})
	}
	if got, isText := show("description", doc(deep), Cloud).(string); isText {
		t.Errorf("a document that is too deep is shown as %q: half of it must not look like the whole", got)
	}
}
