package httpapi

import (
	"context"
	"net/http"

	"github.com/readback-go/readback/workflow"
)

// health serves /healthz (the process is there) and /readyz (it can serve), to
// anybody.
func (a *api) health(ready func(context.Context) error) {
	ok := map[string]string{"status": "ok"}
	a.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_ = answer(w, http.StatusOK, ok) // texts alone; they can be encoded
	})
	a.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTime)
		defer cancel()
		if ready != nil {
			if err := ready(ctx); err != nil { // what it says is for the log: anybody may ask here
				a.log.Warn("not ready", "error", err)
				refuse(w, &workflow.Error{Code: unavailable, Message: "the ledger cannot be reached"})
				return
			}
		}
		_ = answer(w, http.StatusOK, ok)
	})
}
