package rest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
)

// Wrong uses of the elements of writes and logins: what is replaced in itemsFile, and a piece of each
// problem, a line each.
func TestBadWrites(t *testing.T) {
	good := itemsFile("", plainRead)
	const ref = "ref: $.id\n"
	for name, tt := range map[string]struct {
		reason, old, new, want string
	}{
		"empty refusal":   {"it says nothing", "system: Items", "system: Items\nrefusal: {}", ":5: refusal: names nothing; want at least one of code, text and request"},
		"refusal's path":  {"no path", "system: Items", "system: Items\nrefusal: {code: error.code}", ":5: refusal.code: is no JSONPath"},
		"refusal's place": {"which", "system: Items", "system: Items\nrefusal: {text: [$.a, {path: $.b, header: X}]}", "refusal.text[1].path: is not known; want one of header"},
		"refusal of none": {"neither", "system: Items", "system: Items\nrefusal: {code: {}}", "refusal.code: want a path such as $.error.message, or {header: Name}"},
		"refusal of one":  {"no header", ref, ref + "        refusal: {request: {header: 'a b'}}\n", "create.refusal.request.header: is no name of a header"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, tt.old) {
				t.Fatalf("the test replaces %q, which is not there", tt.old)
			}
			got := loadProblems(t, strings.Replace(good, tt.old, tt.new, 1))
			for _, want := range strings.Split(tt.want, "\n") {
				if !strings.Contains(got, want) {
					t.Errorf("%s: got\n%s\nwant in it %q", tt.reason, got, want)
				}
			}
		})
	}
}

// What `destination check` says of these elements, and of what can be dangerous where they are left out.
func TestWritesExplained(t *testing.T) {
	good := itemsFile("", plainRead)
	for name, tt := range map[string]struct {
		old, new string
		says     string // a piece of what is explained
		warns    string // a piece of a warning, "" for none
	}{
		"refusal": {"system: Items", "system: Items\nrefusal: {text: [$.a, {header: X-B}], request: $.id}", "A refused create is shown in the destination's words: the text from $.a, else the header X-B; the id of the request from $.id.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := rest.Load([]byte(strings.Replace(good, tt.old, tt.new, 1)), "F")
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(d.Explained("item"), "\n"); !strings.Contains(said, tt.says) {
				t.Errorf("explained:\n%s\nwant in it %q", said, tt.says)
			}
			if warned := strings.Join(d.Warnings(), "\n"); !strings.Contains(warned, tt.warns) || tt.warns == "" && warned != "" {
				t.Errorf("warnings:\n%s\nwant in it %q", warned, tt.warns)
			}
		})
	}
}

func TestARefusalInTheDestinationsWords(t *testing.T) {
	const at = "\nrefusal:\n  code: [$.fault.number, {header: X-Code}]\n  text: [\"$.fault.says\", \"$.problems[*].what\", $.message]\n  request: {header: X-Trace}\n"
	file := strings.Replace(itemsFile("", plainRead), "system: Items\n", "system: Items"+at, 1)
	long := strings.Repeat("x", 3000)
	for name, tt := range map[string]struct {
		reason string
		status int
		body   string
		want   connectors.Reply
	}{
		"first path":    {"a number is a code as well", 400, `{"fault":{"number":17,"says":"no stock"},"problems":[{"what":"b"}]}`, connectors.Reply{Code: "17", Message: "no stock", RequestID: "t-1"}},
		"later paths":   {"several values are one sentence", 422, `{"problems":[{"what":"too long"},{"what":"too late"},{"what":"too long"}]}`, connectors.Reply{Code: "E9", Message: "too long, too late", RequestID: "t-1"}},
		"not a text":    {"some APIs put an object there", 400, `{"message":{"title":["is short"]}}`, connectors.Reply{Code: "E9", Message: "title: is short", RequestID: "t-1"}},
		"of a gateway":  {"what is not there is looked for as usual", 400, `{"title":"proxy"}`, connectors.Reply{Code: "E9", Message: "proxy", RequestID: "t-1"}},
		"accepted":      {"no refusal, no words", 200, `{"id":1,"fault":{"says":"x"}}`, connectors.Reply{RequestID: "t-1"}},
		"our own login": {"it is masked", 400, `{"fault":{"number":1,"says":"Bearer hunter2 may not"}}`, connectors.Reply{Code: "1", Message: "Bearer *** may not", RequestID: "t-1"}},
		"without end":   {"it is bounded", 400, `{"fault":{"number":1,"says":"` + long + `"}}`, connectors.Reply{Code: "1", Message: long[:2048], RequestID: "t-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := items(t, file, says(tt.status, tt.body, "X-Trace", "t-1", "X-Code", "E9"))
			got, _ := c.Write(t.Context(), itemRequest(intent.Create))
			if strings.Contains(string(got.Reply.Raw), "hunter2") {
				t.Errorf("our credentials are in %s", got.Reply.Raw)
			}
			got.Reply.Raw = nil
			if diff := cmp.Diff(tt.want, got.Reply); diff != "" {
				t.Errorf("%s: %s", tt.reason, diff)
			}
		})
	}
}
