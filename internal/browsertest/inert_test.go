package browsertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// markup is what a model or a destination may say, so that it does something where
// a page believes it: scripts, elements that load something, ends of whatever it
// may stand in, and what a template language would carry out. Each element bears
// the class evil.
const markup = `"'></textarea></title></style><script class=evil>window.evil=1;alert(1)</script>` +
	`<img class=evil src=http://evil.invalid/x onerror="window.evil=2;alert(2)"><svg class=evil onload="alert(3)">` +
	`<a class=evil href="javascript:alert(4)">x</a><meta class=evil http-equiv=refresh content="0;url=http://evil.invalid/">{{7*7}}${7*7}<!--`

// unseen are characters that cannot be seen, or turn what stands behind them
// around.
const unseen = "a\u202eb\u200bc\u2066d\u0007e\u00a0f\ufeffg"

// evilName is markup as short as names are.
const evilName = `<img class=evil src=http://evil.invalid/n onerror=alert(5)>{{.}}'"`

// inert checks that a page shows texts literally, and that none of them became a
// part of the page.
func inert(p *person, page string, texts ...string) {
	p.t.Helper()
	p.open(page)
	look[any](p, "document.querySelectorAll('details').forEach(d => d.open = true), null")
	shown := look[string](p, "document.body.innerText + ' ' + [...document.querySelectorAll('input, textarea')].map(f => f.value).join(' ')")
	for _, text := range texts {
		if !slices.ContainsFunc([]string{text, strings.Trim(strconv.Quote(text), `"`), strings.Trim(quoted(text), `"`)}, func(form string) bool { return strings.Contains(shown, form) }) {
			p.t.Errorf("%s does not show %q literally:\n%s", page, text, shown)
		}
	}
	found := look[[]string](p, `[...document.querySelectorAll('.evil, [onerror], [onload], [onclick], [src*="evil"], [href^="javascript:" i], [href^="data:" i], base, iframe, object, embed, meta[http-equiv], style, script:not([src^="/static/"])')].map(e => e.outerHTML)`)
	if len(found) > 0 {
		p.t.Errorf("%s: a text became a part of the page: %q", page, found)
	}
	if look[bool](p, "'evil' in window") {
		p.t.Errorf("%s: a script of a text ran", page)
	}
	if hidden := look[string](p, `[...document.body.innerText].filter(c => /[\u202a-\u202e\u2066-\u2069\u200b-\u200f\ufeff\u0000-\u0008]/.test(c)).map(c => c.codePointAt(0).toString(16)).join(" ")`); hidden != "" {
		p.t.Errorf("%s: characters that cannot be seen stand there as such: %s", page, hidden)
	}
}

// evilOrder is a write all of whose texts are evil.
func evilOrder(destination, id string) intent.WriteIntent {
	w := order(destination, evilName, id+evilName, intent.Fields{"note": markup, evilName: unseen, "list": []any{markup}, "nested": map[string]any{evilName: markup}})
	w.Workflow, w.Step, w.CorrelationID, w.IdempotencyKey = evilName, evilName+id, evilName, id+evilName
	w.Payload = intent.Fields{"hint": markup}
	member := strings.ReplaceAll(evilName, "/", "~1")
	w.Absent, w.Ignore = []string{"/gone" + member}, []string{"/ignored" + member}
	return w
}

// Whatever a model says in an intent, and a destination in a record, is text on
// every page that shows it.
func TestWritesAreInert(t *testing.T) {
	s := theSite(t)
	const tenant = "inert"
	ada, helper := s.person(t, tenant, "operator", "ada"), s.agent(t, tenant)
	w := evilOrder("orders", "ie")
	key := w.Key["order_id"].(string)
	s.destinations["orders"].meddle(key, func(orders.Order) intent.Fields {
		return intent.Fields{"note": markup + "changed", "seen" + evilName: unseen, "gone" + evilName: markup, "list": []any{unseen}}
	})
	out := helper.settle(w, ledger.StatusReview)
	page := "/writes/" + string(out.ID)
	inert(ada, page, markup[:150], evilName, `a\u202eb\u200bc\u2066d\u0007`)
	inert(ada, "/inbox", evilName)
	inert(ada, "/search?q="+strings.NewReplacer("<", "%3C", ">", "%3E", "'", "%27", `"`, "%22", "{", "%7B", "}", "%7D", " ", "+", "=", "%3D", ":", "%3A").Replace(evilName), evilName)
	inert(ada, "/search?by=workflow&q=%22%3E%3Cscript%20class%3Devil%3Ealert(1)%3C/script%3E", `"><script class=evil>alert(1)</script>`)

	// A reason is text as well, of a person too.
	ada.open(page)
	ways["with the mouse"].decide(ada, "accept", evilName+" "+reason)
	decided(ada, "accepted")
	inert(ada, page, evilName+" "+reason)
	inert(ada, "/activity")
	inert(ada, "/destinations")
}

