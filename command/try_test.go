package command

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
)

func TestTry(t *testing.T) {
	stripe := fakerest.NewStripe(fakerest.StripeOptions{Secret: "sk_test_hunter2"})
	stripe.Seed(fakerest.StripePaymentIntents, fakerest.Object{"id": "pi_sample", "amount": fakerest.Number(500), "amount_received": fakerest.Number(500), "currency": "usd", "status": "succeeded", "latest_charge": "ch_1"})
	server := httptest.NewServer(stripe)
	defer server.Close()
	p := newPlace(t, orders.Options{})
	p.variable = map[string]string{"KEY": "sk_test_hunter2"}
	answers := p.write("answers.jsonl", `{"status": 200, "body": {"object": "list", "data": [], "has_more": false}}
{"status": 200, "body": {"id": "re_7", "access_token": "hunter2"}}
{"status": 200, "body": {"object": "list", "has_more": false, "data": [{"id": "re_7", "payment_intent": "pi_sample", "amount": 1, "reason": "duplicate", "metadata": {"reference": "readback-sample-try"}}]}}
`)
	p.write("bad.jsonl", `{"state": 200}`)
	for name, c := range map[string]struct {
		args string
		code int
		says []string
	}{
		"nothing is sent": {"--kind refund --base-url " + server.URL, 0, []string{"POST " + server.URL + "/v1/refunds", "Authorization: Bearer ***", "nothing is sent without --send or --answers"}},
		"recorded": {"--kind refund --answers " + answers, exitAttention, []string{"-> 200 OK", `"access_token": "***"`, `reason = "duplicate" (from $.reason)`,
			"of another actor", `differs: /reason: differs; want "requested_by_customer"`}},
		"sent":               {"--kind refund --send --secret key=KEY --base-url " + server.URL, 0, []string{"1 records, by a weak read", ": ours", "amount = 1 (from $.amount)"}},
		"which kind":         {"", exitUsage, []string{"--kind is missing; want one of customer, invoice-item, payment-intent, refund"}},
		"no such kind":       {"--kind charge", exitUsage, []string{`"charge" is not known`}},
		"no secret":          {"--kind refund --send", exitUsage, []string{"the secret key is missing; want --secret key=VARIABLE"}},
		"no such answers":    {"--kind refund --answers nowhere", exitUsage, []string{"--answers: open nowhere"}},
		"answers of another": {"--kind refund --answers " + strings.Replace(answers, "answers", "bad", 1), exitAttention, []string{`bad.jsonl:1: want {"status": 200`}},
		"both":               {"--kind refund --send --answers x", exitUsage, []string{"[answers send] were all set"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(stripe.Now(fakerest.StripeRefunds))
			r := p.want(c.code, p.run(append([]string{"destination", "try", "stripe"}, strings.Fields(c.args)...)...))
			says(t, r, c.says...)
			if strings.Contains(r.String(), "hunter2") {
				t.Errorf("a secret is in\n%s", r)
			}
			if made := len(stripe.Now(fakerest.StripeRefunds)) - before; made != strings.Count(c.args, "--send --secret") {
				t.Errorf("%d refunds were made", made)
			}
		})
	}
}

// TestTryLogins shows no login and nothing that one was answered with, wherever a destination repeats it.
func TestTryLogins(t *testing.T) {
	for name, c := range map[string]struct{ auth, secret, answer, echo string }{
		"session":     {"session: {path: /login, body: {password: '{secret.login}'}, token: $.session.key, ended: {status: 401}}", "hunter2", `{"session": {"key": "s-hunter3"}, "echo": "hunter2"}`, "Bearer s-hunter3, hunter2"},
		"cookie":      {"session: {path: /login, body: {password: '{secret.login}'}, cookie: SID, must: [{path: $.ok, equals: true}], ended: {status: 401}}", "hunter2", `{"ok": true, "sid": "s-hunter3"}`, "SID=s-hunter3"},
		"basic":       {"basic: {username: ada, secret: login}", "hunter2", "", "Basic YWRhOmh1bnRlcjI="},
		"key as name": {"header: {name: Authorization, prefix: 'Basic ', secret: login}", "aHVudGVyMjp4", "", "Basic aHVudGVyMjp4, the key hunter2 is old"},
		"client":      {"oauth2: {token_url: /token, client_id: ada, secret: login}", "hunter2", `{"access_token": "t-hunter3", "token_type": "bearer", "got": "YWRhOmh1bnRlcjI="}`, "Basic YWRhOmh1bnRlcjI=, t-hunter3"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, orders.Options{})
			p.variable = map[string]string{"LOGIN": c.secret}
			file := p.write("d.yaml", `declaration: 1
name: items
system: Items
base_url: https://api.example
auth: {`+c.auth+`}
probe: {path: /me}
kinds:
  item:
    key: [sku]
    writes: {create: {method: POST, path: /items, body: {sku: "{key.sku}", stamp: "{stamp}"}}}
    reads: [{name: list, by: key, path: /items, query: {sku: "{key.sku}"}, records: "$.items[*]"}]
    record: {ref: $.id, stamp: {path: $.stamp}, fields: {sku: $.sku}}
    profile: {stamped: true}
    sample: {key: {sku: "s-{sample}"}, create: {sku: "s-{sample}"}}
`)
			lines := `{"status": 200, "body": {"items": [], "echo": "` + c.echo + `"}}
{"status": 422, "body": {"message": "` + c.echo + `"}}
`
			if c.answer != "" {
				lines = `{"status": 200, "header": {"Set-Cookie": "SID=s-hunter3"}, "body": ` + c.answer + "}\n" + lines
			}
			r := p.want(exitAttention, p.run("destination", "try", file, "--secret", "login=LOGIN", "--answers", p.write("a.jsonl", lines)))
			says(t, r, "-> 422", "***")
			for _, secret := range []string{"hunter2", "hunter3", "YWRhOmh1bnRlcjI", "aHVudGVyMjp4"} {
				if strings.Contains(r.String(), secret) {
					t.Errorf("%s is in\n%s", secret, r)
				}
			}
		})
	}
}

