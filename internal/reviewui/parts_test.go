package reviewui

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
)

func TestOwnPathsAlone(t *testing.T) {
	for path, want := range map[string]string{
		"/writes/wr_1?done=x": "/writes/wr_1?done=x", "/": "/", "": "/inbox", "//evil.example": "/inbox", "/\\evil.example": "/inbox",
		"https://evil.example/": "/inbox", "javascript:alert(1)": "/inbox", "/a\r\nSet-Cookie: x=1": "/inbox", "inbox": "/inbox", "/%zz": "/inbox",
	} {
		if got := ownPath(path); got != want {
			t.Errorf("ownPath(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestLinksOfTheWebAlone(t *testing.T) {
	for address, want := range map[string]string{
		"https://shop.example/orders/1?x=1": "https://shop.example/orders/1?x=1", "http://localhost:8080/a": "http://localhost:8080/a",
		"javascript:alert(1)": "", "JaVaScRiPt:alert(1)": "", " javascript:alert(1)": "", "data:text/html,x": "", "//evil.example": "", "/inbox": "", "": "",
		"https://user:pass@shop.example/": "", "https://": "", "https://shop.example/\u202egnp": "", "https://" + strings.Repeat("a", 2100): "", "imap://mail.example/": "",
	} {
		if got := httpLink(address); got != want {
			t.Errorf("httpLink(%q) = %q, want %q", address, got, want)
		}
	}
}

func TestStaticFilesAreKept(t *testing.T) {
	d := (&app{}).open(nil)
	for _, name := range []string{"review.css", "review.js", "mark.svg"} {
		a := person{}.get(t, d, names[name])
		if a.Status != http.StatusOK || a.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" || len(a.Body) == 0 {
			t.Errorf("%s: status %d, kept %q, %d bytes", name, a.Status, a.Header.Get("Cache-Control"), len(a.Body))
		}
		if strings.Contains(a.Body, "//cdn") || strings.Contains(a.Body, "@import") {
			t.Errorf("%s fetches something from elsewhere", name)
		}
	}
	for _, path := range []string{"/static/review.css", "/static/../app.go", "/static/", "/static/review.000000000000.css"} {
		if a := (person{}).get(t, d, path); a.Status == http.StatusOK {
			t.Errorf("%s is served", path)
		}
	}
}

// A person with a session can end it, by a form of the page.
func TestASessionCanBeEnded(t *testing.T) {
	s := newShop(t)
	a := auditor.get(t, s, "/inbox", func(r *http.Request) { r.Header.Set("X-Via", "login") })
	checkPage(t, a)
	if form := a.form(t, "/logout"); form.Get(access.FormTokenField) != shopToken {
		t.Errorf("the form of the logout: %v", form)
	}
}

func TestLightAndDarkAreRemembered(t *testing.T) {
	s := newShop(t)
	for to, want := range map[string]string{"dark": "dark", "light": "light", "auto": "", "\"><script>": ""} {
		a := auditor.send(t, s, http.MethodPost, "/theme", url.Values{"to": {to}, "back": {"https://evil.example/"}})
		cookies := (&http.Response{Header: a.Header}).Cookies()
		if a.Status != http.StatusSeeOther || a.Header.Get("Location") != "/inbox" || len(cookies) != 1 || cookies[0].Value != want {
			t.Fatalf("%s: status %d to %q, cookies %v", to, a.Status, a.Header.Get("Location"), cookies)
		}
		if c := cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
			t.Errorf("the cookie is %v", c)
		}
		page := auditor.get(t, s, "/inbox", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: themeCookie, Value: to}) })
		if got, _ := attr(page.all(tag("html"))[0], "data-theme"); got != want {
			t.Errorf("%s: the page is %q, want %q", to, got, want)
		}
	}
}

func TestErrorsInPlainWords(t *testing.T) {
	for err, want := range map[error]int{
		ledger.ErrNotFound: 404, engine.ErrBusy: 409, ledger.ErrUnavailable: 503,
		fmt.Errorf("%w: %w", ledger.ErrUnavailable, ledger.ErrUnsure): 503, errors.New("nil pointer in secret.go"): 500,
	} {
		a := operator.get(t, (&fake{err: err}).newApp(nil), "/writes/wr_1")
		checkPage(t, a)
		if a.Status != want {
			t.Errorf("%v: status %d, want %d", err, a.Status, want)
		}
		unsure := strings.Contains(a.text(), "was recorded, or was not")
		if errors.Is(err, ledger.ErrUnsure) != unsure || strings.Contains(a.text(), "secret.go") {
			t.Errorf("%v: the page says %q", err, a.text())
		}
	}
}

