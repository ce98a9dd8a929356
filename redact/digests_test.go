package redact

import (
	"fmt"
	"slices"
	"testing"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// A search by a text finds the sealed values that are that text, or that number, of the same tenant
// and under every key, and only those.
func TestDigestsFindSealedValues(t *testing.T) {
	before := vault(t, []Key{key("k1", 1)})
	now := vault(t, []Key{key("k2", 2), key("k1", 1)})
	w := sample(t)
	w.Key = intent.Fields{"iban": "DE02", "line": fields(t, `{"n":17}`)["n"], "digits": "017"}
	w.Expect, w.Payload, w.Context = intent.Fields{"state": "open"}, nil, nil
	w.Sensitive = []string{"/iban", "/line", "/digits"}
	for _, sealing := range []*Vault{before, now} {
		stored, err := sealing.Scope("acme", "wr_1").SealIntent(w)
		if err != nil {
			t.Fatal(err)
		}
		r := ledger.Record{Tenant: "acme", Workflow: "wf-1", Intent: stored}
		for text, want := range map[string]string{"DE02": "/key/iban", "17": "/key/line", "017": "/key/digits", "wf": "workflow",
			"de02": "", "DE0": "", "DE021": "", "1": "", "17.0": "/key/line", "true": "", "{}": ""} {
			s := ledger.Search{Query: text, QueryDigests: now.Digests("acme", text)}
			if got := s.Matched(r); fmt.Sprint(got) != fmt.Sprint(slices.DeleteFunc([]string{want}, func(f string) bool { return f == "" })) {
				t.Errorf("%q matches %v, want %q", text, got, want)
			}
			for name, others := range map[string][]string{"none": nil, "of another tenant": now.Digests("other", text)} {
				s.QueryDigests = others
				if got := s.Matched(r); len(got) > 0 && got[0] != "workflow" {
					t.Errorf("%q with digests %s matches %v", text, name, got)
				}
			}
		}
	}
	if got := (*Vault)(nil).Digests("acme", "DE02"); got != nil {
		t.Errorf("no vault has digests %v", got)
	}
}
