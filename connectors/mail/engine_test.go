package mail_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
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

// harness is an account with an engine.
type harness struct {
	t      *testing.T
	s      *fakemail.Server
	ledger *ledger.Memory
	engine *engine.Engine
}

func newHarness(t *testing.T, o func(s *fakemail.Server) mail.Options) *harness {
	t.Helper()
	b := &harness{t: t, s: fakemail.Start(t, fakemail.Options{InProcess: true, Lag: time.Minute}), ledger: ledger.NewMemory()}
	b.open(o(b.s))
	return b
}

// open starts an engine on the ledger, as a new process does.
func (b *harness) open(o mail.Options) {
	b.t.Helper()
	c := connect(b.t, o)
	var reg connectors.Registry
	if err := reg.Register("mail", connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
		b.t.Fatal(err)
	}
	b.engine = engine.New(b.ledger, &reg, nil)
	b.t.Cleanup(b.engine.Close)
}

func (b *harness) do(w intent.WriteIntent) engine.Outcome {
	b.t.Helper()
	out, err := b.engine.Do(b.t.Context(), w)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// later lets the engine work on what is due for so long, and returns what
// became of the write.
func (b *harness) later(id ledger.ID, d time.Duration) engine.Outcome {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	defer cancel()
	if err := b.engine.Work(ctx, &engine.WorkOptions{Idle: time.Minute}); err != nil && ctx.Err() == nil {
		b.t.Fatal(err)
	}
	rec, err := b.ledger.Get(b.t.Context(), "acme", id)
	if err != nil {
		b.t.Fatal(err)
	}
	return engine.OutcomeOf(rec)
}

// order is a good intent from the account.
func order(s *fakemail.Server) intent.WriteIntent {
	w := letter()
	address, _ := s.Account()
	w.Key = intent.Fields{"account": address}
	w.Expect["from"] = "Alice A <" + address + ">"
	w.Expect["to"] = []any{"bob@example.org"}
	w.Payload = intent.Fields{"bcc": []any{"dora@example.org"}}
	return w
}

type life struct {
	ownFaults []fault.Kind
	read      fault.Kind
	status    ledger.Status
	received  int // messages that came in whole
	accepted  int // messages that the server took over
	sends     int
	reason    string
}

func lives() map[string]life {
	of := func(v ...fault.Kind) []fault.Kind { return v }
	return map[string]life{
		"all well":             {nil, "", ledger.Verified, 1, 1, 1, "seen once"},
		"lost answer":          {of(fault.LostAnswer), "", ledger.Verified, 1, 1, 1, "the mailbox shows it"},
		"silence":              {of(fakemail.Silence), "", ledger.Verified, 1, 1, 1, "the mailbox shows it"},
		"nonsense":             {of(fault.BadGateway), "", ledger.Verified, 1, 1, 1, "the mailbox shows it"},
		"late commit":          {of(fault.LateCommit), "", ledger.Verified, 1, 1, 1, "it landed after we gave it up, and is seen"},
		"filed late":           {of(fault.LaggingRead), "", ledger.Verified, 1, 1, 1, "it is waited for"},
		"lost, and filed late": {of(fault.LostAnswer, fault.LaggingRead), "", ledger.Verified, 1, 1, 1, "it is waited for"},
		"lagging search":       {nil, fault.LaggingRead, ledger.Verified, 1, 1, 1, "it is waited for"},
		"mailbox down":         {nil, fault.UnreadableRead, ledger.Verified, 1, 1, 1, "it is asked again"},
		"other Message-ID":     {of(fakemail.OtherMessageID), "", ledger.Verified, 1, 1, 1, "the header of its own has the stamp"},
		"without the header":   {of(fakemail.WithoutStamp), "", ledger.Verified, 1, 1, 1, "the Message-ID has the stamp"},

		"phantom":            {of(fault.PhantomSuccess), "", ledger.StatusReview, 1, 0, 1, "it answered yes: a reviewer decides, no second mail"},
		"dropped":            {of(fault.DroppedBefore), "", ledger.StatusReview, 1, 0, 1, "unknown: a reviewer decides, no second mail"},
		"cut before the dot": {of(fakemail.CutBeforeDot), "", ledger.StatusReview, 0, 0, 1, "a short message and its dot leave together: unknown"},
		"filed twice":        {of(fault.DuplicateBehindOurBack), "", ledger.StatusReview, 1, 1, 1, "two are not one"},
		"other subject":      {of(fault.NormalisedField), "", ledger.StatusReview, 1, 1, 1, "it is there, and not as declared"},
		"anonymous":          {of(fakemail.WithoutStamp, fakemail.OtherMessageID), "", ledger.StatusReview, 1, 1, 1, "nothing proves that it is ours: a reviewer decides, no second mail"},
		"sender refused":     {of(fakemail.RefusedSender), "", ledger.NotApplied, 0, 0, 1, "the server's no"},
		"recipient refused":  {of(fakemail.RefusedRcpt), "", ledger.NotApplied, 0, 0, 1, "the server's no"},
		"data refused":       {of(fakemail.RefusedData), "", ledger.NotApplied, 0, 0, 1, "the server's no"},
		"refused":            {of(fault.Refused), "", ledger.NotApplied, 1, 0, 1, "the server's no"},
		"greylisted":         {of(fakemail.Greylisted), "", ledger.Verified, 1, 1, 2, "nothing was taken over, so it is sent again"},
		"unreachable":        {of(fault.Unreachable), "", ledger.Verified, 1, 1, 2, "nothing was sent, so it is sent again"},
	}
}

// TestLives: what becomes of a mail, and how often it is sent, with days of work
// on what is left open.
func TestLives(t *testing.T) {
	for name, tt := range lives() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tt.run(t, options) })
		})
	}
}

