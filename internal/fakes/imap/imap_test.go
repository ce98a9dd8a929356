package imap_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
	"github.com/readback-go/readback/readbacktest/fault"
)

// client is a plain client, which trusts every answer.
func client(t *testing.T, s *fakeimap.Server) *imapclient.Client {
	t.Helper()
	c, err := imapclient.DialInsecure(s.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	username, password := s.Account()
	if err := c.Login(username, password).Wait(); err != nil {
		t.Fatal(err)
	}
	return c
}

func appendOne(c *imapclient.Client, subject string) error {
	raw := "Message-ID: <" + subject + "@x>\r\nSubject: " + subject + "\r\n\r\ntext\r\n"
	cmd := c.Append("INBOX", int64(len(raw)), &imap.AppendOptions{Flags: []imap.Flag{`\Seen`, "kw"}})
	_, err := cmd.Write([]byte(raw))
	if err := errors.Join(err, cmd.Close()); err != nil {
		return err
	}
	_, err = cmd.Wait()
	return err
}

func TestAnswersAndEffectsOfFaults(t *testing.T) {
	for kind, tt := range map[fault.Kind]struct {
		yes     bool // the client gets a yes
		stored  int
		effects int
		reason  string
	}{
		"":                           {true, 1, 1, "an honest server"},
		fault.LostAnswer:             {false, 1, 1, "done, unheard"},
		fault.BadGateway:             {false, 1, 1, "done, and BYE"},
		fault.DroppedBefore:          {false, 0, 0, "not done"},
		fault.PhantomSuccess:         {true, 0, 0, "a lie"},
		fault.DuplicateBehindOurBack: {true, 2, 1, "no client requested the second"},
		fault.Rollback:               {true, 0, 1, "confirmed, and taken back"},
		fault.Refused:                {false, 0, 0, "an honest no"},
		fault.Throttled:              {false, 0, 0, "an honest no"},
		fault.DroppedField:           {true, 1, 1, "without the keyword"},
		fault.NormalisedField:        {true, 1, 1, "with another subject"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			s := fakeimap.Start(t, fakeimap.Options{})
			c := client(t, s)
			s.SetFault(kind, 1)
			if err := appendOne(c, "hello"); (err == nil) != tt.yes {
				t.Errorf("the client hears %v, want yes: %v (%s)", err, tt.yes, tt.reason)
			}
			n, err := s.Count("INBOX")
			if err != nil || n != tt.stored || len(s.Effects()) != tt.effects || s.Sends() != 1 {
				t.Errorf("%d stored, effects %v, %d sends, %v; want %d, %d, 1: %s", n, s.Effects(), s.Sends(), err, tt.stored, tt.effects, tt.reason)
			}
		})
	}
}

func TestAlteredMessages(t *testing.T) {
	s := fakeimap.Start(t, fakeimap.Options{})
	c := client(t, s)
	s.SetFault(fault.DroppedField, 1)
	s.SetFault(fault.NormalisedField, 1)
	for _, subject := range []string{"altered", "honest"} {
		if err := appendOne(c, subject); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Messages("INBOX")
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, m := range got {
		for line := range strings.SplitSeq(string(m.Raw), "\r\n") {
			if strings.HasPrefix(strings.ToUpper(line), "SUBJECT") {
				seen = append(seen, fmt.Sprint(line, " ", m.Flags))
			}
		}
	}
	want := []string{`SUBJECT: ALTERED [\Seen]`, `Subject: honest [\Seen kw]`}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("stored are %q, want %q: each fault shows once", seen, want)
	}
}

func TestOneHundredMessages(t *testing.T) {
	s := fakeimap.Start(t, fakeimap.Options{})
	c := client(t, s)
	for n := range 100 {
		if err := appendOne(c, fmt.Sprint("message ", n)); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Count("INBOX"); n != 100 || err != nil {
		t.Errorf("%d messages, %v; want 100", n, err)
	}
}

// TestNothingToCount: an oracle that cannot read must not return zero.
func TestNothingToCount(t *testing.T) {
	s := fakeimap.Start(t, fakeimap.Options{})
	if n, err := s.Count("No Such Box"); err == nil {
		t.Errorf("a mailbox that does not exist holds %d messages, want an error", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Count("INBOX"); err == nil {
		t.Errorf("a closed server holds %d messages, want an error", n)
	}
}

// without is a machine that has no Dovecot.
type without struct {
	fakeimap.TB
	skipped, failed string
}

func (w *without) Helper()                   {}
func (w *without) Skipf(f string, a ...any)  { w.skipped = fmt.Sprintf(f, a...); panic(w) }
func (w *without) Fatalf(f string, a ...any) { w.failed = fmt.Sprintf(f, a...); panic(w) }

func TestWithoutDovecot(t *testing.T) {
	for strict, wantSkip := range map[string]bool{"": true, "1": false} {
		t.Run("strict="+strict, func(t *testing.T) {
			t.Setenv("READBACK_STRICT", strict)
			fakeimap.HideDovecot(t)
			w := &without{}
			func() {
				defer func() { _ = recover() }()
				fakeimap.StartDovecot(w)
			}()
			count := w.skipped + w.failed
			if (w.skipped != "") != wantSkip || (w.failed == "") != wantSkip || !strings.Contains(count, "dovecot-imapd") {
				t.Errorf("skipped %q, failed %q; want a skip: %v, and what to install", w.skipped, w.failed, wantSkip)
			}
		})
	}
}
