package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/internal/wire"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
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
		"prepared what":   {"nothing makes it", "path: /items\n        body", "path: /items/{prepared}\n        body", "create.path: {prepared} is not known here; want prepare: {…, ref: $.id} in the write"},
		"unused what":     {"nothing makes it", ref, ref + "        unused: {path: /drafts}\n", "create.unused: shows that what was prepared had no effect; want prepare"},
		"unused always":   {"it shows nothing", "path: /items\n        body", "prepare: {method: POST, path: /drafts, ref: $.id}\n        unused: {path: '/drafts/{prepared}'}\n        path: /drafts/{prepared}\n        body", "create.unused: is answered alike whatever became of what was prepared; want {prepared} in it, and must"},
		"unused what one": {"it shows nothing", "path: /items\n        body", "prepare: {method: POST, path: /drafts, ref: $.id}\n        unused: {path: /drafts, must: [{path: $.id, exists: true}]}\n        path: /drafts/{prepared}\n        body", "create.unused: is answered alike whatever became of what was prepared; want {prepared} in it, and must"},
		"stamp of a mail": {"it is lost", "path: /items\n        body", "prepare: {method: POST, path: /drafts, body: {raw: {'[mail]': {To: a@example.org, X-Stamp: '{stamp} {fields.x?}', text: a}}}, ref: $.id}\n        path: /drafts/{prepared}\n        body", "would leave the stamp out when another value is missing"},
		"prepared unsent": {"what for", ref, ref + "        prepare: {method: POST, path: /drafts, ref: $.id}\n", "create.prepare: makes what the call after it does not name; want {prepared}"},
		"unnamed draft":   {"which is sent", ref, ref + "        prepare: {method: POST, path: /drafts}\n", "create.prepare.ref: is missing; want where the answer names what was made"},
		"unique draft":    {"of which call", ref, ref + "        prepare: {method: POST, path: /drafts, ref: $.id, unique: true}\n", "create.prepare.unique: is of the call that has the effect; want it beside prepare"},
		"strong refs":     {"an index", "strength: strong", "strength: strong\n        only_refs: true", "only_refs: is set on what is no list that asks for {key.…} or {stamp}, or is strong or bulk"},
		"refs of nothing": {"how", "strength: strong", "only_refs: true", "has only_refs; want a read by ref"},
		"no mail":         {"what is sent", `stamp: "{stamp}"`, `stamp: "{stamp}", raw: {"[mail]": {To: a@example.org}}`, "create.body.raw.[mail]: is no mail; want its headers and text"},
		"mail's type":     {"it is made", `stamp: "{stamp}"`, `stamp: "{stamp}", raw: {"[mail]": {Content-Type: text/html, text: a}}`, "[mail].Content-Type: cannot be set here; a mail is text in UTF-8"},
		"key in two":      {"where does it look", ref, ref + "        idempotency: {header: X-K, query: k, window: 1h}\n", "idempotency.query: is set together with header"},
		"key nowhere":     {"it is never sent", ref, ref + "        idempotency: {form: uuid4, window: 1h}\n", "idempotency.header: is missing; want the header, query: the parameter, or {idempotency_key} in the body"},
		"stamp nowhere":   {"what is unique", `, stamp: "{stamp}"`, "}\n        idempotency: {stamp: true, window: 1h}\n        headers: {X-A: b", "idempotency.stamp: is true; want {stamp} in the request"},
		"stamp and key":   {"which of them", ref, ref + "        idempotency: {stamp: true, query: k, window: 1h}\n", "idempotency.stamp: is true, and there is another key; want the one that the API keeps unique"},
		"key twice":       {"one of them is lost", ref, ref + "        query: {k: \"1\"}\n        idempotency: {query: k, window: 1h}\n", "idempotency.query: is a parameter of the request already"},
		"key's form":      {"misspelt", ref, ref + "        idempotency: {query: k, form: uuid, window: 1h}\n", `idempotency.form: is "uuid"; want one of raw, quoted, uuid4, hex25, int31`},
		"quotes in body":  {"they would be in the value", `sku: "{key.sku}"`, `sku: "{key.sku}", k: "{idempotency_key}"` + "}\n        idempotency: {form: quoted, window: 1h}\n        headers: {X-A: b", "idempotency.form: is for a header"},
		"small keys":      {"two writes share one", `, stamp: "{stamp}"`, `, k: "{idempotency_key}"` + "}\n        idempotency: {form: int31, window: 1h}\n        headers: {X-A: b", "idempotency.form: is a number of 31 bits, which two writes can share; want {stamp}"},
		"stamp's form":    {"two writes could share it", "stamp: {path: $.stamp}", "stamp: {path: $.stamp, form: int31}", `record.stamp.form: is "int31"; want one of uuid4, hex25`},
		"form of a field": {"what for", `fields: {"...": $}`, `fields: {"...": $, a: {path: $.a, form: uuid4}}`, "record.fields.a.form: is for the stamp"},
		"never":           {"there is no delete", "profile: {stamped: true}", "profile: {stamped: true, never_repeat: [create, delete]}", "profile.never_repeat[1]: is no write of this kind"},
		"mutation":        {"it must show what it did", ref, ref + "        graphql: {query: 'mutation { a }'}\n", "create.body: is set together with graphql\ncreate.graphql.result: is missing; want where the answer has what the mutation did"},
		"no query":        {"which", ref, ref + "        graphql: {result: $.data.a, variables: [1]}\n", "create.graphql.query: is missing\ncreate.graphql.variables: is a list; want names with values"},
		"user errors":     {"they never come", ref, ref + "        graphql: {query: 'mutation { a }', result: $.data.a, user_errors: $.data.a.userErrors}\n", "create.graphql.user_errors: is not asked for by the query; want userErrors { message } in it"},
		"query of a read": {"it has records", "query: {sku: \"{key.sku}\"}", "graphql: {query: '{ items }', result: $.data.items}", "reads[0].graphql: has result or user_errors, which are of writes"},
		"JSON as text":    {"it is not escaped", "path: /items\n        body: {\"...\": \"{fields}\", sku: \"{key.sku}\", stamp: \"{stamp}\"}", "path: /items\n        text: '{{\"a\": \"{key.sku}\"}} {stamp}'\n        type: application/json", "create.type: is JSON, and how text would have to be escaped in it is not known; want body"},
		"another type":    {"it is not escaped", "path: /items\n        body: {\"...\": \"{fields}\", sku: \"{key.sku}\", stamp: \"{stamp}\"}", "path: /items\n        text: '{key.sku} {stamp}'\n        type: text/csv", `create.type: is "text/csv", of which it is not known how to escape values`},
		"text and body":   {"which", ref, ref + "        text: a\n", "create.text: is set together with another body\ncreate.type: is missing; want text/plain"},
		"no member":       {"of a text", "path: /items\n        body: {\"...\": \"{fields}\", sku: \"{key.sku}\", stamp: \"{stamp}\"}", "path: /items\n        text: '{fields.a?} {stamp}'\n        type: text/xml", "create.text: {fields.a?}: a text has no members to leave out"},
		"encoded path":    {"it has slashes", "path: /items\n        body", "path: '/items/{key.sku|base64}'\n        body", "create.path: {key.sku|base64}: a part of a path is not encoded"},
		"encoding":        {"misspelt", `sku: "{key.sku}"`, `sku: "{key.sku|base32}"`, "is no placeholder"},
		"name of a key":   {"an intent would choose it", `sku: "{key.sku}"`, `sku: "{key.sku}", "{fields.a}": "{fields.b}"`, "names of members have no placeholders but {param.NAME}; write the name out"},
		"name":            {"not declared", `sku: "{key.sku}"`, `sku: "{key.sku}", "{param.a}": "{fields.b}"`, "{param.a} is not declared; want one of the parameters (shop)"},
		"login of reads":  {"whose", "  bearer: {secret: token}", "  bearer: {secret: token}\nread_auth: {bearer: {secret: token}}", "read_auth: has the secret of auth; want one of its own"},
		"their refresh":   {"whose", "  bearer: {secret: token}", "  oauth2: {token_url: /t, client_id: a, secret: s, grant: refresh_token, refresh: token}\nread_auth: {oauth2: {token_url: /t, client_id: b, secret: r, grant: refresh_token, refresh: token}}", "read_auth: has the secret of auth"},
		"two for reads":   {"which", "  bearer: {secret: token}", "  bearer: {secret: token}\nread_auth: {bearer: {secret: a}, basic: {username: b, secret: c}}", "read_auth: want exactly one of bearer"},
		"only for reads":  {"and writes?", "auth:\n  bearer: {secret: token}", "read_auth: {bearer: {secret: token}}", "read_auth: is set without auth"},
		"secret's name":   {"the secret itself", "path: /items\n        body", "path: '/bot{secret.Hunter2}/items'\n        body", "create.path: is not the name of a secret"},
		"secret in query": {"it would be in logs of others", `query: {sku: "{key.sku}"}`, `query: {sku: "{key.sku}", t: "{secret.token}"}`, "{secret.token} is not known here"},
		"signature":       {"of what", "  bearer: {secret: token}", "  sigv4: {service: 'a b', secret: token}", "auth.sigv4.service: is no name of a service\nauth.sigv4.region: is missing\nauth.sigv4.key_id: is missing"},
		"which refresh":   {"none", "  bearer: {secret: token}", "  oauth2: {token_url: /t, client_id: a, secret: token, grant: refresh_token}", "auth.oauth2.refresh: is missing"},
		"rotated":         {"the client's secret stays", "  bearer: {secret: token}", "  oauth2: {token_url: /t, client_id: a, secret: token, grant: refresh_token, refresh: token, rotates: true}", ":10: auth.oauth2: rotates its refresh token, which has the name of the client's secret; want a name of its own"},
		"signed for none": {"no client signs", "  bearer: {secret: token}", "  oauth2: {token_url: /t, client_id: a, secret: token, subject: a, audience: b}", ":10: auth.oauth2.subject: is set without grant: jwt_bearer; want it left out\n:10: auth.oauth2.audience: is set without grant: jwt_bearer"},
		"signed and sent": {"a private key is never sent", "  bearer: {secret: token}", "  oauth2: {token_url: /t, client_id: a, secret: token, grant: jwt_bearer, style: header}", "auth.oauth2.style: is set with grant: jwt_bearer, which sends no secret; want it left out"},
		"signed and kept": {"it has no refresh token", "  bearer: {secret: token}", "  oauth2: {token_url: /t, client_id: a, secret: token, grant: jwt_bearer, refresh: r}", "auth.oauth2: has refresh or rotates without grant: refresh_token"},
		"other grant":     {"not known", "  bearer: {secret: token}", "  oauth2: {token_url: /t, client_id: a, secret: token, grant: password, refresh: r}", "auth.oauth2.grant: is \"password\"; want client_credentials or refresh_token or jwt_bearer\nauth.oauth2: has refresh or rotates without grant"},
		"no wait":         {"how long", "system: Items", "system: Items\nthrottle: {status: 429}", ":5: throttle: does not say how long to wait; want {header: Retry-After}"},
		"form of a wait":  {"of what", "system: Items", "system: Items\nthrottle: [{wait: 3s, form: epoch}, {header: X, form: minutes}]", "throttle[0].form: is set without header\nthrottle[1].form: is \"minutes\"; want seconds or epoch"},
		"wait":            {"no caller waits so long", "system: Items", "system: Items\nthrottle: {wait: 48h}", "throttle.wait: is 48h0m0s; want more than 0 and at most 24h"},
		"wait by a proxy": {"it is not the API's", "system: Items", "system: Items\nthrottle: {status: [503], wait: 1s}", "a gateway may have answered"},
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

