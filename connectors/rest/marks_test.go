package rest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// A list of everything proves no absence where none of its records shows what ours would be known by:
// the path may lead past it, and ours may be among them.
func TestAListThatCannotShowOurs(t *testing.T) {
	const all = "strength: strong\npath: /items\nrecords: $.items[*]"
	for name, tt := range map[string]struct {
		reason, read, fields, items string
		want                        string // in the error; "" for an absence
	}{
		"empty":             {"nothing could show it", all, `{sku: $.sku}`, ``, ""},
		"wrong path":        {"ours may be among them", all, `{sku: $.sku}`, `{"id":1,"SKU":"A-1"},{"id":2,"SKU":"B-7"}`, "none of its 2 records shows sku at $.sku, by which ours is known"},
		"one shows it":      {"the path is right", all, `{sku: $.sku}`, `{"id":1},{"id":2,"sku":"B-7"}`, ""},
		"null":              {"its place is there", all, `{sku: $.sku}`, `{"id":1,"sku":null}`, ""},
		"nested":            {"what has no value is left out of an object", all, `{sku: $.meta.sku}`, `{"id":1,"meta":{}}`, ""},
		"nested elsewhere":  {"the path is wrong", all, `{sku: $.meta.sku}`, `{"id":1,"metadata":{"sku":"A-1"}}`, "shows sku at $.meta.sku"},
		"no object":         {"nothing would be in it", all, `{sku: $.meta.sku}`, `{"id":1,"meta":null}`, "shows sku at $.meta.sku"},
		"in a text":         {"any text may lack it", all, `{sku: {path: $.body, match: "sku (.+)"}}`, `{"id":1,"body":"hello"}`, ""},
		"in another text":   {"the path is wrong", all, `{sku: {path: $.body, match: "sku (.+)"}}`, `{"id":1,"text":"sku A-1"}`, "shows sku at $.body"},
		"of a list":         {"the list is there", all, `{sku: {path: "$.skus[*]", join: ","}}`, `{"id":1,"skus":[]}`, ""},
		"of no list":        {"the path is wrong", all, `{sku: {path: "$.skus[*]", join: ","}}`, `{"id":1,"SKUs":["A-1"]}`, "shows sku at $.skus[*]"},
		"any member":        {"it has another name", all, `{"...": $}`, `{"id":1,"SKU":"A-1"}`, "shows sku, by which"},
		"any of an object":  {"the object is there", all, `{"...": $.fields}`, `{"id":1,"fields":{}}`, ""},
		"left out":          {"the declaration says that others lack it", all, "{sku: $.sku}\n      keep: {path: $.sku, exists: true}", `{"id":1}`, ""},
		"found by stamp":    {"it is there", all, `{sku: $.sku}`, `{"id":1,"stamp":"rb-x"}`, "found"},
		"by stamp":          {"a stamp is all it is known by", "STAMP", `{sku: $.sku}`, `{"id":1,"mark":"rb-x"}`, "shows the stamp at $.stamp"},
		"by another stamp":  {"the path is right", "STAMP", `{sku: $.sku}`, `{"id":1,"stamp":"rb-y"}`, ""},
		"bulk":              {"ours may be among them", "BULK", `{sku: $.sku}`, `{"id":1,"SKU":"A-1"}`, "shows sku at $.sku"},
		"bulk, one has it":  {"the path is right", "BULK", `{sku: $.sku}`, `{"id":1,"sku":"B-7"}`, ""},
		"bulk, but nothing": {"nothing could show it", "BULK", `{sku: $.sku}`, ``, ""},
	} {
		t.Run(name, func(t *testing.T) {
			file, many := itemsFile("", all), tt.read == "BULK"
			switch tt.read {
			case "STAMP":
				file = strings.Replace(file, "    record:\n", `      - {name: stamped, by: stamp, path: /items, records: "$.items[*]"}`+"\n    record:\n", 1)
				file = strings.Replace(file, "path: /items\n        records", "path: /none\n        records", 1)
			case "BULK":
				file = strings.Replace(file, "    record:\n", `      - {name: many, by: [key, stamp], bulk: 2, path: /many, query: {ids: {"[...]": "{stamp}", join: ","}}, records: "$.items[*]"}`+"\n    record:\n", 1)
			}
			file = strings.Replace(file, `{"...": $}`, tt.fields, 1)
			c := items(t, file, func(rw http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/none") {
					says(http.StatusOK, `{"items":[]}`)(rw, r)
					return
				}
				says(http.StatusOK, `{"items":[`+tt.items+`]}`)(rw, r)
			})
			q := connectors.Query{Intent: item(intent.Create), Stamp: "rb-x"}
			q.Intent.Expect = nil
			got, err := c.Read(t.Context(), q)
			if many {
				answers, whole := c.ReadMany(t.Context(), []connectors.Query{q})
				if whole != nil {
					t.Fatal(whole)
				}
				got, err = answers[0].Observation, answers[0].Err
			}
			switch {
			case tt.want == "found" && (err != nil || len(got.Records) != 1),
				tt.want == "" && (err != nil || len(got.Records) != 0):
				t.Errorf("%v, %v; want it read: %s", got.Records, err, tt.reason)
			case tt.want != "" && tt.want != "found" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, %v; want %q: %s", got.Records, err, tt.want, tt.reason)
			}
		})
	}
}

