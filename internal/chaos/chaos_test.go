package chaos_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/chaos"
	"github.com/readback-go/readback/readbacktest/fault"
)

// proxy is a proxy before a target, with its control requests, as `readback chaos` serves them.
type proxy struct {
	t   *testing.T
	url string
}

func newProxy(t *testing.T, target string) proxy {
	t.Helper()
	base, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	o, err := chaos.Options{Seed: 1}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	var passed http.Handler
	control := chaos.NewServer(chaos.HTTP, func() *chaos.Log {
		p := chaos.NewProxy(chaos.Forward(base), o)
		passed = p
		return p.Log
	})
	mux := http.NewServeMux()
	mux.Handle(chaos.Prefix+"/", control.Control())
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { passed.ServeHTTP(w, r) })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return proxy{t, s.URL}
}

func (p proxy) does(ctx context.Context, method, path string, header ...string) (*http.Response, string, error) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader("{}"))
	if err != nil {
		p.t.Fatal(err)
	}
	if method == http.MethodGet {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res, string(text), err
}

func (p proxy) effects() (e chaos.Effects) {
	p.t.Helper()
	_, text, err := p.does(p.t.Context(), http.MethodGet, chaos.Prefix+"/effects")
	if err == nil {
		err = json.Unmarshal([]byte(text), &e)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return e
}

// A client that gives up does not undo what a server does: its request is not cut.
func TestAWriteWhoseClientGaveUpIsCounted(t *testing.T) {
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	o, err := chaos.Options{Seed: 1}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	p := chaos.NewProxy(chaos.ForwardBy(&url.URL{Scheme: "http", Host: "api.test"}, server(func(r *http.Request) (*http.Response, error) {
		giveUp() // the request is there
		return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: http.NoBody, Request: r}, r.Context().Err()
	})), o)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/charges", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Transport().RoundTrip(r); !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	if n := p.Count(func(chaos.Call) bool { return true }); n != 1 {
		t.Errorf("%d effects, want 1\n%s", n, p)
	}
}

// server is a remote target.
type server func(*http.Request) (*http.Response, error)

func (s server) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

// The same of a target in the process of the test.
func TestAHandlerThatOutlivesItsClientIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		ends http.HandlerFunc
		want int
	}{
		"it applies the write": {func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(2 * time.Second) // of the bubble's clock
			w.WriteHeader(http.StatusCreated)
		}, 1},
		"it gives up": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, err := chaos.Options{Seed: 1}.Checked()
				if err != nil {
					t.Fatal(err)
				}
				p := chaos.NewProxy(c.ends, o)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/charges", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := p.Transport().RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the client got %v", err)
				}
				if n := p.Count(func(chaos.Call) bool { return true }); n != c.want {
					t.Errorf("%d effects, want %d\n%s", n, c.want, p)
				}
			})
		})
	}
}

// A write without an answer is not counted as none: the question for the effects is refused.
func TestAWriteOfUnknownEffectIsNotCounted(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer api.Close()
	p := newProxy(t, api.URL)
	_, _, _ = p.does(t.Context(), http.MethodPost, "/charges") // no answer comes
	res, text, err := p.does(t.Context(), http.MethodGet, chaos.Prefix+"/effects")
	if err != nil || res.StatusCode != http.StatusConflict || !strings.Contains(text, "count the effects at the target: #1 ") {
		t.Errorf("%v, %s, %v", res, text, err)
	}
	if res, text, err = p.does(t.Context(), http.MethodGet, chaos.Prefix+"/effects?path=/orders"); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("another path: %v, %s, %v", res, text, err)
	}
	api.Close()
	p = newProxy(t, api.URL)
	_, _, _ = p.does(t.Context(), http.MethodPost, "/charges") // likewise
	if e := p.effects(); e.Effects != 0 || e.Sends != 1 || !strings.Contains(e.Log[0], "never reached the target") {
		t.Errorf("without a target: %+v", e)
	}
}

// A target that says "go on" or gives hints before its answer has not answered yet.
func TestTheAnswerIsTheFinalOne(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // it sends 100 if the client expects that
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
	}))
	defer api.Close()
	p := newProxy(t, api.URL)
	for _, header := range [][]string{nil, {"Expect", "100-continue"}} {
		if res, _, err := p.does(t.Context(), http.MethodPost, "/charges", header...); err != nil || res.StatusCode != http.StatusCreated {
			t.Errorf("%v: %v, %v", header, res, err)
		}
	}
	if e := p.effects(); e.Effects != 2 {
		t.Errorf("%+v, want 2 effects", e)
	}
}

// A read that does not end, such as a stream of events, keeps no test from its count.
func TestAnOpenReadDoesNotDelayTheCount(t *testing.T) {
	came := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(came)
		<-r.Context().Done()
	}))
	defer api.Close()
	p := newProxy(t, api.URL)
	ctx, end := context.WithTimeout(t.Context(), chaos.Grace/2) // it ends before a count would give up
	defer end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _, _ = p.does(ctx, http.MethodGet, "/events") // it never ends by itself
	}()
	<-came
	if e := p.effects(); e.Effects != 0 || ctx.Err() != nil {
		t.Errorf("%+v, %v", e, ctx.Err())
	}
	end()
	<-ended
}

