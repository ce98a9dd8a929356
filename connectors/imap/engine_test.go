package imap_test

import (
	"context"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// meddled is a mailbox in which another actor sets a flag right after the first send.
type meddled struct {
	*imap.Connector
	flag string
}

func (m *meddled) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	receipt, err := m.Connector.Write(ctx, r)
	if m.flag != "" {
		other := numbered(imap.KindNamed, intent.Update, 1)
		other.Expect = intent.Fields{"flags": []any{`\Seen`, `\Deleted`, m.flag}}
		if _, failed := m.Connector.Write(ctx, connectors.Request{Intent: other}); failed != nil {
			return receipt, failed
		}
		m.flag = ""
	}
	return receipt, err
}

// A delete whose connection broke between the mark and the EXPUNGE is finished: the
// mark is no change of another actor. A flag that another actor set meanwhile is.
func TestDeleteCutInTheMiddle(t *testing.T) {
	for name, start := range map[string]struct {
		start     starter
		condStore bool
	}{"in memory": {inMemory, false}, "Dovecot, CONDSTORE": {onDovecot(t), true}} {
		for meanwhile, want := range map[string]ledger.Status{"": ledger.Verified, `\Flagged`: ledger.StatusReview} {
			t.Run(name+meanwhile, func(t *testing.T) {
				s := start.start(t, fakeimap.Options{})
				c := connect(t, s, func(o *imap.Options) { o.CondStore, o.Horizon = start.condStore, 50*time.Millisecond })
				w := numbered(imap.KindNamed, intent.Delete, 1)
				w.Tenant, w.Workflow, w.Step, w.Tool, w.Destination = "acme", "wf", "tidy", "delete", "mail"
				create := numbered(imap.KindNamed, intent.Create, 1)
				if _, err := c.Write(t.Context(), connectors.Request{Intent: create, Stamp: "rb-1"}); err != nil {
					t.Fatal(err)
				}
				var reg connectors.Registry
				if err := reg.Register("mail", connectors.Destination{Connector: &meddled{Connector: c, flag: meanwhile}, Profiles: c.Profiles()}); err != nil {
					t.Fatal(err)
				}
				book := ledger.NewMemory()
				e := engine.New(book, &reg, nil)
				t.Cleanup(e.Close)
				s.SetFault(fault.DroppedBefore, 1)
				out, err := e.Do(t.Context(), w)
				if err != nil {
					t.Fatal(err)
				}
				for out.Status == ledger.InProgress {
					ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
					_ = e.Work(ctx, nil)
					cancel()
					rec, err := book.Get(t.Context(), "acme", out.ID)
					if err != nil {
						t.Fatal(err)
					}
					out = engine.OutcomeOf(rec)
				}
				if out.Status != want {
					t.Errorf("%s (%s), want %s", out.Status, out.Text, want)
				}
			})
		}
	}
}

// What is marked as deleted already is expunged where nothing else has changed.
func TestMarkedAlready(t *testing.T) {
	for flags, expunged := range map[string]bool{`\Deleted \Seen`: true, `\Deleted \Seen \Flagged`: false, `\Deleted`: false, `\Deleted \Seen later`: false} {
		s := newScript(t, with("UID FETCH", answer(`* 1 FETCH (UID 7 MODSEQ (6) FLAGS (`+flags+`))`)))
		before := &connectors.Observation{Records: []connectors.Record{{Ref: "9:7", Version: "5", Fields: intent.Fields{"flags": []any{`\Seen`}, "keywords": []any{}}}}}
		_, err := s.connect(t, nil).Write(t.Context(), connectors.Request{Intent: aDelete, Before: before, Conditional: true})
		if sent := s.commands("UID STORE"); len(sent) > 0 || (len(s.commands("UID EXPUNGE")) == 1) != expunged {
			t.Errorf("%s: sent %q; expunged: want %v (%v)", flags, s.commands(""), expunged, err)
		}
		if !expunged {
			conflict(t, err, flags)
		}
	}
}
