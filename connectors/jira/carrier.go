package jira

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
)

// call is one request and what is known about it. The library builds requests and interprets
// answers; the carrier's record of the answer is what counts.
type call struct {
	write  bool
	made   bool
	answer httpsend.Answer
	err    error
}

type callKey struct{}

// errTwice stops a library that would send twice in one call.
var errTwice = errors.New("a second request in one call")

// do has the library make one request and returns the result. The library's own error counts only
// if it made none.
func (c *Connector) do(ctx context.Context, write bool, ask func(ctx context.Context) error) call {
	k := &call{write: write}
	err := ask(context.WithValue(ctx, callKey{}, k))
	if !k.made {
		k.err = connectors.NotSent(fmt.Errorf("the request cannot be built: %w", err))
	}
	return *k
}

// request makes a request that the library has no method for, or whose answer it would drop in
// part.
func (c *Connector) request(ctx context.Context, write bool, method, path string, body any) call {
	return c.do(ctx, write, func(ctx context.Context) error {
		req, err := c.lib.NewRequestWithContext(ctx, method, path, body)
		if err != nil {
			return err
		}
		_, err = c.lib.Do(req, nil)
		return err
	})
}

// get reads one document. Status 404 is reported separately, since its meaning depends on the
// request.
func (c *Connector) get(ctx context.Context, path string, v any) (found bool, err error) {
	return c.take(c.request(ctx, false, http.MethodGet, path, nil), v)
}

// post is a read that Jira wants as a POST.
func (c *Connector) post(ctx context.Context, path string, body, v any) error {
	found, err := c.take(c.request(ctx, false, http.MethodPost, path, body), v)
	if err == nil && !found {
		err = fmt.Errorf("%w: there is no %s", errUnreadable, path)
	}
	return err
}

func (c *Connector) take(k call, v any) (found bool, err error) {
	if reason := unauthenticated(k.answer.Header); reason != "" {
		return false, fmt.Errorf("%w: Jira did not accept the login (%s)", errNoAccess, reason)
	}
	if k.answer.Status == http.StatusNotFound {
		var body struct {
			Messages []string       `json:"errorMessages"`
			Errors   map[string]any `json:"errors"`
		}
		if k.answer.Decode(&body) == nil && len(body.Messages)+len(body.Errors) > 0 {
			return false, nil
		}
		// A gateway that blocks the call returns 404 too, possibly with JSON of its own.
		return false, fmt.Errorf("%w: a 404 that is not Jira's; see whether the option URL is right", errUnreadable)
	}
	if err := readError(k); err != nil {
		return false, err
	}
	if err := k.answer.Decode(v); err != nil {
		return false, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return true, nil
}

// unauthenticated says why an answer is one for anonymous users, who see less, "" if it is not: the
// login was not accepted (any value other than OK), or did not reach a Data Center, which names
// the user of the request.
func unauthenticated(h http.Header) string {
	for _, reason := range h.Values("X-Seraph-LoginReason") {
		if reason != "OK" {
			return clip(reason)
		}
	}
	if strings.EqualFold(h.Get("X-AUSERNAME"), "anonymous") {
		return "anonymous"
	}
	return ""
}

// carrier is the HTTP client under the library. It sends once, through httpsend: no redirect is
// followed, nothing is resent, an answer has a size limit, and a returned body has been read.
type carrier struct {
	o    Options
	http *httpsend.Client
	jar  http.CookieJar
}

// Do sends the request of a call.
func (t *carrier) Do(req *http.Request) (*http.Response, error) {
	k, ours := req.Context().Value(callKey{}).(*call)
	switch {
	case !ours:
		return nil, connectors.NotSent(errors.New("a request outside of a call"))
	case k.made:
		return nil, errTwice
	}
	k.made = true
	if err := t.dress(req); err != nil {
		k.err = connectors.NotSent(err)
		return nil, k.err
	}
	if k.write {
		k.answer, k.err = t.http.Write(req)
	} else {
		k.answer, k.err = t.http.Read(req)
	}
	if k.answer.Status == 0 {
		return nil, k.err
	}
	res := &http.Response{
		Status: k.answer.Code(), StatusCode: k.answer.Status, Header: k.answer.Header, Request: req,
		Body: io.NopCloser(bytes.NewReader(k.answer.Body)), ContentLength: int64(len(k.answer.Body)),
	}
	if t.jar != nil {
		t.jar.SetCookies(req.URL, res.Cookies())
	}
	return res, nil
}

// dress adds the credentials. The secret stays out of errors.
func (t *carrier) dress(req *http.Request) error {
	token, err := t.o.Token(req.Context())
	switch {
	case err != nil:
		return fmt.Errorf("the option Token: %w", err)
	case token == "":
		return errors.New("the option Token: it fetched an empty one")
	case t.o.User != "":
		req.SetBasicAuth(t.o.User, token)
	default:
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Accept", "application/json")
	if t.jar != nil {
		for _, cookie := range t.jar.Cookies(req.URL) {
			req.AddCookie(cookie)
		}
	}
	return nil
}

// deployment is the kind of Jira, requested once and cached. Two concurrent callers may both
// request it; a failure is not cached.
func (c *Connector) deployment(ctx context.Context) (Deployment, error) {
	if c.o.Deployment != Ask {
		return c.o.Deployment, nil
	}
	if d, ok := c.known.Load().(Deployment); ok {
		return d, nil
	}
	var info struct {
		Type string `json:"deploymentType"`
	}
	found, err := c.get(ctx, "rest/api/2/serverInfo", &info)
	if err != nil {
		return "", fmt.Errorf("ask for serverInfo: %w", err)
	}
	d := map[string]Deployment{"Cloud": Cloud, "Server": DataCenter, "Data Center": DataCenter, "DataCenter": DataCenter}[info.Type]
	if !found || d == "" {
		return "", fmt.Errorf("%w: serverInfo does not say; set the option Deployment, and see whether URL is right", errDeployment)
	}
	c.known.Store(d)
	return d, nil
}
