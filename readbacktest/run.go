package readbacktest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/chaos"
)

// ErrDead is the error of calls of a killed life that its own goroutine does not make.
var ErrDead = errors.New("this life was killed")

// Run is one life of a loop: from its beginning to its end, or to the point at which it is
// killed. Every call through it (Point, Do, Client, Transport, URL, Connector) is a point, and
// has no effect once the life is over.
//
// If the loop's own goroutine reaches the point, it ends there: only its deferred calls run,
// which a killed process would not run. Any other goroutine gets [ErrDead], the context of the
// life is cancelled, and the loop must return.
type Run struct {
	// Life counts the lives of the loop in its story, from 1.
	Life int

	story  *Story
	ctx    context.Context
	cancel context.CancelFunc
	self   string
	making chaos.Traffic // calls that the life makes

	mu      sync.Mutex
	dead    bool
	reached []string
	until   time.Time
}

// Point is a place at which the life may be killed: it ends the calling goroutine, and nothing
// after it happens.
func (r *Run) Point(name string) {
	if r.ends(name) {
		runtime.Goexit()
	}
}

// Do makes a call that has an effect of its own, for example on a ledger, and is a point before
// and after. A dead life does not make it. The error is the call's, or [ErrDead].
func (r *Run) Do(name string, call func() error) error {
	r.making.Begin()
	defer r.making.End()
	if r.ends("before " + name) {
		return r.die()
	}
	err := call()
	if r.ends("after " + name) {
		return r.die()
	}
	return err
}

// Client returns a client of the proxy whose requests are points. It has no time-out.
func (r *Run) Client(p *Proxy) *http.Client {
	return &http.Client{Transport: r.Transport(p.Transport())}
}

// URL is where the proxy listens for this life only, on this machine and until the story ends,
// for a loop that takes a base URL. Its requests are points; a killed life gets a dead connection
// for this one and all others, and must return. Do not use it in a testing/synctest bubble.
func (r *Run) URL(p *Proxy) string {
	server := httptest.NewServer(chaos.ForwardBy(&url.URL{Scheme: "http", Host: "target.example"}, r.Transport(p.Transport())))
	r.story.Cleanup(server.Close)
	return server.URL
}

// Transport sends requests by another transport; there is a point before each, and one after it,
// when its effect is there and its answer not yet returned. A client with a time-out of its own
// (http.Client.Timeout) has a goroutine that waits for it, also when the life is over: in a
// testing/synctest bubble a story ends after it.
func (r *Run) Transport(by http.RoundTripper) http.RoundTripper {
	return tripper(func(req *http.Request) (res *http.Response, err error) {
		r.making.Begin()
		defer r.making.End()
		name := req.Method + " " + req.URL.Path
		if r.ends("before " + name) {
			r.leaves(req)
			return nil, r.die()
		}
		res, err = by.RoundTrip(req)
		if r.ends("after " + name) {
			r.leaves(req)
			if err == nil {
				_ = res.Body.Close() // not read
			}
			return nil, r.die()
		}
		return res, err
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// Connector returns a connector whose calls are points, before and after. It has the capabilities
// of [Link.Connector].
func (r *Run) Connector(conn connectors.Connector) connectors.Connector {
	return clothed(&mortal{powers: powers{conn}, run: r}, conn)
}

type mortal struct {
	powers
	run *Run
}

// Write implements [connectors.Connector].
func (m *mortal) Write(ctx context.Context, r connectors.Request) (receipt connectors.Receipt, err error) {
	died := m.run.Do(string(r.Intent.Write), func() error {
		receipt, err = m.conn.Write(ctx, r)
		return nil
	})
	if died != nil {
		return connectors.Receipt{}, died
	}
	return receipt, err
}

// Read implements [connectors.Connector].
func (m *mortal) Read(ctx context.Context, q connectors.Query) (seen connectors.Observation, err error) {
	died := m.run.Do("read", func() error {
		seen, err = m.conn.Read(ctx, q)
		return nil
	})
	if died != nil {
		return connectors.Observation{}, died
	}
	return seen, err
}

// ReadMany implements [connectors.BulkReader], one by one.
func (m *mortal) ReadMany(ctx context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	return oneByOne(ctx, m, qs)
}

// ends counts a point and reports whether the life ends there, or ended before.
func (r *Run) ends(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		return true
	}
	r.reached = append(r.reached, name)
	r.dead = r.story.deadly() || len(r.reached) > maxPoints
	if r.dead {
		r.cancel()
	}
	return r.dead
}

// leaves records until when net/http may still wait for an abandoned request.
func (r *Run) leaves(req *http.Request) {
	if until, ok := req.Context().Deadline(); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		if until.After(r.until) {
			r.until = until
		}
	}
}

// outlast waits until the last request of the life has timed out, in a bubble, where that costs
// nothing: its time begins with the year 2000, and a goroutine that still waits when the test
// returns is a deadlock.
func (r *Run) outlast() {
	if time.Now().Year() < 2009 { // before Go existed: a bubble
		<-time.After(time.Until(r.until))
	}
}

// die ends the loop's own goroutine, and returns ErrDead to any other.
func (r *Run) die() error {
	if goroutine() == r.self {
		runtime.Goexit()
	}
	return ErrDead
}

func (r *Run) killed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dead
}

func (r *Run) points() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reached)
}

// ending is how a life ended.
type ending struct {
	returned bool
	err      error
	panicked string
}

// live runs one life, in a goroutine of its own, which has then ended.
func (r *Run) live(loop func(context.Context, *Run) error) ending {
	var end ending
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				end.panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
		}()
		r.self = goroutine()
		end.err = loop(r.ctx, r)
		end.returned = true
		if end.err == nil {
			r.Point(theEnd)
		}
	}()
	select {
	case <-done:
		return end
	case <-r.ctx.Done():
	}
	timer := time.NewTimer(chaos.Grace)
	defer timer.Stop()
	select {
	case <-done:
		return end
	case <-timer.C:
		r.story.Fatalf("the loop continues %v after its context was cancelled at %q; it must end with its context", chaos.Grace, last(r.points()))
		return ending{}
	}
}

// theEnd is the last point of each loop: it is done, and the result is not recorded.
const theEnd = "the end, before anybody notes it"

func last(names []string) string {
	if len(names) == 0 {
		return "its beginning"
	}
	return names[len(names)-1]
}

// goroutine names the calling goroutine. This is the only way to end just the loop's own
// goroutine, and not those of its dependencies, which must keep running.
func goroutine() string {
	buf := make([]byte, 64)
	buf = buf[:runtime.Stack(buf, false)]
	return strings.Join(strings.Fields(string(buf))[:2], " ")
}
