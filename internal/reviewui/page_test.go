package reviewui

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// checkPage checks the structure of any page.
func checkPage(t *testing.T, a answer) {
	t.Helper()
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for what, n := range map[string]int{"h1": 1, "main": 1, "header": 1, "footer": 1, "title": 1} {
		if found := len(a.all(func(e *html.Node) bool { return e.Data == what && e.Namespace == "" })); found != n {
			add("%d elements %s, want %d", found, what, n)
		}
	}
	ids, labels := map[string]int{}, map[string]bool{}
	for _, n := range a.all(func(*html.Node) bool { return true }) {
		if id, ok := attr(n, "id"); ok {
			ids[id]++
		}
		if n.Data == "label" {
			of, _ := attr(n, "for")
			labels[of] = text(n) != ""
		}
		for _, at := range n.Attr {
			if strings.HasPrefix(at.Key, "on") || at.Key == "style" || at.Key == "srcdoc" {
				add("<%s> has the attribute %s=%q", n.Data, at.Key, at.Val)
			}
		}
	}
	for id, n := range ids {
		if n > 1 {
			add("the id %q is there %d times", id, n)
		}
	}
	for _, n := range a.all(func(n *html.Node) bool { return slices.Contains([]string{"input", "select", "textarea"}, n.Data) }) {
		id, _ := attr(n, "id")
		if kind, _ := attr(n, "type"); kind != "hidden" && !labels[id] {
			add("the field %q has no label", id)
		}
	}
	for _, n := range a.all(func(*html.Node) bool { return true }) {
		for _, name := range []string{"aria-labelledby", "aria-describedby"} {
			if v, ok := attr(n, name); ok && ids[v] != 1 {
				add("<%s> has %s=%q, which is nowhere", n.Data, name, v)
			}
		}
	}
	wrong = append(wrong, checkReach(a)...)
	if diff := cmp.Diff([]string(nil), wrong); diff != "" {
		t.Errorf("the make of the page (-want +got):\n%s", diff)
	}
}

// checkReach checks what a page runs, shows or links to.
func checkReach(a answer) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, n := range a.all(func(n *html.Node) bool {
		return slices.Contains([]string{"script", "img", "link", "iframe", "object", "embed", "style", "base", "foreignObject"}, n.Data)
	}) {
		src, _ := attr(n, "src")
		href, _ := attr(n, "href")
		if !strings.HasPrefix(src+href, "/static/") || text(n) != "" {
			add("<%s> loads %q and holds %q", n.Data, src+href, text(n))
		}
	}
	for _, n := range a.all(tag("a")) {
		href, ok := attr(n, "href")
		rel, _ := attr(n, "rel")
		switch {
		case ok && (strings.HasPrefix(href, "/") && !strings.HasPrefix(href, "//") || strings.HasPrefix(href, "#")):
		case ok && (strings.HasPrefix(href, "https://") || strings.HasPrefix(href, "http://")) && rel == "noreferrer noopener":
		default:
			add("a link leads to %q with rel %q", href, rel)
		}
		if text(n) == "" {
			add("the link to %q has no text", href)
		}
	}
	for _, n := range a.all(tag("form")) {
		if action, _ := attr(n, "action"); !strings.HasPrefix(action, "/") || strings.HasPrefix(action, "//") {
			add("a form sends to %q", action)
		}
	}
	for _, n := range a.all(func(n *html.Node) bool { m, _ := attr(n, "method"); return n.Data == "form" && m == "post" }) {
		var tokens []string
		for f := range n.Descendants() {
			if name, _ := attr(f, "name"); name == access.FormTokenField {
				token, _ := attr(f, "value")
				tokens = append(tokens, token)
			}
		}
		if action, _ := attr(n, "action"); !slices.Equal(tokens, []string{shopToken}) {
			add("the form of %s has the tokens %q, want that of the session", action, tokens)
		}
	}
	for _, n := range a.all(tag("svg")) {
		if label, _ := attr(n, "aria-label"); label == "" {
			add("a picture has no text")
		}
	}
	return wrong
}

