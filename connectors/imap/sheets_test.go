package imap_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/imap"
	"github.com/readback-go/readback/intent"
)

// TestSheets: each topic has a claim with a source, and an unpublished number is marked.
func TestSheets(t *testing.T) {
	systems := map[string]bool{}
	for _, s := range imap.Sheets() {
		if s.Name == "" || s.Type != "imap" || len(s.Profile.Reads) == 0 || systems[s.System+s.Kind] {
			t.Errorf("sheet %+v is not whole, or there is another of its system and kind", s)
		}
		systems[s.System+s.Kind] = true
		for _, topic := range connectors.Topics() {
			i := slices.IndexFunc(s.Claims, func(c connectors.Claim) bool { return c.About == topic })
			if i < 0 || s.Claims[i].Says == "" || s.Claims[i].Source == "" {
				t.Errorf("%s: nothing with a source about %s", s.Name, topic)
			}
			if topic == connectors.TopicHorizon && i >= 0 && !s.Claims[i].Assumed {
				t.Errorf("%s: the horizon is a number of ours, and is not marked as one", s.Name)
			}
		}
	}
}

// TestSamples: a sample has a configured mailbox, and a name.
func TestSamples(t *testing.T) {
	o := imap.Options{Addr: "127.0.0.1:1", Username: "u", Password: func(context.Context) (string, error) { return "p", nil }, Mailbox: "Samples"}
	c := connectTo(t, o, nil)
	one, two := sampleOf(t, c, intent.Create, "a1"), sampleOf(t, c, intent.Create, "a2")
	if one.Key["message_id"] == two.Key["message_id"] || one.Key["mailbox"] != "Samples" {
		t.Errorf("keys %v and %v; want two in the mailbox of the options", one.Key, two.Key)
	}
	for _, w := range []intent.WriteType{intent.Update, intent.Delete} {
		if in := sampleOf(t, c, w, "a1"); in.Key["message_id"] != one.Key["message_id"] {
			t.Errorf("the %s is of %v, want the key of the create", w, in.Key)
		}
	}
	none := connectTo(t, o, func(o *imap.Options) { o.Mailbox = "" })
	if _, err := none.Sample(imap.KindNamed, intent.Create, "a1"); !errors.Is(err, imap.ErrOptions) {
		t.Errorf("without a mailbox: %v, want an error about the options", err)
	}
	for name, bad := range map[string]struct {
		kind, name string
		write      intent.WriteType
	}{
		"kind":  {imap.KindMessage, "a1", intent.Create},
		"name":  {imap.KindNamed, "a 1", intent.Create},
		"write": {imap.KindNamed, "a1", intent.Upsert},
	} {
		if in, err := c.Sample(bad.kind, bad.write, bad.name); err == nil {
			t.Errorf("%s: the sample is %+v, want an error", name, in)
		}
	}
}

func sampleOf(t *testing.T, c *imap.Connector, w intent.WriteType, name string) intent.WriteIntent {
	t.Helper()
	in, err := c.Sample(imap.KindNamed, w, name)
	if err != nil {
		t.Fatal(err)
	}
	in.Tenant, in.Workflow, in.Tool, in.Destination = "t", "w", "probe", "mail"
	if err := in.Validate(); err != nil {
		t.Fatalf("the sample is no intent that could be accepted: %v", err)
	}
	return in
}
