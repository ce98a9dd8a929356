package main

import (
	"strings"
	"testing"

	fakemail "github.com/readback-go/readback/internal/fakes/mail"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestExample: the answer is lost, and still one mail is sent.
func TestExample(t *testing.T) {
	server := fakemail.Start(t, fakemail.Options{Address: "billing@example.org"})
	server.SetFault(fault.LostAnswer, 1)
	var out strings.Builder
	if err := run(t.Context(), server, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.HasPrefix(lines[0], "verified, sends 1, replayed false") || !strings.HasPrefix(lines[1], "verified, sends 1, replayed true") ||
		!strings.Contains(lines[2], "has 1 such mail") {
		t.Errorf("it prints\n%s\nwant verified twice, one send, one mail", out.String())
	}
	if left := server.Left(fault.LostAnswer); left != 0 || len(server.Received()) != 1 || len(server.Accepted()) != 1 {
		t.Errorf("the answer to be lost is still to come %d times; %d mails came in, %d were taken over; want 0, 1 and 1",
			left, len(server.Received()), len(server.Accepted()))
	}
}