// refusing knows no caller, for a reason.
type refusing struct{ err error }

func (r refusing) Resolve(*http.Request) (access.Identity, error) { return access.Identity{}, r.err }

func TestUnknownCallersGetTheReason(t *testing.T) {
	for name, tt := range map[string]struct {
		err          error
		status       int
		header, want string
	}{
		"too often":      {&access.TooManyError{After: 90 * time.Second}, http.StatusTooManyRequests, "Retry-After", "90"},
		"not now":        {fmt.Errorf("%w: %w", access.ErrUnavailable, ledger.ErrUnavailable), http.StatusServiceUnavailable, "Location", ""},
		"no credentials": {access.ErrNoCredentials, http.StatusUnauthorized, "WWW-Authenticate", `Bearer realm="readback"`},
	} {
		t.Run(name, func(t *testing.T) {
			a := person{}.get(t, (&fake{}).newApp(&Options{Who: refusing{tt.err}}), "/inbox")
			checkPage(t, a)
			if a.Status != tt.status || a.Header.Get(tt.header) != tt.want {
				t.Errorf("status %d, %s %q; want %d and %q", a.Status, tt.header, a.Header.Get(tt.header), tt.status, tt.want)
			}
		})
	}
}

func TestWhatWasTypedIsGivenBackWhenTheLoginHasEnded(t *testing.T) {
	d := (&fake{}).newApp(&Options{Who: byHeader{}, LoginPath: "/login"})
	a := person{}.send(t, d, http.MethodPost, "/writes/wr_1/decision", url.Values{"reason": {why}, "choice": {"approve"}})
	if a.Status != http.StatusUnauthorized || !strings.Contains(a.text(), why) {
		t.Errorf("status %d: %s", a.Status, a.text())
	}
	links := 0
	for _, n := range a.all(tag("a")) {
		if href, _ := attr(n, "href"); href == "/login?next=%2Fwrites%2Fwr_1" {
			links++
		}
	}
	if links != 1 {
		t.Errorf("%d links to the login", links)
	}
}

// Who may see and not decide is shown where to log in for that, and keeps what was typed.
func TestStepUpIsOffered(t *testing.T) {
	d := (&fake{}).newApp(&Options{Who: weak{}, LoginPath: "/login"})
	a := person{}.get(t, d, "/inbox")
	if a.Status != http.StatusOK || !strings.Contains(a.Body, `href="/login/provider?next=%2Finbox&amp;step_up=1"`) {
		t.Errorf("status %d: %s", a.Status, a.text())
	}
	a = person{}.send(t, d, http.MethodPost, "/writes/wr_1/decision", url.Values{"reason": {why}, "choice": {"approve"}})
	if a.Status != http.StatusForbidden || !strings.Contains(a.text(), why) || !strings.Contains(a.text(), "second factor") {
		t.Errorf("status %d: %s", a.Status, a.text())
	}
}

// weak is a reviewer whose login lacks what decisions need.
type weak struct{}

func (weak) Resolve(*http.Request) (access.Identity, error) {
	return access.Identity{Tenant: "acme", Name: "ada", Role: engine.RoleReviewer, Via: "login", NeedsStepUp: true}, nil
}

