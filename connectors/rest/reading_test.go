package rest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	cmplib "github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/wire"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// roomFile declares the messages of a chat whose history does not say of which channel it is.
var roomFile = strings.NewReplacer(
	"    key: [id]\n", "    key: [channel, id]\n    scope: [channel]\n",
	"{param.channel}", "{key.channel}",
	"parameters:\n  channel: {pattern: '[A-Z0-9]+', about: the channel, default: C1}\n", "",
	", bulk_wait: 10s", "",
).Replace(chatFile)

// sinceFile declares the same, read from when the message can have been posted.
var sinceFile = strings.NewReplacer(
	"    scope: [channel]\n", "    scope: [channel]\n    first_sent: {skew: 60s, form: unix}\n",
	`limit: "999"}`, `oldest: "{first_sent}"}`,
	`text: "{fields.text}", `, `text: "{fields.text}", at: "{first_sent}", `,
).Replace(roomFile)

// readingProblems are wrong uses of what a read can say. The rest of the file is right.
var readingProblems = map[string]struct {
	reason, file, old, new string
	want                   string // a piece of each problem, a line each
}{
	"scope, no member":    {"misspelt", roomFile, "scope: [channel]", "scope: [chanel]", `:10: kinds.message.scope[0]: "chanel" is in no form of the key; want one of channel, id`},
	"scope, not asked":    {"it would mix channels", roomFile, `channel: "{key.channel}", limit`, `limit`, "reads[0]: does not name {key.channel}, and would mix the records of several"},
	"scope, in one form":  {"a record is found in its channel only", roomFile, "key: [channel, id]", "key: [[channel, id], [id]]", "scope[0]: is not in every form of the key; want it in [id], too"},
	"scope, all":          {"no record could be recognised", roomFile, "scope: [channel]", "scope: [channel, id]", "scope[0]: leaves nothing of the key [channel, id] by which a record is recognised"},
	"scope, shown":        {"which of the two", roomFile, "fields: {id", "fields: {channel: $.channel, id", "fields.channel: is a scope of the key, which records do not show"},
	"neither":             {"it could not be compared", roomFile, "    scope: [channel]\n", "", "fields.channel: is missing: every field of the key must be shown by reads"},
	"list without scope":  {"it would mix channels", roomFile, "    record:\n", "    list: {name: all, path: /all, records: '$.messages[*]'}\n    record:\n", "list: does not name {key.channel}, and would mix"},
	"list of one":         {"it lists the scope", roomFile, "    record:\n", "    list: {name: all, path: /all, query: {c: '{key.channel}', i: '{key.id}'}, records: '$.messages[*]'}\n    record:\n", "list: asks for one record"},
	"key in a stamp read": {"it is not by key", roomFile, "by: [key, stamp]\n        path: /conversations.history\n        query: {", "by: stamp\n        path: /conversations.history\n        query: {i: '{key.id}', ", "has {key.id} in its request and is not by key"},

	"first_sent, no kind": {"how is it written", roomFile, `limit: "999"`, `oldest: "{first_sent}"`, "{first_sent} is not known here; want first_sent: {skew: 60s, form: rfc3339} in the kind"},
	"first_sent, unused":  {"it changes nothing", roomFile, "    scope: [channel]\n", "    scope: [channel]\n    first_sent: {skew: 60s, form: unix}\n", "first_sent: is not used; want {first_sent} in a request"},
	"first_sent, form":    {"misspelt", sinceFile, "form: unix", "form: epoch", `first_sent.form: is "epoch"; want unix or rfc3339 or date or snowflake`},
	"first_sent, a day":   {"their day is another one", sinceFile, "skew: 60s, form: unix", "skew: 60s, form: date", "first_sent.skew: is 1m0s, and the destination's day may be another one; want 24h or more"},
	"first_sent, skew":    {"clocks differ", sinceFile, "skew: 60s, ", "", "first_sent.skew: is missing; want how far the destination's clock may be from ours"},
	"first_sent, by ref":  {"it may be older", sinceFile, "    record:\n", "      - {name: get, by: ref, path: '/m/{ref}', query: {c: '{key.channel}', o: '{first_sent}'}, record: $}\n    record:\n", "reads[1]: is by ref and asks by {first_sent}"},
	"first_sent, updates": {"what is updated is older", sinceFile, "      create:\n        method: POST", "      update:\n        method: POST", "asks by {first_sent}, and the kind has no create"},
	"first_sent, visible": {"it is no record", sinceFile, "        records:", "        visible: {path: /c, query: {a: '{first_sent}'}}\n        records:", "{first_sent} is not known here; want one of key, param"},

	"missing, word":    {"misspelt", itemsFile("", plainRead), "records: $.items[*]", "records: {path: '$.items[*]', missing: empty}", `reads[0].records.missing: is "empty"; want none`},
	"missing, whole":   {"an answer is never missing", itemsFile("", plainRead), "records: $.items[*]", "records: {path: '$[*]', missing: none}", "reads[0].records.missing: is set on the whole answer"},
	"missing, no path": {"of what", itemsFile("", plainRead), "records: $.items[*]", "records: {missing: none}", "want exactly one of record ($ for the whole answer) and records"},

	"absent 200":           {"every answer would say it", oneFile(""), "record: $\n", "record: $\n        absent: [200]\n", "reads[0].absent: has 200; want absent_where beside it"},
	"absent 200, lacks":    {"an error lacks it too", oneFile(""), "record: $\n", "record: $\n        absent: [200]\n        absent_where: {path: $.a, exists: false}\n", "reads[0].absent_where: is true of any answer that lacks the member"},
	"absent 403":           {"it is no absence", oneFile(""), "record: $\n", "record: $\n        absent: [403]\n", "reads[0].absent: has 403; only 404 and 410"},
	"absent_empty alone":   {"of which status", oneFile(""), "record: $\n", "record: $\n        absent_empty: true\n", "reads[0].absent_empty: is true; want absent beside it"},
	"absent_empty, where":  {"an empty body fulfils nothing", oneFile(""), "record: $\n", "record: $\n        absent: [404]\n        absent_empty: true\n        absent_where: {path: $.a, equals: 1}\n", "and no absent_where, which no empty body fulfils"},
	"absent, a list":       {"it would be a wrong path", itemsFile("", plainRead), "records:", "absent: [404]\n        records:", "reads[0].absent: is set on a read of a list"},
	"absent 200, a list":   {"an empty list says it", itemsFile("", plainRead), "records:", "absent: [200]\n        absent_where: {path: $.a, equals: 1}\n        records:", "reads[0].absent: has 200, and is set on a read of a list"},
	"absent_where, of all": {"what is not selected says something else", oneFile(""), "record: $\n", "record: $\n        absent: [200]\n        absent_where: {path: '$..code', equals: 1}\n", "absent_where.path: is no path to the elements of a list"},
	"where, two":           {"one filter", pickFile, "where: {id: 77}", "where: {id: 77, name: a}", "fields.amount: want where with one member and its value"},
	"where, no take":       {"what of it", pickFile, ", take: value", "", "fields.amount: want where with one member and its value, such as {id: 77}, and take"},
	"take alone":           {"of which", pickFile, "where: {id: 77}, ", "", "fields.amount: want where with one member"},
	"where, below":         {"the filter is about elements", pickFile, "custom_fields[*]'", "custom_fields[*].x'", "fields.amount.path: leads into the elements; want a path that ends with [*]"},
	"where, no list":       {"of what", pickFile, "custom_fields[*]'", "custom_fields'", "fields.amount.path: is no path to the elements of a list"},
	"where, and list":      {"it is one value", pickFile, "take: value", "take: value, list: true", "fields.amount: takes one value; want no list"},
	"where, placeholder":   {"it has no account", pickFile, "{id: 77}", "{id: '{param.shop}'}", "fields.amount.where.id: is a single value; want text, a number, true or false, without placeholders"},
	"head, a list":         {"it has no body", headFile, "record: $\n", "records: $.a[*]\n", "reads[0].method: is HEAD, whose answer has no body; want record: $"},
	"head, a path":         {"it has no body", headFile, "title: {header: X-Title}", "title: $.title", "fields.title: is at a path, and the read list is a HEAD"},
	"head, absent":         {"it has no body", headFile, "        absent_empty: true\n", "", "reads[0].absent_empty: is missing; the answer to a HEAD never has a body"},
	"head, ref":            {"it has no body", headFile, "ref: {header: Location, match: '([^/]+)$'}\n      stamp", "ref: $.id\n      stamp", "is a HEAD, whose answer has headers alone; want ref"},
	"header, of a list":    {"there is one for all", itemsFile("", plainRead), "fields: {\"...\": $}", "fields: {\"...\": $, mark: {header: X-Mark}}", "reads[0]: reads a list, and the record takes values from headers"},
	"header and path":      {"which", headFile, "title: {header: X-Title}", "title: {header: X-Title, path: $.a}", "fields.title: is in a header, which is one text"},
	"ref, both":            {"which", headFile, "ref: {header: Location, match: '([^/]+)$'}\n      stamp", "ref: {header: Location, path: $.id}\n      stamp", "record.ref: has a path and a header"},
	"ref, no group":        {"what of it", headFile, "match: '([^/]+)$'}\n      stamp", "match: '[^/]+$'}\n      stamp", "record.ref.match: has 0 groups; want exactly one"},
	"head to write":        {"it writes nothing", headFile, "method: POST", "method: HEAD", `method: is "HEAD"; want one of POST, PUT, PATCH, DELETE`},
	"search, word":         {"misspelt", itemsFile("", searchRead), "search: text", "search: full", `reads[0].search: is "full"; want text`},
	"search, strong":       {"an index lags", itemsFile("", searchRead), "search: text", "search: text\n        strength: strong", "reads[0].strength: is strong, and the read is a search of text"},
	"search, nothing":      {"for what", itemsFile("", searchRead), `query: {q: "{key.sku}"}`, `query: {q: "a"}`, "reads[0].search: is set on a read that searches for nothing"},
	"search, one":          {"it has hits", oneFile(""), "record: $\n", "record: $\n        search: text\n", "reads[0].search: is set on a read that searches for nothing; want records"},
	"newest, one":          {"it is no list", oneFile(""), "record: $\n", "record: $\n        newest: 5\n", "reads[0].newest: is set on what is no list by itself"},
	"shared, by key":       {"each has a list of its own", roomFile, `limit: "999"}`, "limit: '999', id: '{key.id}'}\n        shared: true", "reads[0].shared: is true, and the reads of the kind are not the same for all queries"},
	"rate, none":           {"how often", roomFile, "records: $.messages[*]", "records: $.messages[*]\n        rate: {calls: 0, per: 1m}", "reads[0].rate: want calls (1 or more) and per"},
	"xml, word":            {"misspelt", xmlFile, "read_as: xml", "read_as: yaml", `: read_as: is "yaml"; want json or xml`},
	"xml, one and a list":  {"which of them", xmlFile, "title: $.title", "title: $.tags.tag.name", "names an element as one that another path names as a list"},
	"xml, list and one":    {"which of them", xmlFile, "$.created.item[0].id", "$.items.item.id", "names an element as one that another path names as a list"},
	"xml, a filter":        {"its type would be a chance", xmlFile, "$.shop.open", "\"$.shop[?@.a == 'b'].open\"", "probe.must[0].path: selects in XML by more than names, [*] and [0]"},
	"xml, below":           {"its type would be a chance", xmlFile, "$.shop.open", "$..open", "probe.must[0].path: selects in XML by more than names"},
	"xml, list of lists":   {"there is none", xmlFile, "$.items.item[*]", "$.items.item[0][*]", "selects elements of what is no list in XML"},
	"xml, the whole":       {"there is one", xmlFile, "$.items.item[*]", "$[*]", "selects elements of what is no list in XML"},
	"xml, an empty list":   {"it has no element", xmlFile, "{path: \"$.items.item[*]\", missing: none}", "\"$.items.item[*]\"", "reads[0].records: is a list in XML, of which nothing is there where it is empty; want {path: $.items.item[*], missing: none}"},
	"xml, absent":          {"a gateway says it too", xmlOneFile, "record: $.item", "record: $.item\n        absent: [404]", "reads[0].absent: is set, and pages of gateways are XML as well; want absent_where beside it"},
	"xml, absent, lacks":   {"a page lacks it too", xmlOneFile, "record: $.item", "record: $.item\n        absent: [404]\n        absent_where: {path: $.item, exists: false}", "reads[0].absent_where: is true of any answer that lacks the member"},
	"xml, a spread":        {"one and several differ", xmlFile, "title: $.title", "title: $.title, \"...\": $", "spreads an element of XML, of whose members one alone and one of several differ"},
	"xml, equals":          {"it never is", xmlFile, `equals: "true"`, "equals: true", "probe.must[0].equals: is true, and the values of XML are text; want it in quotes"},
	"xml, where":           {"it never is", xmlFile, `"@id": "77"`, `"@id": 77`, "is 77, and the values of XML are text; want it in quotes"},
	"xml, graphql":         {"it is JSON", xmlFile, "probe: {path", "probe: {graphql: {query: '{ a }'}, path", "probe.graphql: is set, and read_as is xml"},
	"settles, twice":       {"which of them", refundFile, "good: [succeeded]", "good: [succeeded, pending]", `"pending" is listed twice; want each status in one of open, good and bad`},
	"settles, no good":     {"it could never be verified", refundFile, "good: [succeeded], ", "", "record.settles: want open and good"},
	"settles, within":      {"it would be read forever", refundFile, ", within: 10d", "", "settles.within: is missing; want how long"},
	"settles, no path":     {"where", refundFile, "path: $.status, ", "", "settles.path: is missing"},
}