// furnished is a shop in which something of everything waits.
func furnished(t *testing.T) (s *shop, paths []string) {
	t.Helper()
	s = newShop(t)
	held, review := s.held(t, "A-1"), s.review(t, "A-2")
	verified := s.write(t, order("A-3", nil))
	as := access.Identity{Tenant: "acme", Name: "olga", Role: engine.RoleOperator}
	if err := s.service.Stop(t.Context(), as, guards.Scope{Destination: "orders", Tool: "bulk"}, "imports are doubled today"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.service.BeginSaga(t.Context(), as, saga.Plan{ID: "trip 1/2", Steps: []saga.Step{{Name: "one", Intent: order("S-1", func(w *intent.WriteIntent) { w.Workflow, w.Step = "", "" })}}}); err != nil {
		t.Fatal(err)
	}
	return s, []string{"/inbox", writePath(held), writePath(review), writePath(verified), "/destinations", "/destinations/orders/health", "/destinations/orders/health?in=7d", "/activity", "/activity?in=1h", "/activity?in=7d",
		"/search", "/search?q=run-1", "/search?state=review", "/search?q=nothing", "/search?since=gestern", "/sagas", "/sagas?state=running", sagaPath("trip 1/2"), "/help", "/nowhere"}
}

func TestEveryPageIsWellMadeForEverybody(t *testing.T) {
	s, paths := furnished(t)
	for _, who := range []person{operator, reviewer, auditor} {
		for _, path := range paths {
			t.Run(who.role+path, func(t *testing.T) {
				a := who.get(t, s, path)
				want := http.StatusOK
				if path == "/nowhere" {
					want = http.StatusNotFound
				}
				if a.Status != want {
					t.Fatalf("status %d, want %d: %s", a.Status, want, a.text())
				}
				checkPage(t, a)
				checkHeaders(t, a)
				if !strings.Contains(a.text(), who.name) {
					t.Error("the page does not say who is logged in")
				}
				posts := 0
				for _, f := range a.all(tag("form")) {
					action, _ := attr(f, "action")
					if method, _ := attr(f, "method"); method == "post" && action != "/theme" {
						posts++
					}
				}
				if who == auditor && posts > 0 {
					t.Errorf("an auditor is offered %d forms that change something", posts)
				}
			})
		}
	}
}

func checkHeaders(t *testing.T, a answer) {
	t.Helper()
	want := map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	}
	for name, value := range want {
		if got := a.Header.Get(name); got != value {
			t.Errorf("header %s is %q, want %q", name, got, value)
		}
	}
}

func TestPagesNeedPermissionToRead(t *testing.T) {
	s, paths := furnished(t)
	tests := map[string]struct {
		who    person
		want   int
		reason string
	}{
		"agent":     {agent, http.StatusForbidden, "an agent never sees what others asked for"},
		"anonymous": {person{}, http.StatusUnauthorized, "an unknown caller sees nothing"},
		"no such role": {person{"acme", "eve", "root"}, http.StatusForbidden,
			"a role that is not in the table may nothing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, path := range paths {
				a := tt.who.get(t, s, path)
				if a.Status != tt.want {
					t.Errorf("%s: status %d, want %d: %s", path, a.Status, tt.want, tt.reason)
				}
				if strings.Contains(a.Body, "A-1") || strings.Contains(a.Body, "wr_") && !strings.Contains(path, "wr_") {
					t.Errorf("%s: something is shown all the same: %s", path, a.text())
				}
				checkPage(t, a)
				checkHeaders(t, a)
			}
		})
	}
}

func TestAnotherTenantFindsNothing(t *testing.T) {
	s, paths := furnished(t)
	for _, path := range paths {
		a := outsider.get(t, s, path)
		if strings.HasPrefix(path, "/writes/") || path == sagaPath("trip 1/2") {
			if a.Status != http.StatusNotFound {
				t.Errorf("%s: status %d, want 404", path, a.Status)
			}
		}
		for _, secret := range []string{"A-1", "A-2", "A-3", "bulk", "run-1"} {
			if strings.Contains(a.text(), secret) {
				t.Errorf("%s shows %q of another tenant", path, secret)
			}
		}
	}
}

