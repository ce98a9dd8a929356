package mail_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakemail "github.com/readback-go/readback/internal/fakes/mail"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestNotNowToTheWholeMail: a relay also answers so when it loses the connection to the server
// that has just accepted the mail.
func TestNotNowToTheWholeMail(t *testing.T) {
	of := func(v ...fault.Kind) []fault.Kind { return v }
	trusting := func(s *fakemail.Server) mail.Options {
		o := options(s)
		o.TrustDeferral = true
		return o
	}
	for name, tt := range map[string]struct {
		options func(s *fakemail.Server) mail.Options
		life
	}{
		"put off":                     {options, life{of(fakemail.PutOff), "", ledger.Verified, 1, 1, 1, "the mailbox shows it"}},
		"put off, filed late":         {options, life{of(fakemail.PutOff, fault.LaggingRead), "", ledger.Verified, 1, 1, 1, "it is waited for, and not sent again"}},
		"shut down, filed late":       {options, life{of(fakemail.ShutDown, fault.LaggingRead), "", ledger.Verified, 1, 1, 1, "it is waited for, and not sent again"}},
		"not now":                     {options, life{of(fault.Throttled), "", ledger.StatusReview, 1, 0, 1, "unknown: a reviewer decides, no second mail"}},
		"trusted: not now":            {trusting, life{of(fault.Throttled), "", ledger.Verified, 2, 1, 2, "nothing was taken over, so it is sent again"}},
		"trusted: not now, dropped":   {trusting, life{of(fault.Throttled, fault.DroppedBefore), "", ledger.StatusReview, 2, 0, 2, "the second is of unknown fate: no third"}},
		"trusted: shut down, late":    {trusting, life{of(fakemail.ShutDown, fault.LaggingRead), "", ledger.Verified, 1, 1, 1, "421 answers any command, and says nothing of the mail"}},
		"trusted: greylisted at RCPT": {trusting, life{of(fakemail.Greylisted), "", ledger.Verified, 1, 1, 2, "no message was begun"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tt.run(t, tt.options) })
		})
	}
}

// TestNoAfterALostSend: a reviewer sends again what was lost, and the server refuses: the first
// may still have been accepted.
func TestNoAfterALostSend(t *testing.T) {
	for _, second := range []fault.Kind{fault.Refused, fakemail.RefusedSender, fakemail.RefusedRcpt, fakemail.Greylisted, fault.Throttled, fault.Unreachable} {
		t.Run(string(second), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newHarness(t, options)
				b.s.SetFault(fakemail.Stalled, 1)
				out := b.later(b.do(order(b.s)).ID, time.Hour)
				if out.Status != ledger.StatusReview {
					t.Fatalf("%s (%s), want review", out.Status, out.Text)
				}
				b.s.SetFault(second, fakemail.Always)
				out, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordRetry, Force: true, By: "ada", Reason: "not there"})
				if err != nil {
					t.Fatal(err)
				}
				if out = b.later(out.ID, time.Hour); out.Status != ledger.StatusReview || len(b.s.Accepted()) != 0 {
					t.Errorf("%s after %d sends (%s), want review", out.Status, out.Sends, out.Text)
				}
				b.s.Release()
				if out = b.later(out.ID, 24*time.Hour); out.Status != ledger.Verified || len(b.s.Accepted()) != 1 {
					t.Errorf("%s (%s), %d taken over; want verified by the first that landed, and one", out.Status, out.Text, len(b.s.Accepted()))
				}
			})
		})
	}
}

// TestForcedTwice: a reviewer was wrong, and the outcome reports two.
func TestForcedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(t, options)
		b.s.SetFault(fakemail.Stalled, 1)
		out := b.later(b.do(order(b.s)).ID, time.Hour)
		out, err := b.engine.Resolve(t.Context(), "acme", out.ID, engine.Decision{Word: engine.WordRetry, Force: true, By: "ada", Reason: "not there"})
		if err != nil || out.Status != ledger.Verified || out.Sends != 2 {
			t.Fatalf("%s after %d sends, %v; want verified after 2", out.Status, out.Sends, err)
		}
		b.s.Release()
		if out = b.later(out.ID, 3*24*time.Hour); out.Status != ledger.StatusReview || len(b.s.Accepted()) != 2 {
			t.Errorf("%s (%s), want review: the first landed as well", out.Status, out.Text)
		}
	})
}