const searchRead = `
path: /search
query: {q: "{key.sku}"}
records: $.items[*]
search: text
`

// headFile declares items whose headers show them.
var headFile = strings.NewReplacer(
	"ref: $.id\n      stamp: {path: $.stamp}", "ref: {header: Location, match: '([^/]+)$'}\n      stamp: {header: X-Stamp}",
	"ref: $.id\n", "ref: {header: Location, match: '([^/]+)$'}\n",
	`fields: {"...": $}`, "fields: {sku: {header: X-Sku}, title: {header: X-Title}}",
).Replace(oneFile("method: HEAD\nabsent: [404]\nabsent_empty: true\nvisible: {path: /container}"))

// pickFile declares items with a value in a list of names and values.
var pickFile = strings.Replace(oneFile(""), `fields: {"...": $}`, `fields: {sku: $.sku, title: $.title, amount: {path: '$.custom_fields[*]', where: {id: 77}, take: value}}`, 1)

// oneFile declares items that are read one by one.
func oneFile(read string) string {
	return itemsFile("", "path: '/items/{key.sku}'\nstrength: strong\nrecord: $\n"+read)
}

func TestReadingProblems(t *testing.T) {
	for name, tt := range readingProblems {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(tt.file, tt.old) || loadProblems(t, tt.file) != "" {
				t.Fatalf("the test replaces %q, which is not there, or the file is wrong: %s", tt.old, loadProblems(t, tt.file))
			}
			got := loadProblems(t, strings.Replace(tt.file, tt.old, tt.new, 1))
			for _, want := range strings.Split(tt.want, "\n") {
				if !strings.Contains(got, want) {
					t.Errorf("%s: got\n%s\nwant in it %q", tt.reason, got, want)
				}
			}
		})
	}
}

