package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/wire"
)

// namedFile is a declaration whose account names the members of the key and of the stamp.
var namedFile = strings.NewReplacer(
	"parameters:\n", `parameters:
  key_field: {pattern: '[^0](.|\n)*', about: the field of the key, default: Order Ref}
  stamp_field: {pattern: '(.|\n)+', about: the field of the stamp, example: Mark}
`,
	`sku: "{key.sku}", stamp: "{stamp}"`, `"{param.key_field}": "{key.sku}", "{param.stamp_field}": "{stamp}"`,
	`query: {sku: "{key.sku}"}`, `query: {field: "{param.key_field}", is: "{key.sku}"}`,
	"stamp: {path: $.stamp}", `stamp: {path: "$['{param.stamp_field}']"}`,
	`fields: {"...": $}`, `fields: {"...": $, sku: "$['{param.key_field}']"}`,
).Replace(itemsFile("", plainRead))

// namedBy connects it for an account, with a destination that finds by the field that it is asked for.
func namedBy(t *testing.T, key, stamp string) (c *rest.Connector, made *[]map[string]any, err error) {
	t.Helper()
	d, err := rest.Load([]byte(namedFile), "named.yaml")
	if err != nil {
		t.Fatal(err)
	}
	made = &[]map[string]any{{"id": "i-0", "properties": "of another actor", "a": map[string]any{"b": "A-1"}, "*": "B-2"}}
	c, err = rest.New(d, rest.Options{
		Parameters: map[string]string{"key_field": key, "stamp_field": stamp}, Secrets: secrets(map[string]string{"token": "hunter2"}),
		Transport: wire.Transport(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				var o map[string]any
				if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
					t.Error(err)
				}
				o["id"] = "i-1"
				*made = append(*made, o)
				says(201, `{"id":"i-1"}`)(rw, r)
				return
			}
			found := []any{}
			for _, o := range *made {
				if o[r.URL.Query().Get("field")] == r.URL.Query().Get("is") {
					found = append(found, o)
				}
			}
			text, _ := json.Marshal(map[string]any{"items": found})
			says(200, string(text))(rw, r)
		}), nil),
	})
	return c, made, err
}

// TestNamesOfAnAccount: a value is one name, whatever is in it, in requests and in paths.
func TestNamesOfAnAccount(t *testing.T) {
	for _, name := range []string{
		"Order Ref", "plain", "it's", `a'].b['c`, `"`, `\`, `\'`, `\u0061`, "a.b", "a[*]", "*", "a']..*", "[?@.x]", "$", "@", "{param.key_field}", "'{param.stamp_field}'", "{", "größe", "名前", "😀", " blank ",
	} {
		c, made, err := namedBy(t, name, "Mark'")
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		in := item(intent.Create)
		if _, err := c.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1}); err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		sent := (*made)[1]
		if sent[name] != "A-1" || sent["Mark'"] != in.Stamp() || len(sent) != 4 {
			t.Errorf("%q: sent %v", name, sent)
		}
		seen, err := c.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
		if err != nil || len(seen.Records) != 1 || seen.Records[0].Stamp != in.Stamp() || seen.Records[0].Fields["sku"] != "A-1" {
			t.Errorf("%q: read %v, %v", name, seen.Records, err)
		}
	}
}

// TestNamesThatAreRefused: the error names the parameter.
func TestNamesThatAreRefused(t *testing.T) {
	for name, tt := range map[string]struct{ reason, key, stamp, want string }{
		"empty":     {"the whole record would be the value", "", "Mark", "Parameters.key_field is missing"},
		"control":   {"no name has any", "a\nb", "Mark", "Parameters.key_field does not match"},
		"no UTF-8":  {"it would be another name", "a\xff", "Mark", "Parameters.key_field does not match"},
		"a pattern": {"of the declaration", "0", "Mark", "Parameters.key_field does not match"},
		"twice":     {"the stamp would be the key", "Mark", "Mark", `the parameters stamp_field and key_field both name "Mark"; want a member for each`},
		"the ref":   {"the id would be the key", "id", "Mark", `the parameter key_field names "id", which the declaration names itself beside it; want another member`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := namedBy(t, tt.key, tt.stamp); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want %s: %s", err, tt.want, tt.reason)
			}
		})
	}
}

// TestNamesNeedSomethingToBeChecked: a path is checked with the default or the example.
func TestNamesNeedSomethingToBeChecked(t *testing.T) {
	const want = "record.stamp.path: {param.stamp_field} names a member, and the parameter has neither default nor example; want one of them"
	if got := loadProblems(t, strings.Replace(namedFile, ", example: Mark", "", 1)); !strings.Contains(got, want) || strings.Count(got, "neither default") != 1 {
		t.Errorf("got\n%s\nwant %s, once", got, want)
	}
}

// TestNamesWinOverWhatIsSpread: an intent changes neither the key nor the stamp by naming the members of
// the account, and the member of the key is not sent under the name that it has in intents.
func TestNamesWinOverWhatIsSpread(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		expect intent.Fields
		want   string
	}{
		"the account's": {"the key and the stamp are", intent.Fields{"No": "B-2", "Mark": "none", "title": "one"}, ""},
		"the key again": {"an undo expects it", intent.Fields{"sku": "A-1"}, ""},
		"another key":   {"it would be sent as sku", intent.Fields{"sku": "B-2"}, `/expect/sku: is called "No" in this account; want it under that name`},
	} {
		t.Run(name, func(t *testing.T) {
			c, made, err := namedBy(t, "No", "Mark")
			if err != nil {
				t.Fatal(err)
			}
			in := item(intent.Create)
			in.Expect = tt.expect
			_, err = c.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1})
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) || len(*made) != 1 {
					t.Errorf("%v, %d records; want %s", err, len(*made), tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sent := (*made)[1]
			if _, own := sent["sku"]; own || sent["No"] != "A-1" || sent["Mark"] != in.Stamp() {
				t.Errorf("sent %v: %s", sent, tt.reason)
			}
		})
	}
}

// TestNamesByDefault: without other names the declaration is the one that was loaded.
func TestNamesByDefault(t *testing.T) {
	d, err := rest.Load([]byte(namedFile), "named.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for stamp, same := range map[string]bool{"Mark": true, "Other": false} {
		c, err := rest.New(d, rest.Options{Parameters: map[string]string{"stamp_field": stamp}, Secrets: secrets(map[string]string{"token": "hunter2"})})
		if err != nil {
			t.Fatal(err)
		}
		if (c.Declaration() == d) != same {
			t.Errorf("%s: the declaration is the loaded one: %t; want %t", stamp, !same, same)
		}
		if got := c.Declaration().Place("item", "sku"); got != "$['Order Ref']" {
			t.Errorf("%s: sku is at %s", stamp, got)
		}
	}
}

// TestNamesInXML: the path that is used says of which type an element is.
func TestNamesInXML(t *testing.T) {
	answersOf(t, strings.Replace(xmlFile, "title: $.title", `title: "$['{param.shop}']"`, 1), map[string]answerCase{
		"named": {reason: "its attributes do not make an object of it", body: xmlOne(`<main lang="en">one</main>`), records: 1, strong: true, fields: map[string]any{"title": "one"}},
		"twice": {reason: "which of them", body: xmlOne("<main>one</main><main>two</main>"), records: -1},
	})
}
