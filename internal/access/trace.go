package access

import (
	"context"
	"net/http"

	"github.com/readback-go/readback/engine"
)

// Traced is the context of a request in the trace that its header traceparent
// names. A header that is malformed, or comes more than once, is ignored as if it
// were not there. Whatever else callers pass on (tracestate, baggage) is nobody's
// business here.
func Traced(r *http.Request) context.Context {
	if all := r.Header.Values("Traceparent"); len(all) == 1 {
		return engine.WithTraceparent(r.Context(), all[0])
	}
	return r.Context()
}
