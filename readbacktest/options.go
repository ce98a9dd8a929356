package readbacktest

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// Options say what happens to whom. The zero value lets everything pass, and
// counts.
type Options struct {
	// Seed decides about Vices. Default: the environment variable
	// READBACKTEST_SEED (a number, or "random"), else 1.
	Seed uint64
	// Script is what happens for certain. Default nothing.
	Script []Fault
	// Vices happen by seed to requests that the script leaves alone. Which of
	// them meets a request follows from its key and from how often that key
	// came. Default none.
	Vices []Vice
	// Chance is how probable a vice by seed is for each request, up to 1.
	// Default 0.2.
	Chance float64
	// Patience is how long a client without a deadline waits for an answer that
	// never comes; then the connection is cut. Over [Proxy.URL] a deadline cannot
	// be seen, and the client's own time-out counts if it is shorter. Default
	// 1 s.
	Patience time.Duration

	// The others are for a [Proxy] alone.

	// IsWrite tells writes from reads. It may read the body. Default: by method;
	// all but GET, HEAD, OPTIONS and TRACE write.
	IsWrite func(*http.Request) bool
	// Key names what a request is about, say the invoice in its body. It may read
	// the body. Default: method and path.
	Key func(*http.Request) string
	// Phantom answers in place of the target for PhantomSuccess. Default: 201 for
	// POST and 200 otherwise, with the request's own body.
	Phantom http.Handler
	// Watch are reads that lagging ones can be about though the client did not
	// make them before. Default none: a read of which no older answer is known
	// passes unharmed.
	Watch []*http.Request
}

// checked fills in defaults and fails a test that asks for what cannot be.
func (o Options) checked(tb testing.TB) Options {
	tb.Helper()
	for _, f := range o.Script {
		f.check(tb)
	}
	for _, v := range o.Vices {
		Fault{Vice: v, Reads: slices.Contains(onlyReads, v)}.check(tb)
	}
	if o.Chance < 0 || o.Chance > 1 {
		tb.Fatalf("readbacktest: Chance is %v; want a number in (0, 1]", o.Chance)
	}
	if o.Chance == 0 {
		o.Chance = defaultChance
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.IsWrite == nil {
		o.IsWrite = writesByMethod
	}
	if o.Key == nil {
		o.Key = func(r *http.Request) string { return r.Method + " " + r.URL.Path }
	}
	if o.Phantom == nil {
		o.Phantom = http.HandlerFunc(echo)
	}
	o.Seed = seedOf(tb, o.Seed)
	return o
}

// lags reports whether a lagging read can happen.
func (o Options) lags() bool {
	return slices.Contains(o.Vices, LaggingRead) ||
		slices.ContainsFunc(o.Script, func(f Fault) bool { return f.Vice == LaggingRead })
}

func writesByMethod(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	}
	return true
}
