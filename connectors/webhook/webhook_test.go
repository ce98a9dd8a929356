package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/webhook"
	"github.com/readback-go/readback/intent"
)

// send makes one send of a message.
func send(t *testing.T, c *webhook.Connector, n int) error {
	t.Helper()
	w := notice(n)
	body, err := c.Prepare(t.Context(), connectors.Request{Intent: w})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Write(t.Context(), connectors.Request{Intent: w, Prepared: body, IdempotencyKey: intent.SendKey(w.StructuralKey(), 0), Attempt: 1})
	return err
}

func TestStatuses(t *testing.T) {
	for status, want := range map[int]connectors.Fate{
		200: connectors.FateAnswered, 202: connectors.FateAnswered, 204: connectors.FateAnswered,
		410: connectors.FateRefused, 413: connectors.FateRefused, 415: connectors.FateRefused, 422: connectors.FateRefused, 431: connectors.FateRefused,
		429: connectors.FateThrottled,
		400: connectors.FateUnknown, 401: connectors.FateUnknown, 403: connectors.FateUnknown, 404: connectors.FateUnknown, 409: connectors.FateUnknown,
		301: connectors.FateUnknown, 302: connectors.FateUnknown, 307: connectors.FateUnknown, 308: connectors.FateUnknown,
		500: connectors.FateUnknown, 502: connectors.FateUnknown, 503: connectors.FateUnknown,
	} {
		r := newReceiver(t, secret)
		r.status = status
		err := send(t, r.connector(nil), 1)
		if got := connectors.FateOf(err); got != want {
			t.Errorf("%d: %q (%v), want %q", status, got, err, want)
		}
		if sends, _ := r.counts(); sends != 1 {
			t.Errorf("%d: %d sends", status, sends)
		}
		if err != nil && strings.Contains(err.Error(), "elsewhere.example") {
			t.Errorf("%d: the receiver's text is in %v", status, err)
		}
	}
}

// Both secrets are served while receivers change from one to the other.
func TestRotation(t *testing.T) {
	for name, verifies := range map[string]string{"the new one": secret, "the old one": older} {
		t.Run(name, func(t *testing.T) {
			r := newReceiver(t, verifies)
			if err := send(t, r.connector(func(o *webhook.Options) { o.Previous = older }), 1); err != nil {
				t.Error(err)
			}
		})
	}
}