// readingWords are what a check says of the elements of a read, and what it warns of.
var readingWords = map[string]struct {
	file, old, new string
	says           string // a piece of what is explained
	warns          string // a piece of a warning, "" for none
}{
	"scope": {roomFile, "", "", "channel of the key: named in every request and never compared", ""},
	"scope, by ref": {roomFile, "    record:\n", "      - {name: get, by: ref, path: '/message/{ref}', record: $}\n    record:\n",
		"channel of the key", "reads[1]: does not name {key.channel}: right only where no two records of different channel have the same ref"},
	"first_sent":                 {sinceFile, "", "", "read history: for a create that was sent, only what is at most 1m0s older than its first send", ""},
	"first_sent, keys of others": {sinceFile, ", fresh_keys: true", "", "channel of the key", "reads[0]: asks by {first_sent}, and profile.fresh_keys is not set: it still reads from the beginning of time"},
	"missing":                    {itemsFile("", plainRead), "records: $.items[*]", "records: {path: '$.q.items[*]', missing: none}", "read list: an answer without $.q.items is an empty list, if the object", ""},
	"missing, on top":            {itemsFile("", plainRead), "records: $.items[*]", "records: {path: '$.items[*]', missing: none}", "read list:", "reads[0].records: takes every object without $.items for an empty list"},
	"absent":                     {oneFile("absent: [404, 410]\nabsent_where: {path: $.code, equals: none}"), "", "", "read list: an answer 404 or 410, where $.code says so, means that the record is not there", ""},
	"absent, unsure":             {oneFile("absent: [404]"), "", "", "read list: an answer 404 means", "reads[0]: takes 404 for absence, which may also mean that this account may not see the record"},
	"absent, sure":               {oneFile("absent: [404]\nabsent_empty: true\nvisible: {path: /container}"), "", "", "404 with an empty body, or JSON, is believed only if what it would be in can be read, and means", ""},
	"absent, empty":              {oneFile("absent: [404]\nabsent_empty: true"), "", "", "404 with an empty body, or JSON, means", "reads[0]: takes an answer without a body for absence"},
	"absent, error":              {oneFile("absent: [200]\nabsent_where: {path: '$.errors[*].code', equals: none}"), "", "", "200, where $.errors[*].code says so, means", "reads[0]: takes an error for absence"},
	"where":                      {pickFile, "", "", "field amount: the value of the one element of $.custom_fields whose id is 77; two such elements are an error.", ""},
	"head":                       {headFile, "", "", "field title: the header X-Title of the answer.", ""},
	"search":                     {itemsFile("", searchRead), "profile: {stamped: true}", "profile: {stamped: true, settle: 1m}", "Hits none of which quotes what was searched for are an error.", ""},
	"search, no settle":          {itemsFile("", searchRead), "", "", "read list: a search", "profile: has no settle, and the record is only found by a search of text"},
	"newest":                     {itemsFile("", plainRead+"newest: 500"), "", "", "read list: the API shows the newest 500 records at the most. A full list without ours is an error", ""},
	"rate":                       {roomFile, "records: $.messages[*]", "records: $.messages[*]\n        shared: true\n        rate: {calls: 1, per: 1m}", "read history: made once in 1m0s", "reads[0].rate: profile.bulk_wait is shorter than the 1m0s between two calls"},
	"rate, pages":                {roomFile, "records: $.messages[*]", "records: $.messages[*]\n        shared: true\n        rate: {calls: 6, per: 1m}", "read history: made once in 10s", "reads[0].rate: lets a second page be read 10s after the first, and a read lasts 10s at the most"},
	"rate, pages in time":        {chatFile, "records: $.messages[*]", "records: $.messages[*]\n        shared: true\n        rate: {calls: 60, per: 1m}", "read history: made once in 1s", ""},
	"rate, one by one":           {oneFile("rate: {calls: 2, per: 1m}"), "", "", "read list: made once in 30s", "reads[0].rate: each write needs calls of its own"},
	"probe by POST":              {itemsFile("", plainRead), "probe: {path", "probe: {method: POST, body: {a: b}, path", "The probe is a POST, which must change nothing: /shops/{param.shop}.", ":11: probe: is a POST: it is made again and again"},
	"probe at a write":           {itemsFile("", plainRead), `probe: {path: "/shops/{param.shop}"`, "probe: {method: POST, path: /items", "The probe is a POST", ":11: probe: is a POST (the create of item is a POST to the same path): it is made again and again"},
	"probe by GraphQL":           {itemsFile("", plainRead), "probe: {path", "probe: {graphql: {query: '{ me { id } }'}, path", "The probe is a query of GraphQL, which has no errors: /shops/{param.shop}.", ""},
	"visible by POST":            {itemsFile("", plainRead), "strength: strong", "strength: strong\n        visible: {method: POST, path: /a}", "", "reads[0].visible: is a POST: it is made again"},
	"xml":                        {xmlFile, "", "", "Answers are read as XML: names without their prefixes", ""},
	"xml, no words":              {xmlFile, "refusal: {code: $.Error.Code, text: $.Error.Message, request: $.Error.RequestId}\n", "", "Answers are read as XML", "read_as: is xml, and no refusal says where the words of the destination are"},
	"names":                      {namedFile, "", "", `The account names members of records: {param.key_field} (here "Order Ref") and {param.stamp_field} (here "Mark").`, ":25: kinds.item.reads[0]: asks for key.sku under the name that {param.key_field} gives, and nothing shows that there is one"},
	"names, and probed":          {namedFile, "must: [{", `must: [{path: "$.fields['{param.key_field}']", exists: true}, {`, "The account names members of records", ""},
	"settles":                    {refundFile, "", "", "A record is verified only when $.status is succeeded. Until then it is read again, for at most 240h0m0s", ""},
	"settles, no bad":            {refundFile, "bad: [failed, canceled], ", "", "verified only when", "settles: names no bad status"},
}

