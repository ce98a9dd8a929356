package imap_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/intent"
	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
)

// harness is a connector with a server, and shorthand for both.
type harness struct {
	*testing.T
	s *fakeimap.Server
	c *imap.Connector
}

func newHarness(t *testing.T, s *fakeimap.Server) harness {
	return harness{t, s, connect(t, s, func(o *imap.Options) { o.CondStore = false })}
}

func (d harness) write(w intent.WriteIntent, before *connectors.Observation) connectors.Receipt {
	d.Helper()
	r, err := d.c.Write(d.Context(), connectors.Request{Intent: w, Stamp: stampOf(w), Attempt: 1, Before: before})
	if err != nil {
		d.Fatalf("write: %v", err)
	}
	return r
}

func (d harness) read(w intent.WriteIntent, ref string) connectors.Observation {
	d.Helper()
	o, err := d.c.Read(d.Context(), connectors.Query{Intent: w, Stamp: stampOf(w), Ref: ref})
	if err != nil {
		d.Fatalf("read: %v", err)
	}
	return o
}

// one reads and wants exactly one record.
func (d harness) one(w intent.WriteIntent) connectors.Record {
	d.Helper()
	o := d.read(w, "")
	if len(o.Records) != 1 {
		d.Fatalf("the read finds %d records, want 1", len(o.Records))
	}
	return o.Records[0]
}

func (d harness) deliver(mailbox, header string, flags ...string) uint32 {
	d.Helper()
	uid, err := d.s.Deliver(mailbox, []byte(strings.ReplaceAll(header, "\n", "\r\n")+"\r\n\r\ntext\r\n"), flags...)
	if err != nil {
		d.Fatal(err)
	}
	return uid
}

func (d harness) messages(mailbox string) []fakeimap.Message {
	d.Helper()
	all, err := d.s.Messages(mailbox)
	if err != nil {
		d.Fatal(err)
	}
	return all
}

func (d harness) count(mailbox string, want int, reason string) {
	d.Helper()
	got, err := d.s.Count(mailbox)
	if err != nil || got != want {
		d.Errorf("%s holds %d messages (%v), want %d: %s", mailbox, got, err, want, reason)
	}
}

func (d harness) fate(err error, want connectors.Fate, reason string) {
	d.Helper()
	if got := connectors.FateOf(err); got != want {
		d.Errorf("the write says %q (%v), want %q: %s", got, err, want, reason)
	}
}

// stampOf is a stamp per write type and message.
func stampOf(w intent.WriteIntent) string {
	step := fmt.Sprint(w.Key["message_id"])
	if w.Write == intent.Create {
		step = fmt.Sprint(w.Expect["subject"])
	}
	return intent.WriteIntent{Tenant: "t", Workflow: "w", Step: step, Tool: string(w.Write)}.Stamp()
}

// letter is a create whose Message-ID is made from the stamp.
func letter(expect intent.Fields) intent.WriteIntent {
	return intent.WriteIntent{Kind: imap.KindMessage, Write: intent.Create, Key: intent.Fields{"mailbox": "INBOX"}, Expect: expect}
}

// on is a change of a message that is there.
func on(w intent.WriteType, messageID any, expect intent.Fields) intent.WriteIntent {
	return intent.WriteIntent{Kind: imap.KindMessage, Write: w, Expect: expect,
		Key: intent.Fields{"mailbox": "INBOX", "message_id": messageID}}
}

// abandoned writes, gives up once the server has it, and returns the error.
func (d harness) abandoned(w intent.WriteIntent) error {
	d.Helper()
	ctx, cancel := context.WithCancel(d.Context())
	defer cancel()
	go func() {
		<-d.s.Held()
		cancel()
	}()
	_, err := d.c.Write(ctx, connectors.Request{Intent: w, Stamp: stampOf(w)})
	if !errors.Is(err, context.Canceled) {
		d.Errorf("error %v, want one that names the cancelled context", err)
	}
	return err
}

func conflict(t *testing.T, err error, reason string) {
	t.Helper()
	var e *connectors.Error
	if !errors.As(err, &e) || !e.Conflict || connectors.FateOf(err) != connectors.FateRefused {
		t.Errorf("the write says %v, want a conflict: %s", err, reason)
	}
}