// Where nothing can be read, nothing shows that two writes had one small key.
func TestNoSmallKeyWithoutReads(t *testing.T) {
	file := strings.NewReplacer("profile: {stamped: true}", "profile: {write_only: true}",
		"        ref: $.id\n", "        ref: $.id\n        idempotency: {header: X-K, form: int31, window: 1h}\n").Replace(itemsFile("", plainRead))
	if _, err := rest.Load([]byte(file), "F"); err == nil || !strings.Contains(err.Error(), "nothing that is read would show it; want another form") {
		t.Errorf("%v; want the form refused", err)
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
		"busy":             {"ref: $.id\n", "ref: $.id\n        answers: [{status: [409, 423], means: busy}]\n", "The answer 409 or 423 to a create can mean that an earlier send of it is at work", ""},
		"key in the query": {"ref: $.id\n", "ref: $.id\n        idempotency: {query: requestid, form: hex25, window: 1h}\n", "A create carries our key in the query as requestid as 25 hex digits of a hash of it. A repeat within 1h0m0s has the same one.", ""},
		"unique stamp":     {"ref: $.id\n", "ref: $.id\n        idempotency: {stamp: true, window: 720h}\n", "The API keeps the stamp of a create unique: a repeat within 720h0m0s, which has the same one, makes no second record.", ""},
		"small key":        {"ref: $.id\n", "ref: $.id\n        idempotency: {header: X-K, form: int31, window: 1h}\n", "among 10,000 writes two share one in one case of 43", ""},
		"form of a stamp":  {"stamp: {path: $.stamp}", "stamp: {path: $.stamp, form: uuid4}", "The stamp is sent and found as a UUID of version 4", ""},
		"never_repeat":     {"profile: {stamped: true}", "profile: {stamped: true, never_repeat: [create]}", "A create is sent once: never again, key or not, unless the first send provably did nothing or a reviewer says so.", ""},
		"login of reads":   {"  bearer: {secret: token}", "  bearer: {secret: token}\nread_auth: {bearer: {secret: read_token}}", "Reads log in with the secret read_token, of their own", ""},
		"secret in a path": {"path: /items\n        body", "path: '/bot{secret.bot}/items'\n        body", "The secret bot is part of a path.", ""},
		"throttle":         {"system: Items", "system: Items\nthrottle: [{header: X-Reset, form: epoch, wait: 30s}, {status: 403, where: {path: $.limited, equals: true}, wait: 1m}]", "to a write or a read: 429 waits as the header X-Reset says, else 30s; 403 with a certain $.limited waits 1m0s.", ""},
		"refusal":          {"system: Items", "system: Items\nrefusal: {text: [$.a, {header: X-B}], request: $.id}", "A refused create is shown in the destination's words: the text from $.a, else the header X-B; the id of the request from $.id.", ""},
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

// boxFile declares a box of letters, whose API knows a key of ours. write is what its create has besides.
func boxFile(write string) string {
	return `
declaration: 1
name: box
system: A box of letters
base_url: http://127.0.0.1:1
auth: {bearer: {secret: token}}
probe: {path: /me}
kinds:
  letter:
    key: [id]
    writes:
      create:
        method: POST
        path: /letters
        body: {id: "{key.id}", text: "{fields.text}", stamp: "{stamp}"}
        ref: $.ref
` + indent(8, write) + `
    reads:
      - {name: list, by: [key, stamp], strength: strong, path: /letters, query: {id: "{key.id}"}, records: "$.letters[*]"}
    record:
      ref: $.ref
      stamp: $.stamp
      fields: {id: $.id, text: $.text}
    profile: {stamped: true, horizon: 10m}
`
}

const letters = "letters"

// box is the fake of that API. keyOf finds our key in a request; nil: it knows none.
func box(keyOf func(r *fakerest.Request) string) *fakerest.Fake {
	problem := func(status int, code string) fakerest.Answer {
		return fakerest.Answer{Status: status, Body: map[string]any{"error": map[string]any{"code": code, "message": "it says " + code}}}
	}
	f := fakerest.New(fakerest.Manners{
		Authorized:   func(r *http.Request) bool { return r.Header.Get("Authorization") != "" },
		Unauthorized: func() fakerest.Answer { return problem(http.StatusUnauthorized, "login") },
		NotFound:     func(*http.Request) fakerest.Answer { return problem(http.StatusNotFound, "path") },
		Malformed:    func() fakerest.Answer { return problem(http.StatusBadRequest, "json") },
		Refused:      func(string) (fakerest.Answer, bool) { return problem(http.StatusBadRequest, "refused"), true },
		Throttled: func(_ string, wait time.Duration) (fakerest.Answer, bool) {
			a := problem(http.StatusTooManyRequests, "slow")
			a.Header = map[string]string{"X-Reset": strconv.FormatInt(time.Now().Add(wait).Unix(), 10)}
			return a, true
		},
		Key:  keyOf,
		Busy: func(*fakerest.Request) fakerest.Answer { return problem(http.StatusConflict, "busy") },
	})
	f.HandleWrite("POST /letters", func(r *fakerest.Request, now fakerest.View) (fakerest.Plan, *fakerest.Answer) {
		key := ""
		if keyOf != nil {
			key = keyOf(r)
		}
		if a, _, known := f.Used(key, time.Hour, r); known && key != "" {
			return fakerest.Plan{}, &a
		}
		o := fakerest.Object{"ref": fmt.Sprint("L", now.Next()), "id": r.Body["id"], "text": r.Body["text"], "stamp": r.Body["stamp"]}
		return fakerest.Plan{Collection: letters, ID: o.Text("ref"), After: o, Create: true, Key: key, Answer: func(stored fakerest.Object) fakerest.Answer {
			return fakerest.Answer{Status: http.StatusCreated, Body: map[string]any{"ref": stored["ref"]}}
		}}, nil
	})
	f.HandleRead("GET /letters", true, func(r *fakerest.Request, seen fakerest.View) fakerest.Answer {
		all := slices.DeleteFunc(seen.List(letters), func(o fakerest.Object) bool { return o.Text("id") != r.URL.Query().Get("id") })
		return fakerest.Answer{Status: http.StatusOK, Body: map[string]any{"letters": append([]fakerest.Object{}, all...)}}
	})
	f.HandleRead("GET /me", true, func(*fakerest.Request, fakerest.View) fakerest.Answer {
		return fakerest.Answer{Status: http.StatusOK, Body: map[string]any{"ok": true}}
	})
	return f
}

func letter(n int) intent.WriteIntent {
	return intent.WriteIntent{Tenant: "acme", Workflow: "wf", Step: fmt.Sprint("letter-", n), Tool: "box.put", Destination: "box", Kind: "letter",
		Write: intent.Create, Key: intent.Fields{"id": fmt.Sprint("l-", n)}, Expect: intent.Fields{"text": fmt.Sprint("dear ", n)}}
}

// boxConnector connects a declaration of the box with its fake.
func boxConnector(t *testing.T, f *fakerest.Fake, file string) *rest.Connector {
	t.Helper()
	d, err := rest.Load([]byte(file), "box.yaml")
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]func(context.Context) (string, error){}
	for _, name := range d.Secrets() {
		secrets[name] = func(context.Context) (string, error) { return "hunter2-" + name, nil }
	}
	c, err := rest.New(d, rest.Options{Transport: f.Transport(), Secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// boxed makes one write with an engine of its own.
func boxed(t *testing.T, c *rest.Connector, in intent.WriteIntent) engine.Outcome {
	t.Helper()
	var reg connectors.Registry
	if err := reg.Register("box", connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
		t.Fatal(err)
	}
	e := engine.New(ledger.NewMemory(), &reg, nil)
	defer e.Close()
	out, err := e.Do(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sends are the requests to a path that arrived, in order.
func sends(f *fakerest.Fake, path string) (all []fakerest.Call) {
	for _, c := range f.Calls() {
		if c.Method == http.MethodPost && strings.HasPrefix(c.Path, path) {
			all = append(all, c)
		}
	}
	return all
}

// While the first send is at work, repeats under its key say so. They are not refusals: the key stays,
// and what the first one made is found.
func TestAnEarlierSendIsAtWork(t *testing.T) {
	const rules = `
idempotency: {header: Idempotency-Key, window: 1h}
answers: [{status: 409, where: {path: $.error.code, equals: busy}, means: busy}]`
	synctest.Test(t, func(t *testing.T) {
		f := box(func(r *fakerest.Request) string { return r.Header.Get("Idempotency-Key") })
		if err := f.Set(fault.Fault{Kind: fault.LateCommit, Delay: 12 * time.Second, Times: 1}); err != nil {
			t.Fatal(err)
		}
		out := boxed(t, boxConnector(t, f, boxFile(rules)), letter(1))
		if out.Status != ledger.Verified || len(f.Now(letters)) != 1 {
			t.Errorf("%s (%s), %d letters; want one, verified", out.Status, out.Text, len(f.Now(letters)))
		}
		all := sends(f, "/letters")
		if len(all) < 2 {
			t.Fatalf("%d sends: the destination was never busy", len(all))
		}
		for i, c := range all[1:] {
			if c.Header.Get("Idempotency-Key") != all[0].Header.Get("Idempotency-Key") {
				t.Errorf("send %d has another key", i+2)
			}
			if wait := c.At.Sub(all[i].At); wait < 5*time.Second {
				t.Errorf("send %d came %v after the one before it, which was busy", i+2, wait)
			}
		}
	})
}

// A limit is heeded where the API names it, by writes and by reads.
func TestThrottledWritesAndReads(t *testing.T) {
	const at = "system: Items\nthrottle:\n  - {header: X-Reset, form: epoch, wait: 30s}\n  - {status: [200, 403], where: {path: $.limited, equals: true}, wait: 1m}\n"
	file := strings.Replace(itemsFile("", plainRead), "system: Items\n", at, 1)
	for name, tt := range map[string]struct {
		reason string
		answer http.HandlerFunc
		wait   time.Duration // 0: it is no throttle
	}{
		"by a header":        {"a time since 1970", says(429, `{}`, "X-Reset", "946684807.5"), 7500 * time.Millisecond},
		"without the header": {"the usual wait", says(429, `{}`), 30 * time.Second},
		"no number":          {"likewise", says(429, `{}`, "X-Reset", "soon"), 30 * time.Second},
		"Retry-After":        {"it comes first", says(429, `{}`, "Retry-After", "3", "X-Reset", "946684900"), 3 * time.Second},
		"another status":     {"in words", says(403, `{"limited":true}`), time.Minute},
		"200":                {"an error in a success", says(200, `{"limited":true,"items":[]}`), time.Minute},
		"another 403":        {"a refusal", says(403, `{"limited":false}`, "X-Reset", "946684900"), 0},
		"a proxy":            {"it does not speak for the API", says(503, `<html>`), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the clock starts at 2000-01-01
				c := items(t, file, tt.answer)
				_, wrote := c.Write(t.Context(), itemRequest(intent.Create))
				in := item(intent.Create)
				_, read := c.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
				for what, err := range map[string]error{"write": wrote, "read": read} {
					var e *connectors.Error
					throttled := errors.As(err, &e) && e.Fate == connectors.FateThrottled
					if throttled != (tt.wait > 0) || throttled && e.RetryAfter != tt.wait {
						t.Errorf("%s: %v; want a wait of %v: %s", what, err, tt.wait, tt.reason)
					}
				}
			})
		})
	}
}

// Every send of a write has the same key, in the form and the place that the API wants.
func TestFormsOfAKey(t *testing.T) {
	inHeader := func(r *fakerest.Request) string { return r.Header.Get("X-Key") }
	inQuery := func(r *fakerest.Request) string { return r.URL.Query().Get("requestid") }
	inBody := func(r *fakerest.Request) string { return fmt.Sprint(r.Body["nonce"]) }
	for name, tt := range map[string]struct {
		idempotency string
		keyOf       func(*fakerest.Request) string
		form        string
	}{
		"as it is":    {"header: X-Key", inHeader, `^rb.*[^"]$`},
		"quoted":      {"header: X-Key, form: quoted", inHeader, `^".*"$`},
		"query":       {"query: requestid", inQuery, `^rb`},
		"UUID":        {"query: requestid, form: uuid4", inQuery, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`},
		"hex in body": {"form: hex25", inBody, `^[0-9a-f]{25}$`},
		"number":      {"form: int31", inBody, `^[1-9][0-9]{0,9}$`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := box(tt.keyOf)
				if err := f.Set(fault.Fault{Kind: fault.LateCommit, Delay: 3 * time.Second, Times: 1}); err != nil {
					t.Fatal(err)
				}
				file := boxFile("idempotency: {" + tt.idempotency + ", window: 1h}\nanswers: [{status: 409, means: busy}]")
				if strings.Contains(name, "body") || name == "number" {
					file = strings.Replace(file, `stamp: "{stamp}"}`, `stamp: "{stamp}", nonce: "{idempotency_key}"}`, 1)
				}
				out := boxed(t, boxConnector(t, f, file), letter(1))
				if out.Status != ledger.Verified || len(f.Now(letters)) != 1 {
					t.Errorf("%s (%s), %d letters; want one, verified", out.Status, out.Text, len(f.Now(letters)))
				}
				keys := map[string]bool{}
				for _, c := range sends(f, "/letters") {
					at, _ := url.Parse(c.Path)
					var body map[string]any
					d := json.NewDecoder(strings.NewReader(c.Body))
					d.UseNumber()
					_ = d.Decode(&body)
					if _, text := body["nonce"].(string); text && name == "number" {
						t.Errorf("the number was sent as text: %s", c.Body)
					}
					keys[tt.keyOf(&fakerest.Request{Request: &http.Request{Header: c.Header, URL: at}, Body: body})] = true
				}
				if len(sends(f, "/letters")) < 2 || len(keys) != 1 {
					t.Fatalf("%d sends with the keys %v; want several with one", len(sends(f, "/letters")), keys)
				}
				for key := range keys {
					if !regexp.MustCompile(tt.form).MatchString(key) {
						t.Errorf("the key is %s, want %s", key, tt.form)
					}
				}
			})
		})
	}
}

// Of two writes that share a short key the API takes the second for the first. It is not verified.
func TestTwoWritesThatShareAShortKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := box(func(*fakerest.Request) string { return "7" })
		c := boxConnector(t, f, boxFile("idempotency: {header: X-Key, form: int31, window: 1h}"))
		if out := boxed(t, c, letter(1)); out.Status != ledger.Verified {
			t.Fatalf("the first: %s (%s)", out.Status, out.Text)
		}
		if out := boxed(t, c, letter(2)); out.Status == ledger.Verified || len(f.Now(letters)) != 1 {
			t.Errorf("the second is %s (%s), and there are %d letters", out.Status, out.Text, len(f.Now(letters)))
		}
	})
}

// A stamp in a form is sent, found and compared in it, and is ours to everybody else.
func TestFormsOfAStamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := box(nil)
		if err := f.Set(fault.Fault{Kind: fault.LostAnswer, Times: 1}); err != nil {
			t.Fatal(err)
		}
		c := boxConnector(t, f, strings.Replace(boxFile(""), "stamp: $.stamp", "stamp: {path: $.stamp, form: uuid4}", 1))
		in := letter(1)
		if out := boxed(t, c, in); out.Status != ledger.Verified || len(f.Now(letters)) != 1 {
			t.Errorf("%s (%s), %d letters; want one, verified", out.Status, out.Text, len(f.Now(letters)))
		}
		for _, l := range f.Now(letters) {
			if id, err := uuid.Parse(l.Text("stamp")); err != nil || id.Version() != 4 {
				t.Errorf("the stamp was sent as %q, want a UUID of version 4", l.Text("stamp"))
			}
		}
		for stamp, want := range map[string]string{in.Stamp(): in.Stamp(), letter(2).Stamp(): "", "": ""} {
			seen, err := c.Read(t.Context(), connectors.Query{Intent: in, Stamp: stamp})
			if err != nil || len(seen.Records) != 1 || seen.Records[0].Stamp != want {
				t.Errorf("by the stamp %q: %+v, %v; want one record with the stamp %q", stamp, seen.Records, err, want)
			}
		}
	})
}

// A write that is never to be repeated is sent once, though the API knows our key: a reviewer decides
// where the answer is lost and nothing is to be seen. The same write without that is repeated.
func TestAWriteThatIsNeverRepeated(t *testing.T) {
	for profile, want := range map[string]struct {
		sends  int
		status ledger.Status
	}{
		"horizon: 10m, irreversible: [create]}":                         {2, ledger.Verified},
		"horizon: 10m, irreversible: [create], never_repeat: [create]}": {1, ledger.StatusReview},
		"horizon: 10m, never_repeat: [create]}":                         {1, ledger.NotApplied},
	} {
		t.Run(profile, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := box(func(r *fakerest.Request) string { return r.Header.Get("X-Key") })
				if err := f.Set(fault.Fault{Kind: fault.DroppedBefore, Times: 1}); err != nil {
					t.Fatal(err)
				}
				file := strings.Replace(boxFile("idempotency: {header: X-Key, window: 1h}"), "horizon: 10m}", profile, 1)
				out := boxed(t, boxConnector(t, f, file), letter(1))
				if got := len(sends(f, "/letters")); got != want.sends || out.Status != want.status {
					t.Errorf("%d sends, %s (%s); want %d, %s", got, out.Status, out.Text, want.sends, want.status)
				}
			})
		})
	}
}

// graphFile declares letters of a GraphQL API.
var graphFile = strings.NewReplacer("body: {id: \"{key.id}\", text: \"{fields.text}\", stamp: \"{stamp}\"}",
	`graphql:
          query: "mutation M($i: I!) { put(i: $i) { letter { ref } userErrors { code message } } }"
          variables: {i: {id: "{key.id}", text: "{fields.text}", stamp: "{stamp}"}}
          result: $.data.put.letter
          user_errors: $.data.put.userErrors`,
	"ref: $.ref\n\n", "ref: $.data.put.letter.ref\n\n", "path: /letters", "path: /graphql",
	"query: {id: \"{key.id}\"}", "graphql: {query: \"query Q($id: ID!) { letters(id: $id) { ref id } }\", variables: {id: \"{key.id}\"}}",
	"$.letters[*]", "$.data.letters[*]").Replace(boxFile(""))

// graph connects that declaration with a handler.
func graph(t *testing.T, h http.HandlerFunc) *rest.Connector {
	t.Helper()
	d, err := rest.Load([]byte(graphFile), "F")
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.New(d, rest.Options{Transport: wire.Transport(h, nil), Secrets: map[string]func(context.Context) (string, error){
		"token": func(context.Context) (string, error) { return "hunter2", nil }}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWhatGraphQLAnswersMean(t *testing.T) {
	const limit = `{"errors":[{"message":"slow down","extensions":{"code":"THROTTLED"}}]}`
	for name, tt := range map[string]struct {
		reason string
		status int
		body   string
		fate   connectors.Fate
		says   string // the message of a refusal
	}{
		"done":                  {"the usual", 200, `{"data":{"put":{"letter":{"ref":"L1"},"userErrors":[]}}}`, connectors.FateAnswered, ""},
		"user errors":           {"the API's refusal", 200, `{"data":{"put":{"letter":null,"userErrors":[{"code":"BLANK","message":"text is blank"}]}}}`, connectors.FateRefused, "text is blank"},
		"invalid":               {"nothing was executed", 200, `{"errors":[{"message":"no such field","extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`, connectors.FateRefused, "no such field"},
		"limit":                 {"not now", 200, limit, connectors.FateThrottled, ""},
		"limit as 400":          {"some answer so", 400, limit, connectors.FateThrottled, ""},
		"one of them":           {"the other may have been met while it was done", 200, `{"errors":[{"extensions":{"code":"THROTTLED"}},{"extensions":{"code":"INTERNAL_SERVER_ERROR"}}]}`, connectors.FateUnknown, ""},
		"internal":              {"it may have been done", 200, `{"data":null,"errors":[{"message":"oops","extensions":{"code":"INTERNAL_SERVER_ERROR"}}]}`, connectors.FateUnknown, ""},
		"no code":               {"it may have been done", 200, `{"errors":[{"message":"oops"}]}`, connectors.FateUnknown, ""},
		"data and errors":       {"a part may have been done", 200, `{"data":{"put":{"letter":{"ref":"L1"}}},"errors":[{"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`, connectors.FateUnknown, ""},
		"other data and errors": {"it may have been done", 200, `{"data":{"viewer":{"id":1},"put":null},"errors":[{"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`, connectors.FateUnknown, ""},
		"no result":             {"it does not say what it did", 200, `{"data":{"put":{"letter":null,"userErrors":[]}}}`, connectors.FateUnknown, ""},
		"no user errors":        {"another shape", 200, `{"data":{"put":{"letter":{"ref":"L1"}}}}`, connectors.FateUnknown, ""},
		"no GraphQL":            {"a page of a proxy", 200, `<html>`, connectors.FateUnknown, ""},
		"a proxy's limit":       {"by its status", 429, `<html>`, connectors.FateThrottled, ""},
		"a broken API":          {"whatever it says", 502, limit, connectors.FateUnknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := letter(1)
			got, err := graph(t, says(tt.status, tt.body)).Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1})
			if connectors.FateOf(err) != tt.fate || tt.says != "" && got.Reply.Message != tt.says || tt.fate == connectors.FateAnswered && got.Ref != "L1" {
				t.Errorf("%q (%v), ref %q, %q; want %q, %q: %s", connectors.FateOf(err), err, got.Ref, got.Reply.Message, tt.fate, tt.says, tt.reason)
			}
		})
	}
}

// A read by GraphQL that has errors shows nothing, and a limit is one.
func TestGraphQLReads(t *testing.T) {
	for body, want := range map[string]struct {
		fate   connectors.Fate
		absent bool
	}{
		`{"data":{"letters":[]}}`: {connectors.FateAnswered, true},
		`{"data":{"letters":[]},"errors":[{"message":"a shard is down"}]}`:         {connectors.FateUnknown, false},
		`{"data":{"letters":[]},"errors":[{"extensions":{"code":"RATELIMITED"}}]}`: {connectors.FateThrottled, false},
		`{"errors":[{"extensions":{"code":"THROTTLED"}}]}`:                         {connectors.FateThrottled, false},
	} {
		var sent string
		c := graph(t, func(rw http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			sent = r.Method + " " + string(b)
			says(200, body)(rw, r)
		})
		in := letter(1)
		got, err := c.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
		if connectors.FateOf(err) != want.fate || (err == nil && len(got.Records) == 0) != want.absent {
			t.Errorf("%s: %v, %v; want %q", body, got.Records, err, want.fate)
		}
		if sent != `POST {"query":"query Q($id: ID!) { letters(id: $id) { ref id } }","variables":{"id":"l-1"}}` {
			t.Errorf("sent %s", sent)
		}
	}
}

// bodies writes one letter and returns the request's body and its type.
func bodies(t *testing.T, body string, text string) (sent, kind string, err error) {
	t.Helper()
	file := strings.NewReplacer("probe:", "parameters: {field: {pattern: '.+', about: a, default: f-1}}\nprobe:", "body: {id: \"{key.id}\", text: \"{fields.text}\", stamp: \"{stamp}\"}", body).Replace(boxFile(""))
	d, err := rest.Load([]byte(file), "F")
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.New(d, rest.Options{Transport: wire.Transport(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		sent, kind = string(b), r.Header.Get("Content-Type")
		says(200, `{"ref":"L1"}`)(rw, r)
	}), nil), Secrets: map[string]func(context.Context) (string, error){"token": func(context.Context) (string, error) { return "hunter2", nil }}})
	if err != nil {
		t.Fatal(err)
	}
	in := letter(1)
	in.Expect["text"] = text
	_, err = c.Write(t.Context(), connectors.Request{Intent: in, Stamp: "S", Attempt: 1})
	return sent, kind, err
}

