package sql

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/readback-go/readback/connectors"
)

func TestFates(t *testing.T) {
	sqlstate := func(severity, code string) error {
		return &pgconn.PgError{Severity: severity, SeverityUnlocalized: severity, Code: code}
	}
	for name, c := range map[string]struct {
		err            error
		before, commit connectors.Fate
		conflict       bool
		reason         string
	}{
		"no answer":             {io.ErrUnexpectedEOF, connectors.FateNotSent, connectors.FateUnknown, false, "a server that hears no COMMIT rolls back"},
		"unique violation":      {sqlstate("ERROR", "23505"), connectors.FateRefused, connectors.FateRefused, true, "a row is there"},
		"exclusion violation":   {sqlstate("ERROR", "23P01"), connectors.FateRefused, connectors.FateRefused, true, "a row is there"},
		"check violation":       {sqlstate("ERROR", "23514"), connectors.FateRefused, connectors.FateRefused, false, "the rules say no"},
		"serialisation":         {sqlstate("ERROR", "40001"), connectors.FateNotSent, connectors.FateRefused, false, "it was rolled back"},
		"deadlock":              {sqlstate("ERROR", "40P01"), connectors.FateNotSent, connectors.FateRefused, false, "it was rolled back"},
		"lock timeout":          {sqlstate("ERROR", "55P03"), connectors.FateNotSent, connectors.FateRefused, false, "it was rolled back"},
		"cancelled":             {sqlstate("ERROR", "57014"), connectors.FateNotSent, connectors.FateRefused, false, "ERROR comes before the commit record; while waiting for a standby it is a warning"},
		"idle too long":         {sqlstate("FATAL", "25P03"), connectors.FateNotSent, connectors.FateUnknown, false, "we were stopped, and may try again"},
		"completion unknown":    {sqlstate("ERROR", "40003"), connectors.FateRefused, connectors.FateUnknown, false, "it says so itself"},
		"read only":             {sqlstate("ERROR", "25006"), connectors.FateRefused, connectors.FateRefused, false, "a standby"},
		"too many connections":  {sqlstate("FATAL", "53300"), connectors.FateThrottled, connectors.FateUnknown, false, "no login, nothing done; at COMMIT the text is not the server's"},
		"shutdown":              {sqlstate("FATAL", "57P01"), connectors.FateNotSent, connectors.FateUnknown, false, "at COMMIT it can come after the commit, in the wait for a standby"},
		"shutdown as ERROR":     {sqlstate("ERROR", "57P01"), connectors.FateNotSent, connectors.FateUnknown, false, "a pooler's word"},
		"starting up":           {sqlstate("FATAL", "57P03"), connectors.FateNotSent, connectors.FateUnknown, false, "no server was there"},
		"connection failure":    {sqlstate("ERROR", "08006"), connectors.FateNotSent, connectors.FateUnknown, false, "a pooler's word"},
		"protocol violation":    {sqlstate("FATAL", "08P01"), connectors.FateNotSent, connectors.FateUnknown, false, "what poolers say for everything"},
		"login":                 {sqlstate("FATAL", "28P01"), connectors.FateLogin, connectors.FateUnknown, false, "the password is wrong"},
		"no such role":          {sqlstate("FATAL", "28000"), connectors.FateLogin, connectors.FateUnknown, false, "no such role may log in"},
		"internal":              {sqlstate("ERROR", "XX000"), connectors.FateRefused, connectors.FateUnknown, false, "who knows what broke"},
		"fatal unique":          {sqlstate("FATAL", "23505"), connectors.FateRefused, connectors.FateUnknown, true, "no FATAL is proof"},
		"panic":                 {sqlstate("PANIC", "58030"), connectors.FateRefused, connectors.FateUnknown, false, "the log may hold the commit"},
		"no code":               {sqlstate("ERROR", ""), connectors.FateRefused, connectors.FateUnknown, false, "nothing that is known"},
		"old server, localised": {&pgconn.PgError{Severity: "FEHLER", Code: "23514"}, connectors.FateRefused, connectors.FateUnknown, false, "the level cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := connectors.FateOf(beforeCommit(doing("x", c.err))); got != c.before {
				t.Errorf("before COMMIT it is %q, want %q: %s", got, c.before, c.reason)
			}
			err := atCommit(doing("x", c.err))
			if got := connectors.FateOf(err); got != c.commit {
				t.Errorf("at COMMIT it is %q, want %q: %s", got, c.commit, c.reason)
			}
			var known *connectors.Error
			if errors.As(beforeCommit(doing("x", c.err)), &known) && known.Conflict != c.conflict {
				t.Errorf("conflict %t, want %t: %s", known.Conflict, c.conflict, c.reason)
			}
		})
	}
}

func TestSheets(t *testing.T) {
	for _, s := range Sheets() {
		about := map[connectors.Topic]bool{}
		for _, c := range s.Claims {
			if about[c.About] = true; c.Says == "" || c.Source == "" {
				t.Errorf("%s: the claim about %s lacks its words or its source", s.Name, c.About)
			}
		}
		for _, topic := range connectors.Topics() {
			if !about[topic] {
				t.Errorf("%s says nothing about %s", s.Name, topic)
			}
		}
		if !s.Profile.Stamped || len(s.Profile.Writes) == 0 {
			t.Errorf("%s has the profile %+v, want that of its table", s.Name, s.Profile)
		}
	}
}

// stopped is the context of a process that was stopped past its deadline and continues: its
// timers have not fired yet.
type stopped struct{ context.Context }

func (stopped) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

func TestTooLate(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		fate connectors.Fate
	}{
		"in time":   {t.Context(), connectors.FateAnswered},
		"cancelled": {ended, connectors.FateNotSent},
		"stopped":   {stopped{t.Context()}, connectors.FateNotSent},
	} {
		if got := connectors.FateOf(tooLate(c.ctx)); got != c.fate {
			t.Errorf("%s: %q, want %q", name, got, c.fate)
		}
	}
}
