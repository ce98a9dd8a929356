package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
)

// hotel is the API: it books whatever it is asked to, twice if asked twice, and
// the first answer is lost on its way.
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
		panic(http.ErrAbortHandler) // booked, and nobody hears of it
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(booking) // a client that has gone hears nothing
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