// A request that follows a redirect of the target is counted too.
func TestARedirectLeadsToTheProxy(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/charges" { // as frameworks do where an address has a slash at its end
			http.Redirect(w, r, "http://"+r.Host+"/v1/charges/", http.StatusTemporaryRedirect)
			return
		}
		w.Header().Set("Location", "https://elsewhere.example"+r.URL.Path)
		w.WriteHeader(http.StatusCreated)
	}))
	defer api.Close()
	p := newProxy(t, api.URL+"/v1")
	res, err := http.Post(p.url+"/charges", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if at := res.Header.Get("Location"); at != "https://elsewhere.example/v1/charges/" {
		t.Errorf("another host's address is %q", at)
	}
	if e := p.effects(); e.Effects != 1 || e.Sends != 2 {
		t.Errorf("%+v, want 1 effect of 2 writes", e)
	}
}

// What a proxy with whole bodies cannot carry is refused, and reaches no target that would accept it.
func TestNoOtherProtocolIsCarried(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" || r.Method == http.MethodGet {
			t.Errorf("%s with %v reached the target", r.Method, r.Header)
		}
	}))
	defer api.Close()
	p := newProxy(t, api.URL)
	for want, c := range map[int][]string{
		http.StatusNotImplemented:   {http.MethodGet, "Connection", "Upgrade", "Upgrade", "websocket"},
		http.StatusMethodNotAllowed: {http.MethodGet, "Accept", "text/event-stream"},
		http.StatusOK:               {http.MethodPost, "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c"},
	} {
		if res, text, err := p.does(t.Context(), c[0], "/", c[1:]...); err != nil || res.StatusCode != want {
			t.Errorf("%v: %v, %s, %v; want %d", c, res, text, err, want)
		}
	}
}

// A fault that did nothing is listed with those that no request met.
func TestAFaultThatDidNothingIsUnmet(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()
	p := newProxy(t, api.URL)
	set := func(text string) int {
		res, err := http.Post(p.url+chaos.Prefix+"/faults", "text/plain", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if got := set("dropped-field,nth=1"); got != http.StatusBadRequest {
		t.Errorf("without a field: %d", got)
	}
	if got := set("normalised-field,nth=1,field=note\nlagging-read"); got != http.StatusNoContent {
		t.Fatal(got)
	}
	for _, body := range []string{`{"note":"TEA"}`, `{}`} {
		res, err := http.Post(p.url+"/charges", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	_, _, _ = p.does(t.Context(), http.MethodGet, "/charges") // nothing older is known
	want := []string{
		"lagging-read: no older answer to this read is known",
		`normalised-field: the field "note" has no other form: it is neither a number nor a text with small letters`,
	}
	if e := p.effects(); !slices.Equal(e.Unmet, want) {
		t.Errorf("%q, want %q", e.Unmet, want)
	}
}

// What an earlier test left on its way does not arrive in the next one.
func TestARestartDropsWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arrived := 0
		o, err := chaos.Options{Seed: 1}.Checked()
		if err != nil {
			t.Fatal(err)
		}
		var p *chaos.Proxy
		s := chaos.NewServer(chaos.HTTP, func() *chaos.Log {
			p = chaos.NewProxy(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived++ }), o)
			return p.Log
		})
		if err := s.Log().Set(fault.Fault{Kind: fault.LateCommit, Delay: time.Minute}); err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.test/charges", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Transport().RoundTrip(r); err == nil {
			t.Error("it was answered")
		}
		s.Restart()
		time.Sleep(time.Hour) // of the bubble's clock
		if arrived != 0 {
			t.Errorf("%d arrived", arrived)
		}
	})
}

// A call that was cancelled, and has no response, may have had an effect: servers send none to a
// cancelled call. A batch is refused.
func TestACallOfUnknownEffectIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := chaos.NewMCP("", chaos.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		control := chaos.NewServer(chaos.Tools, p.Restart).Control()
		fromClient, client := io.Pipe()
		answers, toClient := io.Pipe()
		fromServer, _ := io.Pipe()
		server, toServer := io.Pipe()
		go func() { _ = p.Run(t.Context(), fromClient, toClient, fromServer, toServer) }()
		got, answered := bufio.NewScanner(server), bufio.NewScanner(answers)
		for _, line := range []string{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`} {
			if _, err := io.WriteString(client, line+"\n"); err != nil || !got.Scan() {
				t.Fatal(err)
			}
		}
		w := httptest.NewRecorder()
		control.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, chaos.Prefix+"/effects", http.NoBody))
		if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "count the effects at the target: #1 ") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if _, err := io.WriteString(client, `[{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay"}}]`+"\n"); err != nil || !answered.Scan() || !strings.Contains(answered.Text(), `"code":-32600`) {
			t.Errorf("a batch: %s, %v", answered.Text(), err)
		}
		_ = client.Close() // all end with their input
		_ = fromServer.Close()
		synctest.Wait()
	})
}
