package rest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

const singleRead = `
strength: strong
path: "/items/{key.sku}"
record: $.item
absent: [404]
absent_where: {path: $.code, equals: not_found}
`

func TestOneRecordThatIsAskedFor(t *testing.T) {
	tests := map[string]struct {
		reason  string
		answer  http.HandlerFunc
		records int
		want    string // in the error
	}{
		"there":          {"the record", says(200, `{"item":{"id":1,"sku":"A-1"}}`), 1, ""},
		"not there":      {"in the API's own words", says(404, `{"code":"not_found"}`), 0, ""},
		"404 of a proxy": {"a gateway says 404 as well", says(404, `<html>default backend</html>`), 0, "not one JSON value"},
		"empty 404":      {"the sender of the answer is unknown", says(404, ``), 0, "not one JSON value"},
		"another 404":    {"no such address", says(404, `{"code":"no_route"}`), 0, "404"},
		"410":            {"not declared", says(410, `{"code":"not_found"}`), 0, "410"},
		"another record": {"the API takes keys for equal that are not", says(200, `{"item":{"id":1,"sku":"a-1"}}`), 0, "another sku than was asked for"},
		"key not shown":  {"the record may be another one", says(200, `{"item":{"id":1}}`), 0, "another sku than was asked for"},
		"no record":      {"another shape", says(200, `{"data":{"id":1,"sku":"A-1"}}`), 0, "there is no $.item"},
		"null":           {"no record", says(200, `{"item":null}`), 0, "a record is null"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := items(t, itemsFile("", singleRead), tt.answer).Read(t.Context(), connectors.Query{Intent: item(intent.Create)})
			switch {
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%s: got %v, %v; want an error with %q", tt.reason, got, err, tt.want)
			case tt.want == "" && (err != nil || len(got.Records) != tt.records || got.Strength != connectors.Strong):
				t.Errorf("%s: got %v, %v; want %d records, strong", tt.reason, got, err, tt.records)
			}
		})
	}
}

// TestWhatMakesAnObservationStrong: a strong lookup by stamp shows all that a write can have made
// only if the write leaves its stamp.
func TestWhatMakesAnObservationStrong(t *testing.T) {
	const mine = `{"id":1,"sku":"A-1","stamp":"S"}`
	tests := map[string]struct {
		reason          string
		byKey, byStamp  string // strengths
		write           intent.WriteType
		stampsUpdates   bool
		list, stampList string
		want            connectors.Strength
	}{
		"key":                     {"all under the key is shown", "strong", "weak", intent.Update, false, "", "", connectors.Strong},
		"stamp, create":           {"a create leaves its stamp", "weak", "strong", intent.Create, false, "", "", connectors.Strong},
		"stamp, update":           {"no record has the stamp of an update", "weak", "strong", intent.Update, false, "", "", connectors.Weak},
		"stamp, stamping update":  {"an update leaves its stamp", "weak", "strong", intent.Update, true, "", "", connectors.Strong},
		"stamp, delete":           {"a delete leaves nothing", "weak", "strong", intent.Delete, true, "", "", connectors.Weak},
		"none":                    {"both may lag", "weak", "weak", intent.Create, false, "", "", connectors.Weak},
		"shown by the weak one":   {"what it shows may be old", "weak", "strong", intent.Create, false, mine, "", connectors.Weak},
		"shown by the strong one": {"and by it alone", "weak", "strong", intent.Create, false, "", mine, connectors.Strong},
		"shown by both":           {"the strong one counts", "weak", "strong", intent.Create, false, mine, mine, connectors.Strong},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := strings.Replace(writesFile(`
update: {method: PATCH, path: "/items/{ref}", needs: ref, body: {"...": "{fields}", stamp: "{stamp}"}}
delete: {method: DELETE, path: "/items/{ref}", needs: ref}`), "strength: strong", "strength: "+tt.byKey, 1)
			file = strings.Replace(file, "    record:\n", "      - {name: stamped, by: stamp, strength: "+tt.byStamp+", path: /stamped, query: {stamp: \"{stamp}\"}, records: \"$.items[*]\"}\n    record:\n", 1)
			if tt.stampsUpdates {
				file = strings.Replace(file, "stamped: true", "stamped: true, stamps_updates: true", 1)
			}
			c := items(t, file, func(rw http.ResponseWriter, r *http.Request) {
				list := tt.list
				if r.URL.Path == "/api/stamped" {
					list = tt.stampList
				}
				_, _ = io.WriteString(rw, `{"items":[`+list+`]}`)
			})
			got, err := c.Read(t.Context(), connectors.Query{Intent: item(tt.write), Stamp: "S"})
			if err != nil || got.Strength != tt.want || len(got.Records) > 1 {
				t.Errorf("%s: %v, %v; want strength %q", tt.reason, got, err, tt.want)
			}
		})
	}
}
