package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// bank is the payments API: it makes every requested charge, twice if sent twice, and honours no
// idempotency key.
type bank struct {
	mu      sync.Mutex
	charges []map[string]any
}

// ServeHTTP implements [http.Handler].
func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "POST /v1/charges":
		charge := map[string]any{}
		if json.NewDecoder(r.Body).Decode(&charge) != nil {
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
		charge["id"] = fmt.Sprintf("ch_%d", len(b.charges)+1)
		b.charges = append(b.charges, charge)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(charge) // the client may have gone
	case "GET /v1/charges":
		found := []map[string]any{}
		for _, c := range b.charges {
			if c["invoice"] == r.URL.Query().Get("invoice") {
				found = append(found, c)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"charges": found})
	default:
		http.NotFound(w, r)
	}
}

// Charges counts the charges for an invoice.
func (b *bank) Charges(invoice string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, c := range b.charges {
		if c["invoice"] == invoice {
			n++
		}
	}
	return n
}
