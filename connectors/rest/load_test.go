package rest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
)

// loadProblems loads a declaration and returns what is wrong, a line each,
// without the name of the file.
func loadProblems(t *testing.T, text string) string {
	t.Helper()
	d, err := rest.Load([]byte(text), "F")
	if err == nil {
		return ""
	}
	var invalid *yamlfile.InvalidError
	if d != nil || !errors.As(err, &invalid) || !errors.Is(err, rest.ErrInvalid) {
		t.Fatalf("%v is no InvalidError, or there is a declaration beside it", err)
	}
	var all []string
	for _, p := range invalid.Problems {
		all = append(all, p.String())
	}
	return strings.Join(all, "\n")
}

// badDeclarations are the cases of TestBadDeclarations.
var badDeclarations = map[string]struct {
	reason, old, new string
	want             string // a piece of each problem, a line each
}{
	"unknown member":    {"what was meant", "system: Items", "systm: Items", ":4: systm: is not known; did you mean system?\n:2: system: is missing"},
	"unknown below":     {"what is known", "ref: $.id\n", "ref: $.id\n        anwers: []\n        zzz: 1\n", ".writes.create.anwers: is not known; did you mean answers?\n.writes.create.zzz: is not known; want one of method, path"},
	"all at once":       {"one run shows all", "method: POST", "method: FETCH\n        answers: [{status: 99, means: maybe}]", `method: is "FETCH"; want one of POST, PUT, PATCH, DELETE` + "\nwant a status from 200 to 599\nmeans: is \"maybe\"; want one of answered, refused"},
	"summary, no text":  {"what is shown", "    key: [sku]", "    summary: {amount: /price}\n    key: [sku]", "summary.text: is missing; want the name of a record, such as order {id}"},
	"summary, brackets": {"where it ends", "    key: [sku]", "    summary: 'item {sku}['\n    key: [sku]", "summary: text is \"item {sku}[\"; want a name and then parts in brackets"},
	"version":           {"another format", "declaration: 1", "declaration: 2", ":2: declaration: is 2; want 1"},
	"name":              {"it is part of file names", "name: items", "name: ../items", `:3: name: is "../items"; want lower-case letters`},
	"http":              {"in the clear", "http://127.0.0.1:1/api", "http://api.example.com", ":5: base_url: is http, where credentials cross"},
	"no host":           {"no host", "http://127.0.0.1:1/api", "api.example.com", ":5: base_url: is no address"},
	"logins, none":      {"which", "auth:\n  bearer: {secret: token}", "auth: []", ":9: auth: is empty; want a login, or no auth"},
	"logins, alike":     {"which", "  bearer: {secret: token}", "  - bearer: {secret: token}\n  - header: {name: X-A, secret: token}", ":11: auth[1]: has the same secrets as auth[0], and they choose the login; want other names"},
	"logins, read":      {"the same secret", "  bearer: {secret: token}", "  - bearer: {secret: token}\n  - header: {name: X-A, secret: key}\nread_auth: {bearer: {secret: key}}", "read_auth: has the secret of auth; want one of its own"},
	"logins, broken":    {"each is checked", "  bearer: {secret: token}", "  - bearer: {secret: token}\n  - {}", "auth[1]: want exactly one of bearer"},
	"key_id alone":      {"no key signs", "bearer: {secret: token}", "oauth2: {token_url: /token, client_id: a, secret: token, key_id: k}", "auth.oauth2.key_id: is set without grant: jwt_bearer; want it left out"},
	"session, nothing":  {"what would it carry", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.p}'}}", ":10: auth.session: want exactly one of token, such as token: $.token, and cookie"},
	"session, both":     {"which", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.p}'}, token: $.t, cookie: SID}", ":10: auth.session: want exactly one of token"},
	"session, no must":  {"a cookie is set for any call", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.p}'}, cookie: SID}", ":10: auth.session.must: is missing; want what only a login that succeeded is answered with, such as [{path: $.result.uid, exists: true}]"},
	"session, header":   {"a cookie has its own", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.p}'}, cookie: SID, header: X-A, must: [{path: $.a, exists: true}]}", "auth.session: has header or prefix, which are of a token; want them left out"},
	"session, cookie":   {"no name of one", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.p}'}, cookie: 'a=b', must: [{path: $.a, exists: true}]}", "auth.session.cookie: is no name of a cookie; want one such as JSESSIONID"},
	"session, path":     {"several values", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.p}'}, token: '$..t'}", "auth.session.token: may select several values"},
	"session, two":      {"where is it", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.p}'}, token: {path: $.t, header: X-T}}", "auth.session.token: want a path, or {header: Name}"},
	"session, name":     {"no name of a header", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.p}'}, token: $.t, header: 'X A'}", "auth.session.header: is no name of a header"},
	"session, public":   {"anybody would be let in", "bearer: {secret: token}", "session: {path: /login, body: {p: '{param.shop}'}, token: $.t}", "auth.session: sends no secret; want {secret.NAME} in body, form or text, such as {secret.password}"},
	"session, written":  {"the secret itself", "bearer: {secret: token}", "session: {path: /login, body: {a: [{password: hunter2}], p: '{secret.p}'}, token: $.t}", "auth.session.body.a[0].password: looks like a secret written out; want {secret.NAME}"},
	"session, GET":      {"servers log addresses", "bearer: {secret: token}", "session: {method: GET, path: /login, query: {p: '{secret.p}'}, token: $.t}", "auth.session: is no call to log in with; want a POST with body, form or text\nauth.session: has {secret.p} in its address, which servers log; want it in body, form or text"},
	"session, address":  {"servers log addresses", "bearer: {secret: token}", "session: {path: '/login/{secret.p}', token: $.t}", "auth.session: has {secret.p} in its address"},
	"session, key":      {"it is of no record", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.p}', k: '{key.sku}'}, token: $.t}", "auth.session.body.k: {key.sku} is not known here; want one of param, secret"},
	"session, secret":   {"its name", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.P}'}, token: $.t}", "auth.session: is not the name of a secret; want one such as token"},
	"ended, 200":        {"each success would be sent again", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.p}'}, token: $.t, ended: {status: 200}}", "auth.session.ended: says that 200 means login_refused, and every success has it; want a where"},
	"ended, 403":        {"the write may be forbidden", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.p}'}, token: $.t, ended: [{status: [401, 403]}]}", "auth.session.ended[0]: says that each 403 means an ended session; other refusals can have that status: want a where that only an ended session fulfils (401 needs none)"},
	"ended, 503":        {"a gateway says that", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.p}'}, token: $.t, ended: {status: 503}}", "auth.session.ended: says that 503 means login_refused; a gateway may have answered"},
	"ended, when":       {"of what", "bearer: {secret: token}", "session: {path: /login, body: {p: '{secret.p}'}, token: $.t, ended: {where: {path: $.a, equals: b}}}", "auth.session.ended.status: is missing"},
	"secret elsewhere":  {"a record would have it", `sku: "{key.sku}"`, `sku: "{secret.token}"`, "{secret.token} is not known here"},
	"host in hosts":     {"an address is no host", `"127.0.0.1:2"`, `"https://a.example"`, ":6: hosts[0]: is no host"},
	"parameter":         {"not declared", "/shops/{param.shop}", "/shops/{param.shpo}", "{param.shpo} is not declared; want one of the parameters (shop)"},
	"default":           {"does not fit its own pattern", "default: main", "default: Main", "parameters.shop.default: does not match the pattern"},
	"no pattern":        {"anything could stand in a URL", "pattern: '[a-z]+', ", "", "parameters.shop.pattern: is missing"},
	"bad pattern":       {"no regular expression", "'[a-z]+'", "'[a-z'", "parameters.shop.pattern: is no regular expression"},
	"reserved":          {"it would put slashes in", "path: /items\n        body", "path: /items/{+key.sku}\n        body", "create.path: {+key.sku} would escape its position; want a plain {name}"},
	"fragment":          {"likewise", "path: /items\n        body", "path: /items{#key.sku}\n        body", "would escape its position"},
	"segments":          {"likewise", "path: /items\n        body", "path: /items{/key.sku}\n        body", "would escape its position"},
	"explode":           {"likewise", "path: /items\n        body", "path: /items/{key.sku*}\n        body", "is no placeholder"},
	"prefix":            {"a part of a key is another key", "path: /items\n        body", "path: '/items/{key.sku:3}'\n        body", "is no placeholder"},
	"spans a part":      {"which segment", "path: /items\n        body", "path: /items/x-{key.sku/}\n        body", "{key.sku/} spans segments; want a member of the key, with a slash before it"},
	"spans in a body":   {"it is no path", `sku: "{key.sku}"`, `sku: "{key.sku/}"`, "body.sku: {key.sku/} spans segments of a path; want {key.sku}"},
	"query in path":     {"it has a place of its own", "path: /items\n        body", "path: /items?a=b\n        body", "create.path: has a query; want it as the member query"},
	"dots":              {"another place", "path: /items\n        body", "path: /items/../x\n        body", "means another place"},
	"coded dots":        {"another place", "path: /items\n        body", "path: /items/%2e%2e/x\n        body", "means another place"},
	"two slashes":       {"another host", "path: /items\n        body", "path: //evil.example\n        body", "create.path: is no path"},
	"an address":        {"another host", "path: /items\n        body", "path: https://evil.example/\n        body", "create.path: is no path"},
	"unknown hole":      {"misspelt", `sku: "{key.sku}"`, `sku: "{keys.sku}"`, "body.sku: {keys.sku} is not known here; want one of absent, before, expect"},
	"unknown key":       {"in no form", `sku: "{key.sku}"`, `sku: "{key.id}"`, "body.sku: {key.id} is in no form of the key; want one of sku"},
	"lone brace":        {"text or a placeholder", `sku: "{key.sku}"`, `sku: "{key.sku"`, "has a brace that belongs to no placeholder; write it twice"},
	"braced name":       {"names are fixed", `sku: "{key.sku}"`, `"{key.sku}": 1`, "names of members have no placeholders"},
	"spread":            {"text has no members", `"...": "{fields}"`, `"...": "a {fields}"`, "is no object to spread"},
	"spread of text":    {"it has no members", `"...": "{fields}"`, `"...": "{stamp}"`, "is no object to spread"},
	"spread in a list":  {"an object has no elements", `sku: "{key.sku}"`, `sku: "{key.sku}", tags: [{"...": "{fields}"}]`, "is no list to spread"},
	"object in text":    {"no send could be built", `sku: "{key.sku}"`, `sku: "{key.sku}", note: "see {fields}"`, "body.note: {fields} is an object, and no text; want one of its members, such as {fields.NAME}"},
	"object in a path":  {"no send could be built", "path: /items\n        body", "path: /items/{key}\n        body", "create.path: {key} is an object, and no text"},
	"object in a query": {"no send could be built", "path: /items\n        body", "path: /items\n        query: {k: '{key}'}\n        body", "{key} is an object, and no text"},
	"stamp in lookup":   {"a lookup by key has none", `query: {sku: "{key.sku}"}`, `query: {sku: "{key.sku}", s: "{stamp}"}`, "{stamp} is not known here; want one of first_sent, key, param"},
	"fields in lookup":  {"they may not be there yet", `query: {sku: "{key.sku}"}`, `query: {sku: "{fields.sku}"}`, "{fields.sku} is not known here"},
	"left out":          {"a lookup for everything", `query: {sku: "{key.sku}"}`, `query: {sku: "{key.sku?}"}`, "nothing of a lookup can be left out"},
	"records":           {"a list that is not there would be an empty one", "records: $.items[*]", "records: $.items", "records: is no path to the elements of a list"},
	"any list":          {"any list at all", "records: $.items[*]", "records: $..items[*]", "may select several values"},
	"no JSONPath":       {"no path", "records: $.items[*]", "records: items[*]", "is no JSONPath"},
	"record too":        {"which of them", "records: $.items[*]", "records: $.items[*]\n        record: $", "want exactly one of record ($ for the whole answer) and records"},
	"by":                {"a word", "by: key", "by: name", `reads[0].by: is "name"; want ref, key, stamp`},
	"only by ref":       {"a lost answer takes the ref along", "by: key\n        strength: strong\n        path: /items\n        query: {sku: \"{key.sku}\"}\n        records: $.items[*]", "by: ref\n        path: \"/items/{ref}\"\n        record: $", "have none by key"},
	"absent":            {"no permission is no absence", "strength: strong", "strength: strong\n        absent: [403]", "has 403; only 404 and 410"},
	"versions":          {"an untouched record would look changed", "    record:\n", "      - {name: get, by: ref, record: $, version: {header: ETag}, path: '/items/{ref}'}\n    record:\n", "take the version from different places"},
	"absent list":       {"an empty list says it", "strength: strong", "strength: strong\n        absent: [404]", "is set on a read of a list"},
	"accept":            {"no body", "strength: strong", "strength: strong\n        accept: [204]", "has 204; want another 2xx that has a body"},
	"conditional get":   {"a 304 hides the change", "strength: strong", "strength: strong\n        headers: {If-None-Match: '*'}", "a read must show what is there"},
	"write to read":     {"a read changes nothing", "strength: strong", "strength: strong\n        method: DELETE", "is no method to read with"},
	"page by POST":      {"the API could make us write", "strength: strong", "strength: strong\n        method: POST\n        paging: {next_url: $.next}", "only a GET may"},
	"gateway":           {"a proxy can say 503 as well", "ref: $.id\n", "ref: $.id\n        answers: [{status: 503, means: refused}]\n", "a gateway may have answered"},
	"key header":        {"clients send again what carries it", "ref: $.id\n", "ref: $.id\n        headers: {idempotency-key: '{idempotency_key}'}\n", "cannot be set here; want idempotency"},
	"no window":         {"how long is it known", "ref: $.id\n", "ref: $.id\n        idempotency: {header: X-Key}\n", "idempotency.window: is missing"},
	"key not shown":     {"equality could not be seen to", `fields: {"...": $}`, `fields: {title: $.title}`, "fields.sku: is missing"},
	"key limited away": {"no record could match", `fields: {"...": $}`, `fields: {"...": $}
      only: [title, id]`, "fields.sku: is missing"},
	"key is a list":     {"no record could match", `fields: {"...": $}`, `fields: {sku: {path: "$.skus[*]", list: true}}`, "fields.sku: is a list, which equals no field of a key; want one value of it, by match, join or where"},
	"no stamp sent":     {"it says stamped", `, stamp: "{stamp}"`, "", "profile.stamped: is true; want {stamp} in the create"},
	"fresh":             {"every record would count as ours", "profile: {stamped: true}", "profile: {fresh_keys: true}", "profile.fresh_keys: is true; want stamped"},
	"reads of none":     {"nothing can be read", "profile: {stamped: true}", "profile: {write_only: true}", "profile.write_only: is true, and there are reads, a list or a record"},
	"stamped, unread":   {"no read shows a stamp", "profile: {stamped: true}", "profile: {write_only: true, stamped: true}", "profile: is write-only and declares stamped, which only a read could use or show"},
	"success throttled": {"each success would be sent again", "auth:", "throttle: {status: 201, wait: 1s}\nauth:", "throttle: says that 201 means throttled, and every success has it"},
	"success refused":   {"each success would be called not applied", "ref: $.id\n", "ref: $.id\n        answers: [{status: 201, means: refused}]\n", "answers[0]: says that 201 means refused, and every success has it"},
	"stamp goes":        {"without a title there would be no stamp", `stamp: "{stamp}"`, `stamp: "{fields.title?} {stamp}"`, "would leave the stamp out"},
	"rule of key":       {"rules that keys cannot have", "profile: {stamped: true}", "profile: {stamped: true, compare: {/sku: [{rule: text}]}}", `has the rule "text"; a field of the key can have`},
	"tolerance":         {"true is no number", "profile: {stamped: true}", "profile: {stamped: true, compare: {/price: [{rule: numeric, tolerance: true}]}}", ".tolerance: want a decimal number"},
	"unknown rule":      {"misspelt", "profile: {stamped: true}", "profile: {stamped: true, compare: {/title: [{rule: lower}]}}", "profile.compare./title: "},
	"duration":          {"60 of what", "profile: {stamped: true}", "profile: {stamped: true, settle: 60}", `profile.settle: "60" is no duration`},
	"undo":              {"no delete is declared", "profile: {stamped: true}", "undo: {create: delete}\n    profile: {stamped: true}", "undo.create: needs the writes create and delete"},
	"topic":             {"misspelt", "profile: {stamped: true}", "profile: {stamped: true}\n    claims: [{about: lookup, says: a, source: b}]", `claims[0].about: is "lookup"; want one of native idempotency` + "\nsay nothing about native idempotency"},
	"no probe":          {"required", `probe: {path: "/shops/{param.shop}", must: [{path: $.open, equals: true}]}`, "", ":2: probe: is missing"},
	"two ways in":       {"which", "bearer: {secret: token}", "bearer: {secret: token}\n  basic: {username: a, secret: token}", "auth: want exactly one of bearer"},
	"token host":        {"the secret would go there", "bearer: {secret: token}", "oauth2: {token_url: 'https://evil.example/t', client_id: a, secret: token}", "is on a host that is not declared"},
	"condition":         {"none", "ref: $.id\n", "ref: $.id\n        condition: {}\n", "changes nothing of the request"},
	"where":             {"of what", "must: [{path: $.open, equals: true}]", "must: [{path: $.open}]", "want exactly one of equals, contains and exists"},
	"write type":        {"misspelt", "      create:", "      insert: {method: POST, path: /x}\n      create:", "writes.insert: is not known; want one of create"},
	"probe deletes":     {"it is made often", "probe: {path", "probe: {method: DELETE, path", ":11: probe.method: is no method to look with; want GET, or POST where the API reads by POST"},
	"probe mutates":     {"it is made often", "probe: {path", "probe: {graphql: {query: '{ a } mutation b { c }'}, path", `:11: probe.graphql.query: begins an operation with "mutation"; want a query, which changes nothing`},
	"probe subscribes":  {"it has no end", "probe: {path", "probe: {graphql: {query: 'subscription { a }'}, path", `probe.graphql.query: begins an operation with "subscription"`},
	"probe has body":    {"a GET has none", "probe: {path", "probe: {body: {a: b}, path", "probe.body: a GET has no body"},
	"probe has two":     {"which of them", "probe: {path", "probe: {method: POST, body: {a: b}, form: {c: d}, path", "probe.form: is set together with body"},
	"probe of key":      {"it is of no record", "probe: {path", "probe: {method: POST, body: {a: '{key.sku}'}, path", "probe.body.a: {key.sku} is not known here; want one of param"},
	"probe repeats":     {"it is of no query", "probe: {path", "probe: {method: POST, body: {a: {'[...]': b}}, path", `probe: has a part that is repeated for each query ("[...]")`},
	"probe conditional": {"a 304 says nothing", "probe: {path", "probe: {headers: {If-None-Match: '*'}, path", "probe.headers.If-None-Match: makes the answer a part, or none"},
	"visible deletes":   {"it is made often", "strength: strong", "strength: strong\n        visible: {method: PUT, path: /a}", "reads[0].visible.method: is no method to look with"},
	"read mutates":      {"a read changes nothing", "strength: strong", "strength: strong\n        graphql: {query: 'mutation { a }'}", `reads[0].graphql.query: begins an operation with "mutation"`},
	"write queries":     {"it changes nothing", "ref: $.id\n", "ref: $.id\n        graphql: {query: 'query mutation { a }', result: $.data.a}\n", "create.graphql.query: is no mutation, and writes nothing"},
	"name bare":         {"a value could select anything", "stamp: {path: $.stamp}", "stamp: {path: '$.{param.shop}'}", ":31: kinds.item.record.stamp.path: has a placeholder in a path; want '{param.NAME}' as the whole name of a member, such as $.properties['{param.NAME}'], or the name written out"},
	"name in part":      {"which part is the name", "stamp: {path: $.stamp}", `stamp: {path: "$['a {param.shop}']"}`, "record.stamp.path: has a placeholder in a path"},
	"name in quotes":    {"one spelling", "stamp: {path: $.stamp}", `stamp: {path: '$["{param.shop}"]'}`, "record.stamp.path: has a placeholder in a path"},
	"name of a pattern": {"it would be a pattern, and no name", "records: $.items[*]", `must: [{path: "$.a[?match(@.b, '{param.shop}')]", exists: true}]
        records: $.items[*]`, "reads[0].must[0].path: has a placeholder in a path"},
	"name by the key":  {"an intent would choose what is read", "stamp: {path: $.stamp}", `stamp: {path: "$['{key.sku}']"}`, "record.stamp.path: has a placeholder in a path"},
	"name unknown":     {"misspelt", "stamp: {path: $.stamp}", `stamp: {path: "$['{param.shpo}']"}`, "record.stamp.path: {param.shpo} is not declared; want one of the parameters (shop)"},
	"name of the list": {"misspelt", "records: $.items[*]", `records: "$['{param.shpo}'][*]"`, "reads[0].records: {param.shpo} is not declared"},
	"name in writes":   {"what is written there would never be read", "stamp: {path: $.stamp}", `stamp: {path: "$['{param.shop}']"}`, ":16: kinds.item.writes.create: has the stamp and no {param.shop}, which names the member of records that has it; want the same name in both"},
	"name in reads":    {"nothing would be found, and be believed", `fields: {"...": $}`, `fields: {"...": $, sku: "$['{param.shop}']"}`, ":23: kinds.item.reads[0]: has key.sku and no {param.shop}"},
	"name taken":       {"one value would be lost", `sku: "{key.sku}", stamp`, `main: "{key.sku}", "{param.shop}"`, `the parameter shop names "main", which the declaration names itself beside it; want another member`},
	"NUL":              {"no text", "system: Items", "system: \"Items\x00\"", ":"},
}

