package imap_test

import (
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/intent"
	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
)

func conditionalUpdate(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	uid := d.deliver("INBOX", "Message-ID: <cond@x>", "old")
	w := on(intent.Update, "<cond@x>", intent.Fields{"flags": []any{`\Flagged`}})
	before := d.read(w, "")
	r := connectors.Request{Intent: w, Before: &before, Conditional: true}
	receipt, err := d.c.Write(t.Context(), r)
	if err != nil {
		t.Fatalf("nothing has changed it: %v", err)
	}
	after := d.one(w)
	if receipt.Version != after.Version || after.Version == before.Records[0].Version {
		t.Errorf("versions: before %q, receipt %q, after %q; want the last two alike", before.Records[0].Version, receipt.Version, after.Version)
	}
	if !same("keywords", []any{"old"}, after.Fields["keywords"]) {
		t.Errorf("keywords %v, want the one that was there: the write did not speak of it", after.Fields["keywords"])
	}
	_, err = d.c.Write(t.Context(), r)
	conflict(t, err, "the first write has changed the message")
	if err := s.Mark("INBOX", uid, `\Answered`); err != nil {
		t.Fatal(err)
	}
	changed := d.one(w)
	r.Before = &connectors.Observation{Records: []connectors.Record{after}}
	_, err = d.c.Write(t.Context(), r)
	conflict(t, err, "another actor has changed the message")
	if now := d.one(w); now.Version != changed.Version {
		t.Errorf("version %q, want it as another actor left it, %q", now.Version, changed.Version)
	}
}

func conditionalDelete(t *testing.T, s *fakeimap.Server) {
	d := newHarness(t, s)
	uid := d.deliver("INBOX", "Message-ID: <cond@x>")
	w := on(intent.Delete, "<cond@x>", nil)
	before := d.read(w, "")
	if err := s.Mark("INBOX", uid, `\Seen`); err != nil {
		t.Fatal(err)
	}
	_, err := d.c.Write(t.Context(), connectors.Request{Intent: w, Before: &before, Conditional: true})
	conflict(t, err, "another client has read it")
	if flags := d.messages("INBOX")[0].Flags; len(flags) != 1 {
		t.Errorf("flags %v, want \\Seen alone: a refused delete leaves no mark", flags)
	}
	before = d.read(w, "")
	if _, err := d.c.Write(t.Context(), connectors.Request{Intent: w, Before: &before, Conditional: true}); err != nil {
		t.Fatal(err)
	}
	d.count("INBOX", 0, "nothing has changed it since")
}

func probeCondStore(t *testing.T, s *fakeimap.Server) {
	if err := connect(t, s, func(o *imap.Options) { o.CondStore = true }).Probe(t.Context()); err != nil {
		t.Errorf("Dovecot has CONDSTORE and UIDPLUS: %v", err)
	}
}
