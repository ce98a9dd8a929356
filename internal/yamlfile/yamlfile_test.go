package yamlfile_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/readback-go/readback/internal/yamlfile"
)

type inner struct {
	At    yamlfile.Place
	Path  yamlfile.Text  `yaml:"path"`
	Count int            `yaml:"count"`
	Wait  yamlfile.Span  `yaml:"wait"`
	Last  yamlfile.Bound `yaml:"last"`
}

type outer struct {
	Name  string            `yaml:"name"`
	On    bool              `yaml:"on"`
	Words []yamlfile.Text   `yaml:"words"`
	Parts map[string]*inner `yaml:"parts"`
	List  []inner           `yaml:"list"`
	Tree  yamlfile.Node     `yaml:"tree"`
	Size  int               `yaml:"size"`
	Brief map[string]brief  `yaml:"brief"`
}

// brief is written as a path or with members.
type brief struct {
	At   yamlfile.Place
	Path yamlfile.Text `yaml:",short"`
	Name yamlfile.Text `yaml:"name"`
}

func fill(text string) (outer, []string) {
	var r yamlfile.Reader
	var o outer
	if n, ok := r.Parse([]byte(text)); ok {
		r.Fill(n, "", &o)
	}
	yamlfile.Sort(r.Problems)
	var all []string
	for _, p := range r.Problems {
		all = append(all, p.String())
	}
	return o, all
}

func TestFill(t *testing.T) {
	got, problems := fill(`
name: a
on: true
words: one
parts:
  x: {path: /a, count: 3, wait: 2s, last: unknown}
list:
  - path: b
brief:
  x: /c
  y: {name: d}
`)
	if len(problems) > 0 {
		t.Fatalf("problems %q in a file without any", problems)
	}
	want := outer{
		Name: "a", On: true,
		Words: []yamlfile.Text{{Value: "one", Place: yamlfile.Place{Line: 4, Field: "words"}}},
		Parts: map[string]*inner{"x": {
			At:   yamlfile.Place{Line: 6, Field: "parts.x"},
			Path: yamlfile.Text{Value: "/a", Place: yamlfile.Place{Line: 6, Field: "parts.x.path"}}, Count: 3,
			Wait: yamlfile.Span(2 * time.Second), Last: yamlfile.Bound{Set: true},
		}},
		List: []inner{{
			At:   yamlfile.Place{Line: 8, Field: "list[0]"},
			Path: yamlfile.Text{Value: "b", Place: yamlfile.Place{Line: 8, Field: "list[0].path"}},
		}},
		Brief: map[string]brief{
			"x": {At: yamlfile.Place{Line: 10, Field: "brief.x"}, Path: yamlfile.Text{Value: "/c", Place: yamlfile.Place{Line: 10, Field: "brief.x"}}},
			"y": {At: yamlfile.Place{Line: 11, Field: "brief.y"}, Name: yamlfile.Text{Value: "d", Place: yamlfile.Place{Line: 11, Field: "brief.y.name"}}},
		},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(outer{}, "Tree")); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestByteOrderMark(t *testing.T) {
	if got, problems := fill("\ufeffname: a\n"); got.Name != "a" || len(problems) > 0 {
		t.Errorf("a file that begins with a byte order mark: %q, %v", got.Name, problems)
	}
}

func TestFillListsEveryProblem(t *testing.T) {
	const secret = "hunter2"
	tests := map[string]struct {
		reason string
		text   string
		want   []string
	}{
		"all at once": {"one run shows all, at any depth",
			"nme: x\nname: [a]\non: maybe\nparts:\n  x: {path: '', cuont: 1, count: -1}\n  y: 7\nlist: {a: b}\n",
			[]string{":1: nme: is not known; did you mean name?", ":2: name: is a list; want a single value",
				":3: on: has the wrong type; want true or false", ":5: parts.x.path: is empty; want text",
				":5: parts.x.cuont: is not known; did you mean count?", ":5: parts.x.count: has the wrong type; want a whole number",
				":6: parts.y: is a single value; want names with values below them", ":7: list: is a mapping; want a list"}},
		"unknown":   {"what is known", "parts:\n  x: {zzz: 1}\n", []string{":2: parts.x.zzz: is not known; want one of path, count, wait, last"}},
		"brief":     {"a short form is text, and no member", "brief:\n  x: [a]\n  y: {path: b}\n", []string{":2: brief.x: is a list; want text", ":3: brief.y.path: is not known; want one of name"}},
		"empty":     {"an empty value would pass for the default", "name:\n", []string{":1: name: is empty; want a value, or the line taken out"}},
		"secret":    {"a secret is not repeated", "token: " + secret + "\n", []string{":1: token: a secret does not belong into this file; take it out here"}},
		"nothing":   {"says nothing", "# a\n", []string{": is empty; want a file that says something"}},
		"duration":  {"60 of what", "list:\n  - wait: 60\n", []string{`:2: list[0].wait: "60" is no duration; want one such as 10s`}},
		"anchor":    {"text from another place", "parts:\n  x: &a {path: b}\n  y: *a\n", []string{":2: parts.x: is an anchor or alias (& or *), which is not taken; want names with values below them", ":3: parts.y: is an anchor or alias (& or *), which is not taken; want names with values below them"}},
		"tag":       {"tags change types", "name: !!str 5\n", []string{":1: name: is a tag (!), which is not taken; want a single value"}},
		"bad YAML":  {"no piece of the file is shown", "name: \"" + secret + "\n", []string{":1: could not find end character of double-quoted text"}},
		"twice":     {"the second would win silently", "name: a\nname: b\n", []string{`:2: mapping key "name" already defined at [1:1]`}},
		"not UTF-8": {"the parser would put something else there", "on: true\nname: \xff\n", []string{":2: is not UTF-8; want the file saved as UTF-8"}},
		"UTF-16":    {"the parser would take it for one word", "\xff\xfen\x00a\x00", []string{":1: is not UTF-8; want the file saved as UTF-8"}},
		"long name": {"its name would be a question mark", "? name\n: a\n", []string{":1: has a name that is written with ?, a tag, an anchor or an alias; want the plain name"}},
		"tag name":  {"its name would be the tag", "!!str name: a\n", []string{":1: has a name that is written with ?, a tag, an anchor or an alias; want the plain name"}},
		"two files": {"the second would be ignored", "name: a\n---\nname: b\n", []string{":3: a second document begins here; want one"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, got := fill(tt.text)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, d)
			}
			if strings.Contains(strings.Join(got, "\n"), secret) {
				t.Errorf("the secret is in a problem: %q", got)
			}
		})
	}
}