func TestBadDeclarations(t *testing.T) {
	good := itemsFile("", plainRead)
	for name, tt := range badDeclarations {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, tt.old) {
				t.Fatalf("the test replaces %q, which is not there", tt.old)
			}
			got := loadProblems(t, strings.Replace(good, tt.old, tt.new, 1))
			if name == "NUL" {
				return // it must come back, with or without a problem
			}
			for _, want := range strings.Split(tt.want, "\n") {
				if !strings.Contains(got, want) {
					t.Errorf("%s: got\n%s\nwant in it %q", tt.reason, got, want)
				}
			}
			if strings.Contains(got, ": :") || got == "" {
				t.Errorf("a problem without a place, or none: %q", got)
			}
		})
	}
}

func TestASummaryNamesFieldsThatThereAre(t *testing.T) {
	text, err := os.ReadFile("declarations/stripe.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := loadProblems(t, strings.Replace(string(text), `"refund {reference}`, `"refund {reffence}`, 1))
	if want := "summary: has the field /reffence, which is no field of this kind; want one of amount, currency, payment_intent, reason, reference, status"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSecretsInADeclaration(t *testing.T) {
	const word = "Hunter2-Hunter2"
	good := itemsFile("", plainRead)
	for name, change := range map[string][2]string{
		"bearer":        {"bearer: {secret: token}", "bearer: {secret: " + word + "}"},
		"lower case":    {"bearer: {secret: token}", "bearer: {secret: d41d8cd98f00b204e9800998ecf8427e}"},
		"long":          {"bearer: {secret: token}", "bearer: {secret: " + strings.Repeat("abcdefgh", 5) + "}"},
		"token":         {"bearer: {secret: token}", "bearer: {token: " + word + "}"},
		"on top":        {"system: Items", "system: Items\napi_key: " + word},
		"Authorization": {"ref: $.id\n", "ref: $.id\n        headers: {authorization: 'Bearer " + word + "'}\n"},
		"X-Api-Key":     {"ref: $.id\n", "ref: $.id\n        headers: {X-Api-Key: " + word + "}\n"},
		"top header":    {"auth:", "headers: {X-Auth-Token: " + word + "}\nauth:"},
		"cookie":        {"auth:", "headers: {Cookie: " + word + "}\nauth:"},
		"base URL":      {"http://127.0.0.1:1", "https://me:" + word + "@127.0.0.1:1"},
		"bad base URL":  {"http://127.0.0.1:1", "https://me:" + word + "@127.0.0.1:x"},
		"token URL":     {"bearer: {secret: token}", "oauth2: {token_url: 'https://me:" + word + "@127.0.0.1:1/t', client_id: a, secret: token}"},
		"session":       {"bearer: {secret: token}", "session: {path: /login, body: {password: " + word + ", p: '{secret.p}'}, token: $.t}"},
		"query":         {"ref: $.id\n", "ref: $.id\n        query: {access_token: " + word + "}\n"},
		"form":          {"body: {\"...\"", "form: {client_secret: " + word + "}\n        body: {\"...\""},
		"bad YAML":      {"bearer: {secret: token}", "bearer: {secret: \"" + word + "}"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, change[0]) {
				t.Fatalf("the test replaces %q, which is not there", change[0])
			}
			got := loadProblems(t, strings.Replace(good, change[0], change[1], 1))
			if got == "" || strings.Contains(got, word) || strings.Contains(got, "d41d8cd98f") || strings.Contains(got, "abcdefghabcdefgh") {
				t.Errorf("got %q; want a problem that does not repeat the secret", got)
			}
		})
	}
}

