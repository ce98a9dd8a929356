package command

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// held makes everything that an agent could want a decision about, and knows all
// about it: whatever goes to the orders is held, and so is the step.
func (f *fort) held() things {
	f.t.Helper()
	th := things{tenant: own, heldOrder: "A-1", step: "pay", saga: runningSaga}
	th.held = f.must(engine.RoleAgent, own, "POST", "/v1/writes", intentOf(own, "wire", th.heldOrder, "two")).field("id")
	th.review, th.verified = th.held, th.held
	th.digest = f.record(own, th.held).Digest
	th.workflow = f.must(engine.RoleAgent, own, "POST", "/api/v1/workflows", `{"workflow_name":"w"}`).field("workflow_id")
	th.approval = f.must(engine.RoleAgent, own, "POST", "/api/v1/workflows/"+th.workflow+"/steps/pay/gate", bankStep).field("approval_id")
	f.must(engine.RoleAgent, own, "POST", "/v1/sagas", `{"id":"saga-that-runs","steps":[{"name":"a","intent":{"tool":"create","destination":"orders","kind":"order",
		"key":{"order_id":"S-1"},"write":"create","expect":{"amount_cents":1}}}]}`)
	f.must(engine.RoleOperator, own, "POST", "/v1/stops", `{"tool":"nobodys","reason":"because somebody has looked"}`)
	return th
}

const bankStep = `{"step_type":"tool_call","step_input":{"to":"x"},"tool_context":{"tool_name":"wire_bank"}}`

// holding is the configuration of a fort where every order is held, whatever the
// tool is called, and steps as in every fort.
func holding(text string) string {
	return strings.Replace(text, "risk:\n", "risk:\n  - {name: orders, destination: orders}\n", 1)
}

// deciding are the routes that decide or change settings, with the request that an
// operator would send.
func deciding(t *testing.T) map[string]asking {
	t.Helper()
	all := map[string]asking{}
	examples := examples()
	for _, r := range allRoutes() {
		if r.Act == "decide" || r.Act == "operate" {
			all[r.key()] = examples[r.key()]
		}
	}
	if len(all) < 15 {
		t.Fatalf("only %d routes decide", len(all))
	}
	return all
}

// spellings are other ways to write a path.
func spellings(path string) []string {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	last := parts[len(parts)-1]
	front := strings.TrimSuffix(path, last)
	return []string{
		path, path + "/", "/" + path, "/." + path, "/x/.." + path, "/x/%2e%2e" + path, strings.Replace(path, "/", "//", 2), front + "/" + last, front + "./" + last,
		front + "x/../" + last, front + "%2e/" + last, path + ";x=y", front + ";x=y/" + last, path + "%00", path + "%20", path + "%2f", path + "?", path + "#x", path + "%3fx=y",
		strings.ToUpper(path), front + strings.ToUpper(last), front + "%" + fmt.Sprintf("%02x", last[0]) + last[1:], strings.ReplaceAll(path, "/", "%2f"), strings.ReplaceAll(path, "/", "\\"),
		path + ".json", path + "?role=operator&tenant=acme&approved=true", path + "?access_token=x", "/healthz/.." + path, "/login" + path, "/static/.." + path, "/static/..%2f.." + path,
		"/mcp" + path, "/v1" + path, "/api/v1" + path, "/api" + path, path + "/../" + last,
	}
}

// claims are headers by which a caller claims more rights.
func claims() []string {
	return []string{"X-Role: operator", "X-Tenant-ID: umbrella", "X-User-ID: root", "X-HTTP-Method-Override: POST", "X-HTTP-Method: POST", "X-Method-Override: POST",
		"X-Original-URL: /v1/stops", "X-Rewrite-URL: /v1/stops", "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Host: localhost", "X-Forwarded-User: root", "X-Remote-User: root",
		"X-Forwarded-Proto: https", "Forwarded: for=127.0.0.1;by=root", "X-Real-IP: 127.0.0.1", "Authorization: Basic cm9vdDpyb290", "Proxy-Authorization: Basic cm9vdDpyb290",
		"Cookie: readback-session=operator", "Cookie: __Host-readback-session=operator; role=operator", "Host: localhost", "Host: evil.example", "Upgrade: websocket",
		"Upgrade: h2c", "Origin: null", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site", "Referer: http://localhost/inbox", "Readback-Role: operator",
		"Idempotency-Key: approve", "Prefer: wait=1, handling=lenient", "Content-Encoding: gzip", "Expect: 100-continue", "TE: trailers", "Trailer: Authorization"}
}