// A value stays a value in every kind of body.
func TestTextBodies(t *testing.T) {
	for name, tt := range map[string]struct{ reason, body, text, want, kind string }{
		"XML":       {"it ends no element and no attribute", "text: '<l id=\"{key.id}\" s=\"{stamp}\">{fields.text}</l>'\n        type: text/xml", "</l>&\"'\n", "<l id=\"l-1\" s=\"S\">&lt;/l&gt;&amp;&#34;&#39;&#10;</l>", "text/xml; charset=utf-8"},
		"controls":  {"XML has no place for them", "text: '<l s=\"{stamp}\">{fields.text}</l>'\n        type: application/soap+xml", "a\x01", "", ""},
		"plain":     {"as it is", "text: '{stamp} {fields.text}'\n        type: text/plain", "<&>", "S <&>", "text/plain; charset=utf-8"},
		"base64url": {"no member of its own", `body: {raw: "{fields.text|base64url}", s: "{stamp}"}`, "??>>\n", `{"raw":"Pz8-Pgo=","s":"S"}`, "application/json"},
		"base64":    {"within a text", `body: {raw: "data:{fields.text|base64}", s: "{stamp}"}`, "??>>\n", `{"raw":"data:Pz8+Pgo=","s":"S"}`, "application/json"},
		"name":      {"a parameter is a name", `body: {"{param.field}": "{fields.text}", s: "{stamp}"}`, "x", `{"f-1":"x","s":"S"}`, "application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			sent, kind, err := bodies(t, tt.body, tt.text)
			if sent != tt.want || kind != tt.kind || (err == nil) != (tt.want != "") {
				t.Errorf("%q as %q, %v; want %q as %q: %s", sent, kind, err, tt.want, tt.kind, tt.reason)
			}
		})
	}
}

