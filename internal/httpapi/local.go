package httpapi

import (
	"net"
	"net/http"
	"strings"

	"github.com/readback-go/readback/workflow"
)

// Local stands before a door that checks nobody's credentials and is open to
// this machine alone. A web page that somebody looks at on this machine is not
// this machine: requests that a browser sends for a page of another origin are
// refused, but for those that read, whose answers the browser keeps from the page;
// and so is whatever comes under a name which a stranger has made point here.
func Local(h http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, &workflow.Error{Code: workflow.Forbidden, Message: "a page of another origin asks for this; it is not served to pages"})
	}))
	inside := origins.Handler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.Host) {
			refuse(w, &workflow.Error{Code: workflow.Forbidden, Message: "it is served to this machine alone; want localhost, 127.0.0.1 or [::1] as its host"})
			return
		}
		inside.ServeHTTP(w, r)
	})
}

// isLocal reports whether a Host names this machine by what nobody can point
// elsewhere.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	if n := len(name); n > 2 && name[0] == '[' && name[n-1] == ']' {
		name = name[1 : n-1]
	}
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}
