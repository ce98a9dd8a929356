package access

import (
	"context"
	"net/http"

	"github.com/readback-go/readback/engine"
)

// Traced is the context of a request in the trace of its header traceparent. A header
// that is malformed, or comes more than once, is ignored. So are other trace headers
// (tracestate, baggage).
func Traced(r *http.Request) context.Context {
	if all := r.Header.Values("Traceparent"); len(all) == 1 {
		return engine.WithTraceparent(r.Context(), all[0])
	}
	return r.Context()
}
