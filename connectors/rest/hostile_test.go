package rest_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
)

// TestFieldsThatAreNotShown: a field that no read can show would be mistaken for a missing one,
// and the write would be verified without an observation.
func TestFieldsThatAreNotShown(t *testing.T) {
	const all = `fields: {"...": $}`
	tests := map[string]struct {
		reason string
		record string
		change func(*intent.WriteIntent)
		err    string // "": it is sent
	}{
		"absent":            {"a name that no path leads to", `fields: {sku: $.sku, title: $.title}`, func(w *intent.WriteIntent) { w.Absent = []string{"/colour"} }, "/absent: /colour"},
		"absent below":      {"its first name is not known", `fields: {sku: $.sku, title: $.title}`, func(w *intent.WriteIntent) { w.Absent = []string{"/colour/title"} }, "/absent: /colour/title"},
		"absent known":      {"it is shown when it is there", `fields: {sku: $.sku, title: $.title, colour: $.c}`, func(w *intent.WriteIntent) { w.Absent = []string{"/colour"} }, ""},
		"expect":            {"a rule may take nothing for empty", `fields: {sku: $.sku, title: $.title}`, func(w *intent.WriteIntent) { w.Expect["note"] = "" }, "/expect/note"},
		"require":           {"the same", `fields: {sku: $.sku, title: $.title}`, func(w *intent.WriteIntent) { w.Require = intent.Fields{"note": ""} }, "/require/note"},
		"payload":           {"no read compares it", `fields: {sku: $.sku, title: $.title}`, func(w *intent.WriteIntent) { w.Payload = intent.Fields{"note": "x"} }, ""},
		"spread":            {"shows every name", all, func(w *intent.WriteIntent) { w.Absent = []string{"/colour"} }, ""},
		"only":              {"the spread shows what was asked for", `only: ["sku, title, size", "{param.shop}"]; ` + all, func(w *intent.WriteIntent) { w.Absent = []string{"/colour"} }, "/absent: /colour"},
		"only names it":     {"the third of a list", `only: ["sku, title, size", "{param.shop}"]; ` + all, func(w *intent.WriteIntent) { w.Absent = []string{"/size"} }, ""},
		"only by parameter": {"what the account says", `only: ["sku, title, size", "{param.shop}"]; ` + all, func(w *intent.WriteIntent) { w.Absent = []string{"/main"} }, ""},
		"nulls":             {"only what may not be seen is missing", `nulls: true; ` + all, func(w *intent.WriteIntent) { w.Absent = []string{"/title"} }, "want null expected"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			lines := strings.Replace(tt.record, "; ", "\n      ", 1)
			var h recorder
			c := items(t, strings.Replace(itemsFile("", plainRead), all, lines, 1), h.serve)
			r := itemRequest(intent.Create)
			tt.change(&r.Intent)
			_, err := c.Write(t.Context(), r)
			if tt.err == "" {
				if err != nil {
					t.Errorf("%s: %v, want it sent", tt.reason, err)
				}
				return
			}
			_, readErr := c.Read(t.Context(), connectors.Query{Intent: r.Intent})
			bulk, _ := c.ReadMany(t.Context(), []connectors.Query{{Intent: r.Intent}})
			if connectors.FateOf(err) != connectors.FateRefused || !strings.Contains(err.Error(), tt.err) || len(h.requests) > 0 {
				t.Errorf("%s: %v, sent %q; want not sent and %q", tt.reason, err, h.requests, tt.err)
			}
			if !errors.Is(readErr, rest.ErrIntent) || !errors.Is(bulk[0].Err, rest.ErrIntent) {
				t.Errorf("%s: read %v, bulk %v; want both turned down", tt.reason, readErr, bulk[0].Err)
			}
		})
	}
}

// TestHubSpotShowsWhatIsAskedFor: a property outside the list is not shown, and
// is not "absent" for that.
func TestHubSpotShowsWhatIsAskedFor(t *testing.T) {
	a, _ := hubSpot("contact")
	if err := a.put(merged(a.intent(intent.Create, 1)), ""); err != nil {
		t.Fatal(err)
	}
	con, _ := a.connector(t)
	for name, change := range map[string]func(*intent.WriteIntent){
		"absent": func(w *intent.WriteIntent) { w.Absent = []string{"/mobilephone"} },
		"expect": func(w *intent.WriteIntent) { w.Expect["mobilephone"] = "" },
	} {
		in := a.intent(intent.Update, 1)
		change(&in)
		if _, err := con.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()}); !errors.Is(err, rest.ErrIntent) {
			t.Errorf("%s of a property that reads do not show: %v, want it turned down", name, err)
		}
	}
}

