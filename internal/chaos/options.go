package chaos

import (
	"fmt"
	"net/http"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

const (
	// defaultChance is the probability of a random fault for each request: high enough to meet a
	// loop of a few requests, and low enough that it ends.
	defaultChance = 0.2
	// defaultPatience is how long a client without a deadline waits for an answer that never
	// comes, before the connection is cut.
	defaultPatience = time.Second
)

// Options configures the faults. The zero value passes and counts all requests.
type Options struct {
	// Seed drives Kinds. Default: the environment variable READBACKTEST_SEED (a number, or
	// "random"), else 1.
	Seed uint64
	// Script lists faults that happen for certain. Default none.
	Script []fault.Fault
	// Kinds happen by seed to requests that the script does not match. Which of them meets a
	// request follows from its key and from how often that key came. Default none.
	Kinds []fault.Kind
	// Chance is the probability of a random fault for each request, up to 1. Default 0.2.
	Chance float64
	// Patience is how long a client without a deadline waits for an answer that never comes; then
	// the connection is cut. Over [Proxy.URL] the client's deadline is unknown, and its own
	// time-out applies if it is shorter. Default 1 s.
	Patience time.Duration

	// The others apply only to a [Proxy].

	// IsWrite distinguishes writes from reads. It may read the body. Default: by method; all but
	// GET, HEAD, OPTIONS and TRACE write.
	IsWrite func(*http.Request) bool
	// Key names the subject of a request, for example the invoice in its body. It may read the
	// body. Default: method and path.
	Key func(*http.Request) string
	// Phantom answers instead of the target for PhantomSuccess. Default: 201 for POST and 200
	// otherwise, with the request's own body.
	Phantom http.Handler
	// Field is the member of JSON bodies, at any depth, that DroppedField and NormalisedField are
	// about. Default none: they do nothing.
	Field string
	// Watch are reads that can lag although the client did not make them before. Default none: a
	// read without a known older answer passes unharmed.
	Watch []*http.Request
}

// Checked fills in defaults, except that of Seed, and returns what is wrong.
func (o Options) Checked() (Options, error) {
	for _, f := range o.Script {
		if err := Check(f); err != nil {
			return o, err
		}
	}
	for _, v := range o.Kinds {
		if err := Check(fault.Fault{Kind: v}); err != nil {
			return o, err
		}
	}
	if o.Chance < 0 || o.Chance > 1 {
		return o, fmt.Errorf("the option Chance is %v; want a number in (0, 1]", o.Chance)
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
	return o, nil
}

func writesByMethod(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return false
	}
	return true
}
