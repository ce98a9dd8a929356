package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/readback-go/readback/internal/wire"
	"github.com/readback-go/readback/readbacktest/fault"
)

// maxBody is how much of a request is read; the largest body that any of
// these APIs takes is smaller.
const maxBody = 1 << 20

// Manners are an API's answers other than success.
type Manners struct {
	// Authorized reports whether a request may come in. Required.
	Authorized func(r *http.Request) bool
	// Unauthorized answers an unauthorised client. Required.
	Unauthorized func() Answer
	// NotFound answers a path or a method that the API does not have. Required.
	NotFound func(r *http.Request) Answer
	// Malformed answers a body that is not one JSON object. Required.
	Malformed func() Answer
	// Refused answers a write with a refusal of its own; how is the form of the fault, "" the
	// usual one. Required.
	Refused func(how string) (Answer, bool)
	// Throttled answers "not now", with the time to wait. Required.
	Throttled func(how string, wait time.Duration) (Answer, bool)

	// Forms means that bodies may be forms: see [Request].
	Forms bool
	// Opaque means that bodies are contents, and not read.
	Opaque bool
	// RequestID is the header that numbers the requests, "" for none.
	RequestID string
	// Failed answers with a failure of the API itself, after which a write may have been applied: the
	// form 500 of the fault bad-gateway. It is kept under an idempotency key like any other answer.
	// nil: a proxy's page, and nothing is kept.
	Failed func() Answer
	// Key is the idempotency key of a write, and Busy the answer to a repeat while the first one is at
	// work: one that meets the fault late-commit is. nil: repeats are not held apart.
	Key  func(r *Request) string
	Busy func(r *Request) Answer
}

// Request is one request as it arrived.
type Request struct {
	*http.Request
	// Body is the JSON object of the body, nil where there was none. Numbers
	// are json.Number. In a form all values are text, and a[b]=c is {"a":{"b":"c"}}.
	Body map[string]any
	// Raw is the body as it came.
	Raw []byte

	form url.Values // nil: not a form
}

// Fake is one API. It is safe for concurrent use. Functions that are handed to
// it run under its lock and must not call its methods that take it; a [View]
// is there for reading.
type Fake struct {
	manners       Manners
	mux           *http.ServeMux
	writePatterns []string
	both          map[string]func(body []byte) bool // by pattern
	faults        *fault.Schedule

	mu      sync.Mutex
	store   store
	effects []Effect
	keys    map[string]usedKey
	atWork  map[string]int // by idempotency key
	lag     time.Duration
	writes  int
	reads   int
	calls   []Call

	meanwhile []func(when Moment)
}

// Moment is one in the life of a write.
type Moment int

// Moments.
const (
	Arrived Moment = iota // nothing was done
	Left                  // it was done, if it is not late, and is answered
)

// Meanwhile has do called at both moments of the n-th write that arrives from now on, 1 the next: what
// another actor does between our read and our send, or after it. It replaces what was set before.
func (f *Fake) Meanwhile(n int, do func(when Moment)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.meanwhile = make([]func(Moment), max(n, 1))
	f.meanwhile[len(f.meanwhile)-1] = do
}

// moments is what another actor does at a write that arrived.
func (f *Fake) moments() func(Moment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.meanwhile) == 0 {
		return func(Moment) {}
	}
	do := f.meanwhile[0]
	f.meanwhile = f.meanwhile[1:]
	if do == nil {
		return func(Moment) {}
	}
	return do
}

// Call is one request that arrived.
type Call struct {
	At     time.Time
	Method string
	Path   string // with the query
	Header http.Header
	Body   string
	Write  bool
}

// New makes a fake that knows no path yet.
func New(m Manners) *Fake {
	f := &Fake{manners: m, faults: fault.NewSchedule(nil, 0), mux: http.NewServeMux(), store: newStore(), keys: map[string]usedKey{}, atWork: map[string]int{}, both: map[string]func([]byte) bool{}}
	f.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { f.missing(w, r) })
	return f
}

// ServeHTTP implements [http.Handler].
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.mux.ServeHTTP(w, r) }

// Transport carries requests to the fake without a network.
func (f *Fake) Transport() http.RoundTripper {
	return wire.Transport(f, func(r *http.Request) bool { return f.dial(r) })
}

