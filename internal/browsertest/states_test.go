package browsertest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/reviewui"
)

// state is one state of a page: an address that is opened, or a form that is sent to it.
type state struct {
	page   string     // below the site, or of another server
	form   url.Values // nil for a page that is opened
	status int
	// before brings about what the page is to show. It lasts a few seconds, and is brought about
	// again if the page comes too late.
	before func()
}

func (a state) String() string {
	name := a.page
	if u, err := url.Parse(name); err == nil && u.Host != "" { // a port is another one each time
		name = "elsewhere" + u.RequestURI()
	}
	if a.form != nil {
		name += " with a form, " + strconv.Itoa(a.status)
	}
	return name
}

// states are the pages, and what they show when something is refused or fails.
func states(t *testing.T, s *site, p *person, tenant string) (all []state) {
	t.Helper()
	for _, page := range pages(t, s, tenant) {
		status := http.StatusOK
		if strings.HasSuffix(page, "none") || strings.HasPrefix(page, "/destinations/none") {
			status = http.StatusNotFound
		}
		all = append(all, state{page: page, status: status})
	}
	write := all[2].page // it is held
	failing := failingServer(t, p)
	starting := s.beside(t, p, "ledger: postgres://readback@127.0.0.1:1/none\n") // its ledger cannot be reached
	pressed := s.beside(t, p, "ledger: beside.db\nserver:\n  person_tokens: true\n")
	return append(all,
		state{page: "/writes/%252e", status: 400}, // before a route is looked for
		state{page: "/theme", form: url.Values{"to": {"light", "dark"}}, status: 400},
		state{page: "/login", form: url.Values{"token": {"rbk_unknown"}}, status: 401},
		state{page: "/login", form: url.Values{"token": {s.token(t, tenant, "agent", "bot")}}, status: 403},
		state{page: failing + "/inbox?as=forbidden", status: 403},
		state{page: failing + "/refused?as=403", status: 403},
		state{page: write + "/decision", form: url.Values{"choice": {"approve"}, "reason": {reason}, "digest": {"x"}, "seq": {"1"}}, status: 409},
		state{page: "/destinations/release", form: url.Values{"destination": {"billing"}, "reason": {reason}}, status: 409},
		state{page: write + "/decision", form: url.Values{"reason": {"ok"}, "digest": {"x"}, "seq": {"1"}}, status: 422},
		state{page: "/inbox/decisions", form: url.Values{"reason": {"ok"}}, status: 422},
		state{page: "/destinations/stop", form: url.Values{"destination": {"billing"}, "reason": {"ok"}}, status: 422},
		state{page: "/sagas/trip/cancel", form: url.Values{"reason": {"ok"}}, status: 422},
		state{page: pressed + "/login", form: url.Values{"token": {"rbk_unknown"}}, status: 429, before: func() { press(t, pressed) }},
		state{page: failing + "/inbox?as=limit", status: 429},
		state{page: failing + "/inbox?as=fault", status: 500},
		state{page: failing + "/refused?as=500", status: 500},
		state{page: failing + "/inbox?as=unavailable", status: 503},
		state{page: starting + "/inbox", status: 503},
	)
}

// visit opens a page, or sends a form to it, and checks how that is answered.
func (p *person) visit(a state) {
	p.t.Helper()
	status := p.answer(a)
	for range 9 {
		if a.before == nil || status == a.status {
			break
		}
		status = p.answer(a)
	}
	if status != a.status {
		p.t.Errorf("%s: answered with %d, want %d", a, status, a.status)
	}
}

// answer opens a page, or sends a form to it, and returns the status of what came.
func (p *person) answer(a state) int {
	p.t.Helper()
	address := a.page
	if strings.HasPrefix(address, "/") {
		address = p.s.url + address
	}
	if a.form == nil {
		p.open(address)
		return p.last(address)
	}
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	from := u.Scheme + "://" + u.Host + "/login"
	if strings.HasPrefix(a.page, "/") {
		from = "/help"
	}
	p.open(from)
	if a.before != nil {
		a.before()
	}
	look[any](p, `(() => {
		const form = document.createElement("form");
		form.method = "post"; form.action = `+quoted(address)+`;
		for (const [name, values] of Object.entries(`+quoted(a.form)+`)) for (const value of values) {
			const field = document.createElement("input");
			field.type = "hidden"; field.name = name; field.value = value;
			form.append(field);
		}
		const token = document.querySelector("form[action='/theme'] input"); // the forms of a session carry it
		if (token) form.append(token.cloneNode());
		window.sentFrom = true;
		document.body.append(form);
		form.submit();
	})(), null`)
	p.until("the answer to the form", "!window.sentFrom && document.readyState === 'complete'")
	return p.last(address)
}

// last is how an address was answered last.
func (p *person) last(address string) int {
	p.t.Helper()
	address, _, _ = strings.Cut(address, "?")
	all := p.asked(address)
	if len(all) == 0 {
		p.t.Fatalf("%s was not answered", address)
	}
	return int(all[len(all)-1])
}

// allow has the browser go to another server of the test.
func (p *person) allow(address string) {
	p.seen.mu.Lock()
	defer p.seen.mu.Unlock()
	p.seen.allowed = append(p.seen.allowed, strings.TrimPrefix(address, "http://"))
}

// failingServer shows the review UI where nothing can be resolved, with the error that an
// address names, and the refusals before a request is handled.
func failingServer(t *testing.T, p *person) string {
	t.Helper()
	fails := map[string]error{"forbidden": access.ErrStepUp, "fault": errors.New("a fault"), "unavailable": access.ErrUnavailable,
		"limit": &access.LimitError{Limit: "requests", Of: "tenant", Setting: "limits.requests", Most: 10, After: 1}}
	ui := reviewui.New(nil, &reviewui.Options{Who: resolver(func(r *http.Request) error { return fails[r.URL.Query().Get("as")] }), LoginPath: "/login"})
	mux := http.NewServeMux()
	mux.Handle("/", ui)
	mux.HandleFunc("/refused", func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(r.URL.Query().Get("as"))
		if err != nil {
			t.Error(err)
		}
		access.Refusal(w, r, status, "a page of another origin asks for this")
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.allow(server.URL)
	return server.URL
}

// resolver fails for each request with the error of a function.
type resolver func(*http.Request) error

func (fail resolver) Resolve(r *http.Request) (access.Identity, error) {
	return access.Identity{}, fail(r)
}

// press sends more bad tokens than a server takes from one address.
func press(t *testing.T, at string) {
	t.Helper()
	status := 0
	for range 100 {
		if status = login(t.Context(), at); status == http.StatusTooManyRequests {
			return
		}
	}
	t.Fatalf("the last of 100 bad tokens is answered with %d", status)
}

// login sends a token that the server does not know, and returns how that is answered.
func login(ctx context.Context, at string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/login", strings.NewReader("token=rbk_unknown"))
	if err != nil {
		return 0
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", at)
	resp, err := (&http.Client{}).Do(r)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close() // only the status is of interest
	return resp.StatusCode
}

// beside starts another server with a configuration of its own.
func (s *site) beside(t *testing.T, p *person, settings string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "readback.yaml")
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := s.program.Serve(nil, "--config", config, "--listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.End(); err != nil {
			t.Error(err)
		}
	})
	p.allow(server.URL)
	return server.URL
}
