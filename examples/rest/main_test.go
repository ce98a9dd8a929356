package main

import "testing"

// TestExample: the answer is lost, and there is still one booking.
func TestExample(t *testing.T) {
	h := openHotel()
	if err := run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if !h.lost {
		t.Error("no answer was lost")
	}
	if n := h.count(); n != 1 || h.sends != 1 {
		t.Errorf("%d bookings after %d sends, want one after one", n, h.sends)
	}
}