// TestSalesforceHidesFields: every field that may be seen is shown, null where
// it is empty. One that is missing is hidden.
func TestSalesforceHidesFields(t *testing.T) {
	a, _ := salesforce(true)
	con, _ := a.connector(t)
	in := a.intent(intent.Update, 1)
	in.Absent = []string{"/Hidden__c"}
	if _, err := con.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()}); !errors.Is(err, rest.ErrIntent) {
		t.Errorf("absent of a field that may be hidden: %v, want it turned down", err)
	}
}

// TestFiltersThatFail: an answer must not end the process, nor be absence.
func TestFiltersThatFail(t *testing.T) {
	const filter = `"$.items[?search(@.mark, 'x')]"`
	answer := says(200, `{"id":"1","items":[{"id":1,"sku":"A-1"},null]}`)
	t.Run("must", func(t *testing.T) {
		c := items(t, itemsFile("", plainRead+"must: [{path: "+filter+", exists: false}]\n"), answer)
		if got, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create)}); !errors.Is(err, rest.ErrAnswer) {
			t.Errorf("%v, %v; want an error", got, err)
		}
	})
	t.Run("keep", func(t *testing.T) {
		file := strings.Replace(itemsFile("", plainRead), "ref: $.id\n      stamp", "ref: $.id\n      keep: {path: \"$.marks[?match(@.a, 'x')]\", exists: false}\n      stamp", 1)
		c := items(t, file, says(200, `{"items":[{"id":1,"sku":"A-1","marks":[{}]}]}`))
		if got, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create)}); !errors.Is(err, rest.ErrAnswer) {
			t.Errorf("%v, %v; want an error", got, err)
		}
	})
	t.Run("write", func(t *testing.T) {
		c := items(t, itemsFile("answers: [{status: 200, where: {path: "+filter+", exists: true}, means: refused}]", plainRead), answer)
		if _, err := c.Write(t.Context(), itemRequest(intent.Create)); connectors.FateOf(err) != connectors.FateUnknown {
			t.Errorf("%v; want the fate unknown, since the meaning of the answer is unknown", err)
		}
	})
}

// TestHeadersOfReads: text around a value in a header may have a language of its own too, and a
// value that is cut or changed on the way queries another key.
func TestHeadersOfReads(t *testing.T) {
	read := "path: /items\nheaders: {X-Filter: \"sku eq '{key.sku}'\", X-Key: \"{key.sku}\"}\nrecords: $.items[*]\n"
	whole := "path: /items\nheaders: {X-Key: \"{key.sku}\"}\nrecords: $.items[*]\n"
	for name, tt := range map[string]struct {
		read, sku string
		ok        bool
	}{
		"plain":         {read, "A-1", true},
		"quote":         {read, "' or '1' eq '1", false},
		"whole":         {whole, "a b'c", true},
		"blank at end":  {whole, "A-1 ", false},
		"blank at head": {whole, " A-1", false},
		"not ASCII":     {whole, "Ä-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			c := items(t, itemsFile("", tt.read), func(rw http.ResponseWriter, r *http.Request) {
				asked++
				says(200, `{"items":[]}`)(rw, r)
			})
			in := item(intent.Create)
			in.Key["sku"] = tt.sku
			_, err := c.Read(t.Context(), connectors.Query{Intent: in})
			if sent := asked == 1; sent != tt.ok || !tt.ok && !errors.Is(err, rest.ErrIntent) {
				t.Errorf("key %q: asked %d times, %v; want it asked: %t", tt.sku, asked, err, tt.ok)
			}
		})
	}
}

// TestZendeskCreateWithoutItsKey: a ticket without a key could never be found, and each repeat
// would make another one.
func TestZendeskCreateWithoutItsKey(t *testing.T) {
	a, z := zendesk(fakerest.ZendeskOptions{})
	con, _ := a.connector(t)
	in := a.intent(intent.Create, 1)
	in.Key = intent.Fields{"id": json.Number("4711")}
	_, err := con.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), IdempotencyKey: "k", Attempt: 1})
	if n := len(z.Now(a.collection)); connectors.FateOf(err) != connectors.FateRefused || n > 0 {
		t.Errorf("%v, %d tickets; want nothing sent", err, n)
	}
}

// TestStampsThatBecomeOne: blanks are trimmed and letters made small on the way.
func TestStampsThatBecomeOne(t *testing.T) {
	stamp := "rb-" + strings.Repeat("a", 32)
	for _, forged := range []string{" " + stamp, stamp + "\n", strings.ToUpper(stamp)} {
		var h recorder
		c := items(t, itemsFile("", plainRead), h.serve)
		r := itemRequest(intent.Create)
		r.Intent.Payload = intent.Fields{"x": forged}
		if _, err := c.Write(t.Context(), r); connectors.FateOf(err) != connectors.FateRefused || len(h.requests) > 0 {
			t.Errorf("%q: %v; want it turned down", forged, err)
		}
	}
}