// Reads have a login of their own, which no write uses, and the probe tries both.
func TestALoginOfReads(t *testing.T) {
	const of = "auth: {bearer: {secret: token}}"
	file := strings.Replace(boxFile(""), of, of+"\nread_auth: {header: {name: X-Reader, secret: read_token}}", 1)
	f := box(nil)
	f2 := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Reader") == "hunter2-read_token" && r.Method == http.MethodGet {
			r.Header.Set("Authorization", "reader")
		}
		f.ServeHTTP(rw, r)
	})
	for refused, want := range map[string]string{"": "", "token": "with the login of writes", "read_token": "the destination refused the login"} {
		d, err := rest.Load([]byte(file), "F")
		if err != nil {
			t.Fatal(err)
		}
		var writer, reader int
		secrets := map[string]func(context.Context) (string, error){}
		for _, name := range d.Secrets() {
			secrets[name] = func(context.Context) (string, error) { return "hunter2-" + name, nil }
		}
		c, err := rest.New(d, rest.Options{Secrets: secrets, Transport: wire.Transport(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			byWriter, byReader := r.Header.Get("Authorization") != "", r.Header.Get("X-Reader") != ""
			if byWriter == byReader || r.Method == http.MethodPost && byReader {
				t.Errorf("%s %s with the login of writes %t, of reads %t", r.Method, r.URL.Path, byWriter, byReader)
			}
			if byWriter {
				writer++
			} else {
				reader++
			}
			if byWriter && refused == "token" || byReader && refused == "read_token" {
				says(401, `{}`)(rw, r)
				return
			}
			f2(rw, r)
		}), nil)})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Probe(t.Context())
		if want == "" && (err != nil || writer != 1 || reader != 1) || want != "" && (err == nil || !strings.Contains(connectors.OfRead(err).Error(), want)) {
			t.Errorf("the probe where %q is refused: %v, by writers %d, by readers %d; want %q", refused, err, writer, reader, want)
		}
		if refused == "" {
			writer, reader = 0, 0
			if out := boxed(t, c, letter(1)); out.Status != ledger.Verified || writer != 1 || reader < 2 {
				t.Errorf("%s, %d requests by the writer and %d by the reader; want 1 and some", out.Status, writer, reader)
			}
		}
	}
}