// A copy is the same message: same id and body, and a signature of its own time.
func TestCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReceiver(t, secret)
		c := r.connector(nil)
		for range 2 {
			if err := send(t, c, 1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		a, b := r.heads[0], r.heads[1]
		if r.bodies[0] != r.bodies[1] || a.Get("webhook-id") != b.Get("webhook-id") || a.Get("webhook-timestamp") == b.Get("webhook-timestamp") {
			t.Errorf("%v %s\n%v %s", a, r.bodies[0], b, r.bodies[1])
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(r.bodies[0]), &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"type": "write.settled", "timestamp": "2026-03-01T12:00:00Z", "data": map[string]any{"write": "wr_1", "text": "<b>&</b>"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestCheck(t *testing.T) {
	expect := func(name string, v any) func(*intent.WriteIntent) {
		return func(w *intent.WriteIntent) { w.Expect[name] = v }
	}
	for name, c := range map[string]struct {
		change func(*intent.WriteIntent)
		field  string
	}{
		"good":        {func(*intent.WriteIntent) {}, ""},
		"an update":   {func(w *intent.WriteIntent) { w.Write = intent.Update }, "/write"},
		"a payload":   {func(w *intent.WriteIntent) { w.Payload = intent.Fields{"x": "y"} }, "/payload"},
		"two":         {func(w *intent.WriteIntent) { w.Count = 2 }, "/count"},
		"more fields": {expect("to", "x"), "/expect/to"},
		"no type":     {expect("type", ""), "/expect/type"},
		"a bad time":  {expect("timestamp", "yesterday"), "/expect/timestamp"},
		"no object":   {expect("data", "x"), "/expect/data"},
		"too much":    {expect("data", map[string]any{"x": strings.Repeat("x", 64<<10)}), "/expect"},
	} {
		t.Run(name, func(t *testing.T) {
			w := notice(1)
			c.change(&w)
			err := newReceiver(t, secret).connector(nil).Check(w)
			if c.field == "" && err == nil {
				return
			}
			if !errors.Is(err, intent.ErrInvalid) || !strings.Contains(err.Error(), c.field+":") {
				t.Errorf("%v, want %s named", err, c.field)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*webhook.Options)
		says   string
	}{
		"no URL":             {func(o *webhook.Options) { o.URL = "" }, "url"},
		"another scheme":     {func(o *webhook.Options) { o.URL = "ftp://hooks.example/" }, "url"},
		"a password":         {func(o *webhook.Options) { o.URL = "https://u:hunter2@hooks.example/" }, "url"},
		"a fragment":         {func(o *webhook.Options) { o.URL = "https://hooks.example/#x" }, "url"},
		"open to be read":    {func(o *webhook.Options) { o.URL = "http://hooks.example/" }, "https"},
		"no secret":          {func(o *webhook.Options) { o.Secret = "" }, "secret"},
		"no prefix":          {func(o *webhook.Options) { o.Secret = strings.TrimPrefix(secret, "whsec_") }, "secret"},
		"too short":          {func(o *webhook.Options) { o.Secret = "whsec_aHVudGVyMg==" }, "secret"},
		"no base64":          {func(o *webhook.Options) { o.Secret = "whsec_hunter2!" }, "secret"},
		"a bad previous one": {func(o *webhook.Options) { o.Previous = "whsec_hunter2" }, "previous secret"},
	} {
		t.Run(name, func(t *testing.T) {
			o := webhook.Options{URL: "https://hooks.example/", Secret: secret}
			c.change(&o)
			_, err := webhook.New(o)
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVudGVyMg") {
				t.Errorf("%v, want %q and no secret", err, c.says)
			}
		})
	}
}

func TestProfile(t *testing.T) {
	for name, c := range map[string]struct {
		window time.Duration
		want   time.Duration
	}{"default": {0, webhook.DefaultWindow}, "longer": {72 * time.Hour, 72 * time.Hour}, "nothing is promised": {-1, 0}} {
		d := newReceiver(t, secret).connector(func(o *webhook.Options) { o.Window = c.window }).Destination()
		p := d.Profiles[webhook.Kind]
		if p.NativeWindow[intent.Create] != c.want || p.Sends != webhook.DefaultSends || !p.WriteOnly {
			t.Errorf("%s: %+v", name, p)
		}
		if err := (&connectors.Registry{}).Register("hook", d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a name resolves to: nothing is posted to this machine or network.
func TestAddresses(t *testing.T) {
	for address, reached := range map[string]bool{
		"127.0.0.1": false, "10.1.2.3": false, "192.168.0.1": false, "172.16.0.1": false, "169.254.169.254": false, "168.63.129.16": false, "0.0.0.0": false,
		"100.64.0.1": false, "198.18.0.1": false, "255.255.255.255": false, "224.0.0.1": false, "::1": false, "::": false, "fe80::1": false,
		"fd00::1": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "ff02::1": false,
		"fec0::1": false, "::127.0.0.1": false,
		"93.184.215.14": true, "2606:2800:21f:cb07:6820:80da:af6b:8b2c": true, "::ffff:93.184.215.14": true,
	} {
		if got := webhook.Reaches(address, nil); got != reached {
			t.Errorf("%s: reached %v, want %v", address, got, reached)
		}
	}
	allowed := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	if !webhook.Reaches("10.1.2.3", allowed) || !webhook.Reaches("::ffff:10.1.2.3", allowed) || webhook.Reaches("10.2.0.1", allowed) {
		t.Error("a network that is allowed is, and no other")
	}
}

// The same on real sockets: nothing is connected to, and that is known.
func TestARealSocket(t *testing.T) {
	r := newReceiver(t, secret)
	srv := httptest.NewServer(r)
	defer srv.Close()
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "127.1"} {
		c, err := webhook.New(webhook.Options{URL: "http://" + host + ":" + port + "/", Secret: secret, Timeout: 5 * time.Second,
			Private: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
		if err != nil {
			t.Fatal(err)
		}
		if err := send(t, c, 1); connectors.FateOf(err) != connectors.FateNotSent {
			t.Errorf("%s: %v", host, err)
		}
	}
	if sends, _ := r.counts(); sends != 0 {
		t.Errorf("%d requests came through", sends)
	}
	plain := httptest.NewServer(r)
	defer plain.Close()
	c, err := webhook.New(webhook.Options{URL: plain.URL, Secret: secret, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := send(t, c, 1); err != nil {
		t.Errorf("an address that is allowed: %v", err)
	}
}

// An endless answer ends.
func TestLongAnswers(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 1 << 12 {
			if _, err := w.Write(make([]byte, 1<<12)); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	c, err := webhook.New(webhook.Options{URL: srv.URL, Secret: secret, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := c.Write(ctx, connectors.Request{IdempotencyKey: "rbk-1", Prepared: []byte("{}")}); err != nil {
		t.Error(err)
	}
}
