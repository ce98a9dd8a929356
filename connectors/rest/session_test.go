package rest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

const (
	bySession = `session: {path: /login, form: {user: "{param.shop}", password: "{secret.token}"}, token: $.session.id, ended: [{status: 401}, {status: [200, 404, 405], where: {path: $.fault, equals: ended}}]}`
	byCookie  = `session: {path: /login, body: {password: "{secret.token}"}, cookie: SID, must: [{path: $.ok, equals: true}], ended: {status: 401}}`
)

// sessionServer is a destination with sessions.
type sessionServer struct {
	mu     sync.Mutex
	logins int
	valid  string   // the session that it takes
	asked  string   // of the last login
	calls  []string // the others, with what they carried
	made   int      // the writes with an effect
	login  http.HandlerFunc
	ended  http.HandlerFunc    // default 401
	at     func(call int) bool // ends the session at that call
}

func (d *sessionServer) serve(rw http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/api/login" {
		d.logins++
		d.asked = r.Header.Get("Content-Type") + " " + string(body)
		d.valid = fmt.Sprintf("s-%d-hunter3", d.logins)
		if d.login != nil {
			d.login(rw, r)
			return
		}
		http.SetCookie(rw, &http.Cookie{Name: "SID", Value: "gone", MaxAge: -1})
		http.SetCookie(rw, &http.Cookie{Name: "SID", Value: d.valid})
		rw.Header().Set("X-Sid", d.valid)
		says(201, fmt.Sprintf(`{"ok":true,"session":{"id":%q}}`, d.valid))(rw, r)
		return
	}
	carried := r.Header.Get("Authorization") + r.Header.Get("Cookie") + r.Header.Get("X-Sid")
	d.calls = append(d.calls, r.Method+" "+carried)
	if d.at != nil && d.at(len(d.calls)) {
		d.valid = "none"
	}
	switch {
	case carried != "Bearer "+d.valid && carried != "SID="+d.valid && d.ended != nil:
		d.ended(rw, r)
	case carried != "Bearer "+d.valid && carried != "SID="+d.valid:
		says(401, `{"error":"ended"}`)(rw, r)
	case r.Method == http.MethodPost:
		d.made++
		says(200, `{"id":"1"}`)(rw, r)
	default:
		says(200, `{"items":[]}`)(rw, r)
	}
}

func endedWrite(c *rest.Connector) error {
	_, err := c.Write(context.Background(), itemRequest(intent.Create))
	return err
}

func TestASession(t *testing.T) {
	for name, tt := range map[string]struct{ auth, asked, carried string }{
		"token":  {bySession, "application/x-www-form-urlencoded password=hunter2&user=main", "POST Bearer s-1-hunter3"},
		"cookie": {byCookie, `application/json {"password":"hunter2"}`, "POST SID=s-1-hunter3"},
		"header": {strings.Replace(bySession, "token: $.session.id", "token: {header: X-Sid}, header: X-Sid, prefix: 'Bearer '", 1), "application/x-www-form-urlencoded password=hunter2&user=main", "POST Bearer s-1-hunter3"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &sessionServer{}
			c := items(t, withAuth(tt.auth), d.serve)
			if err := endedWrite(c); err != nil {
				t.Fatal(err)
			}
			if d.asked != tt.asked || d.calls[0] != tt.carried {
				t.Errorf("logged in with %q, sent %q; want %q and %q", d.asked, d.calls[0], tt.asked, tt.carried)
			}
			if shown := c.Mask("hunter2 s-1-hunter3"); shown != "*** ***" {
				t.Errorf("shown as %s", shown)
			}
		})
	}
}

