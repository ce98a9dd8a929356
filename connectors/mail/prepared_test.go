package mail_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mail"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
)

// TestOnlyWhatWasPrepared: whatever the ledger gives back that is not whole, or
// not of this write, is not sent; nothing is built in its place.
func TestOnlyWhatWasPrepared(t *testing.T) {
	swap := func(old, with string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(with), 1) }
	}
	for name, tt := range map[string]struct {
		change func(built []byte) []byte
		reason string
	}{
		"nothing":             {func([]byte) []byte { return nil }, "the engine always prepares"},
		"no envelope":         {func(b []byte) []byte { _, raw, _ := bytes.Cut(b, []byte("\n")); return raw }, "no recipient"},
		"no message":          {func(b []byte) []byte { line, _, _ := bytes.Cut(b, []byte("\n")); return line }, "nothing to send"},
		"an empty message":    {func(b []byte) []byte { line, _, _ := bytes.Cut(b, []byte("\n")); return append(line, '\n') }, "nothing to send"},
		"another version":     {swap(`{"v":1`, `{"v":2`), "its form is not known"},
		"more than is known":  {swap(`{"v":1`, `{"dsn":true,"v":1`), "it was made by a program that meant more"},
		"another stamp":       {swap(`"stamp":"rb-`, `"stamp":"xx-`), "it is another write's"},
		"another header":      {swap("X-Readback-Stamp: rb-", "X-Readback-Stamp: xx-"), "it is another write's"},
		"no header":           {swap("X-Readback-Stamp: ", "X-Other: "), "it could not be found again"},
		"two headers":         {swap("X-Readback-Stamp: ", "X-Readback-Stamp: other\r\nX-Readback-Stamp: "), "it would be another's too"},
		"another Message-ID":  {swap("Message-ID: <rb-", "Message-ID: <xx-"), "it is not the one of the envelope"},
		"blind copies named":  {swap("Subject: ", "Bcc: dora@example.org\r\nSubject: "), "they would be visible"},
		"no recipients":       {swap(`["bob@example.org","chloe@example.org"]`, `[]`), "no recipient"},
		"a command in one":    {swap(`"chloe@example.org"`, `"chloe@example.org> NOTIFY=NEVER"`), "it is no address"},
		"a command as sender": {swap(`"from":"alice@example.org"`, `"from":"alice@example.org> SIZE=0"`), "it is no address"},
		"a line end alone":    {swap("Hi.\r\n", "Hi.\n"), "the wire would change it"},
		"an early end":        {swap("Hi.\r\n", "Hi.\n.\nMAIL FROM:<x@y>\r\n"), "some servers would take it for the end"},
		"a carriage return":   {swap("Hi.\r\n", "Hi.\r.\r\n"), "the wire would change it"},
		"an end without line": {func(b []byte) []byte { return bytes.TrimSuffix(b, []byte("\r\n")) }, "the wire would change it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakemail.Script{Steps: dot("250 ok\r\n")}
				c := scripted(t, s, nil)
				r := prepared(t, c, letter())
				changed := tt.change(r.Prepared)
				if bytes.Equal(changed, r.Prepared) {
					t.Fatal("the test changes nothing")
				}
				if name != "more than is known" { // which it would remove
					changed = mail.Reseal(changed)
				}
				r.Prepared = changed
				_, err := c.Write(t.Context(), r)
				if got := connectors.FateOf(err); got != notSent || !errors.Is(err, mail.ErrPrepared) || len(s.Received()) > 0 {
					t.Errorf("the write says %q (%v), the server received %q; want not sent, and nothing received: %s", got, err, s.Received(), tt.reason)
				}
			})
		})
	}
}

// TestPreparedForAnother: what was prepared for one write is not sent for
// another.
func TestPreparedForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakemail.Script{Steps: dot("250 ok\r\n")}
		c := scripted(t, s, nil)
		one, two := letter(), letter()
		two.Call = 1
		r := prepared(t, c, two)
		r.Prepared = prepared(t, c, one).Prepared
		if _, err := c.Write(t.Context(), r); connectors.FateOf(err) != notSent || !errors.Is(err, mail.ErrPrepared) || len(s.Received()) > 0 {
			t.Errorf("the write says %v, the server received %q; want not sent, and nothing received", err, s.Received())
		}
	})
}

// TestPreparedIsWhole: what was changed or cut anywhere on its way through the
// ledger is not sent, however good a mail it still is.
func TestPreparedIsWhole(t *testing.T) {
	s := &fakemail.Script{Steps: dot("250 ok\r\n")}
	c := scripted(t, s, nil)
	r := prepared(t, c, letter())
	built := r.Prepared
	try := func(changed []byte) {
		t.Helper()
		r.Prepared = changed
		if _, err := c.Write(t.Context(), r); connectors.FateOf(err) != notSent || !errors.Is(err, mail.ErrPrepared) || len(s.Received()) > 0 {
			t.Fatalf("the write of\n%s\nsays %v, the server received %q; want not sent, and nothing received", changed, err, s.Received())
		}
	}
	for i := range built {
		try(built[:i])
		changed := bytes.Clone(built)
		changed[i] ^= 1
		try(changed)
	}
	try(append(bytes.Clone(built), "more\r\n"...))
	try(bytes.Replace(built, []byte(`"bob@example.org",`), []byte(`"bob@example.org","eve@example.org",`), 1))
}