func TestReadingWords(t *testing.T) {
	for name, tt := range readingWords {
		t.Run(name, func(t *testing.T) {
			d, err := rest.Load([]byte(strings.Replace(tt.file, tt.old, tt.new, 1)), "F")
			if err != nil {
				t.Fatal(err)
			}
			says, warns := strings.Join(d.Explained(d.Kinds()[0]), "\n"), strings.Join(d.Warnings(), "\n")
			if !strings.Contains(says, tt.says) {
				t.Errorf("explained:\n%s\nwant in it %q", says, tt.says)
			}
			if !strings.Contains(warns, tt.warns) || tt.warns == "" && warns != "" {
				t.Errorf("warnings:\n%s\nwant %q", warns, tt.warns)
			}
		})
	}
}

// handled connects a declaration that needs no secret with a handler.
func handled(t *testing.T, file string, h http.HandlerFunc) *rest.Connector {
	t.Helper()
	d, err := rest.Load([]byte(file), "F")
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.New(d, rest.Options{Transport: wire.Transport(h, nil)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func inRoom(channel string, n int) intent.WriteIntent {
	in := post(n)
	in.Key = intent.Fields{"channel": channel, "id": in.Key["id"]}
	return in
}

// rooms answers with the history of the channel that is asked for. The messages of two channels can
// have the same id and the same ref.
func rooms(all map[string][]intent.WriteIntent) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		var messages []string
		for i, in := range all[r.URL.Query().Get("channel")] {
			messages = append(messages, fmt.Sprintf(`{"ts":"%d","text":%q,"metadata":{"id":%q,"stamp":%q}}`, i, in.Expect["text"], in.Key["id"], in.Stamp()))
		}
		says(200, `{"messages":[`+strings.Join(messages, ",")+`]}`)(rw, r)
	}
}

// A message of one channel says nothing of the other, whatever id and ref they share; one call
// serves all queries of a channel, and none of another.
func TestScopesAreApart(t *testing.T) {
	one, two := inRoom("C1", 1), inRoom("C2", 1)
	calls := 0
	history := rooms(map[string][]intent.WriteIntent{"C1": {one}})
	con := handled(t, roomFile, func(rw http.ResponseWriter, r *http.Request) { calls++; history(rw, r) })
	qs := []connectors.Query{{Intent: one, Stamp: one.Stamp()}, {Intent: two, Stamp: two.Stamp()}, {Intent: inRoom("C1", 2)}}
	answers, err := con.ReadMany(t.Context(), qs)
	if err != nil || calls != 2 {
		t.Fatalf("%d calls, %v; want one for each channel", calls, err)
	}
	for n, want := range []int{1, 0, 0} {
		a := answers[n]
		if a.Err != nil || len(a.Observation.Records) != want {
			t.Errorf("query %d: %+v; want %d records", n, a, want)
			continue
		}
		for _, r := range a.Observation.Records {
			if r.Fields["channel"] != "C1" || r.Fields["id"] != "m-1" {
				t.Errorf("the record has the key %v", r.Fields)
			}
		}
	}
	moved := one
	moved.Expect = intent.Fields{"channel": "C2"}
	if _, err := con.Read(t.Context(), connectors.Query{Intent: moved}); err == nil || !strings.Contains(err.Error(), "/expect/channel: is a scope of the key") {
		t.Errorf("what no record shows is expected: %v", err)
	}
}

// A bulk request is of one scope, and so is a list.
func TestBulkAndListsWithinAScope(t *testing.T) {
	file := strings.Replace(strings.Replace(roomFile, "    record:\n", `      - name: many
        by: key
        path: /conversations.history
        query: {channel: "{key.channel}", ids: {"[...]": "{key.id}"}}
        records: $.messages[*]
        bulk: 10
    list: {name: all, path: /conversations.history, query: {channel: "{key.channel}"}, records: "$.messages[*]"}
    record:
`, 1), `limit: "999"}`, `id: "{key.id}"}`, 1)
	all := map[string][]intent.WriteIntent{"C1": {inRoom("C1", 1)}, "C2": {inRoom("C2", 1), inRoom("C2", 2)}}
	var asked []string
	con := handled(t, file, func(rw http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("channel")+":"+r.URL.Query().Get("ids"))
		rooms(all)(rw, r)
	})
	var qs []connectors.Query
	for _, in := range append(slices.Clone(all["C1"]), all["C2"]...) {
		qs = append(qs, connectors.Query{Intent: in})
	}
	answers, err := con.ReadMany(t.Context(), qs)
	if want := []string{"C1:m-1", "C2:m-1,m-2"}; err != nil || !slices.Equal(asked, want) {
		t.Errorf("asked %v, %v; want %v", asked, err, want)
	}
	for n, a := range answers {
		if a.Err != nil || len(a.Observation.Records) != 1 || a.Observation.Records[0].Fields["channel"] != qs[n].Intent.Key["channel"] {
			t.Errorf("query %d: %+v", n, a)
		}
	}
	l, err := con.List(t.Context(), connectors.Scope{Kind: "message", Within: intent.Fields{"channel": "C2"}})
	if err != nil || len(l.Records) != 2 || l.Records[0].Fields["channel"] != "C2" {
		t.Errorf("the list: %+v, %v", l, err)
	}
	if _, err := con.List(t.Context(), connectors.Scope{Kind: "message"}); err == nil {
		t.Error("a list of all channels was made")
	}
}

