package httpapi

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/readback-go/readback/workflow"
)

// Health serves /healthz (the process is there) and /readyz (ready returns nil
// within two seconds; nil is always so), to anybody. log gets why it is not ready.
func Health(ready func(context.Context) error, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	ok := map[string]string{"status": "ok"}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_ = answer(w, http.StatusOK, ok) // texts alone; they can be encoded
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTime)
		defer cancel()
		if ready != nil {
			if err := ready(ctx); err != nil { // what it says is for the log: anybody may ask here
				log.Warn("not ready", "error", err)
				refuse(w, &workflow.Error{Code: unavailable, Message: "the ledger cannot be reached"})
				return
			}
		}
		_ = answer(w, http.StatusOK, ok)
	})
	return mux
}
