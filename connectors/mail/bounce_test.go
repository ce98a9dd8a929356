package mail_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mail"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
	"github.com/readback-go/readback/verify"
)

// dsn is a report of what became of a mail, as mail servers write it (RFC 3464).
func dsn(header, status, quotes, quoted string) string {
	return "From: MAILER-DAEMON@example.org\r\nSubject: Undelivered Mail Returned to Sender\r\n" + header + "MIME-Version: 1.0\r\n" +
		"Content-Type: multipart/report; report-type=delivery-status;\r\n\tboundary=\"b\"\r\n\r\n" +
		"--b\r\nContent-Type: text/plain\r\n\r\nI'm sorry.\r\n\r\n" +
		"--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.org\r\n\r\n" + status + "\r\n" +
		"--b\r\nContent-Type: " + quotes + "\r\n\r\n" + quoted + "\r\n--b--\r\n"
}

const unknownUser = "Final-Recipient: rfc822; bob@example.org\r\nAction: failed\r\nStatus: 5.1.1\r\n" +
	"Diagnostic-Code: smtp; 550 5.1.1 <bob@example.org>:\r\n  Recipient address rejected: User unknown\r\n"

// A copy in a mailbox proves the copy: a report that names the mail makes a verified
// write a review, whenever it comes, and nothing is sent again.
func TestBounce(t *testing.T) {
	headerOf := func(raw string) string { return raw[:strings.Index(raw, "\r\n\r\n")+2] }
	idOf := func(raw string) string {
		_, rest, _ := strings.Cut(raw, "\r\nMessage-ID: ")
		id, _, _ := strings.Cut(rest, "\r\n")
		return id
	}
	const bob = "not delivered to bob@example.org (5.1.1 550 5.1.1 <bob@example.org>: Recipient address rejected: User unknown)"
	off := func(s *fakemail.Server) mail.Options {
		o := options(s)
		o.Bounces = "-"
		return o
	}
	elsewhere := func(s *fakemail.Server) mail.Options {
		o := options(s)
		o.Sender = "bounces@example.org"
		return o
	}
	for name, tt := range map[string]struct {
		options func(s *fakemail.Server) mail.Options
		report  func(raw string) string
		says    string // "" where the write stays verified
	}{
		"whole mail": {options, func(raw string) string { return dsn("", unknownUser, "message/rfc822", raw) }, bob},
		"its header": {options, func(raw string) string { return dsn("", unknownUser, "text/rfc822-headers", headerOf(raw)) }, bob},
		"an answer": {options, func(raw string) string {
			return dsn("In-Reply-To: "+idOf(raw)+"\r\n", unknownUser, "text/rfc822-headers", "Subject: cut\r\n")
		}, bob},
		"first of two": {options, func(raw string) string {
			return dsn("", unknownUser+"\r\nFinal-Recipient: rfc822; cy@example.org\r\nAction: delivered\r\nStatus: 2.0.0\r\n", "message/rfc822", raw)
		}, bob},
		"four": {options, func(raw string) string {
			var all strings.Builder
			for _, who := range []string{"dd", "cc", "bb", "aa"} {
				fmt.Fprintf(&all, "Original-Recipient: rfc822;%s@example.org\r\nFinal-Recipient: rfc822;x@example.com\r\nAction: Failed\r\n\r\n", who)
			}
			return dsn("", all.String(), "message/rfc822", raw)
		}, "not delivered to aa@example.org; bb@example.org; cc@example.org; and 1 more"},
		"delayed": {options, func(raw string) string {
			return dsn("", strings.Replace(unknownUser, "failed", "delayed", 1), "message/rfc822", raw)
		}, ""},
		"another mail": {options, func(raw string) string {
			return dsn("", unknownUser, "message/rfc822", strings.Replace(raw, "\r\nMessage-ID: <", "\r\nMessage-ID: <x", 1))
		}, ""},
		"quoted alone": {options, func(raw string) string {
			return strings.Replace(dsn("", unknownUser, "text/plain", raw), "multipart/report", "multipart/mixed", 1)
		}, ""},
		"text alone":          {options, func(raw string) string { return "Subject: failed\r\n\r\n" + unknownUser + raw }, ""},
		"no report":           {options, func(string) string { return "Content-Type: multipart/report; report-type=delivery-status\r\n\r\n\x00" }, ""},
		"not looked for":      {off, func(raw string) string { return dsn("", unknownUser, "message/rfc822", raw) }, ""},
		"they come elsewhere": {elsewhere, func(raw string) string { return dsn("", unknownUser, "message/rfc822", raw) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newHarness(t, tt.options)
				out := b.do(order(b.s))
				if out.Status != ledger.Verified || !strings.Contains(out.Text, "not that a recipient received it") {
					t.Fatalf("%s: %s", out.Status, out.Text)
				}
				if reads := !out.RecheckUntil.IsZero(); reads != (tt.says != "" || name != "not looked for" && name != "they come elsewhere") {
					t.Errorf("a recheck is pending until %s", out.RecheckUntil)
				}
				if _, err := b.s.Mailbox.Deliver("INBOX", []byte(tt.report(string(b.s.Accepted()[0].Raw)))); err != nil {
					t.Fatal(err)
				}
				out = b.later(out.ID, 2*time.Hour)
				if want := tt.says != ""; (out.Status == ledger.StatusReview) != want || !want && out.Status != ledger.Verified || out.Sends != 1 {
					t.Fatalf("%s after %d sends: %s", out.Status, out.Sends, out.Text)
				}
				if tt.says == "" {
					return
				}
				if want := "it was verified, and a later report says that it failed"; !strings.Contains(out.Text, want) {
					t.Errorf("the outcome says %q, want %q in it", out.Text, want)
				}
				var found []verify.Mismatch
				if err := json.Unmarshal(out.Mismatches, &found); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]verify.Mismatch{{Problem: verify.Failed, Got: tt.says}}, found); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A mail that has bounced before it is seen is never verified.
func TestBouncedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(t, options)
		b.s.SetFault(fault.LaggingRead, 1)
		go func() {
			for len(b.s.Accepted()) == 0 {
				time.Sleep(time.Second)
			}
			if _, err := b.s.Mailbox.Deliver("INBOX", []byte(dsn("", unknownUser, "message/rfc822", string(b.s.Accepted()[0].Raw)))); err != nil {
				t.Error(err)
			}
		}()
		if out := b.later(b.do(order(b.s)).ID, time.Hour); out.Status != ledger.StatusReview || out.Sends != 1 || out.Verdict != verify.Mismatched {
			t.Errorf("%s after %d sends: %s", out.Status, out.Sends, out.Text)
		}
	})
}