// halting is a connection that ends after so many bytes of the client.
type halting struct {
	net.Conn
	mu   *sync.Mutex
	left *int
	end  func() // cuts it when it is nil
}

func (c *halting) Write(p []byte) (int, error) {
	c.mu.Lock()
	left := *c.left
	*c.left -= min(left, len(p))
	c.mu.Unlock()
	if left >= len(p) {
		return c.Conn.Write(p)
	}
	n, _ := c.Conn.Write(p[:left])
	if c.end != nil {
		c.end()
	}
	_ = c.Conn.Close()
	return n, net.ErrClosed
}

// TestEndAtEachByte: wherever a connection or a context ends, no message that the server may have
// whole is reported as not sent.
func TestEndAtEachByte(t *testing.T) {
	for name, cancels := range map[string]bool{"cut": false, "cancelled": true} {
		t.Run(name, func(t *testing.T) {
			whole, open := 0, 0
			for n := 0; ; n++ {
				var done bool
				synctest.Test(t, func(t *testing.T) {
					fate, received := endAt(t, n, cancels)
					has := slices.Contains(received, ".")
					if has && fate != unknown && fate != answered {
						t.Fatalf("after %d bytes the server has the whole message, and the write says %q", n, fate)
					}
					if has {
						whole++
					}
					if fate == unknown {
						open++
					}
					done = slices.Contains(received, "QUIT")
				})
				if done {
					break
				}
			}
			if whole < 2 || open < 2 {
				t.Errorf("%d times it was whole, %d times open; the test ends nothing", whole, open)
			}
		})
	}
}

func endAt(t *testing.T, n int, cancels bool) (connectors.Fate, []string) {
	t.Helper()
	s := &fakemail.Script{Steps: dot("250 ok\r\n")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	left := n
	c := scripted(t, s, func(o *mail.Options) {
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := s.Dial(ctx, network, addr)
			h := &halting{Conn: conn, mu: new(sync.Mutex), left: &left}
			if cancels {
				h.end = cancel
			}
			return h, err
		}
	})
	_, err := c.Write(ctx, prepared(t, c, letter()))
	synctest.Wait()
	return connectors.FateOf(err), s.Received()
}

// TestNotTheMail: what is in the mailbox and is not the mail that was sent is
// not taken for it.
func TestNotTheMail(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(raw string) string
		flags  []string
		reason string
	}{
		"draft":                {func(raw string) string { return raw }, []string{`\Draft`}, "it was not sent"},
		"bounce":               {bounce, nil, "it quotes the mail"},
		"text bounce":          {func(raw string) string { return "Subject: failed\r\n\r\n" + raw }, nil, "it quotes the mail"},
		"second subject":       {before("Subject: ", "Subject: Something else\r\n"), nil, "who reads it sees either"},
		"second subject after": {before("Message-ID: ", "Subject: Something else\r\n"), nil, "who reads it sees either"},
		"second sender":        {before("Message-ID: ", "From: eve@example.org\r\n"), nil, "who reads it sees either"},
		"second recipients":    {before("Message-ID: ", "To: eve@example.org\r\n"), nil, "it names others"},
		"another stamp too":    {before("X-Readback-Stamp: ", "X-Readback-Stamp: rb-other\r\n"), nil, "it is another's as well"},
		"another stamp": {func(raw string) string {
			return strings.Replace(raw, "X-Readback-Stamp: rb-", "X-Readback-Stamp: rb-0", 1)
		}, nil, "it is another's"},
		"cut short":    {func(raw string) string { return raw[:strings.Index(raw, "\r\n\r\n")+4] }, nil, "its text is gone"},
		"footer":       {func(raw string) string { return raw + "-- \r\nBuy more\r\n" }, nil, "it says more"},
		"same subject": {func(raw string) string { return strings.NewReplacer("rb-", "xx-").Replace(raw) }, nil, "another sender wrote it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newHarness(t, options)
				b.s.SetFault(fault.PhantomSuccess, 1) // it accepts, and nothing is sent
				w := order(b.s)
				built := prepared(t, connect(t, options(b.s)), w).Prepared
				_, raw, _ := bytes.Cut(built, []byte("\n"))
				changed := tt.change(string(raw))
				if changed == string(raw) && tt.flags == nil {
					t.Fatal("the test changes nothing")
				}
				if _, err := b.s.Mailbox.Deliver(b.s.Sent(), []byte(changed), tt.flags...); err != nil {
					t.Fatal(err)
				}
				if out := b.later(b.do(w).ID, time.Hour); out.Status != ledger.StatusReview || out.Sends != 1 {
					t.Errorf("%s after %d sends (%s), want review: %s", out.Status, out.Sends, out.Text, tt.reason)
				}
			})
		})
	}
}

