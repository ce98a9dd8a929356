package access

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Watch stands around a door whose requests may go on for long: every
// second who is asked again, and when it is no longer known whose request it is
// its context ends, with the reason as its cause. What follows events for hours
// must not outlive its token.
func Watch(h http.Handler, who Resolver) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := watched(r, who)
		defer end()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

func watched(r *http.Request, who Resolver) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	// A handler may change what it was given while we look. It is asked as for a page:
	// the form, by which a request may have come in, has been read by then.
	again := &http.Request{Method: http.MethodGet, URL: r.URL, Host: r.Host, Header: r.Header.Clone(), RemoteAddr: r.RemoteAddr, TLS: r.TLS}
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
		case ctx.Err() != nil, errors.Is(err, ErrNoCredentials): // nobody is to be known
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