// A delete is not verified, and nothing is created, on the word of a list whose records are read past.
func TestWritesByAListThatCannotShowOurs(t *testing.T) {
	file := strings.NewReplacer(`{"...": $}`, "{sku: $.sku, title: $.title}", "    reads:\n", "      delete: {method: DELETE, path: '/items/{ref}', needs: ref}\n    reads:\n", "profile: {stamped: true}", "profile: {stamped: true, horizon: 1s, settle: 1s}").
		Replace(itemsFile("", "strength: strong\npath: /items\nrecords: $.items[*]"))
	for _, w := range []intent.WriteType{intent.Create, intent.Delete} {
		t.Run(string(w), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sends := 0
				c := items(t, file, func(rw http.ResponseWriter, r *http.Request) {
					if r.Method != http.MethodGet {
						sends++
					}
					says(http.StatusOK, `{"items":[{"id":1,"SKU":"A-1","title":"one"}]}`)(rw, r)
				})
				var reg connectors.Registry
				if err := reg.Register("items", connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
					t.Fatal(err)
				}
				e := engine.New(ledger.NewMemory(), &reg, nil)
				defer e.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				if out, _ := e.Do(ctx, item(w)); out.Status == ledger.Verified || out.Status == ledger.NotApplied || sends > 0 {
					t.Errorf("%s (%s) after %d sends; want no send, and nothing concluded", out.Status, out.Text, sends)
				}
			})
		})
	}
}

// A key that the records of an account do not show is refused, since each record would look like another one.
func TestAKeyThatIsNotShown(t *testing.T) {
	file := strings.Replace(itemsFile("", "strength: strong\npath: /items\nrecords: $.items[*]"), `{"...": $}`, "{\"...\": $}\n      only: [\"{param.shop}\", title]", 1)
	d, err := rest.Load([]byte(file), "F")
	if err != nil {
		t.Fatal(err)
	}
	for shop, refused := range map[string]bool{"sku": false, "main": true} {
		c, err := rest.New(d, rest.Options{Parameters: map[string]string{"shop": shop}, Secrets: map[string]func(context.Context) (string, error){"token": func(context.Context) (string, error) { return "hunter2", nil }}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Check(item(intent.Create)); (err != nil) != refused || refused && !strings.Contains(err.Error(), "/key/sku: is not among what reads can show") {
			t.Errorf("an account that shows %s: %v; want it refused: %t", shop, err, refused)
		}
	}
}