// firstSend is when the first send of the writes of these tests was announced.
var firstSend = time.Date(2026, 11, 28, 12, 0, 30, 0, time.UTC)

// What a create of ours made is read from its first send on; what may be older, from the beginning.
func TestReadsFromTheFirstSend(t *testing.T) {
	notFresh := strings.Replace(sinceFile, ", fresh_keys: true", "", 1)
	byStamp := strings.Replace(notFresh, "by: [key, stamp]", "by: stamp", 1)
	bound := fmt.Sprint(firstSend.Add(-time.Minute).Unix())
	change := inRoom("C1", 1)
	change.Write = intent.Update
	for name, c := range map[string]struct {
		reason, file string
		in           intent.WriteIntent
		sent         time.Time
		want         string
	}{
		"a create":         {"nothing of it is older", sinceFile, inRoom("C1", 1), firstSend, bound},
		"before a send":    {"anything may be there", sinceFile, inRoom("C1", 1), time.Time{}, "0"},
		"an update":        {"its record is older", sinceFile, change, firstSend, "0"},
		"a key of others":  {"another actor may have made it before", notFresh, inRoom("C1", 1), firstSend, "0"},
		"by our own stamp": {"no one else has it", byStamp, inRoom("C1", 1), firstSend, bound},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			con := handled(t, c.file, func(rw http.ResponseWriter, r *http.Request) {
				asked = r.URL.Query().Get("oldest")
				says(200, `{"messages":[]}`)(rw, r)
			})
			_, err := con.Read(t.Context(), connectors.Query{Intent: c.in, Stamp: c.in.Stamp(), FirstSent: c.sent})
			if err != nil || asked != c.want {
				t.Errorf("asked from %q, %v; want %q: %s", asked, err, c.want, c.reason)
			}
		})
	}
}

// Another actor's record under a key that is not only ours is found, however old it is.
func TestAnOlderDuplicateIsFound(t *testing.T) {
	con := handled(t, strings.Replace(sinceFile, ", fresh_keys: true", "", 1), func(rw http.ResponseWriter, r *http.Request) {
		body := `{"messages":[]}`
		if r.URL.Query().Get("oldest") == "0" {
			body = `{"messages":[{"ts":"7","text":"hello 1","metadata":{"id":"m-1"}}]}`
		}
		says(200, body)(rw, r)
	})
	in := inRoom("C1", 1)
	o, err := con.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp(), FirstSent: firstSend})
	if err != nil || len(o.Records) != 1 {
		t.Errorf("%+v, %v; want the record of another actor", o, err)
	}
}

// Queries of one hour share a list that begins with the earliest of them; one of last week has a
// list of its own.
func TestListsFromTheFirstSendAreShared(t *testing.T) {
	var asked []string
	con := handled(t, sinceFile, func(rw http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("oldest"))
		says(200, `{"messages":[]}`)(rw, r)
	})
	var qs []connectors.Query
	for n, ago := range []time.Duration{0, 7 * 24 * time.Hour, 10 * time.Minute, 59 * time.Minute} {
		in := inRoom("C1", n)
		qs = append(qs, connectors.Query{Intent: in, Stamp: in.Stamp(), FirstSent: firstSend.Add(-ago)})
	}
	answers, err := con.ReadMany(t.Context(), qs)
	want := []string{fmt.Sprint(firstSend.Add(-time.Hour).Unix()), fmt.Sprint(firstSend.Add(-7*24*time.Hour - time.Minute).Unix())}
	if err != nil || !slices.Equal(asked, want) {
		t.Errorf("asked from %v, %v; want %v: %+v", asked, err, want, answers)
	}
}

