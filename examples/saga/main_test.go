package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/workflow/saga"
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
		print(&out, rows)
		if n := strings.Count(out.String(), "\n"); n != len(rows)+1 {
			t.Errorf("it prints %d lines for %d lives:\n%s", n, len(rows), &out)
		}
	})
}

// TestMisbehaving: the destinations of the example do lose and refuse.
func TestMisbehaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := row{Refused: letter, Lost: every}
		if err := r.live(t.Context()); err != nil {
			t.Fatal(err)
		}
		w, err := newWorld()
		if err != nil {
			t.Fatal(err)
		}
		defer w.close()
		if err := w.misbehave(letter, every); err != nil {
			t.Fatal(err)
		}
		if contacts, _, _, _ := w.count(); contacts != 0 || r.Early {
			t.Errorf("%d contacts before anything was done; the mail came early: %t", contacts, r.Early)
		}
	})
}
