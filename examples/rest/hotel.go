package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
)

// hotel is the API: it books every request, twice if sent twice, and the first answer is lost in
// transit.
type hotel struct {
	server *httptest.Server

	mu       sync.Mutex
	bookings []map[string]any
	sends    int
	lost     bool
}

func openHotel() *hotel {
	h := &hotel{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/bookings", h.book)
	mux.HandleFunc("GET /v1/bookings", h.list)
	h.server = httptest.NewServer(mux)
	return h
}

func (h *hotel) url() string { return h.server.URL + "/v1" }

func (h *hotel) close() { h.server.Close() }

func (h *hotel) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.bookings)
}

func (h *hotel) book(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	booking := map[string]any{}
	if r.Header.Get("Authorization") != "Bearer from-a-vault" || json.NewDecoder(r.Body).Decode(&booking) != nil {
		http.Error(w, "{}", http.StatusForbidden)
		return
	}
	h.sends++
	booking["id"] = strconv.Itoa(len(h.bookings) + 1)
	h.bookings = append(h.bookings, booking)
	if !h.lost {
		h.lost = true
		panic(http.ErrAbortHandler) // booked, and the answer is lost
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(booking) // the client may have gone
}

func (h *hotel) list(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := []map[string]any{}
	for _, b := range h.bookings {
		if b["reference"] == r.URL.Query().Get("reference") {
			found = append(found, b)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"bookings": found})
}