// TestTryOneOfSeveralLogins: the secrets that are given choose the login, the first one where none is.
func TestTryOneOfSeveralLogins(t *testing.T) {
	p := newPlace(t, orders.Options{})
	p.variable = map[string]string{"A": "hunter2-a", "B": "hunter2-b"}
	answers := p.write("a.jsonl", `{"status": 200, "body": {"access_token": "t-hunter3", "token_type": "bearer", "refresh_token": "next-hunter3"}}
{"status": 200, "body": {"QueryResponse": {}, "echo": "t-hunter3 next-hunter3"}}
`)
	for args, c := range map[string]struct {
		code int
		says string
	}{
		"": {0, "GET https://quickbooks.api.intuit.com/v3/company/"},
		"--secret client_secret=A --secret refresh_token=B --answers " + answers: {exitAttention, "0 records, by a weak read"},
		"--secret client_secret=A --secret refresh_token=B --send":               {exitUsage, "the secret refresh_token gives the next one at each use, which nothing here keeps"},
		"--secret client_secret=A --secret token=B":                              {exitUsage, "want those of exactly one login: token, or client_secret and refresh_token"},
	} {
		r := p.want(c.code, p.run(append([]string{"destination", "try", "quickbooks", "--kind", "invoice", "--parameter", "realm=1", "--parameter", "client_id=x"}, strings.Fields(args)...)...))
		says(t, r, c.says)
		if strings.Contains(r.String(), "hunter") {
			t.Errorf("a secret is in\n%s", r)
		}
	}
}

// TestTryInXML takes a declaration through recorded answers in XML.
func TestTryInXML(t *testing.T) {
	declaration, err := os.ReadFile("../connectors/rest/testdata/traps/soap.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, orders.Options{})
	file := p.write("soap.yaml", string(declaration))
	answers := p.write("answers.jsonl", `{"status": 200, "body": "<Envelope><Body><findOrdersResponse><orders/></findOrdersResponse></Body></Envelope>"}
{"status": 200, "body": "<Envelope><Body><createOrderResponse><id>7</id></createOrderResponse></Body></Envelope>"}
{"status": 200, "body": "<Envelope><Body><findOrdersResponse><orders><order id='7'><reference>s-try</reference><subject>A printer</subject><amount>2.00</amount></order></orders></findOrdersResponse></Body></Envelope>"}
`)
	says(t, p.want(exitAttention, p.run("destination", "try", file, "--answers", answers)), `amount = "2.00" (from $.amount)`, `differs: /amount: differs; want "1.00"`)
}

// TestTryTwoCalls takes a mail through its draft and its sending.
func TestTryTwoCalls(t *testing.T) {
	p := newPlace(t, orders.Options{})
	answers := p.write("answers.jsonl", `{"status": 200, "body": {"resultSizeEstimate": 0}}
{"status": 200, "body": {"id": "r7"}}
{"status": 200, "body": {"id": "m7"}}
{"status": 200, "body": {"resultSizeEstimate": 0}}
{"status": 404, "body": {"error": {"code": 404}}}
`)
	says(t, p.want(exitAttention, p.run("destination", "try", "gmail-mail", "--answers", answers)), `{"id":"r7"}`, `accepted; ref "m7"`, "0 records")
	says(t, p.want(0, p.run("destination", "try", "gmail-mail")), "POST https://gmail.googleapis.com/gmail/v1/users/me/drafts")
}