// Removing the copy does not take the mail back.
func TestCopyIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(t, options)
		out := b.do(order(b.s))
		messages, err := b.s.Mailbox.Messages(b.s.Sent())
		if err != nil || len(messages) != 1 {
			t.Fatalf("%d messages, %v", len(messages), err)
		}
		if err := b.s.Mailbox.Remove(b.s.Sent(), messages[0].UID); err != nil {
			t.Fatal(err)
		}
		if out = b.later(out.ID, 2*time.Hour); out.Status != ledger.Verified || out.Sends != 1 || !out.RecheckUntil.IsZero() {
			t.Errorf("%s after %d sends: %s", out.Status, out.Sends, out.Text)
		}
	})
}

// Postfix returns what Dovecot does not take.
func TestPostfixReturnsAMail(t *testing.T) {
	s := fakemail.StartPostfix(t).Start(t, fakemail.Options{})
	o := byPostfix(s)
	o.Bounces = "INBOX"
	c := connect(t, o)
	w := order(s)
	w.Expect["to"], w.Payload = []any{"bob@" + fakemail.Nowhere}, nil
	r := connectors.Request{Intent: w, Stamp: w.Stamp(), Attempt: 1, Prepared: prepared(t, c, w).Prepared}
	if _, err := c.Write(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		seen, err := c.Read(ctx, connectors.Query{Intent: w, Stamp: w.Stamp()})
		switch {
		case err != nil && ctx.Err() == nil: // Dovecot refuses a mailbox that it is just making for the mail
			continue
		case err != nil:
			t.Fatal(err)
		case seen.Failed == "":
			continue
		}
		if len(seen.Records) != 1 || !strings.HasPrefix(seen.Failed, "not delivered to bob@"+fakemail.Nowhere+" (5.1.1 ") {
			t.Errorf("%d records, %q", len(seen.Records), seen.Failed)
		}
		return
	}
}
