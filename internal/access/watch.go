package access

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Watch wraps an API with long requests: every second it resolves the caller again. If
// the caller is no longer known, the request's context ends, with the reason as its
// cause. An event stream must not outlive its token.
func Watch(h http.Handler, who Resolver) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := watched(r, who)
		defer end()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

func watched(r *http.Request, who Resolver) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	// A handler may change its request meanwhile. It is resolved as a page: the form,
	// which may have authorized the request, has been read by then.
	again := &http.Request{Method: http.MethodGet, URL: r.URL, Host: r.Host, Header: r.Header.Clone(), RemoteAddr: r.RemoteAddr, TLS: r.TLS}
	again.Header.Del("Sec-Fetch-Mode") // the next page is confirmed early; a long request is not ended early
	again = again.WithContext(ctx)
	var mu sync.Mutex
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(watchEvery, func() {
		_, err := who.Resolve(again)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case ctx.Err() != nil, errors.Is(err, ErrNoCredentials): // no caller needs to be known
		case err != nil:
			cancel(err)
		default:
			timer.Reset(watchEvery)
		}
	})
	return ctx, func() {
		cancel(nil)
		timer.Stop()
	}
}
