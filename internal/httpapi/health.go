package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/ledger/shards"
)

// readyTime bounds what /readyz waits for the ledger.
const readyTime = 2 * time.Second

// Health serves /healthz (the process is up) and /readyz (ready returns nil within two
// seconds; a nil ready always does), to every caller. log records why it is not ready.
func Health(ready func(context.Context) error, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	ok := map[string]string{"status": "ok"}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_ = answer(w, http.StatusOK, ok) // texts always marshal
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTime)
		defer cancel()
		if ready != nil {
			err := ready(ctx)
			var some *shards.UnreachableError
			if errors.As(err, &some) { // the tenants of the others are served
				log.Warn("not all of the ledger can be reached", "error", err)
				_ = answer(w, http.StatusOK, map[string]any{"status": "ok", "unreachable": some.Partitions})
				return
			}
			if err != nil { // the error is for the log: any caller may ask here
				log.Warn("not ready", "error", err)
				refuse(w, &gate.Error{Code: unavailable, Message: "the ledger cannot be reached"})
				return
			}
		}
		_ = answer(w, http.StatusOK, ok)
	})
	return mux
}

// NotYet responds that the ledger cannot be reached yet.
func NotYet(w http.ResponseWriter) {
	refuse(w, &gate.Error{Code: unavailable, Message: "the ledger cannot be reached yet; the same request may be made again later"})
}
