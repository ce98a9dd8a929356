package v1

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/ledger"
)

// call is one decoded request.
type call struct {
	api   *api
	w     http.ResponseWriter
	r     *http.Request
	route route
	who   who
	query url.Values
	body  []byte
	// wait is how long it waits, waits whether the caller set that, final whether it
	// waits for pending rechecks too.
	wait  time.Duration
	waits bool
	final bool
}

// enter authenticates the caller and checks its permission. Nothing else is read before:
// a forbidden request gets no other error.
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

// read reads the request: headers, query, path, body.
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
		if err := existing(name, c.r.PathValue(name)); err != nil {
			return err
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

// existing refuses the name of a resource that cannot be one: there is none.
func existing(field, name string) error {
	if !isText(name, maxName) {
		return &problemError{kind: notFound, field: field, detail: field + " is no name"}
	}
	return nil
}

// isText reports whether a text can be stored and searched.
func isText(s string, most int) bool {
	return s != "" && len(s) <= most && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

func (c *call) readBody(most int64) ([]byte, error) {
	if err := isJSON(c.r.Header); err != nil {
		return nil, err
	}
	data, err := httpapi.ReadBody(c.w, c.r, most)
	switch {
	case errors.Is(err, httpapi.ErrTooLarge):
		return nil, &problemError{kind: tooLarge, detail: err.Error()}
	case errors.Is(err, httpapi.ErrSlow):
		return nil, &problemError{kind: bodyTimeout, detail: err.Error()}
	case err != nil:
		return nil, badField("", "did not arrive whole")
	}
	return data, nil
}

// extend gives the connection the time that the call may take: the server's bound on
// responses is for calls that set none. A connection that cannot be extended keeps its
// bound.
func (c *call) extend(d time.Duration) {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(d + httpapi.SlowReader))
}

// awaited is a context for waiting, which also ends when the server is stopped.
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
