package simulated

import (
	"net/http"

	"github.com/readback-go/readback/internal/wire"
)

// Transport carries requests to a world without a network. What would happen
// on a connection comes out as the same kind of error: a refused dial, an
// answer that never came, a body that was cut, the client's own deadline. It
// starts no goroutine, so a synctest bubble sees all of it.
func Transport(w *World) http.RoundTripper {
	return wire.Transport(Handler(w), func(r *http.Request) bool { return w.dial(opOf(r)) })
}