// An observation says another login only where the credentials differ that were used, or would be: what is
// declared as two may be configured as one.
func TestHowFarALoginOfReadsIsFromThatOfWrites(t *testing.T) {
	const (
		of      = "auth: {bearer: {secret: token}}"
		apart   = of + "\nread_auth: {bearer: {secret: reader}}"
		byUser  = "parameters: {a: {pattern: '.+', about: a}, b: {pattern: '.+', about: b}}\nauth: {basic: {username: '{param.a}', secret: token}}\nread_auth: {basic: {username: '{param.b}', secret: reader}}"
		session = "auth: {session: {path: /login, body: {password: '{secret.token}'}, token: $.token, ended: {status: 401}}}\nread_auth: {session: {path: /login, body: {password: '{secret.reader}'}, token: $.token, ended: {status: 401}}}"
		refresh = "auth: {oauth2: {token_url: /token, client_id: app, secret: client, grant: refresh_token, refresh: token}}\nread_auth: {oauth2: {token_url: /token, client_id: app, secret: same_client, grant: refresh_token, refresh: reader}}"
	)
	for name, tt := range map[string]struct {
		reason, auth  string
		token, reader string
		a, b          string // who logs in
		then          string // the next secret of writes, and the one of reads is the first
		old, new      string // in the file
		want          connectors.Independence
		explained     string
	}{
		"others":          {reason: "they differ", auth: apart, token: "hunter2-a", reader: "hunter2-b", want: connectors.OtherLogin, explained: "a receipt says other_login, where"},
		"one login":       {reason: "no other is declared", auth: of, token: "hunter2-a"},
		"one secret":      {reason: "it is one login", auth: apart, token: "hunter2-a", reader: "hunter2-a"},
		"otherwise spelt": {reason: "it is the same secret", auth: of + "\nread_auth: {header: {name: X-Login, secret: reader}}", token: "hunter2-a", reader: "Bearer hunter2-a"},
		"within":          {reason: "it is the same secret", auth: of + "\nread_auth: {header: {name: X-Login, secret: reader}}", token: "Bearer hunter2-a", reader: "hunter2-a"},
		"as Basic":        {reason: "it is the same login", auth: "auth: {basic: {username: ann, secret: token}}\nread_auth: {header: {name: X-Login, secret: reader}}", token: "hunter2-a", reader: "Basic YW5uOmh1bnRlcjItYQ=="},
		"too short":       {reason: "what is part of any text cannot be compared", auth: apart, token: "abc", reader: "hunter2-b"},
		"exchanged":       {reason: "the write was sent with the secret that reads have now", auth: apart, token: "hunter2-a", reader: "hunter2-b", then: "hunter2-c"},
		"unknown":         {reason: "what is not known differs from nothing", auth: apart, reader: "hunter2-b"},
		"users":           {reason: "they differ in both", auth: byUser, token: "hunter2-a", reader: "hunter2-b", a: "ann", b: "bob", want: connectors.OtherLogin},
		"one user":        {reason: "two passwords of one user are one login", auth: byUser, token: "hunter2-a", reader: "hunter2-b", a: "ann", b: "Ann"},
		"one password":    {reason: "it would be strange, and claims nothing", auth: byUser, token: "hunter2-a", reader: "hunter2-a", a: "ann", b: "bob"},
		"sessions":        {reason: "two passwords", auth: session, token: "hunter2-a", reader: "hunter2-b", want: connectors.OtherLogin},
		"one session":     {reason: "it is one password", auth: session, token: "hunter2-a", reader: "hunter2-a"},
		"app":             {reason: "two users of one app have two refresh tokens", auth: refresh, token: "hunter2-a", reader: "hunter2-b", want: connectors.OtherLogin},
		"one refresh":     {reason: "it is one user", auth: refresh, token: "hunter2-a", reader: "hunter2-a"},
		"in the path":     {reason: "reads carry that one as well", auth: apart, token: "hunter2-a", reader: "hunter2-b", old: "path: /letters, query", new: "path: '/letters/{secret.path}', query", explained: "so a receipt says own_call"},
		"path of writes":  {reason: "reads do not have it", auth: apart, token: "hunter2-a", reader: "hunter2-b", old: "path: /letters\n", new: "path: '/letters/{secret.path}'\n", want: connectors.OtherLogin},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := rest.Load([]byte(strings.Replace(strings.Replace(boxFile(""), of, tt.auth, 1), tt.old, tt.new, 1)), "F")
			if err != nil {
				t.Fatal(err)
			}
			if words := strings.Join(d.Explained("letter"), "\n"); !strings.Contains(words, tt.explained) {
				t.Errorf("explained:\n%s\nwant in it %q", words, tt.explained)
			}
			now := map[string]string{"token": tt.token, "reader": tt.reader, "client": "hunter2-app", "same_client": "hunter2-app", "path": "hunter2-path"}
			o := rest.Options{Secrets: map[string]func(context.Context) (string, error){}, Transport: wire.Transport(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/token" {
					body, _ := io.ReadAll(r.Body)
					of, _ := url.ParseQuery(string(body))
					says(200, fmt.Sprintf(`{"access_token":"t-%s","token_type":"bearer","refresh_token":%q}`, of.Get("refresh_token"), of.Get("refresh_token")), "Content-Type", "application/json")(rw, r)
					return
				}
				body, _ := io.ReadAll(r.Body)
				says(200, fmt.Sprintf(`{"ref":"L1","letters":[],"token":"t%x"}`, body))(rw, r)
			}), nil)}
			if tt.a != "" {
				o.Parameters = map[string]string{"a": tt.a, "b": tt.b}
			}
			for _, name := range d.Secrets() {
				o.Secrets[name] = func(context.Context) (string, error) {
					if now[name] == "" {
						return "", errors.New("it is locked")
					}
					return now[name], nil
				}
			}
			c, err := rest.New(d, o)
			if err != nil {
				t.Fatal(err)
			}
			in := letter(1)
			if tt.then != "" {
				if _, err := c.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1}); err != nil {
					t.Fatal(err)
				}
				now["token"], now["reader"] = tt.then, tt.token
			}
			got, err := c.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
			if err != nil || got.Independent != tt.want {
				t.Errorf("%q, %v; want %q: %s", got.Independent, err, tt.want, tt.reason)
			}
			declared := slices.ContainsFunc(c.Profiles()["letter"].Reads, func(way connectors.ReadPath) bool { return way.Independent == connectors.OtherLogin })
			if tt.want == connectors.OtherLogin && !declared || tt.auth == of && declared {
				t.Errorf("the profile says another login: %t", declared)
			}
		})
	}
}