// TestNoDecisionIsSmuggled: an agent that knows everything about a held write calls every
// route that decides, in every spelling, by every method, with every header and in every
// form. Nothing is decided, and nothing is sent.
func TestNoDecisionIsSmuggled(t *testing.T) {
	f := newFort(t, holding)
	th := f.held()
	f.settle()
	agent, before, tried := f.secret["agent@"+own], f.state(), 0
	try := func(about string, q *http.Request) {
		t.Helper()
		tried++
		a := f.do(q)
		if a.status/100 == 2 && q.Method != http.MethodOptions && q.Method != http.MethodGet && q.Method != http.MethodHead || a.status >= 500 {
			t.Errorf("%s: %s", about, a)
		}
		if now := f.state(); now != before {
			t.Errorf("%s: something has changed: %s\n%s", about, changed(before, now), a)
			before = now
		}
	}
	for key, e := range deciding(t) {
		method, _, _ := strings.Cut(key, " ")
		path, body := e.path(th), e.body(th)
		for _, spelt := range spellings(path) {
			q := f.send(routed{}, e, th, agent)
			q.Method, q.URL.Opaque = method, ""
			u, err := url.Parse(f.url + spelt)
			if err != nil {
				continue
			}
			q.URL = u
			try(key+" spelt "+spelt, q)
		}
		for _, other := range []string{"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "post", "LINK", "PROPFIND"} {
			q := f.send(routed{}, e, th, agent)
			q.Method = other
			try(key+" by "+other, q)
		}
		for _, claim := range claims() {
			name, value, _ := strings.Cut(claim, ": ")
			q := f.send(routed{}, e, th, agent)
			q.Method = method
			if name == "Host" {
				q.Host = value
			} else {
				q.Header.Add(name, value)
			}
			try(key+" with "+claim, q)
		}
		asForm := url.Values{"word": {"approve"}, "choice": {"approve"}, "reason": {"because somebody has looked"}, "digest": {th.digest}, "approval": {th.approval}, "seq": {"1"}}.Encode()
		for name, q := range map[string]*http.Request{
			"a form":     f.request(method, path, asForm, agent, "Content-Type", "application/x-www-form-urlencoded"),
			"a query":    f.request(method, path+"?"+asForm, "", agent),
			"plain text": f.request(method, path, body, agent, "Content-Type", "text/plain"),
			"parts": f.request(method, path, "--x\r\nContent-Disposition: form-data; name=\"word\"\r\n\r\napprove\r\n--x--\r\n", agent,
				"Content-Type", "multipart/form-data; boundary=x"),
			"a token in the query":  f.request(method, path+"?token="+agent, body, ""),
			"a token in the cookie": f.request(method, path, body, "", "Cookie", "readback-session="+agent),
		} {
			try(key+" as "+name, q)
		}
	}
	if tried < 800 {
		t.Errorf("only %d ways were tried", tried)
	}
	f.stillHeld(th)
}

// stillHeld fails if the held write was decided.
func (f *fort) stillHeld(th things) {
	f.t.Helper()
	if r := f.record(own, th.held); r.State != ledger.Held || r.Sends != 0 || r.Agreed != nil {
		f.t.Errorf("the write is %s after %d sends, agreed by %v", r.State, r.Sends, r.Agreed)
	}
	if writes, _ := f.p.world.Count(); writes != 0 || f.shop.World.Calls(mcpWrites...) != 0 {
		f.t.Errorf("%d writes and %d calls reached a destination", writes, f.shop.World.Calls(mcpWrites...))
	}
	gate := f.must(engine.RoleAgent, own, "POST", "/api/v1/workflows/"+th.workflow+"/steps/pay/gate", bankStep)
	if gate.field("decision") != "require_approval" {
		f.t.Errorf("the step: %s", gate)
	}
	if a := f.must(engine.RoleAgent, own, "GET", "/v1/sagas/"+th.saga, ""); a.field("state") != "running" {
		f.t.Errorf("the saga: %s", a)
	}
	if a := f.must(engine.RoleAgent, own, "GET", "/v1/stops", ""); !strings.Contains(a.body, `"nobodys","active":true`) {
		f.t.Errorf("the stop: %s", a)
	}
}

// TestNoDecisionIsSmuggledOverHTTP2 tries the same spellings, and what only the
// other version can say.
func TestNoDecisionIsSmuggledOverHTTP2(t *testing.T) {
	f := newFort(t, func(text string) string {
		return strings.Replace(holding(text), "grace: 20s", "grace: 20s\n  tls: {cert_file: c.pem, key_file: k.pem}", 1)
	})
	f.client = &http.Client{Timeout: time.Minute, CheckRedirect: f.client.CheckRedirect,
		Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(f.client.CloseIdleConnections)
	th := f.held()
	f.settle()
	before := f.state()
	resp, err := f.client.Do(f.request("GET", "/healthz", "", ""))
	if err != nil || resp.ProtoMajor != 2 || resp.Header.Get("Strict-Transport-Security") == "" {
		t.Fatalf("%v %v", resp, err)
	}
	_ = resp.Body.Close()
	for key, e := range deciding(t) {
		method, _, _ := strings.Cut(key, " ")
		path := e.path(th)
		for _, spelt := range spellings(path) {
			q := f.send(routed{}, e, th, f.secret["agent@"+own])
			q.Method, q.URL.Opaque = method, spelt
			if !strings.HasPrefix(spelt, "/") || strings.HasPrefix(spelt, "//") {
				continue // the client does not say such
			}
			q.Host = "evil.example"
			if a := f.do(q); a.status/100 == 2 || a.status >= 500 {
				t.Errorf("%s spelt %s: %s", key, spelt, a)
			}
		}
	}
	if now := f.state(); now != before {
		t.Errorf("something has changed: %s", changed(before, now))
	}
	f.stillHeld(th)
}
