package access_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
)

// named believes "tenant/token" in the header Authorization.
type named struct{}

func (named) Resolve(r *http.Request) (access.Identity, error) {
	tenant, token, ok := strings.Cut(r.Header.Get("Authorization"), "/")
	if !ok {
		return access.Identity{}, access.ErrNoCredentials
	}
	return access.Identity{Tenant: tenant, Name: token, ID: token, Via: "token", Role: engine.RoleAgent}, nil
}

// api is a handler behind shares that resolves the caller, and then runs do.
type api struct {
	t       *testing.T
	handler http.Handler
	refused map[string]int
	err     error // why the last request was refused
	// do handles an admitted request. Default: it waits for free.
	do   func(w http.ResponseWriter, r *http.Request)
	free chan struct{}
	wg   sync.WaitGroup
}

func newAPI(t *testing.T, l access.Limits) *api {
	a := &api{t: t, refused: map[string]int{}, free: make(chan struct{})}
	a.do = func(http.ResponseWriter, *http.Request) { <-a.free }
	shares := access.NewShares(l, nil, func(limit string) { a.refused[limit]++ })
	who := shares.Resolver(named{})
	a.handler = shares.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 2 { // as an API does that asks again whether a caller is still known
			if _, err := who.Resolve(r); err != nil {
				a.err = err
				status, header := access.Refused(err)
				w.Header().Set("Retry-After", header.Get("Retry-After"))
				http.Error(w, err.Error(), status)
				return
			}
		}
		a.do(w, r)
	}))
	return a
}

// begin sends a request and returns its status when it has a response, or 0 when it
// waits.
func (a *api) begin(who string, body io.Reader) (status int, w *httptest.ResponseRecorder) {
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r.Header.Set("Authorization", who)
	w = httptest.NewRecorder()
	done := make(chan struct{})
	a.wg.Go(func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil && p != any(http.ErrAbortHandler) {
				panic(p)
			}
		}()
		a.handler.ServeHTTP(w, r)
	})
	synctest.Wait()
	select {
	case <-done:
		return w.Code, w
	default:
		return 0, w
	}
}

// opens is how many of a caller's n requests are admitted and wait.
func (a *api) opens(who string, n int) (open int) {
	for range n {
		if status, w := a.begin(who, nil); status == 0 {
			open++
		} else if status != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			a.t.Errorf("status %d, Retry-After %q", status, w.Header().Get("Retry-After"))
		}
	}
	return open
}

// A request for many things takes places of its caller's share and gives them back, and each
// thing counts in its rates.
func TestARequestForManyThings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, access.Limits{Requests: 120, TokenRate: 10, TenantRate: 10_000})
		got, counted := 0, 0
		a.do = func(_ http.ResponseWriter, r *http.Request) {
			var release func()
			got, release = access.More(r.Context(), 100)
			for range got {
				defer release()
			}
			for ; access.Another(r.Context()) == nil; counted++ {
			}
			<-a.free
		}
		if a.begin("a/1", nil); got != 29 || counted != 10*access.RateBurst-1 || a.refused[access.LimitRate] != 1 {
			t.Errorf("%d more places, %d more requests; %v", got, counted, a.refused)
		}
		a.do = func(http.ResponseWriter, *http.Request) { <-a.free }
		if n := a.opens("a/2", 121); n != 15 {
			t.Errorf("the next token of the tenant finds %d", n)
		}
		close(a.free)
		a.wg.Wait()
		a.free = make(chan struct{})
		time.Sleep(time.Minute) // of its rate
		if n := a.opens("a/1", 40); n != 30 {
			t.Errorf("afterwards it finds %d", n)
		}
		close(a.free)
		a.wg.Wait()
	})
	if n, release := access.More(t.Context(), 7); n != 7 || access.Another(t.Context()) != nil {
		t.Error("outside of a server something is counted")
	} else {
		release()
	}
}