func before(header, lines string) func(raw string) string {
	return func(raw string) string { return strings.Replace(raw, "\r\n"+header, "\r\n"+lines+header, 1) }
}

func bounce(raw string) string {
	return "From: MAILER-DAEMON@example.org\r\nSubject: Undelivered\r\nMIME-Version: 1.0\r\n" +
		"Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\r\nfailed\r\n" +
		"--b\r\nContent-Type: message/rfc822\r\n\r\n" + raw + "\r\n--b--\r\n"
}

// TestNotTheWholeMail: the same of a mail with HTML and a file.
func TestNotTheWholeMail(t *testing.T) {
	const end = "--\r\n"
	cut := func(raw string, at string) string { return raw[:strings.LastIndex(raw, at)] }
	for name, tt := range map[string]struct {
		change func(raw string) string
		reason string
	}{
		"without its end":  {func(raw string) string { return cut(raw, end) }, "what else is cut is unknown"},
		"without its file": {func(raw string) string { return cut(raw, "JVBERi0x") }, "it is cut"},
		"with a footer": {func(raw string) string {
			whole := strings.TrimSuffix(raw, end)
			boundary := whole[strings.LastIndex(whole, "\r\n--")+2:]
			return whole + "\r\nContent-Type: text/plain\r\n\r\nBuy more\r\n" + boundary + end
		}, "it says more"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newHarness(t, options)
				b.s.SetFault(fault.PhantomSuccess, 1)
				w := order(b.s)
				w.Payload = intent.Fields{"html": "<p>Hi</p>", "attachments": []any{file("a.pdf", "application/pdf", "%PDF-1.7")}}
				_, raw, _ := bytes.Cut(prepared(t, connect(t, options(b.s)), w).Prepared, []byte("\n"))
				if _, err := b.s.Mailbox.Deliver(b.s.Sent(), []byte(tt.change(string(raw)))); err != nil {
					t.Fatal(err)
				}
				if out := b.later(b.do(w).ID, time.Hour); out.Status != ledger.StatusReview {
					t.Errorf("%s (%s), want review: %s", out.Status, out.Text, tt.reason)
				}
			})
		})
	}
}

// TestAddressOfCopiesIsInNoAnswer: a server may name it at any time.
func TestAddressOfCopiesIsInNoAnswer(t *testing.T) {
	const address = "secret@example.org"
	copies := fakemail.Step{Expect: "RCPT TO:<" + address + ">", Reply: "250 ok\r\n"}
	no := func(code string) string {
		return fmt.Sprintf("%s 5.1.1 <SECRET@example.org> does not like it\r\n", code)
	}
	all := slices.Insert(steps(), 6, copies)
	for name, script := range map[string][]fakemail.Step{
		"data":    append(slices.Clone(all[:7]), fakemail.Step{Expect: "DATA", Reply: no("554")}),
		"dot no":  append(slices.Clone(all), fakemail.Step{Expect: ".", Reply: no("550")}),
		"not now": append(slices.Clone(all), fakemail.Step{Expect: ".", Reply: no("450")}),
		"what":    append(slices.Clone(all), fakemail.Step{Expect: ".", Reply: no("251")}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakemail.Script{Steps: script}
				c := scripted(t, s, func(o *mail.Options) { o.Proof, o.CopyTo = mail.Copied, address })
				_, err := c.Write(t.Context(), prepared(t, c, letter()))
				if err == nil || strings.Contains(strings.ToLower(err.Error()), "secret") || !strings.Contains(err.Error(), "does not like it") {
					t.Errorf("the write says %v; want the server's words without the address", err)
				}
			})
		})
	}
}

