package declared_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/declared"
)

func TestSame(t *testing.T) {
	n := func(text string) json.Number { return json.Number(text) }
	for name, c := range map[string]struct {
		reason string
		a, b   any
		want   bool
	}{
		"by value":       {"1.0 and 1 are one number", n("1.0"), n("10e-1"), true},
		"near":           {"no double tells them apart", n("9007199254740993"), n("9007199254740992"), false},
		"immense":        {"it is not computed", n("1e999999999"), n("10e999999998"), false},
		"immense, alike": {"its text is enough", n("1e999999999"), n("1e999999999"), true},
		"long":           {"it is not computed", n("1" + strings.Repeat("0", 500)), n("1" + strings.Repeat("0", 500) + ".0"), false},
		"text":           {"a number is no text", n("1"), "1", false},
		"null":           {"null is a value", nil, nil, true},
		"null and false": {"they are two", nil, false, false},
		"below":          {"numbers in objects and lists", map[string]any{"a": []any{n("1")}}, map[string]any{"a": []any{n("1.0")}}, true},
		"another member": {"null is not missing", map[string]any{"a": nil}, map[string]any{"b": nil}, false},
		"order":          {"a list has one", []any{"a", "b"}, []any{"b", "a"}, false},
		"shorter":        {"one is missing", []any{"a", "b"}, []any{"a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if declared.Same(c.a, c.b) != c.want || declared.Same(c.b, c.a) != c.want {
				t.Errorf("want %t: %s", c.want, c.reason)
			}
		})
	}
}