func (tt life) run(t *testing.T, o func(s *fakemail.Server) mail.Options) {
	t.Helper()
	b := newHarness(t, o)
	for _, v := range tt.ownFaults {
		b.s.SetFault(v, 1)
	}
	if tt.read != "" {
		b.s.Mailbox.SetFault(tt.read, 1)
	}
	w := order(b.s)
	out := b.later(b.do(w).ID, 3*24*time.Hour)
	again := b.do(w) // an orchestrator that replays the step
	if out.Status != tt.status || again.Status != tt.status || !again.Replayed || out.Sends != tt.sends {
		t.Errorf("%s after %d sends, then %s (%s); want %s after %d: %s", out.Status, out.Sends, again.Status, out.Text, tt.status, tt.sends, tt.reason)
	}
	received, accepted := b.s.Received(), b.s.Accepted()
	if len(received) != tt.received || len(accepted) != tt.accepted {
		t.Errorf("%d messages came in and %d were taken over, want %d and %d: %s", len(received), len(accepted), tt.received, tt.accepted, tt.reason)
	}
	for _, m := range received {
		if want := []string{"bob@example.org", "dora@example.org"}; !slices.Equal(m.To, want) || bytes.Contains(m.Raw, []byte("dora")) {
			t.Errorf("to %q, want %q and nothing of dora in\n%s", m.To, want, m.Raw)
		}
	}
}

// TestRepeatIsTheSameMail: not now, most of a day without a process, then a new one with
// another configuration.
func TestRepeatIsTheSameMail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trusting := func(s *fakemail.Server) mail.Options {
			o := options(s)
			o.TrustDeferral = true
			return o
		}
		b := newHarness(t, trusting)
		b.s.SetFault(fault.Throttled, 3)
		b.s.SetFault(fakemail.Greylisted, 1)
		w := order(b.s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute/10)
		defer cancel()
		out, err := b.engine.Do(ctx, w)
		if err == nil && out.Status != ledger.InProgress {
			t.Fatalf("%s (%v), want it under way", out.Status, err)
		}
		b.engine.Close()
		first, err := b.ledger.Get(t.Context(), "acme", idOf(t, b.ledger))
		if err != nil || len(first.Prepared) == 0 || first.State == ledger.Settled {
			t.Fatalf("the ledger has %d bytes prepared, state %s, %v; want the mail, unsettled", len(first.Prepared), first.State, err)
		}
		<-time.After(20 * time.Hour)
		other := trusting(b.s)
		other.From, other.Hello = "Other Sender <else@example.net>", "elsewhere"
		b.open(other)
		end := b.later(first.ID, 24*time.Hour)
		received := b.s.Received()
		if end.Status != ledger.Verified || len(received) < 2 || len(b.s.Accepted()) != 1 {
			t.Fatalf("%s (%s), %d messages came in, %d were taken over; want verified, several and 1", end.Status, end.Text, len(received), len(b.s.Accepted()))
		}
		_, raw, _ := bytes.Cut(first.Prepared, []byte("\n"))
		for i, m := range received {
			if !bytes.Equal(m.Raw, raw) || m.From != received[0].From || !slices.Equal(m.To, received[0].To) {
				t.Errorf("message %d is not the one that was prepared: from %q to %q\n%s\nwant\n%s", i, m.From, m.To, m.Raw, raw)
			}
		}
	})
}

