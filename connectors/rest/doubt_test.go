package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// A mutation that may have run is neither refused nor throttled, whatever its errors say.
func TestAMutationThatMayHaveRunIsUnknown(t *testing.T) {
	// Rules of the declaration change nothing about it.
	ruled := strings.Replace(graphFile, "auth:", `throttle: {status: 200, where: {path: "$.errors[0].extensions.code", equals: THROTTLED}, wait: 1s}
auth:`, 1)
	ruled = strings.Replace(ruled, "        ref: $.data.put", `        answers:
          - {status: 200, where: {path: "$.errors[0].extensions.code", equals: [BAD_USER_INPUT, ACCESS_DENIED]}, means: refused}
        ref: $.data.put`, 1)
	for name, body := range map[string]string{
		"an error of a field of the result": `{"data":null,"errors":[{"path":["put","letter","label"],"extensions":{"code":"BAD_USER_INPUT"}}]}`,
		"the same, and null":                `{"data":{"put":null},"errors":[{"path":["put","letter","label"],"extensions":{"code":"BAD_USER_INPUT"}}]}`,
		"a limit reached in the result":     `{"data":null,"errors":[{"path":["put","letter","label"],"extensions":{"code":"THROTTLED"}}]}`,
		"a result beside a limit":           `{"data":{"put":{"letter":{"ref":"L1"},"userErrors":[]}},"errors":[{"extensions":{"code":"THROTTLED"}}]}`,
		"a result beside a refusal":         `{"data":{"put":{"letter":{"ref":"L1"},"userErrors":[]}},"errors":[{"extensions":{"code":"ACCESS_DENIED"}}]}`,
		"a result beside user errors":       `{"data":{"put":{"letter":{"ref":"L1"},"userErrors":[{"code":"MEDIA","message":"the picture was not stored"}]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			in := letter(1)
			for _, file := range []string{graphFile, ruled} {
				_, err := items(t, file, says(http.StatusOK, body)).Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1})
				if f := connectors.FateOf(err); f != connectors.FateUnknown {
					t.Errorf("fate %q (%v), want unknown", f, err)
				}
			}
		})
	}
}

// An answer that has the record, or that asks to wait, is no absence, whatever else it says.
func TestADoubtfulAnswerIsNoAbsence(t *testing.T) {
	const query = `graphql: {query: "query Q($s: String!) { item(sku: $s) { id sku title } }", variables: {s: "{key.sku}"}}` + "\n"
	stamp := item("create").Stamp()
	for name, c := range map[string]struct {
		file   string
		status int
		body   string
	}{
		"another field is not found": {itemsFile("", "path: /graphql\nstrength: strong\nrecord: $.data.item\nabsent: [200]\nabsent_where: {path: \"$.errors[*].extensions.code\", equals: NOT_FOUND}\n"+query), 200,
			`{"data":{"item":{"id":"1","sku":"A-1","title":"one"}},"errors":[{"path":["item","owner"],"extensions":{"code":"NOT_FOUND"}}]}`},
		"a limit, said with 404":           {strings.Replace(oneFile("absent: [404]"), "auth:", "throttle: {status: 404, where: {path: $.limit, equals: true}, wait: 1s}\nauth:", 1), 404, `{"limit":true}`},
		"a limit, said with 404 by a list": {strings.Replace(itemsFile("", "path: /items\nquery: {q: '{key.sku}'}\nrecords: $.items[*]\nabsent: [404]\nabsent_where: {path: $.gone, equals: true}"), "auth:", "throttle: {status: 404, where: {path: $.limit, equals: true}, wait: 1s}\nauth:", 1), 404, `{"limit":true,"gone":true}`},
		"a hit has our stamp and another key": {itemsFile("", searchRead), 200,
			`{"items":[{"id":"7","sku":"B-7","title":"as A-1"},{"id":"1","sku":"B-9","title":"one","stamp":"` + stamp + `"}]}`},
		"a hit has our stamp and no key": {itemsFile("", searchRead), 200,
			`{"items":[{"id":"7","sku":"B-7","title":"as A-1"},{"id":"1","title":"one","stamp":"` + stamp + `"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			in := item("create")
			o, err := items(t, c.file, says(c.status, c.body)).Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
			if err == nil && len(o.Records) == 0 {
				t.Errorf("nothing is there, by a %s read", o.Strength)
			}
		})
	}
}

// An upsert of a record that the destination has not decided on, or has decided against, was not
// fulfilled before.
func TestWhatIsNotDecidedIsNotFulfilled(t *testing.T) {
	for status, want := range map[string]bool{"pending": false, "failed": false, "succeeded": true} {
		t.Run(status, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				file := strings.Replace(refundFile, "      create:\n        method: POST", "      upsert:\n        method: PUT\n        unique: true", 1)
				file = strings.Replace(file, "profile: {stamped: true, ", "profile: {", 1)
				con := items(t, file, says(http.StatusOK, `{"items":[{"id":"1","sku":"A-1","title":"one","status":"`+status+`"}]}`))
				var reg connectors.Registry
				if err := reg.Register("items", connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
					t.Fatal(err)
				}
				e := engine.New(ledger.NewMemory(), &reg, nil)
				defer e.Close()
				if out, err := e.Do(t.Context(), item(intent.Upsert)); err != nil || (out.Status == ledger.Verified) != want {
					t.Errorf("%s: %s; %v", out.Status, out.Text, err)
				}
			})
		})
	}
}

// The clock of the destination is an hour behind that of the ledger, and the answer to the send is lost.
// Reads from the first send do not show the message; the read that decides begins at no time.
func TestAbsenceRestsOnNoClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type message struct {
			at   int64
			text string
		}
		var all []message
		con := handled(t, sinceFile, func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				var sent struct {
					Text     string          `json:"text"`
					Metadata json.RawMessage `json:"metadata"`
				}
				if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
					t.Error(err)
				}
				all = append(all, message{time.Now().Add(-time.Hour).Unix(), fmt.Sprintf(`{"ts":"%d","text":%q,"metadata":%s}`, len(all), sent.Text, sent.Metadata)})
				panic(http.ErrAbortHandler)
			}
			oldest, err := strconv.ParseInt(r.URL.Query().Get("oldest"), 10, 64)
			if err != nil {
				t.Error(err)
			}
			var shown []string
			for _, m := range all {
				if m.at >= oldest {
					shown = append(shown, m.text)
				}
			}
			says(http.StatusOK, `{"messages":[`+strings.Join(shown, ",")+`]}`)(rw, r)
		})
		in := inRoom("C1", 1)
		var reg connectors.Registry
		if err := reg.Register(in.Destination, connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
			t.Fatal(err)
		}
		e := engine.New(ledger.NewMemory(), &reg, nil)
		defer e.Close()
		if out, err := e.Do(t.Context(), in); err != nil || out.Status != ledger.Verified || len(all) != 1 {
			t.Errorf("%d messages, %s: %s; %v", len(all), out.Status, out.Text, err)
		}
	})
}
