package orders

import (
	"net/http"

	"github.com/readback-go/readback/internal/wire"
)

// Transport carries requests to a world without a network. Events of a connection become the same
// kinds of errors: a refused dial, a lost answer, a truncated body, the client's own deadline. It
// starts no goroutine, so a synctest bubble sees all of it.
func Transport(w *World) http.RoundTripper {
	return wire.Transport(Handler(w), func(r *http.Request) bool { return w.dial(opOf(r)) })
}
