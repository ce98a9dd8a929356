package mail_test

import (
	"slices"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mail"
	"github.com/readback-go/readback/intent"
)

// TestSheets: every topic has a claim, every claim a source, and unpublished numbers are marked.
func TestSheets(t *testing.T) {
	for _, s := range mail.Sheets() {
		t.Run(s.Name, func(t *testing.T) {
			claimed := map[connectors.Topic]int{}
			for _, c := range s.Claims {
				claimed[c.About]++
				if c.Says == "" || c.Source == "" {
					t.Errorf("%+v: want words and a source", c)
				}
				if c.About == connectors.TopicSettle && !c.Assumed {
					t.Errorf("%q is published nowhere; want it marked as assumed", c.Says)
				}
			}
			for _, topic := range connectors.Topics() {
				if claimed[topic] == 0 {
					t.Errorf("no claim about %s", topic)
				}
			}
			p := s.Profile
			if !slices.Equal(p.Irreversible, []intent.WriteType{intent.Create}) || len(p.Unique)+len(p.NativeWindow)+len(p.Conditional)+len(p.Undo) > 0 {
				t.Errorf("the profile is %+v; want create irreversible, and nothing that would make a second send harmless", p)
			}
			for _, path := range p.Reads {
				if path.Strength != connectors.Weak {
					t.Errorf("%+v; a mail comes into the mailbox later, so no read is strong", path)
				}
			}
		})
	}
}
