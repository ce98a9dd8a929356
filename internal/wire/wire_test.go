package wire_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/wire"
)

// ask makes a request and says whether a connection was had.
func ask(t *testing.T, ctx context.Context, transport http.RoundTripper) (res *http.Response, connected bool, err error) {
	t.Helper()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/orders?a=1", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	res, err = transport.RoundTrip(req)
	return res, connected, err
}

func TestAnswer(t *testing.T) {
	res, connected, err := ask(t, t.Context(), wire.Transport(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		rw.Header().Set("X-Seen", r.Host+r.RequestURI+string(sent))
		rw.WriteHeader(http.StatusCreated)
		_, _ = rw.Write([]byte("made"))
	}), nil))
	if err != nil || !connected || res.StatusCode != http.StatusCreated || res.Header.Get("X-Seen") != "api.test/orders?a=1body" {
		t.Fatalf("%+v, %t, %v", res, connected, err)
	}
	defer func() { _ = res.Body.Close() }()
	if text, err := io.ReadAll(res.Body); err != nil || string(text) != "made" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestWhatBreaks(t *testing.T) {
	never := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request came through") })
	if _, connected, err := ask(t, t.Context(), wire.Transport(never, func(*http.Request) bool { return false })); connected || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a refused dial: connected %t, %v", connected, err)
	}
	cut := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if res, connected, err := ask(t, t.Context(), wire.Transport(cut, nil)); res != nil || !connected || err == nil {
		t.Errorf("cut before the answer: %+v, connected %t, %v", res, connected, err)
	}
	half := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte("ha"))
		panic(http.ErrAbortHandler)
	})
	res, _, err := ask(t, t.Context(), wire.Transport(half, nil))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("cut within the body: %+v, %v", res, err)
	}
	defer func() { _ = res.Body.Close() }()
	if text, err := io.ReadAll(res.Body); string(text) != "ha" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut within the body: %q, %v", text, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, connected, err := ask(t, gone, wire.Transport(never, nil)); connected || !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who has gone: connected %t, %v", connected, err)
	}
}

// A handler that outlives its caller's deadline is a time-out.
func TestNoAnswerInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, connected, err := ask(t, ctx, wire.Transport(hangs, nil)); !connected || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("connected %t, %v", connected, err)
		}
	})
}

// What goes wrong in a handler by itself is not taken for a lost answer.
func TestPanicOfAHandler(t *testing.T) {
	defer func() {
		if p := recover(); p != "a mistake" {
			t.Errorf("recovered %v", p)
		}
	}()
	_, _, _ = ask(t, t.Context(), wire.Transport(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a mistake") }), nil))
	t.Error("it went unnoticed")
}
