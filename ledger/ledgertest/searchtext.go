package ledgertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// textFinds searches by text, and wants these writes in the order of their creation.
func (h *harness) textFinds(tenant, query string, want ...ledger.Record) {
	h.Helper()
	for i, r := range want {
		want[i] = h.get(r)
	}
	h.meets(ledger.Search{Tenant: tenant, Query: query}, want)
}

// keyed is a write about a record with this business key.
func (h *harness) keyed(tenant, workflow string, key intent.Fields, events ...ledger.Event) ledger.Record {
	h.Helper()
	w := wish(tenant, workflow)
	w.Key = key
	return h.fresh(w, events...)
}

// sealedText is a value as package redact seals it, with a digest that ends with n.
func sealedText(n int) (value, digest string) {
	digest = fmt.Sprintf("%064x", n)
	return "rbs1:key-1:" + digest + ":" + strings.Repeat("A", 38+n%2), intent.KeyedDigest("key-1", digest)
}

var searchTexts = map[string]scenario{
	"what users know": {
		"an order number, an address, a reference of the destination, a workflow, an idempotency key or an id finds its write, whole or begun",
		func(h *harness) {
			w := named("a", "refunds/2026", "invoice-7721")
			w.Key = intent.Fields{"number": "A-1042", "line": json.Number("17"), "who": map[string]any{"mail": "ann@example.com"}}
			rec := h.append(h.fresh(w, announced), ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Ref: "ord_000093"}, seen, verified)
			h.keyed("a", "another", intent.Fields{"number": "B-1042"})
			for query, field := range map[string]string{
				"A-1042": "/key/number", "A-10": "/key/number", "17": "/key/line", "ann@example.com": "/key/who/mail", "ann@": "/key/who/mail",
				"refunds/2026": "workflow", "refunds": "workflow", "invoice-7721": "idempotency_key", "invoice": "idempotency_key",
				"ord_000093": "ref", "ord_": "ref", string(rec.ID): "id", string(rec.ID)[:9]: "id", " A-1042\n": "/key/number",
			} {
				h.textFinds("a", query, rec)
				if got := (ledger.Search{Query: query}).Matched(h.get(rec)); !slices.Equal(got, []string{field}) {
					h.Errorf("%q matches %v, want %s", query, got, field)
				}
			}
			for _, query := range []string{"1042", "A-10422", "nn@example.com", "open", "shop", "wr_", string(rec.ID)[:6], string(rec.ID)[3:]} {
				h.textFinds("a", query)
			}
		},
	},
	"case": {
		"an address is found however it is capitalised, also in other scripts",
		func(h *harness) {
			rec := h.keyed("a", "Night-Run", intent.Fields{"mail": "Ann.Ä@Example.com", "name": "ΜΑΡΊΑ Ünal", "city": "東京都"})
			for _, query := range []string{"ann.ä@example.com", "ANN.Ä@", "μαρία ü", "東京", "night-RUN", "NIGHT", strings.ToUpper(string(rec.ID))} {
				h.textFinds("a", query, rec)
			}
			h.textFinds("a", "ann.a@")
		},
	},
	"literally": {
		"what means something to a database is a character like any other",
		func(h *harness) {
			all := make(map[string]ledger.Record)
			for i, text := range []string{"%", "_", "*", "a%b", "a_b", "axb", `a\b`, "a'b", ".*", "[a]", "a\U0010FFFF", "a\uD7FF", "a\uE000", "=#", "#=", strings.Repeat("𝄞", 40)} {
				all[text] = h.keyed("a", fmt.Sprint("w", i), intent.Fields{"number": text})
			}
			for text, rec := range all {
				h.textFinds("a", text, rec)
			}
			h.textFinds("a", "' OR 1=1 --")
			h.textFinds("a", "%b")
			h.textFinds("a", "a\U0010FFFFb")
		},
	},
	"tenants": {
		"no tenant finds a write of another one by any text",
		func(h *harness) {
			w := named("a", "w1", "invoice")
			w.Key = intent.Fields{"number": "A-1"}
			mine := h.append(h.fresh(w, announced), sent)
			w.Tenant = "b"
			theirs := h.append(h.fresh(w, announced), sent)
			for _, query := range []string{"A-1", "w1", "invoice", "17"} {
				h.textFinds("a", query, mine)
				h.textFinds("b", query, theirs)
				h.textFinds("ab", query)
			}
			h.textFinds("b", string(mine.ID))
			h.textFinds("b", string(mine.ID)[:12])
		},
	},
	"sealed": {
		"a sealed value is found by its whole digest, which only a holder of the key can make, and by nothing else",
		func(h *harness) {
			value, digest := sealedText(1)
			other, _ := sealedText(2)
			rec := h.keyed("a", "w1", intent.Fields{"mail": value})
			h.keyed("a", "w2", intent.Fields{"mail": other})
			h.keyed("b", "w1", intent.Fields{"mail": value})
			s := ledger.Search{Tenant: "a", Query: "ann@example.com", QueryDigests: []string{digest}}
			h.meets(s, []ledger.Record{h.get(rec)})
			if got := s.Matched(h.get(rec)); !slices.Equal(got, []string{"/key/mail"}) {
				h.Errorf("it matches %v, want /key/mail", got)
			}
			for _, cut := range []string{digest[:len(digest)-1], digest + "0", strings.ToUpper(digest), value, ""} {
				s.QueryDigests = []string{cut}
				h.meets(s, nil)
			}
			for _, query := range []string{value, "rbs1:", digest, "hmac:", "#hmac", "key-1"} {
				h.textFinds("a", query)
			}
		},
	},
	"a ref that comes later": {
		"a write is found by the ref that its destination gave, from then on, and by no earlier one",
		func(h *harness) {
			rec := h.keyed("a", "w1", intent.Fields{"number": "A-1"}, announced)
			h.textFinds("a", "ord_")
			h.append(rec, ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateAnswered, Ref: "ord_1"})
			h.textFinds("a", "ord_1", rec)
			h.append(rec, ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Ref: "ord_2"}, verified)
			h.textFinds("a", "ord_2", rec)
			h.textFinds("a", "ord_1")
		},
	},
	"a business key without texts": {
		"what is no text or number is no term, and long texts differ by their ends",
		func(h *harness) {
			long := strings.Repeat("é", 100)
			rec := h.keyed("a", "w1", intent.Fields{"ok": true, "none": nil, "all": []any{"x-1", json.Number("2.5")}, "nul": "a\x00b\x07c"})
			one := h.keyed("a", "w2", intent.Fields{"number": long + "1"})
			h.keyed("a", "w3", intent.Fields{"number": long + "2"})
			for query, want := range map[string]ledger.Record{"x-": rec, "2.5": rec, "abc": rec, long + "1": one} {
				h.textFinds("a", query, want)
			}
			h.textFinds("a", "true")
			h.textFinds("a", "null")
		},
	},
	"erased": {
		"what was erased of a person finds nothing any more, not even that there was something",
		func(h *harness) {
			rec, other := h.recordedOf("a", person), h.recordedOf("a", "bob@example.com")
			h.textFinds("a", person, rec)
			h.erased(h.erasure("er_1", "a", rec), ledger.Erased{Writes: 1})
			h.lost(rec)
			for _, query := range []string{person, "ada", "welcome ada", "op ada"} {
				h.textFinds("a", query)
			}
			h.textFinds("a", "bob", other)
			h.textFinds("a", string(rec.ID), rec)
		},
	},
	"pruned": {
		"a tombstone is found by its id, and not by what it was about",
		func(h *harness) {
			rec := h.done("w1")
			h.sleep(keep)
			young := h.done("w1 again")
			h.prune(0)
			h.lost(rec)
			h.textFinds("a", "w1", young)
			h.textFinds("a", "op w1", young)
			h.textFinds("a", string(rec.ID), rec)
			h.sleep(remember)
			h.prune(0)
			h.lost(young)
			h.textFinds("a", string(rec.ID))
			h.textFinds("a", "w1")
		},
	},
	"with other conditions": {
		"a text narrows a search, and is narrowed by it",
		func(h *harness) {
			all := h.shelf()
			ways := narrowed(all)
			for _, query := range []string{"w", "w1", "invoice", "17", "1", "tool"} {
				for _, of := range ways {
					for _, way := range of {
						s := ledger.Search{Tenant: "a", Query: query}
						way(&s)
						h.meets(s, selected(s, all))
					}
				}
			}
			if len(selected(ledger.Search{Tenant: "a", Query: "invoice"}, all)) < 3 {
				h.Error("too few writes are selected: the searches are of no use")
			}
		},
	},
	"many": {
		"a text that begins many terms gives pages, newest first, and one that begins a single old one finds it",
		func(h *harness) {
			old := h.keyed("a", "w", intent.Fields{"number": "old"})
			var all []ledger.Record
			for i := range 450 {
				w := wish("a", "crowd")
				w.Step, w.Key = fmt.Sprint("s", i), intent.Fields{"number": fmt.Sprint("crowd-", i)}
				rec, _, err := h.ledger.Reserve(context.Background(), h.reservation(w))
				if err != nil {
					h.Fatal(err)
				}
				if all = append(all, rec); i%200 == 0 {
					h.textFinds("a", "old", old)
				}
			}
			h.textFinds("a", "old", old)
			h.textFinds("a", "crowd-7", selected(ledger.Search{Tenant: "a", Query: "crowd-7"}, all)...)
			for _, oldest := range []bool{false, true} {
				got := ids(h.searched(ledger.Search{Tenant: "a", Query: "crowd", Limit: 200, Oldest: oldest}))
				want := ids(all)
				if !oldest {
					slices.Reverse(want)
				}
				if !slices.Equal(got, want) {
					h.Errorf("oldest first %v: %d were found, want %d in their order", oldest, len(got), len(want))
				}
			}
		},
	},
	"no text": {
		"a text of nothing but spaces is refused, and finds no one's writes",
		func(h *harness) {
			h.fresh(wish("a", "w1"))
			for _, query := range []string{" ", "\x00", "\n\t"} {
				if found, err := h.ledger.Find(context.Background(), ledger.Search{Tenant: "a", Query: query}); err == nil || found.Records != nil {
					h.Errorf("%q: %d found, error %v", query, len(found.Records), err)
				}
			}
		},
	},
}