// A secret in a path reaches the destination alone: it is in no report of a failure, and not
// by a value that is written like it.
func TestASecretInAPath(t *testing.T) {
	file := strings.NewReplacer("auth: {bearer: {secret: token}}\n", "", "path: /letters\n", "path: '/bot{secret.bot}/letters/{key.id}'\n", "path: /letters,", "path: '/bot{secret.bot}/letters',").Replace(boxFile(""))
	d, err := rest.Load([]byte(file), "F")
	if err != nil {
		t.Fatal(err)
	}
	const secret = "123:hunter2/x"
	for given, want := range map[string]string{"123:hunter2": "/bot123:hunter2/letters/%7Bsecret.bot%7D", secret: ""} {
		var path string
		c, err := rest.New(d, rest.Options{Secrets: map[string]func(context.Context) (string, error){"bot": func(context.Context) (string, error) { return given, nil }},
			Transport: wire.Transport(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				path = r.URL.EscapedPath()
				says(404, `{"error":{"message":"no `+r.URL.Path+`"}}`)(rw, r)
			}), nil)})
		if err != nil {
			t.Fatal(err)
		}
		in := letter(1)
		in.Key["id"] = "{secret.bot}"
		got, wrote := c.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1})
		if path != want {
			t.Errorf("sent to %q, want %q", path, want)
		}
		_, read := c.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
		if wrote == nil || read == nil {
			t.Fatalf("%v, %v; want errors", wrote, read)
		}
		for what, text := range map[string]string{"the reply": got.Reply.Message + string(got.Reply.Raw), "the error of the write": wrote.Error(), "the error of the read": read.Error()} {
			if strings.Contains(text, "hunter2") {
				t.Errorf("%s has the secret: %s", what, text)
			}
		}
	}
}

