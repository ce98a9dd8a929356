package rest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/wire"
)

// Two processes use one refresh token that rotates: each login takes what was kept last, and no token is
// used whose refresh token was not kept.
func TestARefreshTokenThatRotates(t *testing.T) {
	d, err := rest.Load([]byte(withAuth(`oauth2: {token_url: /token, client_id: app, secret: client, grant: refresh_token, refresh: refresh, rotates: true}`)), "F")
	if err != nil {
		t.Fatal(err)
	}
	if words := strings.Join(d.Explained("item"), "\n"); !strings.Contains(words, "Each use of the refresh token refresh gives the next one, which is written into its file before the login is used.") {
		t.Errorf("not explained: %s", words)
	}
	var mu sync.Mutex
	kept, valid, lost, full := "hunter2-0", 0, false, false
	api := &tokenServer{expires: 3600}
	api.token = func(rw http.ResponseWriter, r *http.Request) {
		if !strings.Contains(api.asked, fmt.Sprintf("refresh_token=hunter2-%d", valid)) {
			says(400, `{"error":"invalid_grant","error_description":"hunter2"}`, "Content-Type", "application/json")(rw, r)
			return
		}
		if lost {
			lost = false
			panic(http.ErrAbortHandler) // this API goes on to take the old one
		}
		valid++
		api.valid = fmt.Sprint("t", valid)
		says(200, fmt.Sprintf(`{"access_token":%q,"token_type":"bearer","expires_in":3600,"refresh_token":"hunter2-%d"}`, api.valid, valid), "Content-Type", "application/json")(rw, r)
	}
	o := rest.Options{Transport: wire.Transport(http.HandlerFunc(api.serve), nil), Secrets: map[string]func(context.Context) (string, error){}}
	for _, name := range d.Secrets() {
		o.Secrets[name] = func(context.Context) (string, error) { return "hunter2-stale", nil }
	}
	if _, err := rest.New(d, o); !errors.Is(err, rest.ErrOptions) || !strings.Contains(err.Error(), "Rotate.refresh is missing; want a function that keeps the next secret") {
		t.Errorf("nothing keeps it: %v", err)
	}
	o.Rotate = map[string]func(context.Context, func(string) (string, error)) error{"refresh": func(_ context.Context, exchange func(string) (string, error)) error {
		mu.Lock()
		defer mu.Unlock()
		next, err := exchange(kept)
		if err == nil && full {
			return errors.New("the disk is full")
		}
		if err == nil {
			kept = next
		}
		return err
	}}
	process := func() *rest.Connector {
		c, err := rest.New(d, o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	write := func(c *rest.Connector, want connectors.Fate) {
		t.Helper()
		_, err := c.Write(t.Context(), itemRequest(intent.Create))
		if connectors.FateOf(err) != want || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	a, b := process(), process()
	lost = true
	write(a, connectors.FateNotSent)
	write(a, connectors.FateAnswered)
	api.valid = "revoked"
	var both sync.WaitGroup
	for _, c := range []*rest.Connector{a, b} {
		both.Go(func() { _, _ = c.Write(t.Context(), itemRequest(intent.Create)) })
	}
	both.Wait()
	if kept != fmt.Sprint("hunter2-", valid) {
		t.Errorf("%s is kept, and hunter2-%d is valid", kept, valid)
	}
	sends := len(api.writes)
	full = true
	write(process(), connectors.FateNotSent)
	full = false
	write(process(), connectors.FateLogin) // the API has taken the one that is kept, and takes it no more
	if len(api.writes) != sends {
		t.Error("a write was sent with a login that was not kept, or without one")
	}
	if shown := b.Mask(kept); shown != "***" {
		t.Errorf("the next refresh token is shown: %s", shown)
	}
}
