package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// beside records a write of a tenant whose ID has these digits, then zeros.
func (p *place) beside(tenant, workflow, digits string) string {
	p.t.Helper()
	l, err := sqlite.Open(p.t.Context(), p.ledger, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	key := digits + strings.Repeat("0", 64-len(digits))
	rec := ledger.Record{ID: ledger.IDOf(key), StructuralKey: key, Tenant: tenant, Workflow: workflow, Intent: []byte("{}"), RequestedBy: "agent"}
	rec, _, err = l.Reserve(p.t.Context(), ledger.Reservation{Record: rec, Events: []ledger.Event{{Kind: ledger.EvHeld, By: "agent", Rule: "risk"}}})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		p.t.Fatal(err)
	}
	return string(rec.ID)
}

func TestShortIDs(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	write := id(t, p.submit(exitReview, order("A-1", `,"risk":"approve"`)))
	digits := strings.TrimPrefix(write, "wr_")
	p.beside("other", "w", digits[:12])             // another tenant's
	p.beside("acme", write[:10], "fedcba98"+"abcd") // found by its workflow
	is := func(r result) {
		t.Helper()
		if answer := decode(t, r); answer["record"].(map[string]any)["id"] != write {
			t.Errorf("another write: %s", r.out)
		}
	}
	for _, text := range []string{write, write[:7], write[:11], strings.ToUpper(write[:11])} {
		is(p.want(0, p.run("show", text, "--json")))
	}
	for _, text := range []string{"wr_", write[:6], "wr_0000", digits[:8], write + "0", "a-1"} {
		says(t, p.want(exitRefused, p.run("show", text)), text, "`readback list` shows them")
	}

	t.Run("ambiguous", func(t *testing.T) {
		var all []string
		for i := range 6 {
			all = append(all, p.beside("acme", "w", digits[:8]+fmt.Sprintf("%x", (i+int(digits[8]))%16)+"5e"))
		}
		for _, line := range []string{"show ID", "resume ID", "receipt export ID", "receipt export ID --final", "list --before ID",
			"review ID approve --by ann --reason seen", "operation release --id ID --by ann --reason seen",
			"erase --write ID --reason x --yes", "hold add --write ID --reason x"} {
			t.Run(line, func(t *testing.T) {
				r := p.want(exitUsage, p.run(strings.Fields(strings.ReplaceAll(line, "ID", write[:9]))...))
				says(t, r, "more than one write ID", "and others")
				if n := strings.Count(r.err, "\n  wr_"); n != maxCandidates {
					t.Errorf("%d candidates, want %d: %s", n, maxCandidates, r.err)
				}
			})
		}
		p.effects(0, "A-1")
		if r := p.want(0, p.run("hold", "list")); strings.Contains(r.out, "wr_") {
			t.Errorf("a hold of one of several: %s", r.out)
		}
		r := p.want(0, p.run("list"))
		if strings.Contains(r.out, write) || !strings.Contains(r.out, "wr_fedcba98  ") {
			t.Errorf("want the shortest beginnings of 8 digits and more:\n%s", r.out)
		}
		for line := range strings.Lines(r.out) {
			if short, _, _ := strings.Cut(line, " "); strings.HasPrefix(short, "wr_") {
				p.want(0, p.run("show", short))
			}
		}
		if r := p.want(0, p.run("list", "--json")); !strings.Contains(r.out, write) || !strings.Contains(r.out, all[0]) {
			t.Errorf("--json has whole IDs:\n%s", r.out)
		}
	})

	t.Run("decided", func(t *testing.T) {
		short := write[:14]
		says(t, p.want(exitVerified, p.run("review", short, "approve", "--by", "ann", "--reason", "seen")), write)
		p.effects(1, "A-1")
		is(p.want(0, p.run("show", short, "--json")))
	})
}
