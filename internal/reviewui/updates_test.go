package reviewui

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
)

// wire is where a stream writes to.
type wire struct {
	mu     sync.Mutex
	header http.Header
	status int
	text   strings.Builder
}

func (w *wire) Header() http.Header { return w.header }
func (w *wire) Flush()              {}
func (w *wire) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = status
}
func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

// taken is what was written since it was last asked, without signs of life.
func (w *wire) taken() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := strings.ReplaceAll(w.text.String(), ": still here\n\n", "")
	w.text.Reset()
	return s
}

// changing knows a caller until it does not any more.
type changing struct {
	who atomic.Pointer[access.Identity]
}

func (c *changing) Resolve(*http.Request) (access.Identity, error) {
	if who := c.who.Load(); who != nil {
		return *who, nil
	}
	return access.Identity{}, access.ErrUnknown
}

func only(who access.Identity) *changing {
	c := &changing{}
	c.who.Store(&who)
	return c
}

var rita = access.Identity{Tenant: "acme", Name: "rita", Role: engine.RoleReviewer}

// listen opens a stream; done is closed when it ends.
func listen(ctx context.Context, h http.Handler, last string) (w *wire, done chan struct{}) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/updates", nil)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	w, done = &wire{header: http.Header{}, status: http.StatusOK}, make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(w, r)
	}()
	synctest.Wait()
	return w, done
}

func TestUpdatesDescribeWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{latest: "c1", changes: make(chan []ledger.Change, 1), woken: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		w, done := listen(ctx, f.newApp(&Options{Who: only(rita)}), "")
		if got := w.Header().Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("content type %q", got)
		}
		w.taken()
		f.changes <- []ledger.Change{{ID: "wr_1"}, {ID: "wr_2"}}
		f.woken <- struct{}{}
		synctest.Wait()
		if diff := cmp.Diff("id: c1+\nevent: change\ndata: {\"ids\":[\"wr_1\",\"wr_2\"]}\n\n", w.taken()); diff != "" {
			t.Errorf("message (-want +got):\n%s", diff)
		}
		f.woken <- struct{}{} // nothing happened
		synctest.Wait()
		if got := w.taken(); got != "" {
			t.Errorf("nothing happened, and it gets %q", got)
		}
		cancel()
		<-done
	})
}

func TestUpdatesGoOnWhereTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{latest: "c9", changes: make(chan []ledger.Change, 1), woken: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		w, done := listen(ctx, f.newApp(&Options{Who: only(rita)}), "c3")
		w.taken()
		f.changes <- []ledger.Change{{ID: "wr_1"}}
		f.woken <- struct{}{}
		synctest.Wait()
		if got := w.taken(); !strings.Contains(got, "id: c3+") {
			t.Errorf("it begins anew instead of at c3: %q", got)
		}
		f.follow = ledger.ErrTooFar
		f.woken <- struct{}{}
		synctest.Wait()
		if got := w.taken(); !strings.Contains(got, "id: c9\nevent: change\ndata: {\"ids\":null,\"more\":true}") {
			t.Errorf("of what was missed it gets %q", got)
		}
		cancel()
		<-done
	})
}

func TestUpdatesEnd(t *testing.T) {
	tests := map[string]struct {
		then   *access.Identity
		within time.Duration
		reason string
	}{
		"when the credentials are taken back": {nil, 5 * time.Second, "a revoked token hears nothing more"},
		"when the role is lowered":            {&access.Identity{Tenant: "acme", Name: "rita", Role: engine.RoleAgent}, 5 * time.Second, "an agent may not read"},
		"when the tenant is another":          {&access.Identity{Tenant: "other", Name: "rita", Role: engine.RoleReviewer}, 5 * time.Second, "the stream is of the old one"},
		"by themselves":                       {&rita, streamTime, "no stream is for ever"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				who := only(rita)
				f := &fake{latest: "c1", woken: make(chan struct{})}
				began := time.Now()
				_, done := listen(t.Context(), f.newApp(&Options{Who: who}), "")
				who.who.Store(tt.then)
				<-done
				if took := time.Since(began); took > tt.within {
					t.Errorf("it ended after %s, want within %s: %s", took, tt.within, tt.reason)
				}
			})
		})
	}
}

func TestUpdatesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{latest: "c1", woken: make(chan struct{})}
		shares := access.NewShares(access.Limits{Streams: 2}, nil, nil) // one login may have one of two
		d := shares.Handler(f.newApp(&Options{Who: shares.Resolver(only(rita))}))
		ctx, cancel := context.WithCancel(t.Context())
		_, first := listen(ctx, d, "")
		if w, done := listen(ctx, d, ""); w.status != http.StatusTooManyRequests || w.header.Get("Retry-After") == "" {
			t.Errorf("one stream more: status %d, Retry-After %q", w.status, w.header.Get("Retry-After"))
		} else {
			<-done
		}
		cancel()
		<-first
		again, end := context.WithCancel(t.Context())
		w, third := listen(again, d, "")
		if w.status != 0 && w.status != http.StatusOK {
			t.Errorf("a stream after one has ended: status %d", w.status)
		}
		end()
		<-third
	})
}

func TestUpdatesNeedPermissionToRead(t *testing.T) {
	f := &fake{latest: "c1"}
	d := f.newApp(&Options{Who: byHeader{}, LoginPath: "/login"})
	if a := reviewer.send(t, d, http.MethodHead, "/updates", nil); a.Status != http.StatusMethodNotAllowed {
		t.Errorf("HEAD: status %d, want 405", a.Status)
	}
	for who, want := range map[person]int{agent: http.StatusForbidden, {}: http.StatusUnauthorized} {
		a := who.get(t, d, "/updates", func(r *http.Request) { r.Header.Set("Accept", "text/event-stream") })
		if a.Status != want {
			t.Errorf("%q: status %d, want %d", who.role, a.Status, want)
		}
	}
}