// A call of which the API says that its session had ended is made once more, by a new session.
func TestASessionThatEnds(t *testing.T) {
	ended200 := says(200, `{"fault":"ended"}`)
	for name, tt := range map[string]struct {
		reason        string
		auth          string
		ended         http.HandlerFunc
		at            func(int) bool
		want          connectors.Fate
		calls, logins int
	}{
		"once":            {"the session ended between two calls", bySession, nil, func(n int) bool { return n == 2 }, connectors.FateAnswered, 3, 2},
		"by a cookie":     {"likewise", byCookie, nil, func(n int) bool { return n == 2 }, connectors.FateAnswered, 3, 2},
		"200":             {"the body says so", bySession, ended200, func(n int) bool { return n == 2 }, connectors.FateAnswered, 3, 2},
		"at once":         {"the new one ends as well", bySession, nil, func(n int) bool { return n == 2 || n == 3 }, connectors.FateLogin, 3, 2},
		"at once, 200":    {"likewise", bySession, ended200, func(n int) bool { return n == 2 || n == 3 }, connectors.FateLogin, 3, 2},
		"not declared":    {"401 is a refused login", strings.Replace(bySession, "{status: 401}, ", "", 1), nil, func(n int) bool { return n == 2 }, connectors.FateLogin, 2, 1},
		"403":             {"a refusal, as nothing else is declared", bySession, says(403, `{"fault":"ended"}`), func(n int) bool { return n == 2 }, connectors.FateRefused, 2, 1},
		"200, unreadable": {"it may be the answer to a write", bySession, says(200, `{"fault":`), func(n int) bool { return n == 2 }, connectors.FateUnknown, 2, 1},
		"200, of another": {"another fault is none of the session", bySession, says(200, `{"fault":"other"}`), func(n int) bool { return n == 2 }, connectors.FateAnswered, 2, 1},
		"lost":            {"nothing says that it ended", bySession, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, func(n int) bool { return n == 2 }, connectors.FateUnknown, 2, 1},
		"server error":    {"likewise", bySession, says(502, `{"fault":"ended"}`), func(n int) bool { return n == 2 }, connectors.FateUnknown, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := &sessionServer{ended: tt.ended, at: tt.at}
			c := items(t, withAuth(tt.auth), d.serve)
			if err := endedWrite(c); err != nil {
				t.Fatal(err)
			}
			err := endedWrite(c)
			if connectors.FateOf(err) != tt.want || len(d.calls) != tt.calls || d.logins != tt.logins {
				t.Errorf("%s: %v after %d calls and %d logins; want %q, %d and %d", tt.reason, err, len(d.calls), d.logins, tt.want, tt.calls, tt.logins)
			}
			made := 1
			if tt.want == connectors.FateAnswered && tt.calls > 2 {
				made = 2
			}
			if d.made != made {
				t.Errorf("%d writes had an effect, want %d", d.made, made)
			}
			d.at = nil
			if tt.want != connectors.FateLogin {
				return
			}
			if err := endedWrite(c); err != nil || d.logins != tt.logins+1 {
				t.Errorf("the next one: %v after %d logins; want a new session", err, d.logins)
			}
		})
	}
}

// What is said of an ended session is said of no record, whatever the status is.
func TestAnEndedSessionIsNoAbsence(t *testing.T) {
	for name, tt := range map[string]struct {
		ended http.HandlerFunc
		read  string
	}{
		"404 of a list":        {says(404, `{"fault":"ended"}`), plainRead},
		"405 of a list":        {says(405, `{"fault":"ended"}`), plainRead},
		"404, absent":          {says(404, `{"fault":"ended"}`), "strength: strong\npath: '/items/{key.sku}'\nrecord: $\nabsent: [404]\n"},
		"200, a list left out": {says(200, `{"fault":"ended"}`), "strength: strong\npath: /items\nquery: {sku: '{key.sku}'}\nrecords: {path: '$.items[*]', missing: none}\n"},
		"401":                  {nil, plainRead},
	} {
		t.Run(name, func(t *testing.T) {
			d := &sessionServer{ended: tt.ended, at: func(n int) bool { return n <= 2 }}
			c := items(t, strings.Replace(itemsFile("", tt.read), "  bearer: {secret: token}", "  "+bySession, 1), d.serve)
			q := connectors.Query{Intent: item(intent.Create)}
			got, err := c.Read(t.Context(), q)
			if connectors.FateOf(err) != connectors.FateLogin || errors.Is(err, connectors.ErrNoTarget) || len(got.Records) > 0 || len(d.calls) != 2 || d.logins != 2 {
				t.Errorf("%+v, %v after %d calls and %d logins; want a refused login after two of each", got, err, len(d.calls), d.logins)
			}
			d.valid = "none"
			if strings.HasPrefix(name, "404, absent") {
				return // it would be a list
			}
			if _, err := c.Read(t.Context(), q); err != nil || len(d.calls) != 3 {
				t.Errorf("by a new session: %v after %d calls", err, len(d.calls))
			}
		})
	}
}