// Every send of a write carries the time of the first.
func TestWritesCarryTheFirstSend(t *testing.T) {
	for form, want := range map[string]string{
		"unix": `"at":1795867230`, "rfc3339": `"at":"2026-11-28T12:00:30Z"`, "date": `"at":"2026-11-28"`, "snowflake": `"at":"1576206147256320000"`,
	} {
		sent := ""
		con := handled(t, strings.Replace(sinceFile, "skew: 60s, form: unix", "skew: 24h, form: "+form, 1), func(rw http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			sent = string(text)
			says(200, `{"ts":"1"}`)(rw, r)
		})
		in := inRoom("C1", 1)
		_, err := con.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 2, FirstSent: firstSend})
		if err != nil || !strings.Contains(sent, want) {
			t.Errorf("%s: sent %s, %v; want %s in it", form, sent, err, want)
		}
		if _, err := con.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp()}); connectors.FateOf(err) != connectors.FateRefused {
			t.Errorf("%s: a send whose time is not known: %v", form, err)
		}
		if err := con.Check(in); err != nil {
			t.Errorf("%s: %v", form, err)
		}
	}
}

// A send that was lost, its repeat and the reads after them have the time of the first send; the read on
// which the repeat rests, after the horizon, has none.
func TestTheEngineKnowsTheFirstSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := chat()
		if err := f.Set(fault.Fault{Kind: fault.DroppedBefore, Times: 1}); err != nil {
			t.Fatal(err)
		}
		con := chatConnector(t, f, strings.Replace(sinceFile, `oldest: "`, `limit: "999", oldest: "`, 1))
		var reg connectors.Registry
		if err := reg.Register("chat", connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
			t.Fatal(err)
		}
		e := engine.New(ledger.NewMemory(), &reg, nil)
		defer e.Close()
		first := time.Now().Unix()
		if out, err := e.Do(t.Context(), inRoom("C1", 1)); err != nil || out.Status != ledger.Verified {
			t.Fatalf("%s: %s; %v", out.Status, out.Text, err)
		}
		sends, reads, whole := 0, 0, 0
		var sent time.Time
		for _, call := range f.Calls() {
			switch {
			case call.Write:
				if sends++; sends == 2 && whole == 0 {
					t.Error("the repeat rests on no read of all")
				}
				sent = call.At
				if !strings.Contains(call.Body, fmt.Sprintf(`"at":%d,`, first)) {
					t.Errorf("a send at %s has %s", call.At, call.Body)
				}
			case strings.Contains(call.Path, "history"):
				reads++
				if call.At.Sub(sent) >= 29*time.Second { // the horizon is 30 s
					if whole++; !strings.HasSuffix(call.Path, "oldest=0") {
						t.Errorf("a read after the horizon asks for %s", call.Path)
					}
				} else if !strings.Contains(call.Path, fmt.Sprintf("oldest=%d&", first-60)) && !strings.HasSuffix(call.Path, fmt.Sprintf("oldest=%d", first-60)) {
					t.Errorf("a read asks for %s", call.Path)
				}
			}
		}
		if sends != 2 || reads < 2 {
			t.Errorf("%d sends and %d reads", sends, reads)
		}
	})
}

// answersOf are the observations of the reads of items, or its error, by what is answered.
func answersOf(t *testing.T, file string, answers map[string]answerCase) {
	t.Helper()
	for name, c := range answers {
		t.Run(name, func(t *testing.T) {
			con := items(t, file, func(rw http.ResponseWriter, r *http.Request) {
				if c.visible != 0 && r.URL.Path == "/api/container" {
					says(c.visible, `{"id":1}`)(rw, r)
					return
				}
				says(cmp.Or(c.status, 200), c.body, c.headers...)(rw, r)
			})
			in := item(intent.Create)
			o, err := con.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp(), Ref: c.ref})
			if c.records < 0 {
				if err == nil {
					t.Errorf("%d records and no error; %s", len(o.Records), c.reason)
				}
				return
			}
			if err != nil || len(o.Records) != c.records || (o.Strength == connectors.Strong) != c.strong {
				t.Fatalf("%+v, %v; want %d records, strong %t: %s", o, err, c.records, c.strong, c.reason)
			}
			for name, want := range c.fields {
				if got, there := o.Records[0].Fields[name]; want == missing {
					if there {
						t.Errorf("field %s is %v; want none: %s", name, got, c.reason)
					}
					continue
				}
				if diff := cmplib.Diff(want, o.Records[0].Fields[name]); diff != "" {
					t.Errorf("field %s (-want +got): %s", name, diff)
				}
			}
		})
	}
}

// answerCase is an answer and what it shows: records, or -1 for an error.
type answerCase struct {
	reason  string
	status  int // 200
	body    string
	headers []string
	visible int // what the container answers
	ref     string
	records int
	strong  bool
	fields  map[string]any
}

// missing is no value, where null is one.
const missing = "no value"

func TestAMissingList(t *testing.T) {
	answersOf(t, itemsFile("", strings.Replace(plainRead, "$.items[*]", "{path: '$.q.items[*]', missing: none}", 1)), map[string]answerCase{
		"missing":       {reason: "nothing was found", body: `{"q":{}}`, strong: true},
		"empty":         {reason: "likewise", body: `{"q":{"items":[]}}`, strong: true},
		"one":           {reason: "it is there", body: `{"q":{"items":[{"id":"1","sku":"A-1"}]}}`, records: 1, strong: true},
		"null":          {reason: "null is not missing", body: `{"q":{"items":null}}`, records: -1},
		"another shape": {reason: "an error is no list", body: `{"error":"busy"}`, records: -1},
		"null around":   {reason: "likewise", body: `{"q":null}`, records: -1},
		"a list around": {reason: "likewise", body: `{"q":[]}`, records: -1},
	})
}

