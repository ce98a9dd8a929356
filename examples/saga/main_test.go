package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/readbacktest/fault"
	"github.com/readback-go/readback/saga"
)

// TestExample: all is done or nothing is, counted at the destinations, and the
// mail is sent at most once and last.
func TestExample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows, err := run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			want := row{Refused: r.Refused, Lost: r.Lost, State: saga.Undone}
			switch r.Refused {
			case nothing:
				want.State, want.Contacts, want.Tickets, want.Mails, want.MailSends = saga.Done, 1, 1, 1, 1
			case letter:
				want.MailSends = 1 // and refused
			}
			if r != want {
				t.Errorf("it became %+v, want %+v", r, want)
			}
		}
		if len(rows) != 17 {
			t.Errorf("%d lives, want 17: each step refused, each answer lost", len(rows))
		}
		var out bytes.Buffer
		show(&out, rows)
		if n := strings.Count(out.String(), "\n"); n != len(rows)+1 {
			t.Errorf("it prints %d lines for %d lives:\n%s", n, len(rows), &out)
		}
	})
}

// TestMisbehaving: the destinations of the example refuse and lose as configured, and no more.
func TestMisbehaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			refused, lost            string
			ticketsRefuse, ticketsLo bool
			postRefuses, postLo      bool
		}{
			"nothing":              {nothing, nothing, false, false, false, false},
			"the ticket's answers": {nothing, ticket, false, true, false, false},
			"all, mail refused":    {letter, every, false, true, true, false},
			"ticket refused":       {ticket, letter, true, false, false, true},
		} {
			w, err := newWorld()
			if err != nil {
				t.Fatal(err)
			}
			if err := w.misbehave(c.refused, c.lost); err != nil {
				t.Fatal(err)
			}
			got := []bool{w.tickets.Left(fault.Refused) != 0, w.tickets.Left(fault.LostAnswer) != 0, w.post.Left(fault.Refused) != 0, w.post.Left(fault.LostAnswer) != 0}
			if want := []bool{c.ticketsRefuse, c.ticketsLo, c.postRefuses, c.postLo}; !slices.Equal(got, want) {
				t.Errorf("%s: ticket refused and lost, mail refused and lost: %v, want %v", name, got, want)
			}
			w.close()
		}
	})
}