// A mutation of which an answer has a result may have been done, whatever else it says.
func TestAnEndedSessionBesideAResult(t *testing.T) {
	file := strings.Replace(itemsFile("", plainRead), "        method: POST\n        path: /items\n        body: {\"...\": \"{fields}\", sku: \"{key.sku}\", stamp: \"{stamp}\"}",
		"        path: /items\n        graphql: {query: 'mutation { make }', result: $.data.make, variables: {a: '{fields}', b: '{key.sku}', c: '{stamp}'}}", 1)
	d := &sessionServer{ended: says(200, `{"data":{"make":{"id":"1"}},"fault":"ended"}`), at: func(n int) bool { return n == 1 }}
	c := items(t, strings.Replace(file, "  bearer: {secret: token}", "  "+bySession, 1), d.serve)
	if err := endedWrite(c); connectors.FateOf(err) != connectors.FateAnswered || len(d.calls) != 1 {
		t.Errorf("%v after %d calls; want it sent once", err, len(d.calls))
	}
}

// Writers that meet the end of a session at once log in once.
func TestACrowdLogsInOnce(t *testing.T) {
	d := &sessionServer{}
	c := items(t, withAuth(byCookie), d.serve)
	if err := endedWrite(c); err != nil {
		t.Fatal(err)
	}
	d.valid = "none"
	var crowd sync.WaitGroup
	for range 8 {
		crowd.Go(func() {
			if err := endedWrite(c); err != nil {
				t.Error(err)
			}
		})
	}
	crowd.Wait()
	if d.logins != 2 || d.made != 9 {
		t.Errorf("%d logins, %d effects; want 2 and 9", d.logins, d.made)
	}
}

func TestWithoutASessionNothingIsSent(t *testing.T) {
	const secret = "hunter2"
	tests := map[string]struct {
		reason string
		login  http.HandlerFunc
	}{
		"login 401":            {"wrong password", says(401, `{"error":"hunter2 is wrong"}`)},
		"login 400":            {"likewise", says(400, `{"error":"hunter2 is wrong"}`)},
		"login 403":            {"the user is blocked", says(403, `hunter2`)},
		"login 200":            {"with an error", says(200, `{"error":"hunter2 is wrong"}`)},
		"login 200, null":      {"no session", says(200, `{"ok":true,"session":{"id":null}}`)},
		"login 200, anonymous": {"the cookie is set all the same", says(200, `{"ok":false,"session":{"id":""}}`, "Set-Cookie", "SID=anonymous")},
		"HTML":                 {"a page", says(200, `<html>hunter2`, "Set-Cookie", "SID=anonymous")},
		"broken":               {"server error", says(500, `hunter2`)},
		"redirect":             {"the secret would go elsewhere", says(307, ``, "Location", "https://evil.example/login")},
		"control":              {"it would begin another header", says(200, `{"ok":true,"session":{"id":"a\r\nX: b"}}`, "Set-Cookie", "SID=a\x01")},
		"no answer":            {"a connection that breaks", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"hangs":                {"never answers", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	}
	for name, tt := range tests {
		for of, auth := range map[string]string{"": bySession, ", cookie": byCookie} {
			t.Run(name+of, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := &sessionServer{login: tt.login}
					c := items(t, withAuth(auth), d.serve)
					err := endedWrite(c)
					_, readErr := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create)})
					want := connectors.FateNotSent
					if strings.HasPrefix(name, "login") || name == "control" && auth == byCookie {
						want = connectors.FateLogin // of a cookie with a control character nothing is left
					}
					if connectors.FateOf(err) != want || want == connectors.FateLogin && connectors.FateOf(readErr) != want || len(d.calls) > 0 || readErr == nil {
						t.Errorf("%s: write %v, read %v, %d calls; want %s and an error", tt.reason, err, readErr, len(d.calls), want)
					}
					if strings.Contains(fmt.Sprint(err, readErr), secret) {
						t.Errorf("the secret is in an error: %v, %v", err, readErr)
					}
				})
			})
		}
	}
}

// withSessions is a fake of a trap, with the sessions that are open there.
func withSessions(name string) (*fakerest.Fake, *fakerest.Sessions) {
	if name == "odoo/order" {
		o := fakerest.NewOdoo()
		return o.Fake, &o.Sessions
	}
	d := fakerest.NewDesk()
	return d.Fake, &d.Sessions
}