func TestChartsAndTheirTablesAgree(t *testing.T) {
	since := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	w := windows[1]
	spans := []ledger.Span{
		{From: since, Settled: map[ledger.Status]int{ledger.Verified: 3, ledger.Denied: 1}, Review: 2, Sends: 6, Reads: 8, Saved: 1},
		{From: since.Add(47 * w.step), Settled: map[ledger.Status]int{ledger.Accepted: 2}, Held: 4, Sends: 1, Reads: 4},
		{From: since.Add(-w.step), Settled: map[ledger.Status]int{ledger.Verified: 99}},
		{From: since.Add(-time.Minute), Settled: map[ledger.Status]int{ledger.Verified: 99}},
		{From: since.Add(48 * w.step), Settled: map[ledger.Status]int{ledger.Verified: 99}},
	}
	b := activityOf(spans, []service.Replays{{From: since.Add(-time.Minute), N: 2}, {From: since.Add(w.step), N: 3}, {From: since.Add(w.back), N: 50}}, since, w)
	want := map[string][][]string{
		"outcomes": {{"00:00", "3", "1", "0"}, {"23:30", "0", "0", "2"}},
		"share":    {{"00:00", "75", "25"}, {"23:30", "0", "100"}},
		"people":   {{"00:00", "2", "0"}, {"23:30", "0", "4"}},
		"saved":    {{"00:00", "1"}},
		"replays":  {{"00:00", "2"}, {"00:30", "3"}},
		"reads":    {{"00:00", "2"}, {"23:30", "2"}},
		"sends":    {{"00:00", "1.50"}, {"23:30", "0.50"}},
	}
	for _, c := range b.Charts {
		if diff := cmp.Diff(want[c.ID], c.Rows); diff != "" {
			t.Errorf("table of %s (-want +got):\n%s", c.ID, diff)
		}
		numbers := 0
		for _, row := range c.Rows {
			for _, n := range row[1:] {
				if n != "0" {
					numbers++
				}
			}
		}
		if len(c.Bars) != numbers {
			t.Errorf("%s has %d bars for %d numbers", c.ID, len(c.Bars), numbers)
		}
		for _, one := range c.Bars {
			if one.Y < c.Plot.Y-0.01 || one.Y+one.H > c.Plot.Y+c.Plot.H+0.01 || one.X < c.Plot.X || one.X+one.W > c.Plot.X+c.Plot.W+0.01 {
				t.Errorf("a bar of %s is outside: %+v", c.ID, one)
			}
		}
	}
	var totals []string
	for _, one := range b.Totals {
		totals = append(totals, fmt.Sprint(one.N, " ", one.Word))
	}
	if diff := cmp.Diff([]string{"3 verified", "1 known not to be there", "2 settled by a reviewer or a caller", "2 went to review", "4 held", "1 duplicates prevented", "5 calls repeated"}, totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
}

func TestEverySettlementIsInAChart(t *testing.T) {
	for _, name := range service.Settlements {
		n := 0.0
		for _, g := range groups {
			n += settledAs(ledger.Span{Settled: map[ledger.Status]int{name: 1}}, g.of)
		}
		if n != 1 {
			t.Errorf("what is settled as %s is counted %v times", name, n)
		}
	}
}

func TestLagsStandInTheirOrder(t *testing.T) {
	c := lagsOf([]lag.PathLag{{Key: lag.Key{Kind: "order"}, P50: 0, P90: 2 * time.Second, P99: time.Hour, Count: 3},
		{Key: lag.Key{Kind: "order", Path: "get"}, P50: time.Second, P90: time.Second, P99: time.Second}})
	for _, r := range c.Rows {
		if r.P50.At > r.P90.At || r.P90.At > r.P99.At || r.P50.At < lagLeft || r.P99.At > float64(c.Width) {
			t.Errorf("%s: half at %.0f, 90 of 100 at %.0f, 99 at %.0f", r.Name, r.P50.At, r.P90.At, r.P99.At)
		}
	}
	if lagsOf(nil) != nil {
		t.Error("nothing known is drawn")
	}
}

func TestSearchGoesOnFromPageToPage(t *testing.T) {
	s := newShop(t)
	for i := range maxFound + 7 {
		s.write(t, order(fmt.Sprintf("P-%02d", i), nil))
	}
	for i := range 3 {
		s.held(t, fmt.Sprintf("Q-%d", i))
	}
	found, path, pages := map[string]bool{}, "/search?by=workflow&q=run-1&oldest=yes&destination=orders&state=verified", 0
	for path != "" {
		a := auditor.get(t, s, path)
		if a.Status != http.StatusOK {
			t.Fatalf("%s: status %d: %s", path, a.Status, a.text())
		}
		checkPage(t, a)
		for _, n := range a.all(class("go")) {
			if found[text(n)] {
				t.Errorf("%q is found twice", text(n))
			}
			found[text(n)] = true
		}
		path = ""
		for _, n := range a.all(class("next")) {
			path, _ = attr(n, "href")
		}
		if pages++; pages > 10 {
			t.Fatal("there is always another page")
		}
	}
	if len(found) != maxFound+7 || pages < 2 {
		t.Errorf("%d writes on %d pages, want %d on two at least", len(found), pages, maxFound+7)
	}
}

func TestSearchByEachName(t *testing.T) {
	s := newShop(t)
	id := s.write(t, order("N-1", func(w *intent.WriteIntent) { w.IdempotencyKey = "invoice:1" }))
	r := s.record(t, id)
	found := func(who person, query string) (page answer, n int) {
		page = who.get(t, s, "/search?"+query)
		return page, len(page.all(func(n *html.Node) bool {
			href, _ := attr(n, "href")
			return n.Data == "a" && href == writePath(id)
		}))
	}
	for q, by := range map[string]string{"N-1": "found by order_id", "n-": "found by order_id", "run-1": "found by workflow", "INVOICE": "found by idempotency key",
		"corr-1": "By correlation id", r.KeyDigest: "By key digest"} {
		page, n := found(auditor, "q="+url.QueryEscape(q))
		if n != 1 || !strings.Contains(page.text(), by) || !strings.Contains(page.text(), "Create order N-1 for") {
			t.Errorf("%q finds it %d times, want once, with what it is about and %q: %s", q, n, by, page.text())
		}
		if _, n := found(outsider, "q="+url.QueryEscape(q)); n != 0 {
			t.Errorf("%q finds a write of another tenant", q)
		}
	}
	for by, q := range map[string]string{"workflow": "run-1", "operation": "invoice:1", "correlation": "corr-1", "key": r.KeyDigest} {
		if _, n := found(auditor, "by="+by+"&q="+url.QueryEscape(q)); n != 1 {
			t.Errorf("by %s it is found %d times, want once", by, n)
		}
	}
	if _, n := found(auditor, "by=workflow&q=run"); n != 0 {
		t.Error("a link to a workflow finds others")
	}
	for _, q := range []string{string(id), strings.ToUpper(string(id)), string(id)[:9]} {
		if page, _ := found(auditor, "q="+q); page.Status != http.StatusSeeOther || page.Header.Get("Location") != writePath(id) {
			t.Errorf("%q: status %d to %q, want the page of the write", q, page.Status, page.Header.Get("Location"))
		}
		if page, n := found(outsider, "q="+q); page.Status != http.StatusOK || n != 0 {
			t.Errorf("%q of another tenant: status %d, found %d times", q, page.Status, n)
		}
	}
	a := auditor.get(t, s, "/search?q=run-1&by=workflow&after=made-up")
	if a.Status != http.StatusOK || !strings.Contains(a.text(), "search again") {
		t.Errorf("a cursor that was made up: status %d: %s", a.Status, a.text())
	}
}

func TestProfilesInWords(t *testing.T) {
	all := map[string]string{}
	for _, f := range profileFacts(connectors.Profile{}) {
		all[f.Name] = f.Text
	}
	for name, want := range map[string]string{"A second send": "Could duplicate", "Settle time": "It is not declared", "Horizon": "never certain to stay missing", "Our stamp": "no place", "Undo": "Nothing"} {
		if !strings.Contains(all[name], want) {
			t.Errorf("a profile that declares nothing is shown as %s: %s; want %q in it", name, all[name], want)
		}
	}
}

func TestAnErasedWriteIsNotCalledPruned(t *testing.T) {
	for word, r := range map[string]ledger.Record{"pruned": {Tombstone: true}, "contents erased": {Tombstone: true, Erased: "er-1"}} {
		if b := foundWrite(r).Badges; b[len(b)-1].Word != word {
			t.Errorf("%s: the search has %+v", word, b)
		}
		b := new(app).writeBody(&visit{}, service.View{Record: r})
		if erased := strings.Contains(b.Gone, "erasure er-1"); b.Gone == "" || erased != (r.Erased != "") {
			t.Errorf("%s: the page has %q", word, b.Gone)
		}
	}
}

// A refused form leads back to its own page: what was typed is entered again there.
func TestPagesOfForms(t *testing.T) {
	for target, want := range map[string]string{
		"/writes/wr_1/decision": "/writes/wr_1", "/workflows/a%2Fb/steps/pay%201/decision": "/workflows/a%2Fb/steps/pay%201", "/sagas/x/close": "/sagas/x",
		"/inbox/decisions": "/inbox", "/destinations/release": "/destinations", "/theme": "", "//evil.example/x": "/evil.example", "/": "",
	} {
		r := &http.Request{Method: http.MethodPost, URL: must1(url.ParseRequestURI(target))}
		if got := formPage(r); got != want {
			t.Errorf("formPage(%q) = %q, want %q", target, got, want)
		}
		if r.Method = http.MethodGet; formPage(r) != "" {
			t.Errorf("%s sends no form", target)
		}
	}
	r := &http.Request{Method: http.MethodPost, URL: must1(url.Parse("/destinations/stop")), PostForm: url.Values{"destination": {"a&b"}}}
	if got := formPage(r); got != "/destinations/stop?destination=a%26b&tool=" {
		t.Errorf("of a stop: %q", got)
	}
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
