package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/report"
)

// hostile is text with which a destination would like to rule a terminal.
const hostile = "\x1b[2J\x1b]0;owned\x07 ok\r\nnext\u202egnirts\u2066x\u200bzero\u0085c1\u009b31m\ufeff\u2028\U000e0041"

func TestSafe(t *testing.T) {
	tests := map[string]struct{ reason, in, want string }{
		"plain":         {"what is fit stays", `Grüße, 世界 "x" \n 🙂`, `Grüße, 世界 "x" \n 🙂`},
		"escape":        {"no sequence reaches the terminal", "\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		"C1":            {"these begin sequences too", "\u009b31m", `\u009b31m`},
		"bidi":          {"text must not be reversed", "a\u202eb\u2069c\u200f", `a\u202eb\u2069c\u200f`},
		"invisible":     {"what cannot be seen is written out", "a\u200bb\ufeffc\U000e0041", `a\u200bb\ufeffc\U000e0041`},
		"line ends":     {"one line stays one", "a\r\nb\tc\u2028d", `a\x0d\nb\tc\u2028d`},
		"broken UTF-8":  {"bytes that are no text", "a\xffb\xc0\xaf", `a\xffb\xc0\xaf`},
		"replacement":   {"a real replacement character is one", "a\ufffdb", "a\ufffdb"},
		"nothing":       {"empty", "", ""},
		"delete":        {"0x7f is a control character", "a\x7f", `a\x7f`},
		"joined emoji":  {"a joiner is invisible", "👩\u200d💻", `👩\u200d💻`},
		"no-break":      {"only the plain blank is a blank", "a\u00a0b", `a\u00a0b`},
		"private use":   {"what it shows is unknown", "a\ue000", `a\ue000`},
		"combined mark": {"marks are part of letters", "e\u0301", "e\u0301"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := report.Safe(tt.in); got != tt.want {
				t.Errorf("%s: Safe(%q) = %q, want %q", tt.reason, tt.in, got, tt.want)
			}
		})
	}
}

func FuzzSafe(f *testing.F) {
	f.Add(hostile)
	f.Add("a\xff\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := report.Safe(s)
		if i := strings.IndexFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("Safe(%q) = %q, unfit at %d", s, got, i)
		}
		if again := report.Safe(got); again != got {
			t.Errorf("Safe of Safe text %q is %q", got, again)
		}
	})
}

func TestJSONIsFitAndTheSameValue(t *testing.T) {
	in := map[string]string{hostile: hostile, "<a>&": "\U0001f642 Grüße"}
	var b bytes.Buffer
	if err := report.JSON(&b, in); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("%q in %q", r, b.String())
		}
	}
	var out map[string]string
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("another value (-in +out):\n%s", diff)
	}
	if !strings.Contains(b.String(), "<a>&") {
		t.Errorf("plain text is escaped for nothing: %s", b.String())
	}
}