// A login that is refused concerns the destination: writes wait, and go on once it is let in.
func TestALoginThatIsRefusedHoldsTheQueue(t *testing.T) {
	for _, name := range []string{"odoo/order", "desk/ticket"} {
		synctest.Test(t, func(t *testing.T) {
			d := trap(name)
			f, sessions := withSessions(name)
			e := d.engine(t, name, f)
			if out, err := e.Do(t.Context(), d.write(name, 0)); err != nil || out.Status != ledger.Verified || sessions.Logins() != 1 {
				t.Fatalf("%+v, %v, %d logins; want one verified by one login", out, err, sessions.Logins())
			}
			sessions.End()
			sessions.Refuse(true)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out, err := e.Do(ctx, d.write(name, 1))
			if err == nil && !out.Settled.IsZero() {
				t.Errorf("%s: it is %s (%s); want it to wait", name, out.Status, out.Text)
			}
			sessions.Refuse(false)
			for range 8 {
				time.Sleep(20 * time.Minute)
				if _, err := e.Resume(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := e.Do(t.Context(), d.write(name, 1)); err != nil || out.Status != ledger.Verified || len(f.Now(d.collection)) != 2 {
				t.Errorf("%s: %s (%s), %v, %d records; want it verified, and two", name, out.Status, out.Text, err, len(f.Now(d.collection)))
			}
		})
	}
}

func TestSessionsAreExplained(t *testing.T) {
	for name, want := range map[string]string{
		"odoo": "The login is a call of its own, POST /web/session/authenticate, with the secret password; its answer sets the cookie session_id that the calls after it carry. " +
			"The login succeeded only where the answer has that, and what must hold of $.error, and what must hold of $[?@.uid > 0].uid. " +
			"A session has ended where a call is answered 200 with a certain $.error.data.name: nothing of the call was applied then, and it is made once more by a new session.",
		"desk": "its answer has the token that the calls after it carry. The login succeeded only where the answer has that. " +
			"A session has ended where a call is answered 401 or 403 with a certain $.error.code: nothing of the call was applied then, and it is made once more by a new session.",
	} {
		text, err := os.ReadFile("testdata/traps/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		d, err := rest.Load(text, name+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range d.Kinds() {
			if words := strings.Join(d.Explained(kind), "\n"); !strings.Contains(words, want) {
				t.Errorf("%s is explained by\n%s\nwant in it\n%s", name, words, want)
			}
		}
	}
	d, err := rest.Load([]byte(withAuth(`session: {path: /login, body: {p: "{secret.token}"}, token: $.id}`)), "F")
	if err != nil || !strings.Contains(strings.Join(d.Warnings(), "\n"), ":10: auth.session: has no ended: a call that meets the end of the session is taken for a refused login, and all writes wait; want ended: {status: 401}") {
		t.Errorf("%v, %v; want a warning", d.Warnings(), err)
	}
}

// A destination that ends each session at its third request delays nothing and refuses nothing, also
// where the answer to a write is lost.
func TestADestinationThatLogsOutAtEachThirdCall(t *testing.T) {
	const many = 20
	for _, name := range []string{"odoo/order", "desk/ticket"} {
		synctest.Test(t, func(t *testing.T) {
			d := trap(name)
			f, sessions := withSessions(name)
			sessions.Last(3)
			e, began := d.engine(t, name, f), time.Now()
			for n := range many {
				if n%4 == 3 {
					if err := f.Set(fault.Fault{Kind: fault.LostAnswer, Times: 1}); err != nil {
						t.Fatal(err)
					}
				}
				if out, err := e.Do(t.Context(), d.write(name, n)); err != nil || out.Status != ledger.Verified {
					t.Errorf("%s: write %d is %s (%s), %v", name, n, out.Status, out.Text, err)
				}
			}
			// A refused login pauses a write; this time is the bubble's.
			if took := time.Since(began); took > 0 {
				t.Errorf("%s: the writes took %s", name, took)
			}
			writes, reads := f.Count()
			if made := len(f.Now(d.collection)); made != many || sessions.Logins() > (writes+reads)/2 {
				t.Errorf("%s: %d records, %d logins for %d calls; want %d, and a login for two calls at most", name, made, sessions.Logins(), writes+reads, many)
			}
		})
	}
}
