package v1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/readback-go/readback/ledger"
)

// call is one request, understood as far as the door understands it.
type call struct {
	api   *api
	w     http.ResponseWriter
	r     *http.Request
	route route
	who   who
	query url.Values
	body  []byte
	// wait is how long it waits, waits whether the caller said so, final whether it
	// waits for pending rechecks too.
	wait  time.Duration
	waits bool
	final bool
}

// enter finds out who asks, and whether they may. Nothing else is looked at
// before: what somebody may not ask is not talked about.
func (c *call) enter() error {
	if c.route.act == "" {
		return nil
	}
	var err error
	if c.who, err = c.api.opts.Who.Resolve(c.r); err != nil {
		return err
	}
	return c.who.May(c.route.act)
}

// read reads what is asked: headers, query, path, body.
func (c *call) read() error {
	want := jsonType
	if c.route.stream {
		want = streamType
	}
	if !accepts(c.r.Header, want) {
		return &problemError{kind: notAcceptable, field: "Accept", detail: "the answer is " + want}
	}
	var err error
	if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
		return badField("query", "cannot be read; want name=value, joined by &")
	}
	if err := c.route.check(c.query); err != nil {
		return err
	}
	for _, name := range c.route.parts() {
		if !isText(c.r.PathValue(name), maxName) {
			return &problemError{kind: notFound, field: name, detail: name + " is no name"}
		}
	}
	if c.route.waits {
		c.wait, c.waits = preferred(c.r.Header, c.api.opts.MaxWait)
		_, c.final = preference(c.r.Header, preferFinal)
	}
	if c.route.body != nil {
		c.body, err = c.readBody(c.route.body.most)
	}
	return err
}

// isText reports whether a text can be kept and looked up.
func isText(s string, most int) bool {
	return s != "" && len(s) <= most && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

func (c *call) readBody(most int64) ([]byte, error) {
	if err := isJSON(c.r.Header); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, &problemError{kind: tooLarge, detail: fmt.Sprintf("the body is larger than %d bytes", over.Limit)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &problemError{kind: bodyTimeout, detail: "the body did not arrive in time"}
	case err != nil:
		return nil, badField("", "did not arrive whole")
	}
	return data, nil
}

// takePlace makes room for a call that waits, if it does.
func (c *call) takePlace() (leave func(), err error) {
	if c.wait <= 0 {
		return func() {}, nil
	}
	return c.api.waiting.take(c.who.Tenant, "send Prefer: wait=0 and ask for the outcome later")
}

// extend gives the connection the time that the call may take: the bound of the
// server on answers is for those who say nothing. One that cannot be extended
// keeps the bound it has.
func (c *call) extend(d time.Duration) {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(d + slowReader))
}

// awaited is a context for waiting, which ends when the server is stopped too.
func (c *call) awaited(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if closing := c.api.opts.Closing; closing != nil && c.wait > 0 {
		go func() {
			select {
			case <-closing:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// id is the write that the path names.
func (c *call) id() ledger.ID { return ledger.ID(c.r.PathValue("id")) }

// places bounds what goes on at once, in all and by tenant.
type places struct {
	all, each int
	mu        sync.Mutex
	taken     int
	by        map[string]int
}

func newPlaces(all, each int) *places {
	return &places{all: all, each: each, by: map[string]int{}}
}

// take takes a place until leave is called.
func (p *places) take(tenant, instead string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.all || p.by[tenant] >= p.each {
		return nil, &problemError{kind: tooManyWaiting, detail: "too many calls of this tenant, or of all, wait already; " + instead}
	}
	p.taken++
	p.by[tenant]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken--
		if p.by[tenant]--; p.by[tenant] == 0 {
			delete(p.by, tenant)
		}
	}), nil
}