// Writes are signed as the fake of SES checks, which has another author; with another key it refuses.
func TestSignedRequests(t *testing.T) {
	const login = "auth: {bearer: {secret: token}}"
	file := strings.NewReplacer(login, "parameters:\n  region: {pattern: '[a-z0-9-]+', about: the region, default: us-east-1}\nauth: {sigv4: {service: ses, region: '{param.region}', key_id: AKIDREADBACK, secret: key}}",
		"path: /letters\n", "path: /v2/email/outbound-emails\n",
		"body: {id: \"{key.id}\", text: \"{fields.text}\", stamp: \"{stamp}\"}", `body: {FromEmailAddress: a@example.com, Destination: {ToAddresses: [b@example.com]}, Content: {Simple: {Subject: {Data: "{key.id}"}, Body: {Text: {Data: "{fields.text}"}}}}, EmailTags: [{Name: readback, Value: "{stamp}"}]}`,
		"ref: $.ref\n\n", "ref: $.MessageId\n\n").Replace(boxFile(""))
	d, err := rest.Load([]byte(file), "F")
	if err != nil {
		t.Fatal(err)
	}
	for secret, want := range map[string]bool{"ses-secret": true, "ses-secreT": false} {
		f := fakerest.NewSES(fakerest.SESOptions{})
		c, err := rest.New(d, rest.Options{Transport: f.Transport(), Secrets: map[string]func(context.Context) (string, error){"key": func(context.Context) (string, error) { return secret, nil }}})
		if err != nil {
			t.Fatal(err)
		}
		in := letter(1)
		got, err := c.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1})
		if accepted := err == nil && len(f.Now(fakerest.SESEmails)) == 1; accepted != want {
			t.Errorf("with the key %q: %v, %+v; want it accepted: %t", secret, err, got.Reply, want)
		}
	}
}