// TestWrongPassword: the mail waits, the account sees few logins, and the mail
// goes once with the right password.
func TestWrongPassword(t *testing.T) {
	for name, mailbox := range map[string]bool{"submission": false, "mailbox too": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logins atomic.Int32
				var renewed atomic.Bool
				b := newHarness(t, func(s *fakemail.Server) mail.Options {
					o := options(s)
					right := o.Password
					o.Password = func(ctx context.Context) (string, error) {
						if renewed.Load() {
							return right(ctx)
						}
						logins.Add(1)
						return "wrong", nil
					}
					if mailbox {
						o.IMAP.Password = o.Password
					}
					return o
				})
				id, err := b.engine.Enqueue(t.Context(), order(b.s))
				if err != nil {
					t.Fatal(err)
				}
				out := b.later(id, time.Hour)
				if n := logins.Load(); out.Status != ledger.InProgress || n > 40 || len(b.s.Received()) != 0 {
					t.Errorf("%s after %d logins (%s); want it to wait, with at most 40 logins in an hour", out.Status, n, out.Text)
				}
				renewed.Store(true)
				if out = b.later(id, time.Hour); out.Status != ledger.Verified || len(b.s.Received()) != 1 {
					t.Errorf("%s with %d mails (%s); want it verified with the right password", out.Status, len(b.s.Received()), out.Text)
				}
			})
		})
	}
}

// TestTwoWorkflowsOneName: both send at once, before either sees the other's mail; neither is
// verified. They are of two ledgers: in one the second is queued behind the first.
func TestTwoWorkflowsOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newHarness(t, options)
		other := &harness{t: t, s: one.s, ledger: ledger.NewMemory()}
		other.open(options(one.s))
		w := invoice(one.s)
		one.s.SetFault(fault.LaggingRead, fakemail.Always)
		ids := make([]ledger.ID, 2)
		var wg sync.WaitGroup
		for i, b := range []*harness{one, other} {
			w := w
			w.Workflow = fmt.Sprintf("run-%d", i)
			wg.Go(func() { ids[i] = b.do(w).ID })
		}
		wg.Wait()
		for i, b := range []*harness{one, other} {
			if out := b.later(ids[i], time.Hour); out.Status != ledger.StatusReview {
				t.Errorf("%s (%s), want review: there are two", out.Status, out.Text)
			}
		}
	})
}

// TestOneNameInLine: both at once in one ledger. The second reads when the first is done, finds
// the name taken, and sends nothing.
func TestOneNameInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(t, options)
		w := invoice(b.s)
		b.s.SetFault(fault.LaggingRead, fakemail.Always)
		outs := make([]engine.Outcome, 2)
		var wg sync.WaitGroup
		for i := range outs {
			w := w
			w.Workflow = fmt.Sprintf("run-%d", i)
			wg.Go(func() { outs[i] = b.do(w) })
		}
		wg.Wait()
		ended := map[ledger.Status]int{}
		for _, out := range outs {
			out = b.later(out.ID, time.Hour)
			ended[out.Status] += 1 + out.Sends
		}
		if ended[ledger.Verified] != 3 || len(b.s.Received()) != 1 {
			t.Errorf("ended %v, %d mails; want both verified, one after a send", ended, len(b.s.Received()))
		}
	})
}

// invoice is a mail under a name that its caller gave it.
func invoice(s *fakemail.Server) intent.WriteIntent {
	w := order(s)
	w.Kind, w.Key = mail.KindNamed, intent.Fields{"message_id": "<invoice-7721@example.org>"}
	return w
}
