package rest_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/ledger"
)

// Rate limits of destinations count calls. A create takes one that writes; one that reads where
// that shows all; and one before where a record under the key may be there and the destination
// would not refuse a second.
func TestCallsOfACreate(t *testing.T) {
	for name, c := range map[string]struct {
		open   func() api
		calls  []string
		reason string
	}{
		"calendar": {func() api { a, _ := calendar(); return a }, []string{"POST", "GET"},
			"the id is unique, and the event has the stamp"},
		"hubspot": {func() api { a, _ := hubSpot("contact"); return a }, []string{"POST", "GET"},
			"the email is unique, and the contact has the stamp"},
		"salesforce": {func() api { a, _ := salesforce(true); return a }, []string{"POST", "GET"},
			"the external id is unique, and the object has the stamp"},
		"zendesk": {func() api { a, _ := zendesk(fakerest.ZendeskOptions{}); return a }, []string{"GET", "POST", "GET", "GET"},
			"external ids are not unique, the list may lag, and the ticket itself does not"},
		"github": {func() api { a, _ := gitHub(fakerest.GitHubOptions{}); return a }, []string{"GET", "GET", "POST", "GET"},
			"markers are not unique, and an empty list proves nothing where the repository cannot be seen"},
		"notion": {func() api { a, _ := notion(fakerest.NotionOptions{}); return a }, []string{"POST query", "POST query", "POST", "POST query", "GET"},
			"titles are not unique, queries may lag, and the page itself does not"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := c.open()
				con, _ := a.connector(t)
				var reg connectors.Registry
				if err := reg.Register(a.name, connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
					t.Fatal(err)
				}
				e := engine.New(ledger.NewMemory(), &reg, nil)
				defer e.Close()
				first, counted := 0, 0
				for n := range 2 { // before its first write a process checks the account, once
					first = len(a.fake.Calls())
					in := whole(a, a.intent(intent.Create, n+1))
					in.Workflow = fmt.Sprint("wf-", n)
					out, err := e.Do(t.Context(), in)
					if err != nil || out.Status != ledger.Verified {
						t.Fatalf("%s: %s; %v", out.Status, out.Text, err)
					}
					counted = out.Sends + out.Reads
				}
				var calls []string
				for _, call := range a.fake.Calls()[first:] {
					word := call.Method
					if strings.HasSuffix(call.Path, "/query") {
						word += " query"
					}
					calls = append(calls, word)
				}
				if counted != len(calls) {
					t.Errorf("the outcome counts %d calls, and it took %q", counted, calls)
				}
				if !slices.Equal(calls, c.calls) {
					t.Errorf("it took the calls %q, want %q: %s", calls, c.calls, c.reason)
				}
			})
		})
	}
}

// A lookup is not made where it can show nothing more than those before it.
func TestLookupsThatAreNotNeeded(t *testing.T) {
	const (
		ours  = `{"id":1,"sku":"A-1","stamp":"S"}`
		other = `{"id":2,"sku":"A-1","stamp":"T"}`
	)
	once := connectors.Query{Stamp: "S", Once: true}
	answered := connectors.Query{Stamp: "S", Once: true, Ref: "1"}
	for name, c := range map[string]struct {
		reason                string
		byKey, byStamp, byRef string // strengths
		write                 intent.WriteType
		query                 connectors.Query
		list                  string
		want                  string
	}{
		"ours":              {"the one send made this one", "strong", "strong", "strong", intent.Create, once, ours, "list"},
		"several sends":     {"another one may be under another key by now", "strong", "strong", "strong", intent.Create, connectors.Query{Stamp: "S"}, ours, "list stamped"},
		"none":              {"it may be under another key by now", "strong", "strong", "strong", intent.Create, once, "", "list stamped"},
		"another's":         {"the same", "strong", "strong", "strong", intent.Create, once, other, "list stamped"},
		"two":               {"the send was multiplied on its way", "strong", "strong", "strong", intent.Create, once, ours + "," + other, "list stamped"},
		"weak list":         {"the record may have changed since", "weak", "strong", "weak", intent.Create, once, ours, "list stamped"},
		"both weak":         {"neither shows more", "weak", "weak", "weak", intent.Create, once, ours, "list"},
		"ref":               {"the list shows the whole record", "strong", "strong", "strong", intent.Create, answered, ours, "list"},
		"ref, weak list":    {"the read by ref may show more", "weak", "weak", "strong", intent.Create, answered, ours, "list get"},
		"ref, none":         {"the record has another key by now", "strong", "strong", "strong", intent.Create, answered, "", "list stamped get"},
		"ref, another's":    {"it is not the record of the ref", "strong", "strong", "strong", intent.Create, answered, other, "list stamped get"},
		"ref, older update": {"what the list shows may be from before", "weak", "weak", "weak", intent.Update, answered, `{"id":1,"sku":"A-1","stamp":"T"}`, "list stamped get"},
		"ref, our update":   {"it has our stamp: it is from after", "weak", "weak", "weak", intent.Update, answered, ours, "list"},
	} {
		t.Run(name, func(t *testing.T) {
			file := strings.Replace(writesFile(`
update: {method: PATCH, path: "/items/{ref}", needs: ref, body: {"...": "{fields}", stamp: "{stamp}"}}`), "strength: strong", "strength: "+c.byKey, 1)
			file = strings.Replace(file, "    record:\n", "      - {name: stamped, by: stamp, strength: "+c.byStamp+", path: /stamped, query: {stamp: \"{stamp}\"}, records: \"$.items[*]\"}\n"+
				"      - {name: get, by: ref, strength: "+c.byRef+", path: \"/get/{ref}\", record: $.item, absent: [404]}\n    record:\n", 1)
			file = strings.Replace(file, "stamped: true", "stamped: true, stamps_updates: true", 1)
			var calls []string
			con := items(t, file, func(rw http.ResponseWriter, r *http.Request) {
				name, list := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/"), "/")[0], ""
				switch name {
				case "get":
					calls = append(calls, name)
					_, _ = io.WriteString(rw, `{"item":`+ours+`}`)
					return
				case "items":
					name, list = "list", c.list
				}
				calls = append(calls, name)
				_, _ = io.WriteString(rw, `{"items":[`+list+`]}`)
			})
			q := c.query
			q.Intent = item(c.write)
			_, err := con.Read(t.Context(), q)
			if got := strings.Join(calls, " "); err != nil || got != c.want {
				t.Errorf("it made the reads %q (%v), want %q: %s", got, err, c.want, c.reason)
			}
		})
	}
}