func TestFilesThatAreNone(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "a word": "x", "a list": "- a", "too long": strings.Repeat("#", 1<<20),
		"deep": "kinds: " + strings.Repeat("{a: ", 100_000), "anchor": "kinds: &a {x: *a}", "JSON": `{"declaration":`,
		"nothing below": "declaration: 1\nname: a\nsystem: A\nbase_url: https://a\nprobe: {path: /}\nkinds: {a: }\n",
		"empty kind":    "declaration: 1\nname: a\nsystem: A\nbase_url: https://a\nprobe: {path: /}\nkinds: {a: {}}\n",
		"empty write":   "declaration: 1\nname: a\nsystem: A\nbase_url: https://a\nprobe: {path: /}\nkinds: {a: {key: [x], writes: {create: {}}, reads: [{}], record: {}}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got := loadProblems(t, text); got == "" || len(got) > 5000 {
				t.Errorf("got %d bytes of problems, want some", len(got))
			}
		})
	}
}

func TestProfileFollowsFromTheRequests(t *testing.T) {
	d, err := rest.Load([]byte(writesFile(`
update: {method: PATCH, path: "/items/{ref}", needs: version, body: {title: "{fields.title}"}, condition: {headers: {If-Match: "{version}"}}, idempotency: {header: X-Key, window: 2h}}
delete: {method: DELETE, path: "/items/{ref}", needs: ref, unique: true}`)), "F")
	if err != nil {
		t.Fatal(err)
	}
	want := connectors.Profile{
		Kind: "item", Writes: []intent.WriteType{intent.Create, intent.Update, intent.Delete},
		Unique: []intent.WriteType{intent.Delete}, Conditional: []intent.WriteType{intent.Update},
		NativeWindow: map[intent.WriteType]time.Duration{intent.Update: 2 * time.Hour},
		Stamped:      true, Compare: map[string]intent.Comparison{},
		Reads: []connectors.ReadPath{{Path: "list", By: "key", Strength: connectors.Strong}},
	}
	got := d.Profiles()["item"]
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b connectors.Bound) bool { return a == b })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, declared := got.Settle.Declared(); declared {
		t.Error("the profile has a settle time that the declaration lacks")
	}
	d.Profiles()["item"].Reads[0].Path = "changed"
	if d.Profiles()["item"].Reads[0].Path != "list" {
		t.Error("a caller of Profile can change the declaration")
	}
}