// An access token is fetched by the refresh token. One that would be replaced is not used: the new one
// would be lost with the process.
func TestARefreshToken(t *testing.T) {
	const login = "auth: {bearer: {secret: token}}"
	file := strings.Replace(boxFile(""), login, "auth: {oauth2: {token_url: /token, client_id: app, secret: client, grant: refresh_token, refresh: refresh}}", 1)
	for name, tt := range map[string]struct {
		answer string
		fate   connectors.Fate
	}{
		"stays":        {`{"access_token":"A1","token_type":"bearer","expires_in":3600}`, connectors.FateAnswered},
		"is repeated":  {`{"access_token":"A1","token_type":"bearer","refresh_token":"hunter2-refresh"}`, connectors.FateAnswered},
		"was replaced": {`{"access_token":"A1","token_type":"bearer","refresh_token":"hunter3"}`, connectors.FateLogin},
	} {
		t.Run(name, func(t *testing.T) {
			f, asked := box(nil), 0
			f.HandleOther("POST /token", func(rw http.ResponseWriter, r *http.Request) {
				asked++
				if r.FormValue("grant_type") != "refresh_token" || r.FormValue("refresh_token") != "hunter2-refresh" {
					t.Errorf("asked by %v", r.Form)
				}
				rw.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(rw, tt.answer)
			})
			c := boxConnector(t, f, file)
			in := letter(1)
			_, err := c.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1})
			if connectors.FateOf(err) != tt.fate || err != nil && strings.Contains(err.Error(), "hunter") || asked != 1 {
				t.Errorf("%v after %d tokens; want %q after one", err, asked, tt.fate)
			}
			for _, call := range sends(f, "/letters") {
				if call.Header.Get("Authorization") != "Bearer A1" {
					t.Errorf("sent with %s", call.Header.Get("Authorization"))
				}
			}
			if wrote := len(f.Now(letters)) == 1; wrote != (tt.fate == connectors.FateAnswered) {
				t.Errorf("written: %t", wrote)
			}
		})
	}
}

// An API that gives the address of a record gives the secret in its path along.
func TestASecretInAPathIsInNoAddress(t *testing.T) {
	file := strings.NewReplacer("auth: {bearer: {secret: token}}\n", "", "path: /letters\n", "path: '/bot{secret.bot}/letters'\n", "path: /letters,", "path: '/bot{secret.bot}/letters',",
		"      ref: $.ref\n      stamp", "      ref: $.ref\n      url: $.self\n      stamp").Replace(boxFile("url: $.self"))
	d, err := rest.Load([]byte(file), "F")
	if err != nil {
		t.Fatal(err)
	}
	in := letter(1)
	c, err := rest.New(d, rest.Options{Secrets: map[string]func(context.Context) (string, error){"bot": func(context.Context) (string, error) { return "123:hunter2", nil }},
		Transport: wire.Transport(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			one := fmt.Sprintf(`{"ref":"L1","id":%q,"self":"https://box.example%s/L1"}`, in.Key["id"], r.URL.Path)
			says(http.StatusOK, strings.TrimSuffix(one, "}")+`,"letters":[`+one+`]}`)(rw, r)
		}), nil)})
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := c.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1})
	if err != nil || receipt.URL != "https://box.example/bot***/letters/L1" {
		t.Errorf("the receipt has the address %q; %v", receipt.URL, err)
	}
	seen, err := c.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
	if err != nil || len(seen.Records) != 1 || seen.Records[0].URL != "https://box.example/bot***/letters/L1" {
		t.Errorf("%+v, %v", seen.Records, err)
	}
}
