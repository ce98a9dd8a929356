package visible_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/readback-go/readback/internal/visible"
)

// tags is a text in letters that no screen shows.
func tags(s string) string {
	return strings.Map(func(r rune) rune { return 0xe0000 + r }, s)
}

// TestTextInWhichEverythingIsSeen: package report tests the characters that are no print
// at all; these are of those that Unicode calls printable.
func TestTextInWhichEverythingIsSeen(t *testing.T) {
	for _, hidden := range []string{"\ufe0f", "\U000e0101", "\u115f", "\u3164", "\uffa0", "\u034f", "\u17b4", "\u2800", "\u180b", "\U000e0041"} {
		got := visible.Text("a" + hidden + "b")
		if strings.Contains(got, hidden) || !strings.HasPrefix(got, `a\`) || !strings.HasSuffix(got, "b") {
			t.Errorf("%+q passes as %q", hidden, got)
		}
	}
	asJSON := func(s string) string { return string(visible.JSON([]byte(`"` + s + `"`))) }
	for name, clean := range map[string]func(string) string{"Text": visible.Text, "Lines": visible.Lines, "Data": visible.Data, "JSON": asJSON} {
		if got := clean("a" + strings.Repeat("\u0336", 500)); strings.Contains(got, strings.Repeat("\u0336", 20)) || !strings.Contains(got, `\u0336`) {
			t.Errorf("%s lets a flood of marks pass: %.80q", name, got)
		}
	}
	if got := visible.Lines("a\r\nb\u200b\nc\x1b"); got != "a\nb\\u200b\nc\\x1b" {
		t.Errorf("lines are %q", got)
	}
	for in, want := range map[string]string{"": "", "abcdef": "abc…", "abcd": "abcd", "éééé": "éééé", "\u200b": `\u2…`, strings.Repeat("\r\n", 9): `\x0…`} {
		if got := visible.Clip(in, 4); got != want {
			t.Errorf("of at most 4 characters %q is %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"": "", "abcd": "abcd", "abcde": "a…", "é123": "…", "\x1b": "\x1b"} {
		if got := visible.Cut(in, 4); got != want {
			t.Errorf("of at most 4 bytes %q is %q, want %q", in, got, want)
		}
	}
	if got := visible.ClipLines(strings.Repeat("\r\n", 9), 4); got != "\n\n\n…" {
		t.Errorf("of at most 4 characters the lines are %q", got)
	}
}

// TestDataKeepsWhatLanguagesNeed: what a tool reads is handed on as it is, but for texts
// that cannot be seen.
func TestDataKeepsWhatLanguagesNeed(t *testing.T) {
	for name, text := range map[string]string{
		"lines and tabs": "a\r\n\tb\n", "blanks": "a\u00a0b\u2009c\u3000d", "Persian": "می\u200cخواهم", "Hindi": "क्\u200dष", "Hebrew": "a\u200f! b", "a hyphen": "Donau\u00addampf",
		"a family": "👩\u200d💻", "a heart": "❤\ufe0f", "a rainbow": "🏳\ufe0f\u200d🌈", "England": "🏴" + tags("gbeng") + "\U000e007f", "a variant": "葛\U000e0100",
		"the mark of a file": "\ufeffusing System;", "an icon": "\ue0b0", "a new emoji": "\U0001fae9", "keys": "1\ufe0f\u20e3*\ufe0f\u20e3\u203c\ufe0f\u2139\ufe0f", "Mongolian": "\u1820\u180b",
		"verses": "\u05d1\u05bc\u05b0\u05a9\u0591", "mixed": "PDF\u200f \u05d0 x\u200e", "plain": `"<é\n`,
	} {
		if got := visible.Data(text); got != text {
			t.Errorf("%s: %+q becomes %+q", name, text, got)
		}
	}
	for name, text := range map[string]string{
		"tags": "ok" + tags("pay"), "a long flag": "🏴" + tags("gbengpayall") + "\U000e007f", "selectors": "a\ufe0f\ufe0fb", "joiners": "a\u200d\u200db", "overrides": "a\u202eb",
		"isolates": "a\u2066b", "zero width": "a\u200bb", "a mark within": "a\ufeffb", "escape": "\x1b[2J", "C1": "a\u009bb", "separator": "a\u2028b", "a noncharacter": "a\ufffeb",
		"bytes": "a\xffb", "a joiner without letters": "\u200d", "braille": "a\u2800b", "a selector alone": "\ufe0fa",
		"a text behind letters": "o\U000e0160k\U000e0151", "a text behind blanks": "a \ufe02b \ufe03c", "a text between letters": "o\u200ck\u200ea\u034fy", "a flood of marks": "a" + strings.Repeat("\u0301\u034f", 50),
	} {
		if got := visible.Data(text); got == text || visible.Data(got) != got {
			t.Errorf("%s: %+q becomes %+q, and that %+q", name, text, got, visible.Data(got))
		}
	}
}

func TestDocumentsKeepAllButTexts(t *testing.T) {
	const plain = `{"a":[9007199254740993,1.250,true,null,"<\"é\\n\u00e9"], "b" : {}}`
	if got := visible.Document([]byte(plain), visible.Text); string(got) != plain {
		t.Errorf("%s", got)
	}
	got := visible.Document([]byte("{\"a\u200b\":\"\\u200b\\ud800\u202e\",\"n\":1.0}"), visible.Text)
	if want := `{"a\\u200b":"\\u200b` + "\ufffd" + `\\u202e","n":1.0}`; string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := visible.Document([]byte("no JSON\x1b"), visible.Text); string(got) != `"no JSON\\x1b"` {
		t.Errorf("%s", got)
	}
}

func TestNamesThatArePlain(t *testing.T) {
	for _, ref := range []string{"10042", "OPS-7", "3:42", "ord_000001", "a/b/c.txt", "#12", "a@example.org", "pi_3Nx+=", "key-0f~1", strings.Repeat("a", visible.MaxRef)} {
		if !visible.IsRef(ref) {
			t.Errorf("the ref %q is not plain", ref)
		}
	}
	for _, ref := range []string{"", "a b", "a\n", "a\u200b", "-rf", `["a","b"]`, "<a@b>", "a](b", "`a`", "a|b", "é", `a"b`, "a;b", strings.Repeat("a", visible.MaxRef+1)} {
		if visible.IsRef(ref) {
			t.Errorf("the ref %q is plain", ref)
		}
	}
	for _, url := range []string{"https://example.org/a/b?c=d&e=%20#f", "http://localhost:8080/x", "https://example.org"} {
		if !visible.IsURL(url) {
			t.Errorf("the address %q is not plain", url)
		}
	}
	for _, url := range []string{"", "javascript:alert(1)", "ftp://example.org/", "//example.org", "https://", "https://user@example.org/", "https://user:pw@example.org/", "https://exämple.org/",
		"https://example.org/a b", "https://example.org/a)b", "https://example.org/<a>", "https://example.org/a\n", "https://example.org/%zz", "https://example.org/" + strings.Repeat("a", visible.MaxURL)} {
		if visible.IsURL(url) {
			t.Errorf("the address %q is plain", url)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"a\u200d\u200cb", "\U0001F3F4" + tags("gbeng") + "\U000e007f", "\xff\u202e\r\n", `"},"x":"`, "\ufe0f\u200d", "\ufeff\ufeffa", "a" + strings.Repeat("\u0301", 12) + "\u200d\u0301\U000e0100", "葛\U000e0100a\u200cb", "\x8d\u200c0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, clean := range map[string]func(string) string{"Text": visible.Text, "Lines": visible.Lines, "Data": visible.Data,
			"Clip": func(s string) string { return visible.Clip(s, 9) }, "ClipLines": func(s string) string { return visible.ClipLines(s, 9) }} {
			got := clean(s)
			if again := clean(got); again != got || !utf8.ValidString(got) {
				t.Errorf("%s of %q is %q, and of that %q", name, s, got, again)
			}
			if at := strings.IndexFunc(got, func(r rune) bool { return visible.Hidden(r) && r != '\n' }); at >= 0 && name != "Data" {
				t.Errorf("%s of %q is %q", name, s, got)
			}
			if strings.HasPrefix(name, "Clip") && utf8.RuneCountInString(got) > 9 {
				t.Errorf("%s of %q is %q", name, s, got)
			}
		}
		document, err := json.Marshal(map[string]string{s: s})
		if err != nil {
			t.Fatal(err)
		}
		var was, is map[string]string
		if json.Unmarshal(document, &was) != nil || json.Unmarshal(visible.JSON(document), &is) != nil || len(was) != 1 || len(is) != 1 {
			t.Fatalf("%s and %s", document, visible.JSON(document))
		}
		for name := range was {
			if is[name] != was[name] {
				t.Errorf("%q is another value: %q", was, is)
			}
		}
		if clean := visible.Document(document, visible.Text); !json.Valid(clean) || strings.ContainsFunc(string(clean), visible.Hidden) {
			t.Errorf("%s is no document in which everything is seen", clean)
		}
	})
}