func TestAbsences(t *testing.T) {
	ours := `{"id":"1","sku":"A-1"}`
	for name, c := range map[string]struct {
		read    string
		answers map[string]answerCase
	}{
		"empty": {"absent: [404, 410]\nabsent_empty: true\nvisible: {path: /container}", map[string]answerCase{
			"no body":         {reason: "it is not there", status: 404, visible: 200, strong: true},
			"410":             {reason: "likewise", status: 410, visible: 200, strong: true},
			"JSON":            {reason: "likewise", status: 404, body: `{}`, visible: 200, strong: true},
			"not let in":      {reason: "the container cannot be seen", status: 404, visible: 403, records: -1},
			"container gone":  {reason: "likewise", status: 404, visible: 404, records: -1},
			"a page":          {reason: "a gateway says it", status: 404, body: "<html>", visible: 200, records: -1},
			"200 without one": {reason: "no status that is declared", visible: 200, records: -1},
			"403":             {reason: "no permission", status: 403, visible: 200, records: -1},
			"there":           {reason: "it is there", body: ours, records: 1, strong: true},
		}},
		"not declared": {"absent: [404]", map[string]answerCase{
			"no body": {reason: "a gateway may say it", status: 404, records: -1},
			"410":     {reason: "not declared", status: 410, body: `{}`, records: -1},
		}},
		"deleted": {"absent: [200]\nabsent_where: {path: $.deleted, equals: true}", map[string]answerCase{
			"deleted": {reason: "it says so", body: `{"id":"1","deleted":true}`, strong: true},
			"not":     {reason: "it is there", body: `{"id":"1","sku":"A-1","deleted":false}`, records: 1, strong: true},
			"404":     {reason: "not declared", status: 404, body: `{"deleted":true}`, records: -1},
		}},
		"an error": {"absent: [200]\nabsent_where: {path: '$.errors[*].code', equals: NOT_FOUND}\nmust: [{path: $.errors, exists: false}]\nvisible: {path: /container}", map[string]answerCase{
			"not found":      {reason: "it says so", body: `{"errors":[{"code":"NOT_FOUND"}]}`, visible: 200, strong: true},
			"not visible":    {reason: "nor is what it would be in", body: `{"errors":[{"code":"NOT_FOUND"}]}`, visible: 403, records: -1},
			"two errors":     {reason: "the other says something else", body: `{"errors":[{"code":"NOT_FOUND"},{"code":"THROTTLED"}]}`, visible: 200, records: -1},
			"one without":    {reason: "what it says is unknown", body: `{"errors":[{"code":"NOT_FOUND"},{"message":"boom"}]}`, visible: 200, records: -1},
			"no errors left": {reason: "an empty list says nothing", body: `{"errors":[]}`, visible: 200, records: -1},
			"there":          {reason: "it is there", body: ours, visible: 200, records: 1, strong: true},
		}},
	} {
		t.Run(name, func(t *testing.T) { answersOf(t, oneFile(c.read), c.answers) })
	}
	t.Run("list", func(t *testing.T) {
		answersOf(t, itemsFile("", plainRead+"absent: [404]\nabsent_where: {path: $.error, equals: No Record found}\n"), map[string]answerCase{
			"no record": {reason: "it says so", status: 404, body: `{"error":"No Record found"}`, strong: true},
			"no path":   {reason: "the list itself is missing", status: 404, body: `{"error":"No such table"}`, records: -1},
			"empty":     {reason: "nothing was found", body: `{"items":[]}`, strong: true},
		})
	})
}

// Custom fields come in any order, some of them twice, some without a value.
func TestOneOfAList(t *testing.T) {
	answersOf(t, strings.Replace(pickFile, "{id: 77}", "{id: 'String {{8e1f}} Name a'}", 1), map[string]answerCase{
		"braces": {reason: "written twice", body: `{"id":"1","sku":"A-1","custom_fields":[{"id":"String {8e1f} Name a","value":"12"}]}`, records: 1, strong: true, fields: map[string]any{"amount": "12"}},
	})
	with := func(list string) string { return `{"id":"1","sku":"A-1","custom_fields":` + list + `}` }
	none := map[string]any{"amount": missing}
	answersOf(t, pickFile, map[string]answerCase{
		"first":     {reason: "it is there", body: with(`[{"id":77,"value":"12"},{"id":5,"value":"x"}]`), records: 1, strong: true, fields: map[string]any{"amount": "12"}},
		"last":      {reason: "in any order", body: with(`[{"id":5,"value":"x"},{"id":77.0,"value":"12"}]`), records: 1, strong: true, fields: map[string]any{"amount": "12"}},
		"null":      {reason: "a value", body: with(`[{"id":77,"value":null}]`), records: 1, strong: true, fields: map[string]any{"amount": nil}},
		"as text":   {reason: "another id", body: with(`[{"id":"77","value":"12"}]`), records: 1, strong: true, fields: none},
		"no value":  {reason: "it has none", body: with(`[{"id":77}]`), records: 1, strong: true, fields: none},
		"no hit":    {reason: "it is not there", body: with(`[{"id":5,"value":"x"}]`), records: 1, strong: true, fields: none},
		"no list":   {reason: "likewise", body: `{"id":"1","sku":"A-1"}`, records: 1, strong: true, fields: none},
		"two":       {reason: "which of them", body: with(`[{"id":77,"value":"12"},{"id":77,"value":"12"}]`), records: -1},
		"no object": {reason: "another shape", body: with(`[77]`), records: -1},
		"no array":  {reason: "another shape", body: with(`{"77":"12"}`), records: -1},
	})
}

// What a HEAD shows is in headers; a missing header is no value, and a record without its ref an error.
func TestValuesInHeaders(t *testing.T) {
	all := []string{"Location", "/items/i-7", "X-Sku", "A-1", "X-Title", ""}
	answersOf(t, headFile, map[string]answerCase{
		"there":       {reason: "all is in headers", headers: all, records: 1, strong: true, fields: map[string]any{"sku": "A-1", "title": ""}},
		"no title":    {reason: "it has none", headers: all[:4], records: 1, strong: true, fields: map[string]any{"title": missing}},
		"no ref":      {reason: "which record is it", headers: all[2:], records: -1},
		"another sku": {reason: "it was not asked for", headers: []string{"Location", "/items/i-7", "X-Sku", "A-2"}, records: -1},
		"not there":   {reason: "it says so", status: 404, visible: 200, strong: true},
		"not let in":  {reason: "nor is the container", status: 404, visible: 403, records: -1},
		"forbidden":   {reason: "S3 says it for a missing right to list", status: 403, visible: 200, records: -1},
	})
	con := items(t, headFile, says(201, "", "Location", "https://127.0.0.1:1/items/i-7"))
	got, err := con.Write(t.Context(), itemRequest(intent.Create))
	if err != nil || got.Ref != "i-7" {
		t.Errorf("the receipt names %q, %v; want the end of the header", got.Ref, err)
	}
}