// TestDeclaredKeyAlone: a write whose request has no place for a field beyond the key
// is named, and refuses an intent that expects one. A text with a place for one works.
func TestDeclaredKeyAlone(t *testing.T) {
	for body, want := range map[string]bool{
		`"text {key.sku} {stamp}"`:                                       true,
		`"text {key.sku} {fields.sku} {stamp}"`:                          true,
		`"text {key.sku} {payload.title} {stamp}"`:                       true,
		`{sku: "{key.sku}", stamp: "{stamp}"}`:                           true,
		`"text {key.sku} {fields.title} {stamp}"`:                        false,
		`"text {key.sku} {expect.title|} {stamp}"`:                       false,
		`{sku: "{key.sku}", title: "{expect.title?}", stamp: "{stamp}"}`: false,
		`{"...": "{fields}", sku: "{key.sku}", stamp: "{stamp}"}`:        false,
	} {
		file := strings.Replace(itemsFile("", plainRead), `{"...": "{fields}", sku: "{key.sku}", stamp: "{stamp}"}`, body, 1)
		d, err := rest.Load([]byte(file), "items.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(d.KeyAlone("item"), intent.Create); got != want {
			t.Errorf("%s: named %t, want %t", body, got, want)
		}
		var sent string
		c := items(t, file, func(rw http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			sent = string(text)
			says(201, `{"id":"i-1"}`)(rw, r)
		})
		w := item(intent.Create)
		w.Expect, w.Payload = intent.Fields{"title": "A-title"}, intent.Fields{}
		if strings.Contains(body, "payload") {
			w.Payload["title"] = "of the payload"
		}
		err = c.Check(w)
		_, sendErr := c.Write(t.Context(), connectors.Request{Intent: w, Stamp: w.Stamp()})
		switch refused := "/expect/title: is not among what a create can write"; {
		case want && (err == nil || !strings.Contains(err.Error(), refused) || sendErr == nil || sent != ""):
			t.Errorf("%s: %v and %v, sent %q; want a refusal of the title", body, err, sendErr, sent)
		case !want && (err != nil || sendErr != nil || !strings.Contains(sent, "A-title")):
			t.Errorf("%s: %v and %v, sent %q; want the title sent", body, err, sendErr, sent)
		}
		w.Expect = intent.Fields{"sku": w.Key["sku"]}
		if err := c.Check(w); want && err != nil {
			t.Errorf("%s, the key alone: %v", body, err)
		}
	}
	for _, name := range rest.Shipped() {
		d, err := rest.ShippedDeclaration(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range d.Kinds() {
			if all := d.KeyAlone(kind); len(all) > 0 {
				t.Errorf("%s, %s: %v write the key alone", name, kind, all)
			}
		}
	}
}

// TestShippedDeclarations: each loads, and its sheets cover every topic, with a source. The
// declared parts of a payload that no read is compared with are listed.
func TestDeclaredNotChecked(t *testing.T) {
	for body, want := range map[string][]string{
		`"...": "{fields}"`:                         {"/payload"},
		`"...": "{expect}"`:                         nil,
		`"...": "{expect}", note: "{payload.note}"`: {"/payload/note"},
		`"...": "{expect}", a: "{payload.b} {payload.a}", b: "{payload.a?}"`: {"/payload/a", "/payload/b"},
	} {
		d, err := rest.Load([]byte(strings.Replace(itemsFile("", plainRead), `"...": "{fields}"`, body, 1)), "items.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, d.NotChecked("item")[intent.Create], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

func TestShippedDeclarations(t *testing.T) {
	if len(rest.Shipped()) == 0 {
		t.Fatal("no declaration comes with the package")
	}
	sheets := map[string]bool{}
	for _, s := range rest.Sheets() {
		if sheets[s.Name] {
			t.Errorf("two sheets are called %s", s.Name)
		}
		sheets[s.Name] = true
		claimed := map[connectors.Topic]bool{}
		for _, c := range s.Claims {
			claimed[c.About] = c.Says != "" && c.Source != ""
		}
		for _, topic := range connectors.Topics() {
			if !claimed[topic] {
				t.Errorf("%s says nothing about %s", s.Name, topic)
			}
		}
	}
	for _, name := range rest.Shipped() {
		d, err := rest.ShippedDeclaration(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if d.Name() != name {
			t.Errorf("the declaration in %s.yaml is called %s", name, d.Name())
		}
		for _, kind := range d.Kinds() {
			if creates := slices.Contains(d.Profiles()[kind].Writes, intent.Create); creates {
				w, err := d.Sample(kind, intent.Create, "x1")
				if err != nil {
					t.Errorf("%s: no sample of %s: %v", name, kind, err)
				}
				s := d.Profiles()[kind].Summary
				text := s.Write(w).String()
				t.Log(text)
				if s.Text == "" || s.Subject != "" && !strings.Contains(text, ": ") {
					t.Errorf("%s: a sample of %s is summed up as %q", name, kind, text)
				}
			}
			if sheet := fmt.Sprintf("%s-%s", name, kind); !sheets[name] && !sheets[sheet] {
				t.Errorf("there is no sheet of %s", sheet)
			}
		}
	}
	if _, err := rest.ShippedDeclaration("../errors"); !errors.Is(err, rest.ErrInvalid) {
		t.Errorf("a declaration that is none: %v", err)
	}
}