// TestUndoRequiresWhatWasWritten: another actor may have set a field that the destination also
// changes by itself by the time of the undo.
func TestUndoRequiresWhatWasWritten(t *testing.T) {
	file := strings.Replace(writesFile(`update: {method: PATCH, path: "/items/{ref}", needs: ref, body: {"...": "{fields}"}}`),
		"profile: {stamped: true}", "undo: {update: update}\n    profile: {volatile: [/state, /seen]}", 1)
	c := items(t, file, says(200, `{}`))
	in := item(intent.Update)
	in.Expect = intent.Fields{"state": "pending"}
	was := connectors.Observation{Records: []connectors.Record{{Ref: "1", Fields: intent.Fields{"sku": "A-1", "state": "open", "seen": "1"}}}}
	now := connectors.Observation{Records: []connectors.Record{{Ref: "1", Fields: intent.Fields{"sku": "A-1", "state": "pending", "seen": "2"}}}}
	got, err := c.Invert(in, &was, now)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(intent.Fields{"sku": "A-1", "state": "pending"}, got.Require); d != "" {
		t.Errorf("requires (-want +got):\n%s", d)
	}
}

// TestAListThatGoesOn: a list of which the declaration does not know that it has
// pages is not a whole one.
func TestAListThatGoesOn(t *testing.T) {
	c := items(t, itemsFile("", plainRead), says(200, `{"items":[]}`, "Link", `</api/items?p=2>; rel="next"`))
	if got, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create)}); !errors.Is(err, rest.ErrAnswer) {
		t.Errorf("%v, %v; want an error, never a short list", got, err)
	}
}

// TestCalendarSamples: samples have names with letters that ids do not take.
func TestCalendarSamples(t *testing.T) {
	a, _ := calendar()
	con, _ := a.connector(t)
	for _, name := range []string{"s1", "wxyz", "Z"} {
		in, err := con.Sample(a.kind, intent.Create, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := con.Read(t.Context(), connectors.Query{Intent: in}); err != nil {
			t.Errorf("the sample %q: %v", name, err)
		}
	}
}

// TestAKeyOfAnotherType: a text comes back as a number. Compared exactly, it would be a foreign
// record, and a repeat would make a second one.
func TestAKeyOfAnotherType(t *testing.T) {
	const bulk = "      - {name: many, by: key, bulk: 2, path: /many, query: {ids: {\"[...]\": \"{key.sku}\"}}, records: \"$.items[*]\"}\n    record:\n"
	file := strings.Replace(itemsFile("", plainRead), "    record:\n", bulk, 1)
	c := items(t, file, says(200, `{"items":[{"id":1,"sku":4711}]}`))
	in := item(intent.Create)
	in.Key["sku"] = "4711"
	if got, err := c.Read(t.Context(), connectors.Query{Intent: in}); !errors.Is(err, rest.ErrAnswer) {
		t.Errorf("read: %v, %v; want an error", got, err)
	}
	if got, _ := c.ReadMany(t.Context(), []connectors.Query{{Intent: in}}); !errors.Is(got[0].Err, rest.ErrAnswer) {
		t.Errorf("bulk: %v; want an error", got)
	}
	c = items(t, strings.Replace(file, "{stamped: true}", "{compare: {/sku: [{rule: string}]}}", 1), says(200, `{"items":[{"id":1,"sku":4711}]}`))
	if got, err := c.Read(t.Context(), connectors.Query{Intent: in}); err != nil || len(got.Records) != 1 {
		t.Errorf("under the rule: %v, %v; want the record", got, err)
	}
}

// TestABulkReadThatGoesOn: what is on its second page is not absent.
func TestABulkReadThatGoesOn(t *testing.T) {
	const bulk = "      - {name: many, by: key, bulk: 2, path: /many, query: {ids: {\"[...]\": \"{key.sku}\"}}, records: \"$.items[*]\"}\n    record:\n"
	file := strings.Replace(itemsFile("", plainRead), "    record:\n", bulk, 1)
	c := items(t, file, says(200, `{"items":[]}`, "Link", `</api/many?p=2>; rel="next"`))
	if got, _ := c.ReadMany(t.Context(), []connectors.Query{{Intent: item(intent.Create)}}); !errors.Is(got[0].Err, rest.ErrAnswer) {
		t.Errorf("%v; want an error, never a short list", got)
	}
}

// TestNothingOfOursIsVisible: what is shown of others does not prove that ours
// could be seen.
func TestNothingOfOursIsVisible(t *testing.T) {
	c := items(t, itemsFile("", plainRead+"visible: {path: /me, must: [{path: $.all, equals: true}]}\n"), func(rw http.ResponseWriter, r *http.Request) {
		says(200, `{"all":false,"items":[{"id":1,"sku":"a-1"}]}`)(rw, r)
	})
	if got, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create)}); !errors.Is(err, rest.ErrAnswer) {
		t.Errorf("%v, %v; want an error", got, err)
	}
}

