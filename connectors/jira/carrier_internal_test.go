package jira

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/readback-go/readback/connectors"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
)

// TestOneRequestInACall: a library that sends twice in one call is stopped, and so is one that
// sends outside of any.
func TestOneRequestInACall(t *testing.T) {
	s := fakejira.New(fakejira.Options{})
	c, err := New(Options{URL: "https://jira.invalid", Transport: s.Transport(),
		Token: func(context.Context) (string, error) { return "t", nil }})
	if err != nil {
		t.Fatal(err)
	}
	send := func(ctx context.Context) error {
		req, err := c.lib.NewRequestWithContext(ctx, http.MethodDelete, "rest/api/2/issue/10001", nil)
		if err != nil {
			return err
		}
		_, err = c.lib.Do(req, nil)
		return err
	}
	var second error
	c.do(t.Context(), true, func(ctx context.Context) error {
		_ = send(ctx)
		second = send(ctx)
		return second
	})
	if !errors.Is(second, errTwice) || s.Sends() != 1 {
		t.Errorf("%v after %d sends, want one", second, s.Sends())
	}
	if err := send(t.Context()); connectors.FateOf(err) != connectors.FateNotSent || s.Sends() != 1 {
		t.Errorf("outside of a call: %v after %d sends", err, s.Sends())
	}
	broken := errors.New("no request")
	k := c.do(t.Context(), true, func(context.Context) error { return broken })
	if connectors.FateOf(k.err) != connectors.FateNotSent || !errors.Is(k.err, broken) {
		t.Errorf("%v, want not sent: the library made no request", k.err)
	}
}

// TestStickySession: the cookies of the load balancer come back to it.
func TestStickySession(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		s := fakejira.New(fakejira.Options{DataCenter: true})
		var sent []string
		c, err := New(Options{URL: "https://jira.invalid", StickySession: sticky, Token: func(context.Context) (string, error) { return "pat", nil },
			Transport: cookies{s.Transport(), &sent}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := c.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if last := sent[len(sent)-1]; (last == "node1") != sticky {
			t.Errorf("sticky %v: the cookie sent is %q", sticky, last)
		}
	}
}

// cookies is a load balancer that names a node.
type cookies struct {
	under http.RoundTripper
	sent  *[]string
}

func (l cookies) RoundTrip(r *http.Request) (*http.Response, error) {
	value := ""
	if c, err := r.Cookie("ROUTE"); err == nil {
		value = c.Value
	}
	*l.sent = append(*l.sent, value)
	res, err := l.under.RoundTrip(r)
	if err == nil {
		res.Header.Add("Set-Cookie", "ROUTE=node1; Path=/; Secure")
	}
	return res, err
}