// A search of text also finds what quotes the key, and what is no record of ours.
func TestASearchOfText(t *testing.T) {
	answersOf(t, itemsFile("", searchRead), map[string]answerCase{
		"none":          {reason: "nothing was found", body: `{"items":[]}`},
		"ours":          {reason: "it is there", body: `{"items":[{"id":"1","sku":"A-1"}]}`, records: 1},
		"and others":    {reason: "they only quote it", body: `{"items":[{"id":"2","sku":"B-7","title":"like A-1"},{"id":"1","sku":"A-1"},{"id":"3","body":"see A-1"}]}`, records: 1},
		"only others":   {reason: "they are not ours", body: `{"items":[{"id":"2","sku":"B-7","title":"like A-1"},{"id":"3","body":"see A-1"}]}`},
		"ignored":       {reason: "it lists everything", body: `{"items":[{"id":"2","sku":"B-7"},{"id":"3","sku":"A-12"},{"id":"4","title":"as BA-1"}]}`, records: -1},
		"in two pieces": {reason: "the key is no word of a hit", body: `{"items":[{"id":"2","sku":"B-7","title":"plan A 1","body":"1"}]}`, records: -1},
		"quoted below":  {reason: "a hit quotes it anywhere", body: `{"items":[{"id":"2","sku":"B-7"},{"id":"3","sku":"B-8","notes":[{"text":"(a&#45;1)"}]}]}`},
		"another shape": {reason: "no hit has a key", body: `{"items":[{"id":"2","fields":{"sku":"A-1"}}]}`, records: -1},
		"no ref":        {reason: "no hit can be told from another", body: `{"items":[{"sku":"A-1"}]}`, records: -1},
		"key of a type": {reason: "a number is not our text", body: `{"items":[{"id":"1","sku":"A-1"},{"id":"2","sku":7}]}`, records: 1},
	})
	file := itemsFile("", strings.Replace(searchRead, "search: text", "", 1))
	answersOf(t, file, map[string]answerCase{
		"no search": {reason: "then it ignores what it is asked by", body: `{"items":[{"id":"2","sku":"B-7"},{"id":"1","sku":"A-1"}]}`, records: -1},
	})
}

// A list that the API cuts proves nothing of what is older than its last record.
func TestAListThatIsCut(t *testing.T) {
	answersOf(t, itemsFile("", strings.Replace(plainRead, `query: {sku: "{key.sku}"}`, "newest: 2", 1)), map[string]answerCase{
		"empty":           {reason: "all is shown", body: `{"items":[]}`, strong: true},
		"short":           {reason: "all is shown", body: `{"items":[{"id":"1","sku":"B"}]}`, strong: true},
		"short with ours": {reason: "all is shown", body: `{"items":[{"id":"1","sku":"A-1"}]}`, records: 1, strong: true},
		"full":            {reason: "ours may be older", body: `{"items":[{"id":"1","sku":"B"},{"id":"2","sku":"C"}]}`, records: -1},
		"full with ours":  {reason: "another of ours may be older", body: `{"items":[{"id":"1","sku":"B"},{"id":"2","sku":"A-1"}]}`, records: 1},
	})
}

// At one call a minute for a method, with another actor posting and answers lost, every message of a
// channel is verified, and no two calls are closer than a minute.
func TestOneCallAMinute(t *testing.T) {
	const many = 40
	synctest.Test(t, func(t *testing.T) {
		f := chat()
		if err := f.Set(fault.Fault{Kind: fault.LostAnswer, Times: 3}); err != nil {
			t.Fatal(err)
		}
		file := strings.NewReplacer("records: $.messages[*]", "records: $.messages[*]\n        shared: true\n        rate: {calls: 1, per: 1m}", "bulk_wait: 10s", "bulk_wait: 1m").Replace(chatFile)
		con := chatConnector(t, f, file)
		var reg connectors.Registry
		if err := reg.Register("chat", connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
			t.Fatal(err)
		}
		e := engine.New(ledger.NewMemory(), &reg, nil)
		defer e.Close()
		var wg sync.WaitGroup
		for n := range many {
			wg.Go(func() {
				if out, err := e.Do(t.Context(), post(n)); err != nil || out.Status != ledger.Verified {
					t.Errorf("message %d: %s: %s; %v", n, out.Status, out.Text, err)
				}
			})
			others(f, map[string]any{"text": fmt.Sprint("hello ", n)})
			time.Sleep(2 * time.Minute / many)
		}
		wg.Wait()
		var last time.Time
		reads := 0
		for _, call := range f.Calls() {
			if !strings.Contains(call.Path, "history") {
				continue
			}
			if reads++; !last.IsZero() && call.At.Sub(last) < time.Minute {
				t.Errorf("a call %s after another", call.At.Sub(last))
			}
			last = call.At
		}
		if reads > 5 {
			t.Errorf("%d calls for %d messages in two minutes", reads, many)
		}
	})
}

// A read whose turn comes too late for its caller is throttled, and asks nothing.
func TestAReadWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		con := items(t, oneFile("rate: {calls: 1, per: 1m}"), func(rw http.ResponseWriter, r *http.Request) {
			calls++
			says(200, `{"id":"1","sku":"A-1"}`)(rw, r)
		})
		q := connectors.Query{Intent: item(intent.Create)}
		if _, err := con.Read(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := con.Read(ctx, q)
		var e *connectors.Error
		if !errors.As(err, &e) || e.Fate != connectors.FateThrottled || e.RetryAfter != time.Minute || calls != 1 {
			t.Errorf("%v after %d calls; want throttled for a minute, and one call", err, calls)
		}
		began := time.Now()
		if _, err := con.Read(t.Context(), q); err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %s; want the record after a minute", err, time.Since(began))
		}
	})
}