// HandleWrite adds a write. plan returns what it would do to the current state, or an immediate
// answer: a refusal, or the replay of an earlier answer.
func (f *Fake) HandleWrite(pattern string, plan func(r *Request, now View) (Plan, *Answer)) {
	f.writePatterns = append(f.writePatterns, pattern)
	f.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if in, ok := f.enter(w, r, always); ok {
			f.write(w, in, plan)
		}
	})
}

// HandleRead adds a read. One that is not strong may lag.
func (f *Fake) HandleRead(pattern string, strong bool, show func(r *Request, seen View) Answer) {
	f.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if in, ok := f.enter(w, r, never); ok {
			f.read(w, in, strong, show)
		}
	})
}

// handleFixed adds a read that is always answered alike: whom the login belongs to, for example.
func (f *Fake) handleFixed(pattern string, body map[string]any) {
	f.HandleRead(pattern, true, func(*Request, View) Answer { return Answer{Status: http.StatusOK, Body: body} })
}

func always([]byte) bool { return true }
func never([]byte) bool  { return false }

// HandleBoth adds a path of an API that reads and writes through one, as GraphQL does: writes reports
// what a body asks for, strong which reads do not lag.
func (f *Fake) HandleBoth(pattern string, writes func(body []byte) bool, plan func(*Request, View) (Plan, *Answer), strong func(*Request) bool, show func(*Request, View) Answer) {
	f.both[pattern] = writes
	f.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		switch in, ok := f.enter(w, r, writes); {
		case !ok:
		case writes(in.Raw):
			f.write(w, in, plan)
		default:
			f.read(w, in, strong(in), show)
		}
	})
}

// HandleOther adds what is neither: a token endpoint, for example. It is
// neither counted nor met by faults, and does its own authorization.
func (f *Fake) HandleOther(pattern string, serve http.HandlerFunc) { f.mux.HandleFunc(pattern, serve) }

// SetLag makes every weak read lag by d from now on. Default 0.
func (f *Fake) SetLag(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lag = d
}

// Count returns how many writes and reads arrived, refused ones included.
func (f *Fake) Count() (writes, reads int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes, f.reads
}

// Calls returns the requests that arrived.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

func (f *Fake) missing(w http.ResponseWriter, r *http.Request) {
	f.number(w)
	if !f.manners.Authorized(r) {
		f.manners.Unauthorized().writeTo(w)
		return
	}
	f.manners.NotFound(r).writeTo(w)
}

// enter counts a request, authenticates it and reads its body.
func (f *Fake) enter(w http.ResponseWriter, r *http.Request, writes func([]byte) bool) (*Request, bool) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	f.note(r, raw, writes(raw))
	f.number(w)
	r.Body = io.NopCloser(bytes.NewReader(raw)) // a signature covers it
	switch {
	case err != nil:
		Answer{Status: http.StatusRequestEntityTooLarge}.writeTo(w)
		return nil, false
	case !f.manners.Authorized(r):
		f.manners.Unauthorized().writeTo(w)
		return nil, false
	}
	in := &Request{Request: r, Raw: raw}
	kind := r.Header.Get("Content-Type")
	switch {
	case len(raw) == 0 || f.manners.Opaque:
	case strings.Contains(kind, "json"):
		in.Body, err = object(raw)
	case f.manners.Forms && strings.Contains(kind, "x-www-form-urlencoded"):
		if in.form, err = url.ParseQuery(string(raw)); err == nil {
			in.Body, err = nested(in.form)
		}
	}
	if err != nil {
		f.manners.Malformed().writeTo(w)
		return nil, false
	}
	return in, true
}

// number gives the answer the number of its request.
func (f *Fake) number(w http.ResponseWriter) {
	if f.manners.RequestID == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set(f.manners.RequestID, "req_"+strconv.Itoa(len(f.calls)))
}

func (f *Fake) note(r *http.Request, raw []byte, write bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if write {
		f.writes++
	} else {
		f.reads++
	}
	f.calls = append(f.calls, Call{
		At: time.Now(), Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(),
		Body: string(raw), Write: write,
	})
}

// object decodes exactly one JSON object, with exact numbers.
func object(raw []byte) (map[string]any, error) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var o map[string]any
	if err := d.Decode(&o); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF || o == nil {
		return nil, errors.New("not exactly one JSON object")
	}
	return o, nil
}