func TestWhoIsNotKnownIsSentToTheLogin(t *testing.T) {
	d := (&app{}).open(&Options{Who: byHeader{}, LoginPath: "/login"})
	tests := map[string]struct {
		path, next string
		reason     string
	}{
		"a page":           {"/writes/wr_1?done=approve", "/login?next=%2Fwrites%2Fwr_1%3Fdone%3Dapprove", "they come back to where they wanted to be"},
		"two slashes":      {"//evil.example/x", "/login?next=%2Finbox", "a browser takes this for another site"},
		"a page not there": {"/nowhere", "/login?next=%2Fnowhere", "who is not known learns nothing of what is there"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := person{}.get(t, d, "/inbox", func(r *http.Request) {
				u, err := r.URL.Parse("http://review.example" + tt.path)
				if err != nil {
					t.Fatal(err)
				}
				r.URL = u
			})
			if strings.HasPrefix(tt.path, "//") {
				// The mux itself cleans such a path; only the redirect target is checked.
				if got := ownPath(tt.path); got != "/inbox" {
					t.Errorf("ownPath(%q) = %q: %s", tt.path, got, tt.reason)
				}
				return
			}
			if got := a.Header.Get("Location"); a.Status != http.StatusSeeOther || got != tt.next {
				t.Errorf("status %d to %q, want 303 to %q: %s", a.Status, got, tt.next, tt.reason)
			}
		})
	}
}

func TestEmptyPagesSayWhatWouldBeThere(t *testing.T) {
	s := newShop(t)
	for path, want := range map[string]string{"/inbox": "Nothing waits for a reviewer", "/activity": "Nothing happened in this time", "/sagas": "No sagas", "/search?q=x": "Nothing found"} {
		a := operator.get(t, s, path)
		if !strings.Contains(a.text(), want) {
			t.Errorf("%s does not say %q: %s", path, want, a.text())
		}
		checkPage(t, a)
	}
}

func TestInboxCountsAndOrders(t *testing.T) {
	s, _ := furnished(t)
	a := reviewer.get(t, s, "/inbox")
	var titles, counts []string
	for _, n := range a.all(class("go")) {
		titles = append(titles, text(n))
	}
	for _, n := range a.all(class("tally")) {
		counts = append(counts, text(n))
	}
	if diff := cmp.Diff([]string{"Create order A-1 for €19.99", "Create order A-2 for €19.99"}, titles); diff != "" {
		t.Errorf("what waits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1 in review", "1 held", "0 to approve at the gate", "0 sagas"}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if title := text(a.all(tag("title"))[0]); !strings.HasPrefix(title, "(2) Inbox") {
		t.Errorf("the title is %q, want the count in it", title)
	}
}

// A row has what an approver decides by, once, and the filters leave those of one tool, with the
// counts that each link leads to.
func TestInboxRowsAndFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		for i, tool := range []string{"refund", "refund", "<charge>"} {
			s.write(t, order(fmt.Sprint("A-", i), func(w *intent.WriteIntent) { w.Tool, w.Risk = tool, intent.RiskApprove }))
		}
		s.review(t, "B-1") // of the tool charge
		a := reviewer.get(t, s, "/inbox")
		page := a.text()
		for _, want := range []string{"Create order A-1 for €19.99", "tool refund, workflow run-1", "Tool: <charge> (1), charge (1), refund (2)", "Waits because: needs approval (3), the record differs (1)"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q:\n%s", want, page)
			}
		}
		// The amount is in the link of a row and in the label of its checkbox, and not repeated.
		if n := strings.Count(page, "€19.99"); n != 2*4 {
			t.Errorf("the amount is there %d times, want twice for each of 4 rows", n)
		}
		for _, n := range a.all(tag("a")) {
			link, _ := attr(n, "href")
			chosen := text(n)
			if !strings.HasPrefix(link, "/inbox?tool=") {
				continue
			}
			of := reviewer.get(t, s, link)
			if rows := len(of.all(class("go"))); !strings.HasSuffix(chosen, fmt.Sprintf("(%d)", rows)) {
				t.Errorf("%s leads to %d writes", chosen, rows)
			}
		}
		both := reviewer.get(t, s, "/inbox?tool=charge&reason=approval").text()
		if !strings.Contains(both, "No write waits that these filters choose.") || !strings.Contains(both, "all") {
			t.Errorf("with filters that leave nothing:\n%s", both)
		}
	})
}

