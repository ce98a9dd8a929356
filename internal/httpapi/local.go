package httpapi

import (
	"net/http"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/access"
)

// Local protects an API that checks no credentials and is open to this machine alone. A
// web page in a browser on this machine is not trusted: requests that a browser sends for
// a page of another origin are refused, except reads, whose responses the browser hides
// from the page. Requests under a foreign name that resolves to this machine are refused
// too.
func Local(h http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, &gate.Error{Code: gate.Forbidden, Message: "a page of another origin asks for this; it is not served to pages"})
	}))
	inside := origins.Handler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !access.IsLocal(r.Host) {
			refuse(w, &gate.Error{Code: gate.Forbidden, Message: "it is served to this machine alone; want localhost, 127.0.0.1 or [::1] as its host"})
			return
		}
		inside.ServeHTTP(w, r)
	})
}
