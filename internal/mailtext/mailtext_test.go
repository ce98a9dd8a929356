package mailtext_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/emersion/go-message"
	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/mailtext"
)

// said is a problem as a connector would say it of the field "field".
func said(p *mailtext.Problem) string {
	if p == nil {
		return ""
	}
	return "field" + p.At + " " + p.Is + "; want " + p.Want
}

func TestAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		v      any
		line   string // "" where it is refused
		reason string
	}{
		"plain":           {"a@example.org", "<a@example.org>", "the usual one"},
		"with a name":     {"Alice A <a@example.org>", `"Alice A" <a@example.org>`, "as records show it"},
		"name beyond":     {"Chloé <c@example.org>", "=?utf-8?q?Chlo=C3=A9?= <c@example.org>", "headers are ASCII"},
		"name in quotes":  {`"Alice A" <a@example.org>`, "", "the quotes would stand in the name"},
		"brackets alone":  {"<a@example.org>", "", "records show it without"},
		"two in one":      {"a@b.org, b@c.org", `<"a@b.org, b"@c.org>`, "headers have it in quotes, as one"},
		"a header more":   {"a@example.org\r\nBcc: b@example.org", "", "would be another header"},
		"name alone":      {"Alice", "", "nobody can be reached there"},
		"too long":        {strings.Repeat("a", mailtext.MaxHeaderText) + "@b", "", "longer than a line"},
		"number":          {1, "", "no text"},
		"not valid UTF-8": {"\xff <a@example.org>", "", "would be read back as something else"},
	} {
		t.Run(name, func(t *testing.T) {
			a, p := mailtext.AddressOf(tc.v)
			if (p == nil) != (tc.line != "") || a.Line != tc.line {
				t.Fatalf("%v: the line is %q (%s), want %q: %s", tc.v, a.Line, said(p), tc.line, tc.reason)
			}
			if p == nil && a.String() != tc.v {
				t.Errorf("shown as %q, taken as %q", a, tc.v)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	two := []any{"a@example.org", "B <b@example.org>"}
	all, p := mailtext.Addresses(two, 2, mailtext.AddressOf)
	if got, want := mailtext.Joined(all), "<a@example.org>,\r\n \"B\" <b@example.org>"; p != nil || got != want {
		t.Errorf("%q (%s), want %q", got, said(p), want)
	}
	for name, tc := range map[string]struct {
		v            any
		want, reason string
	}{
		"none":       {[]any{}, "field is not a list", "the field is left out then"},
		"too many":   {append(two, "c@example.org"), "field is not a list of addresses; want 1 to 2 of them", "two were allowed"},
		"one alone":  {"a@example.org", "field is not a list", "a list is read back"},
		"second bad": {[]any{"a@example.org", "b"}, `field/1 is "b"; want "a@example.org" or`, "the item is named"},
	} {
		if _, p := mailtext.Addresses(tc.v, 2, mailtext.AddressOf); !strings.HasPrefix(said(p), tc.want) {
			t.Errorf("%s: %q, want %q: %s", name, said(p), tc.want, tc.reason)
		}
	}
}

func TestSubjectAndText(t *testing.T) {
	const header, ends, text = "field cannot stand in a header", "field has a CR that ends no line", "field is not text"
	strict := func(v any) (string, *mailtext.Problem) { return mailtext.Subject(v, mailtext.IsControl) }
	loose := func(v any) (string, *mailtext.Problem) { return mailtext.Subject(v, mailtext.EndsLine) }
	for name, tc := range map[string]struct {
		take         func(any) (string, *mailtext.Problem)
		v            any
		want, reason string
	}{
		"subject":                {strict, "Zoë  and  blanks ", "", "any text on one line"},
		"subject, empty":         {strict, "", "", "is a subject too"},
		"subject, encoded word":  {loose, "=?utf-8?q?x?=", header, "would be decoded"},
		"subject, two lines":     {loose, "a\r\nBcc: b@example.org", header, "would be another header"},
		"subject, tab":           {loose, "a\tb", "", "ends no line"},
		"subject, tab, strictly": {strict, "a\tb", header, "every control character is banned"},
		"subject, too long":      {loose, strings.Repeat("a", mailtext.MaxHeaderText+1), header, "longer than a line"},
		"subject, null":          {loose, nil, header, "no text"},
		"text":                   {mailtext.Text, "a\nb\r\nc", "", "both ends of lines"},
		"text, CR alone":         {mailtext.Text, "a\rb", ends, "mail has none"},
		"text, CR CR LF":         {mailtext.Text, "a\r\r\n", ends, "the first CR ends no line"},
		"text, not valid UTF-8":  {mailtext.Text, "\xff", text, "would be read back as something else"},
		"text, list":             {mailtext.Text, []any{"a"}, text, "no text"},
	} {
		t.Run(name, func(t *testing.T) {
			got, p := tc.take(tc.v)
			if tc.want == "" && (p != nil || got != tc.v) {
				t.Errorf("%q (%s), want it as it is: %s", got, said(p), tc.reason)
			}
			if !strings.HasPrefix(said(p), tc.want) {
				t.Errorf("%q, want %q: %s", said(p), tc.want, tc.reason)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	taken := func(lower string) *mailtext.Problem {
		if lower == "x-ours" {
			return &mailtext.Problem{Is: "is ours", Want: "nothing"}
		}
		return nil
	}
	many := map[string]any{}
	for i := range 51 {
		many[fmt.Sprintf("X-%d", i)] = "v"
	}
	for name, tc := range map[string]struct {
		v            any
		want, reason string
	}{
		"ours":            {map[string]any{"X-OURS": "v"}, "field/X-OURS is ours; want nothing", "whatever its case"},
		"blank in a name": {map[string]any{"X A": "v"}, `field has the name "X A"`, "no header has one"},
		"colon in a name": {map[string]any{"X:": "v"}, "field has the name", "would end the name"},
		"no name":         {map[string]any{"": "v"}, "field has the name", "no header goes without"},
		"long name":       {map[string]any{strings.Repeat("x", 77): "v"}, "field has the name", "no room for the colon"},
		"two lines":       {map[string]any{"X-A": "v\r\nBcc: b@example.org"}, "field/X-A cannot stand", "would be another header"},
		"beyond ASCII":    {map[string]any{"X-A": "é"}, "field/X-A cannot stand", "headers are ASCII"},
		"long":            {map[string]any{"X-A": strings.Repeat("v", mailtext.MaxHeaderText+1)}, "field/X-A cannot stand", "longer than a line"},
		"number":          {map[string]any{"X-A": 1}, "field/X-A cannot stand", "no text"},
		"too many":        {many, "field is not an object of headers; want at most 50", "fifty are allowed"},
		"list":            {[]any{}, "field is not an object", "names are missing"},
	} {
		if _, p := mailtext.Headers(tc.v, taken); !strings.HasPrefix(said(p), tc.want) {
			t.Errorf("%s: %q, want %q: %s", name, said(p), tc.want, tc.reason)
		}
	}
	got, p := mailtext.Headers(map[string]any{"X-B": "2", "X-A": "1"}, taken)
	if diff := cmp.Diff([]mailtext.Header{{Name: "X-A", Value: "1"}, {Name: "X-B", Value: "2"}}, got); p != nil || diff != "" {
		t.Errorf("in the order of their names (%s):\n%s", said(p), diff)
	}
}

func TestPrependKeepsOrderAndBlanks(t *testing.T) {
	var h message.Header
	h.Set("X-Last", "3")
	long := "a  b " + strings.Repeat("c ", 100) + "=?utf-8?q?d?= =?utf-8?q?e?="
	mailtext.Prepend(&h, []mailtext.Header{{Name: "X-First", Value: "1"}, {Name: "X-Long", Value: long}})
	var buf bytes.Buffer
	w, err := message.CreateWriter(&buf, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := "X-First: 1\r\nX-Long: " + strings.Replace(long, "?= =?", "?=\r\n =?", 1) + "\r\nX-Last: 3\r\n"
	if !strings.Contains(buf.String(), want) {
		t.Errorf("%q, want %q: only encoded words may be parted", buf.String(), want)
	}
}

func TestIsMessageID(t *testing.T) {
	for s, want := range map[string]bool{
		"<a@b>": true, "a@b": false, "<a @b>": false, "<a@b>\r\nBcc: x": false, "<<a@b>>": false, "<a@b@c>": false,
		"<" + strings.Repeat("a", mailtext.MaxHeaderText) + "@b>": false,
	} {
		if mailtext.IsMessageID(s) != want {
			t.Errorf("%q: want %v", s, want)
		}
	}
}

func TestClip(t *testing.T) {
	for s, want := range map[string]string{
		"plain":                        "plain",
		"a\r\nb\x1b\x7f":               "a  b  ",
		"\xff":                         "?",
		strings.Repeat("é", 101):       strings.Repeat("é", 98) + "…",
		"a" + strings.Repeat("é", 100): "a" + strings.Repeat("é", 98) + "…", // no half of a letter
	} {
		if got := mailtext.Clip(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