// The counts are of all that waits, however few are shown, and say where they are lower bounds.
func TestInboxCountsWhatWaits(t *testing.T) {
	for more, want := range map[bool][]string{
		false: {"7 in review", "100000 held", "0 to approve at the gate", "0 sagas", "(100007) Inbox – readback"},
		true:  {"7+ in review", "100000+ held", "0 to approve at the gate", "0 sagas", "(100007+) Inbox – readback"},
	} {
		f := &fake{inbox: service.Inbox{Writes: []service.Waiting{{Record: ledger.Record{ID: "wr_1", State: ledger.Held}}}, Next: "more", Uncounted: more, Counts: []ledger.Waiting{
			{WaitKind: ledger.WaitKind{State: ledger.Held}, Count: 100_000}, {WaitKind: ledger.WaitKind{State: ledger.Review}, Count: 7}}}}
		a := reviewer.get(t, f.newApp(nil), "/inbox")
		var got []string
		for _, n := range a.all(class("tally")) {
			got = append(got, text(n))
		}
		if diff := cmp.Diff(want, append(got, text(a.all(tag("title"))[0]))); diff != "" {
			t.Errorf("more %t (-want +got):\n%s", more, diff)
		}
	}
}

func TestRoutesAreThoseThatAreServed(t *testing.T) {
	s := newShop(t)
	for _, r := range Routes() {
		if r.Method != http.MethodGet && r.Act != access.Decide && r.Act != access.Operate && r.Pattern != "/theme" {
			t.Errorf("%s %s changes something and takes only the right to %s", r.Method, r.Pattern, r.Act)
		}
		path := strings.NewReplacer("{$}", "", "{file...}", "review.css", "{id}", "x", "{workflow}", "x", "{step}", "x").Replace(r.Pattern)
		if r.Pattern == "/updates" {
			continue // it does not end by itself
		}
		a := operator.send(t, s, http.MethodPut, path, nil)
		if r.Pattern != "/{$}" && a.Status != http.StatusMethodNotAllowed {
			t.Errorf("PUT %s: status %d, want 405", path, a.Status)
		}
	}
}

// A verified write with a pending recheck shows until when.
func TestWhatWasNotComparedIsOnThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		id := s.write(t, order("A-1", func(w *intent.WriteIntent) { w.Payload = intent.Fields{"note": "by phone"} }))
		page := reviewer.get(t, s, "/writes/"+string(id)).text()
		if !strings.Contains(page, "Not checked/note") {
			t.Errorf("the page has no row of what was not compared:\n%s", page)
		}
	})
}

// The destination's refusal is on the page in its own words, quoted and named as
// such.
func TestARefusalIsOnThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		id := s.write(t, order("A-1", nil), orders.Fault{Kind: orders.Refused})
		const want = `the destination's own words: status "422", code "refused", message "the destination does not want this", request "req_refused"`
		if page := reviewer.get(t, s, "/writes/"+string(id)).text(); !strings.Contains(page, "Refusal"+want) {
			t.Errorf("%s is not on the page:\n%s", want, page)
		}
	})
}

func TestAPendingRecheckIsOnThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		id := s.write(t, order("A-1", nil), orders.Fault{Kind: orders.DroppedBefore, Times: 1})
		who := access.Identity{Tenant: "acme", Name: agent.name, Role: engine.RoleAgent}
		out, err := s.service.Outcome(t.Context(), who, id, time.Minute)
		want := "It is checked again until " + out.RecheckUntil.UTC().Format(time.RFC3339)
		page := reviewer.get(t, s, "/writes/"+string(id)).text()
		if err != nil || out.RecheckUntil.IsZero() || !strings.Contains(page, want) {
			t.Errorf("%v: %q is not on the page:\n%s", err, want, page)
		}
	})
}

// An approver sees why the agent asked, as text and as a claim.
func TestTheReasonOfTheCallerIsOnThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		id := s.write(t, order("A-1", func(w *intent.WriteIntent) {
			w.Risk, w.Context = intent.RiskApprove, map[string]string{"reason": "<b>The goods</b> arrived."}
		}))
		if page := reviewer.get(t, s, "/writes/"+string(id)).text(); !strings.Contains(page, "The caller's reason, which proves nothing: <b>The goods</b> arrived.") {
			t.Errorf("the page lacks the reason:\n%s", page)
		}
	})
}

// What the summary does not have of the declared values is below it, by name.
func TestNamedValues(t *testing.T) {
	got := namedValues(service.Business{Summary: "Create order A-1 for $29.99", Amount: "$29.99", Subject: "A parcel", Customer: "Ada"})
	if want := "subject A parcel · customer Ada"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