// A tenant alone gets half of the server, and a token alone half of that; however many
// tenants take all that they get, the next one finds some.
func TestSharesOfTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		callers []string
		want    []int
		reason  string
	}{
		"one token":             {[]string{"a/1"}, []int{30}, "the other tokens of its tenant find as much again"},
		"two tokens":            {[]string{"a/1", "a/2"}, []int{30, 15}, "a token gets no more than its tenant has left"},
		"many tokens":           {[]string{"a/1", "a/2", "a/3", "a/4", "a/5", "a/6"}, []int{30, 15, 8, 4, 2, 1}, "they share the half of their tenant"},
		"two tenants":           {[]string{"a/1", "b/1"}, []int{30, 30}, "one does not take from the other"},
		"a tenant after floods": {[]string{"a/1", "a/2", "b/1", "b/2", "c/1"}, []int{30, 15, 30, 8, 19}, "there is always some left"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(t, access.Limits{Requests: 120, TokenRate: 10_000, TenantRate: 10_000})
				var got []int
				for _, who := range c.callers {
					got = append(got, a.opens(who, 121))
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.reason, diff)
				}
				close(a.free)
				a.wg.Wait()
				a.free = make(chan struct{})
				if n := a.opens(c.callers[0], 121); n != c.want[0] {
					t.Errorf("%d are let in after all have ended, want %d", n, c.want[0])
				}
				close(a.free)
				a.wg.Wait()
			})
		})
	}
}

// A request without a body needs no share of the bodies, also when another tenant came
// and its own share is smaller than what it holds.
func TestRequestsWithoutABodyNeedNoShareOfBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, access.Limits{Bodies: 100})
		for _, who := range []string{"a/1", "a/2", "b/1"} {
			if status, _ := a.begin(who, strings.NewReader(strings.Repeat("x", 25))); status != 0 {
				t.Errorf("%s: status %d, want that it is let in", who, status)
			}
		}
		if n := a.opens("a/1", 1); n != 1 {
			t.Error("a request without a body is refused")
		}
		close(a.free)
		a.wg.Wait()
	})
}

// A refusal names the limit, its owner, and the setting.
func TestRefusalsNameTheLimit(t *testing.T) {
	for name, c := range map[string]struct {
		limits access.Limits
		body   int
		stream bool
		want   access.LimitError
		text   string
	}{
		"rate of a token": {access.Limits{TokenRate: 1, TenantRate: 100}, 0, false,
			access.LimitError{Limit: "rate", Of: "token", Setting: "server.limits.token_rate", Most: 1, After: time.Second}, "limit reached: the token sends more than 1 requests a second (server.limits.token_rate); send the same request again in 1s"},
		"rate of a tenant": {access.Limits{TokenRate: 100, TenantRate: 1}, 0, false,
			access.LimitError{Limit: "rate", Of: "tenant", Setting: "server.limits.tenant_rate", Most: 1, After: time.Second}, "the tenant sends more than 1 requests a second"},
		"requests": {access.Limits{Requests: 16}, 0, false,
			access.LimitError{Limit: "requests", Of: "token", Setting: "server.limits.requests", Most: 16, After: time.Second}, "the token has its share of the 16 open requests of the server (server.limits.requests)"},
		"bodies": {access.Limits{Bodies: 16 << 20}, 1 << 20, false,
			access.LimitError{Limit: "bodies", Of: "token", Setting: "server.limits.bodies", Most: 16 << 20, After: time.Second}, "of the 16777216 bytes in the bodies of open requests of the server (server.limits.bodies)"},
		"streams": {access.Limits{Streams: 16}, 0, true,
			access.LimitError{Limit: "streams", Of: "token", Setting: "server.limits.streams", Most: 16, After: 30 * time.Second}, "of the 16 open streams of the server (server.limits.streams)"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(t, c.limits)
				a.do = func(w http.ResponseWriter, r *http.Request) {
					if c.stream {
						if a.err = access.Stream(r.Context()); a.err != nil {
							status, _ := access.Refused(a.err)
							w.WriteHeader(status)
							return
						}
					}
					<-a.free
				}
				status, let := 0, 0
				for ; status == 0 && let < 100; let++ {
					status, _ = a.begin("a/1", strings.NewReader(strings.Repeat(" ", c.body)))
				}
				if let != 5 || status != http.StatusTooManyRequests {
					t.Fatalf("request %d was answered with %d; want 4 let in, and 429 for the next", let, status)
				}
				var limit *access.LimitError
				if !errors.As(a.err, &limit) || *limit != c.want || !strings.Contains(limit.Error(), c.text) || !errors.Is(limit, access.ErrLimit) {
					t.Errorf("%+v: %v", limit, limit)
				}
				if a.refused[c.want.Limit] != 1 {
					t.Errorf("counted as refused: %v", a.refused)
				}
				close(a.free)
				a.wg.Wait()
			})
		})
	}
}