func TestScalar(t *testing.T) {
	tests := map[string]struct {
		want any
		bad  bool
	}{
		"null":          {nil, false},
		"true":          {true, false},
		"12.50":         {json.Number("12.50"), false},
		"-0":            {json.Number("-0"), false},
		"0x1f":          {nil, true},
		".5":            {nil, true},
		"1_000":         {nil, true},
		".inf":          {nil, true},
		"'5'":           {"5", false},
		"a b":           {"a b", false},
		"|\n  a\n  b\n": {"a\nb\n", false},
	}
	for text, tt := range tests {
		t.Run(text, func(t *testing.T) {
			o, problems := fill("tree: " + text)
			var r yamlfile.Reader
			got, ok := any(nil), true
			if len(problems) == 0 {
				got, ok = r.Scalar(o.Tree, "tree")
			} else if text != "null" {
				t.Fatal(problems)
			}
			if ok == tt.bad || got != tt.want {
				t.Errorf("got %#v (%t), want %#v", got, ok, tt.want)
			}
		})
	}
}

func TestDepthIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"brackets": "tree: " + strings.Repeat("[", 200_000),
		"braces":   "tree: " + strings.Repeat("{a: ", 200_000),
		"dashes":   "tree:\n" + strings.Repeat("- ", 200_000),
		"indent":   "tree:\n" + strings.Repeat(" ", 200_000) + "a",
	} {
		t.Run(name, func(t *testing.T) {
			_, got := fill(text)
			if len(got) != 1 || !strings.Contains(got[0], "nested more than 1000 deep") {
				t.Errorf("deep nesting gives %d problems", len(got))
			}
		})
	}
}

func TestReadBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := yamlfile.ReadBounded(path, 5); err != nil || string(text) != "12345" {
		t.Errorf("five of five bytes: %q, %v", text, err)
	}
	if _, err := yamlfile.ReadBounded(path, 4); err == nil {
		t.Error("a file that is too long was read")
	}
}
