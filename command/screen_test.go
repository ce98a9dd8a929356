package command

import (
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// Colours are added to statuses, and change no word.
func TestColour(t *testing.T) {
	plain := "ok       ledger  fine\nwarning  disk    full\nfailed   login   ok\nwr_0a  settled (verified)  1s ago\nwr_0b  held  it was verified\n"
	want := "\x1b[32mok\x1b[0m       ledger  fine\n\x1b[33mwarning\x1b[0m  disk    full\n\x1b[31mfailed\x1b[0m   login   ok\n" +
		"\x1b[32mwr_0a  settled (verified)\x1b[0m  1s ago\n\x1b[33mwr_0b  held\x1b[0m  it was verified\n"
	if got := colour(plain); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitVerified, order("A-1", ""))
	if r := p.run("list"); strings.Contains(r.out, "\x1b") { // no terminal
		t.Errorf("%q", r.out)
	}
}