// Where a record is, a destination says: it is a link only as an address of the
// web, and a name of a record is text.
func TestLinksAreInert(t *testing.T) {
	s := theSite(t)
	const tenant = "links"
	ada, helper := s.person(t, tenant, "reviewer", "ada"), s.agent(t, tenant)
	for name, test := range map[string]struct {
		reason, link string
		want         string // the href, "" for no link
	}{
		"script":   {"it runs", "javascript:alert(document.domain)", ""},
		"capitals": {"browsers do not look at case", "JaVaScRiPt:alert(1)//http://x", ""},
		"blanks":   {"browsers pass over them", "  \tjava\nscript:alert(1)", ""},
		"data":     {"it is a page of somebody's", "data:text/html,<script>alert(1)</script>", ""},
		"user":     {"what stands before @ looks like a host", "https://readback.example.org@evil.invalid/", ""},
		"quotes":   {"they end an attribute", `https://ok.invalid/" onmouseover="alert(1)`, "https://ok.invalid/%22%20onmouseover=%22alert%281%29"},
		"web":      {"it is what it is for", "https://ok.invalid/orders/1", "https://ok.invalid/orders/1"},
	} {
		t.Run(name, func(t *testing.T) {
			id := "lk-" + name
			out := helper.settle(order("wiki", "open_order", id, intent.Fields{"ref": evilName, "link": test.link, "amount_cents": 1}), ledger.Verified)
			inert(ada, "/writes/"+string(out.ID), evilName)
			links := look[[]string](ada, "[...document.querySelectorAll('main a[rel]')].filter(a => a.target).map(a => a.getAttribute('href'))")
			if test.want == "" && len(links) > 0 {
				t.Errorf("%s: %q is the link %q", test.reason, test.link, links)
			}
			if test.want != "" && (len(links) == 0 || links[0] != test.want) {
				t.Errorf("%s: %q is the link %q, want %q", test.reason, test.link, links, test.want)
			}
		})
	}
}

// What agents tell the gate and put into sagas is text.
func TestStepsAndSagasAreInert(t *testing.T) {
	s := theSite(t)
	const tenant = "steps"
	ada, helper := s.person(t, tenant, "operator", "ada"), s.agent(t, tenant)
	var made struct {
		ID string `json:"workflow_id"`
	}
	helper.must(http.MethodPost, "/api/v1/workflows", map[string]any{"workflow_name": evilName + markup[:60], "source": "external"}, &made)
	helper.must(http.MethodPost, "/api/v1/workflows/"+made.ID+"/steps/s1/gate", map[string]any{
		"step_name": evilName, "step_type": "tool_call", "idempotency_key": evilName, "model": evilName, "provider": evilName,
		"step_input":   map[string]any{"to": markup, evilName: unseen},
		"tool_context": map[string]any{"tool_name": "wire_transfer", "tool_type": evilName, "tool_input": map[string]any{"iban": markup}},
	}, nil)
	inert(ada, "/inbox", evilName)
	inert(ada, "/workflows/"+made.ID+"/steps/s1", evilName, markup[:100])

	refund := order("billing", "refund", "sg-1", intent.Fields{"note": markup})
	refund.Workflow, refund.Step, refund.Tenant = "", "", ""
	helper.must(http.MethodPost, "/v1/sagas", map[string]any{"id": evilName, "correlation_id": evilName, "steps": []any{map[string]any{"name": evilName, "intent": trimmed(refund)}}}, nil)
	inert(ada, "/sagas", evilName)
	ada.click("[data-row] .go")
	ada.until("the saga", "document.readyState === 'complete' && location.pathname.startsWith('/sagas/')")
	inert(ada, look[string](ada, "location.pathname"), evilName)
}

// trimmed is an intent without the members that are empty.
func trimmed(w intent.WriteIntent) map[string]any {
	all := map[string]any{}
	if err := json.Unmarshal([]byte(quoted(w)), &all); err != nil {
		panic(err)
	}
	for name, v := range all {
		if v == "" {
			delete(all, name)
		}
	}
	return all
}

// must asks for something that must succeed.
func (a *agent) must(method, path string, body, into any) {
	a.t.Helper()
	status, answer, err := a.ask(a.t.Context(), method, path, body)
	if err != nil || status/100 != 2 {
		a.t.Fatalf("%s %s: %d %s, %v", method, path, status, answer, err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(answer, into); err != nil {
		a.t.Fatal(err)
	}
}

// The alarms of these tests ring: on a page without our care the same texts open
// dialogs, run, and ask other hosts; and on our own page a script that stands in
// the page is not run, and is told of.
func TestAlarmsRing(t *testing.T) {
	s := theSite(t)
	careless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, "<!doctype html><title>t</title><p>%s", strings.Replace(markup, "<meta class=evil http-equiv=refresh", "<meta", 1)) // who is gone needs no page
	}))
	t.Cleanup(careless.Close)
	eve := s.visitor(t, "eve")
	eve.open(careless.URL)
	eve.waitFor("dialogs", func() bool { return len(eve.alarms().dialogs) >= 3 })
	if !look[bool](eve, "'evil' in window && document.querySelectorAll('.evil').length >= 3") {
		t.Error("the texts did nothing on a page that believes them")
	}
	if host := "evil.invalid"; !strings.Contains(strings.Join(eve.alarms().requests, " "), host) {
		t.Errorf("no request to %s was heard of", host)
	}
	eve.forgive("evil.invalid", strings.TrimPrefix(careless.URL, "http://"))

	ada := s.person(t, "alarms", "reviewer", "ada")
	look[any](ada, `document.body.append(Object.assign(document.createElement("script"), {textContent: "window.evil = 1"})), document.body.insertAdjacentHTML("beforeend", "<img src=http://evil.invalid/y onerror='window.evil = 2'>"), null`)
	ada.waitFor("the policy's refusals", func() bool { return len(ada.alarms().refused) >= 2 })
	if look[bool](ada, "'evil' in window") {
		t.Error("the policy lets scripts run that stand in the page")
	}
	ada.forgive("evil.invalid")
}
