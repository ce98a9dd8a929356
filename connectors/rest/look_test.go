package rest_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
)

// TestProbesByPost makes probes whose requests are no GET.
func TestProbesByPost(t *testing.T) {
	const graphql = `graphql: {query: "{ shop { open } }"}, path: /graphql, must: [{path: $.data.shop.open, equals: true}]`
	for name, tt := range map[string]struct {
		probe, answer string
		asked         string // the request and its body
		ok            bool
	}{
		"body":           {`method: POST, body: {method: get, params: ["{param.shop}"]}, path: /rpc, must: [{path: $.result, exists: true}]`, `{"result":1}`, `POST /api/rpc {"method":"get","params":["main"]}`, true},
		"body, an error": {`method: POST, body: {method: get}, path: /rpc, must: [{path: $.result, exists: true}]`, `{"error":1}`, `POST /api/rpc {"method":"get"}`, false},
		"form":           {`method: POST, form: {shop: "{param.shop}"}, query: {a: b}, path: /auth.test, must: [{path: $.ok, equals: true}]`, `{"ok":true}`, `POST /api/auth.test?a=b shop=main`, true},
		"text":           {`method: POST, text: "<a>{param.shop}</a>", type: text/xml, headers: {X-A: b}, path: /a`, `{}`, `POST /api/a <a>main</a>`, true},
		"query":          {graphql, `{"data":{"shop":{"open":true}}}`, `POST /api/graphql {"query":"{ shop { open } }"}`, true},
		"query, errors":  {graphql, `{"data":{"shop":{"open":true}},"errors":[{"message":"no"}]}`, `POST /api/graphql {"query":"{ shop { open } }"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			file := strings.Replace(itemsFile("", plainRead), `{path: "/shops/{param.shop}", must: [{path: $.open, equals: true}]}`, "{"+tt.probe+"}", 1)
			asked := ""
			err := items(t, file, func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked = r.Method + " " + r.RequestURI + " " + string(body)
				says(200, tt.answer)(rw, r)
			}).Probe(t.Context())
			if (err == nil) != tt.ok || asked != tt.asked {
				t.Errorf("asked %q, got %v; want %q, and it good: %t", asked, err, tt.asked, tt.ok)
			}
		})
	}
}

// TestAListByPostIsOfItsScope reads the histories of two channels together, where the channel is in the
// form, and in a header: each query has the answer of its own channel.
func TestAListByPostIsOfItsScope(t *testing.T) {
	for name, request := range map[string]string{
		"form":   "method: POST\n        form: {channel: '{key.channel}'}",
		"text":   "method: POST\n        type: text/plain\n        text: '{key.channel}'",
		"header": "headers: {X-Channel: '{key.channel}'}",
	} {
		t.Run(name, func(t *testing.T) {
			file := strings.Replace(roomFile, `query: {channel: "{key.channel}", limit: "999"}`, request, 1)
			in := map[string][]intent.WriteIntent{"C1": {inRoom("C1", 1)}, "C2": {inRoom("C2", 2)}}
			con := handled(t, file, func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				channel := r.Header.Get("X-Channel") + strings.TrimPrefix(string(body), "channel=")
				r.URL.RawQuery = "channel=" + channel
				rooms(in)(rw, r)
			})
			var qs []connectors.Query
			for _, w := range slices.Concat(in["C1"], in["C2"], []intent.WriteIntent{inRoom("C2", 1)}) {
				qs = append(qs, connectors.Query{Intent: w, Stamp: w.Stamp()})
			}
			answers, err := con.ReadMany(t.Context(), qs)
			if err != nil {
				t.Fatal(err)
			}
			for n, want := range []int{1, 1, 0} {
				if a := answers[n]; a.Err != nil || len(a.Observation.Records) != want {
					t.Errorf("query %d: %+v, want %d records", n, a, want)
				}
			}
		})
	}
}

// TestOperationsOfGraphQL refuses reads with an operation that may write, however it is written.
func TestOperationsOfGraphQL(t *testing.T) {
	for query, reads := range map[string]bool{
		"{ a }":                                             true,
		"query mutation { mutation }":                       true,
		"query($a: I = {b: 1}) { a }":                       true,
		"# mutation\n{ a }":                                 true,
		`{ a(b: "} mutation {") }`:                          true,
		`{ a(b: """} " mutation { """) }`:                   true,
		"fragment f on T { a } query q @d(x: [1]) { ...f }": true,
		"mutation { a }":                                    false,
		"mutation($a: ID!) { a }":                           false,
		"{ a } mutation b { c }":                            false,
		"# a\r\n\t,mutation{a}":                             false,
		"fragment f on T { a } mutation b { c }":            false,
		`{ a(b: "\"}") } mutation b { c }`:                  false,
		"subscription { a }":                                false,
	} {
		file := strings.Replace(itemsFile("", plainRead), `probe: {path`, "probe: {graphql: {query: "+quoted(query)+"}, path", 1)
		if _, err := rest.Load([]byte(file), "F"); (err == nil) != reads {
			t.Errorf("%q: %v; want it taken for a query: %t", query, err, reads)
		}
	}
}

// quoted is a text as YAML.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s) + `"`
}

// TestASharedListIsOfItsOwnConditions has two reads of one request, of which the second requires more of
// its answer: the answer to the first is none to the second.
func TestASharedListIsOfItsOwnConditions(t *testing.T) {
	_, history, _ := strings.Cut(roomFile, "    reads:\n")
	history, _, _ = strings.Cut(history, "    record:\n")
	strict := strings.Replace(strings.Replace(history, "history", "strict", 1), "        records:", "        must: [{path: $.whole, equals: true}]\n        records:", 1)
	one := inRoom("C1", 1)
	con := handled(t, strings.Replace(roomFile, history, history+strict, 1), rooms(map[string][]intent.WriteIntent{"C1": {one}}))
	answers, err := con.ReadMany(t.Context(), []connectors.Query{{Intent: one, Stamp: one.Stamp()}, {Intent: inRoom("C1", 2)}})
	if err != nil {
		t.Fatal(err)
	}
	for n, a := range answers {
		if a.Err == nil || !strings.Contains(a.Err.Error(), "$.whole") {
			t.Errorf("query %d: %+v; want the error of the second read", n, a)
		}
	}
}

// TestShippedProbes makes the probe of each declaration of the campaign on the fake of its API.
func TestShippedProbes(t *testing.T) {
	for name, d := range destinations {
		if d.connect != nil || d.trap {
			continue // no included declaration
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				declaration, _, _ := strings.Cut(name, "/")
				f := d.open()
				con, err := rest.New(shippedDeclaration(t, declaration), rest.Options{Parameters: d.parameters, Secrets: secrets(d.secrets), Transport: f.Transport()})
				if err != nil {
					t.Fatal(err)
				}
				if err := con.Probe(t.Context()); err != nil {
					t.Error(err)
				}
				if writes, reads := f.Count(); writes != 0 || reads == 0 {
					t.Errorf("the probe made %d writes and %d reads", writes, reads)
				}
			})
		})
	}
}