// TestWhatCannotBeServedIsTurnedDown: it is not recorded, and not tried for a
// day.
func TestWhatCannotBeServedIsTurnedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, f := hubSpot("contact")
		in := whole(a, a.intent(intent.Create, 1))
		in.Absent = []string{"/mobilephone"}
		began := time.Now()
		out := engineDo(t, a, in)
		if writes, _ := f.Count(); writes > 0 || out.Status != "" || time.Since(began) > time.Minute || !strings.Contains(out.Text, "/mobilephone") {
			t.Errorf("%s (%s) after %v and %d sends; want it refused at once, with the field named", out.Status, out.Text, time.Since(began), writes)
		}
	})
}

// TestAShortPageMayBeFull: an API that always returns thirty per page seems to have nothing more.
func TestAShortPageMayBeFull(t *testing.T) {
	file := itemsFile("", plainRead+"paging: {page: p, size: 100}\n")
	for body, want := range map[string]connectors.Strength{
		`{"items":[{"id":1,"sku":"A-10"},{"id":2,"sku":"A-11"}]}`: connectors.Weak,
		`{"items":[{"id":1,"sku":"A-10"},{"id":2,"sku":"A-1"}]}`:  connectors.Strong,
		`{"items":[]}`: connectors.Strong,
	} {
		got, err := items(t, file, says(200, body)).Read(t.Context(), connectors.Query{Intent: item(intent.Create)})
		if err != nil || got.Strength != want {
			t.Errorf("%s: %q, %v; want %q", body, got.Strength, err, want)
		}
	}
}

// TestDeclarationsThatSayLess: half of a pattern must not end its anchors, and only applies to a
// spread alone.
func TestDeclarationsThatSayLess(t *testing.T) {
	for name, file := range map[string]string{
		"parameter": strings.Replace(itemsFile("", plainRead), "'[a-z]+'", "'main)|(x'", 1),
		"pattern":   strings.Replace(itemsFile("", plainRead), "pattern: '[a-z]+', about: the shop, default: main", "pattern: 'x)|(y', about: the shop", 1),
		"key":       strings.Replace(itemsFile("", plainRead), "key: [sku]", "key: [sku]\n    key_patterns: {sku: 'a)|(b'}", 1),
		"only":      strings.Replace(itemsFile("", plainRead), `fields: {"...": $}`, "only: [a]\n      fields: {sku: $.sku}", 1),
	} {
		if _, err := rest.Load([]byte(file), name); !errors.Is(err, rest.ErrInvalid) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

// TestOursWithoutItsKey: an actor that removes the key of our record does not hide it from the
// lookup that still shows it.
func TestOursWithoutItsKey(t *testing.T) {
	in := item(intent.Create)
	c := items(t, itemsFile("", plainRead), says(200, `{"items":[{"id":1,"sku":null,"stamp":"`+in.Stamp()+`"}]}`))
	got, err := c.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
	if err != nil || len(got.Records) != 1 {
		t.Errorf("%v, %v; want the record that has our stamp", got.Records, err)
	}
}

// TestARecordThatLostItsKey: the record of a change, or of a create's answer, is shown by its
// ref, whatever its key is now. It is not gone.
func TestARecordThatLostItsKey(t *testing.T) {
	a, _ := zendesk(fakerest.ZendeskOptions{})
	c, _ := a.connector(t)
	made, err := a.send(t, c, a.intent(intent.Create, 1), 1)
	if err != nil {
		t.Fatal(err)
	}
	if !a.fake.Edit(a.collection, made.Ref, func(o fakerest.Object) { o["external_id"] = "another" }) {
		t.Fatalf("there is no %q", made.Ref)
	}
	other := a.intent(intent.Create, 1)
	other.Tool = "another" // and so another stamp
	for name, q := range map[string]struct {
		query connectors.Query
		want  int
	}{
		"delete by its ref":  {a.query(a.intent(intent.Delete, 1), made.Ref), 1},
		"update by its ref":  {a.query(a.intent(intent.Update, 1), made.Ref), 1},
		"delete, no ref":     {a.query(a.intent(intent.Delete, 1), ""), 0},
		"another one's make": {a.query(other, made.Ref), 1}, // with its stamp, by which verify leaves it out
	} {
		if got, err := c.Read(t.Context(), q.query); err != nil || len(got.Records) != q.want {
			t.Errorf("%s: %d records, %v; want %d", name, len(got.Records), err, q.want)
		}
	}
}