// A token that was refused for its rate is admitted again when Retry-After is over, and
// others are not affected.
func TestRateComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, access.Limits{TokenRate: 2})
		a.do = func(http.ResponseWriter, *http.Request) {}
		for range 2 * access.RateBurst {
			if status, _ := a.begin("a/1", nil); status != http.StatusOK {
				t.Fatalf("within the burst: %d", status)
			}
		}
		status, w := a.begin("a/1", nil)
		if status != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" {
			t.Errorf("beyond the burst: %d, Retry-After %q", status, w.Header().Get("Retry-After"))
		}
		if status, _ := a.begin("a/2", nil); status != http.StatusOK {
			t.Errorf("another token: %d", status)
		}
		time.Sleep(time.Second) // what Retry-After says, in virtual time
		if status, _ := a.begin("a/1", nil); status != http.StatusOK {
			t.Errorf("after Retry-After: %d", status)
		}
	})
}

// untouched is a body that must not be read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body of a request that is refused was read")
	return 0, io.EOF
}

func TestARefusedBodyIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, access.Limits{Bodies: 8 << 20})
		if status, _ := a.begin("a/1", untouched{t}); status != 0 { // of a length that is not announced
			t.Fatalf("the first: %d", status)
		}
		for _, n := range []string{"second", "third"} {
			if status, _ := a.begin("a/1", untouched{t}); n == "third" && status != http.StatusTooManyRequests {
				t.Errorf("the %s: %d", n, status)
			}
		}
		close(a.free)
		a.wg.Wait()
	})
}

// A body without an announced length counts as the largest until it has ended, and then
// with its actual length.
func TestUnannouncedBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, access.Limits{Bodies: 8 << 20})
		a.do = func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-a.free
		}
		for n := range 20 {
			if status, _ := a.begin("a/1", io.MultiReader(strings.NewReader("{}"))); status != 0 {
				t.Fatalf("small body %d: %d", n, status)
			}
		}
		close(a.free)
		a.wg.Wait()
	})
}

// Whatever ends a request gives its place back.
func TestPlacesComeBack(t *testing.T) {
	for name, do := range map[string]func(http.ResponseWriter, *http.Request){
		"answered": func(http.ResponseWriter, *http.Request) {},
		"panicked": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"streamed": func(_ http.ResponseWriter, r *http.Request) {
			for range 2 {
				if err := access.Stream(r.Context()); err != nil {
					panic(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(t, access.Limits{Requests: 4, Streams: 4, Bodies: 8 << 20, TokenRate: 1000})
				a.do = do
				for n := range 100 {
					if status, _ := a.begin("a/1", strings.NewReader(strings.Repeat(" ", 1<<20))); status == http.StatusTooManyRequests {
						t.Fatalf("request %d: %d", n, status)
					}
				}
			})
		})
	}
}

// Requests of unknown callers are bounded too, and take nothing from those of known ones.
func TestUnknownCallersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shares := access.NewShares(access.Limits{Requests: 4}, nil, nil)
		free := make(chan struct{})
		h := shares.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-free }))
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)) })
		}
		synctest.Wait()
		w := ask(h, httptest.NewRequest(http.MethodGet, "/", nil))
		isProblem(t, w, http.StatusTooManyRequests)
		if w.Header().Get("Retry-After") == "" {
			t.Error("Retry-After is missing")
		}
		close(free)
		wg.Wait()
	})
}

// Outside of shares nothing is counted: a handler can be used by itself.
func TestWithoutShares(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "a/1")
	who, err := access.NewShares(access.Limits{}, nil, nil).Resolver(named{}).Resolve(r)
	if err != nil || who.Tenant != "a" || access.Stream(r.Context()) != nil {
		t.Errorf("%+v, %v", who, err)
	}
}

// What is remembered of callers is bounded, and is forgotten when they are idle.
func TestManyTokensCostNoMemory(t *testing.T) {
	now := time.Unix(0, 0)
	shares := access.NewShares(access.Limits{}, func() time.Time { return now }, nil)
	who := shares.Resolver(named{})
	h := shares.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = who.Resolve(r) }))
	for n := range 25_000 {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", fmt.Sprintf("t%d/1", n))
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := shares.Remembered(); n > 2*10_000 {
		t.Errorf("%d callers are remembered", n)
	}
	for range 2 {
		now = now.Add(time.Minute)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "a/1")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := shares.Remembered(); n > 4 {
		t.Errorf("%d callers are remembered that are idle", n)
	}
}
