package jira_test

import (
	"errors"
	"testing"

	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
)

// FuzzReference: any reference that is taken finds its own issue and no other,
// whatever would be a query in it.
func FuzzReference(f *testing.F) {
	for _, seed := range []string{"invoice-7721", `a"OR(project="OPS")`, `"`, `\`, `\"OR(labels="decoy`, "decoy", "DECOY", "grün", "𝒳", `x\u0022`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, reference string) {
		s := fakejira.New(fakejira.Options{})
		for _, labels := range [][]any{{"decoy"}, {"decoy", "other"}, {}} {
			if _, err := s.Seed("OPS", map[string]any{"summary": "decoy", "labels": labels}); err != nil {
				t.Fatal(err)
			}
		}
		c := connect(t, s, func(o *jira.Options) { o.Deployment = jira.Cloud })
		in := named(intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Create,
			Key: intent.Fields{"project": "OPS", "reference": reference}, Expect: intent.Fields{"summary": "ours"}, Payload: intent.Fields{"issuetype": "Task"}}, 1)
		if in.Validate() != nil {
			return // the engine would not take it
		}
		before, err := c.Read(t.Context(), query(in))
		if err != nil {
			if !errors.Is(err, jira.ErrIntent) || s.Sends() > 0 {
				t.Fatal(err)
			}
			return
		}
		if want := map[string]int{"decoy": 2, "other": 1}[reference]; len(before.Records) != want {
			t.Fatalf("%q finds %d records before the create, want %d", reference, len(before.Records), want)
		}
		if _, err := c.Write(t.Context(), request(in, &before)); err != nil {
			t.Fatal(err)
		}
		if o := read(t, c, in); len(o.Records) != len(before.Records)+1 {
			t.Errorf("%q finds %d records after the create", reference, len(o.Records))
		}
	})
}