// TestTakenOverByAnother: one process hangs in its send, another one continues, and the mail
// arrives when both have given it up.
func TestTakenOverByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(t, options)
		b.s.SetFault(fakemail.Stalled, 1)
		w, done := order(b.s), make(chan error, 1)
		go func(hung *engine.Engine) {
			_, err := hung.Do(t.Context(), w)
			done <- err
		}(b.engine)
		<-b.s.Held()
		b.open(options(b.s))
		id := idOf(t, b.ledger)
		if out := b.later(id, time.Hour); out.Status != ledger.StatusReview || len(b.s.Received()) != 1 {
			t.Errorf("%s, %d messages came in; want review and 1", out.Status, len(b.s.Received()))
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := b.s.Release(); n != 1 {
			t.Fatalf("%d messages were held back, want 1", n)
		}
		if out := b.later(id, 24*time.Hour); out.Status != ledger.Verified || len(b.s.Received()) != 1 || len(b.s.Accepted()) != 1 {
			t.Errorf("%s, %d messages came in, %d were taken over; want verified, 1 and 1", out.Status, len(b.s.Received()), len(b.s.Accepted()))
		}
	})
}

// idOf is the one write of a ledger.
func idOf(t *testing.T, l *ledger.Memory) ledger.ID {
	t.Helper()
	all, err := l.List(t.Context(), ledger.Filter{Tenant: "acme"})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d writes, %v; want one", len(all), err)
	}
	return all[0].ID
}

// TestRefusedRecipientIsNamed: in the outcome.
func TestRefusedRecipientIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(t, options)
		b.s.SetFault(fakemail.RefusedRcpt, 1)
		if out := b.do(order(b.s)); !strings.Contains(out.Text, "bob@example.org") {
			t.Errorf("the outcome says %q, want the recipient in it", out.Text)
		}
	})
}

// TestNamedMailOfAnEarlierWrite: a mail with the Message-ID of the key is there, so
// that two workflows do not send one business mail twice.
func TestNamedMailOfAnEarlierWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(t, options)
		w := order(b.s)
		w.Kind, w.Key = mail.KindNamed, intent.Fields{"message_id": "<invoice-7721@example.org>"}
		if out := b.do(w); out.Status != ledger.Verified {
			t.Fatalf("the first is %s (%s), want verified", out.Status, out.Text)
		}
		w.Workflow = "run-2"
		if out := b.later(b.do(w).ID, time.Hour); out.Status != ledger.Verified || out.Sends != 0 || len(b.s.Received()) != 1 {
			t.Errorf("the second is %s after %d sends, %d messages came in; want verified, 0 and 1", out.Status, out.Sends, len(b.s.Received()))
		}
	})
}

// TestOtherWritesAreRefused: and nothing is sent for them, for any caller.
func TestOtherWritesAreRefused(t *testing.T) {
	for _, write := range []intent.WriteType{intent.Update, intent.Upsert, intent.Delete} {
		t.Run(string(write), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newHarness(t, options)
				w := order(b.s)
				c := connect(t, options(b.s))
				built := prepared(t, c, w)
				w.Write = write
				if write == intent.Delete {
					w.Expect, w.Payload = nil, nil
				}
				_, byEngine := b.engine.Do(t.Context(), w)
				built.Intent = w
				_, byWrite := c.Write(t.Context(), built)
				_, byPrepare := c.Prepare(t.Context(), built)
				_, byRead := c.Read(t.Context(), connectors.Query{Intent: w, Stamp: w.Stamp()})
				for by, err := range map[string]error{"engine": byEngine, "write": byWrite, "prepare": byPrepare, "read": byRead} {
					if err == nil || !strings.Contains(err.Error(), "/write") {
						t.Errorf("%s says %v, want an error that names the field", by, err)
					}
				}
				if fate := connectors.FateOf(byWrite); fate != notSent || b.s.Attempts() != 0 {
					t.Errorf("the write says %q, %d submissions; want not sent and none", fate, b.s.Attempts())
				}
			})
		})
	}
}

// TestAddressOfCopiesIsSecret: a reader of an outcome could forge copies.
func TestAddressOfCopiesIsSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHarness(t, func(s *fakemail.Server) mail.Options {
			o := copied(s)
			o.CopyTo = "bob@example.org" // the only recipient in the request to the server
			return o
		})
		w := order(b.s)
		w.Payload = nil
		b.s.SetFault(fakemail.RefusedRcpt, 1)
		out := b.do(w)
		if out.Status != ledger.NotApplied || strings.Contains(out.Text+out.ForModel, "bob@") || !strings.Contains(out.Text, "550") {
			t.Errorf("%s: %q %q; want the code, and not the address", out.Status, out.Text, out.ForModel)
		}
	})
}

// TestAlwaysWeak: a mailbox that shows all it has at once does not show what is
// on its way.
func TestAlwaysWeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakemail.Start(t, fakemail.Options{InProcess: true})
		o := options(s)
		o.IMAP.SingleStore = true
		w := order(s)
		seen, err := connect(t, o).Read(t.Context(), connectors.Query{Intent: w, Stamp: w.Stamp()})
		if err != nil || seen.Strength != connectors.Weak || len(seen.Records) != 0 {
			t.Errorf("%d records, %q, %v; want none, weak", len(seen.Records), seen.Strength, err)
		}
	})
}
