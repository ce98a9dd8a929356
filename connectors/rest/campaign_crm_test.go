package rest_test

import (
	"fmt"

	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/readbacktest/fault"
)

func init() {
	own := []string{"readback_key", "readback_stamp"}
	for kind, k := range map[string]struct {
		collection string
		expect     func(n int) intent.Fields
		text       string // the field that updates change
	}{
		"deal":    {"deals", func(n int) intent.Fields { return intent.Fields{"dealname": fmt.Sprint("Deal ", n), "amount": "900"} }, "dealname"},
		"company": {"companies", func(n int) intent.Fields { return intent.Fields{"name": fmt.Sprint("Acme ", n), "city": "Graz"} }, "name"},
		"note": {"notes", func(n int) intent.Fields {
			return intent.Fields{"hs_timestamp": "2026-01-01T00:00:00Z", "hs_note_body": fmt.Sprint("Called, ", n)}
		}, "hs_note_body"},
	} {
		destinations["hubspot-objects/"+kind] = destination{
			kind: kind, secrets: map[string]string{"token": "pat-readback"}, collection: k.collection, native: true,
			open: func() *fakerest.Fake {
				h := fakerest.NewHubSpot("pat-readback", nil, nil)
				for _, name := range []string{"deals", "companies", "notes"} {
					h.Type(name, own, own)
				}
				return h.Fake
			},
			create: func(n int) intent.WriteIntent {
				return intent.WriteIntent{Key: intent.Fields{"readback_key": fmt.Sprintf("crm-%03d", n)}, Expect: k.expect(n)}
			},
			traits: traits{spoils: "properties." + k.text, lacks: map[string]string{
				string(fault.LaggingRead):            "objects are read by id or unique value alone, which does not lag",
				string(fault.DuplicateBehindOurBack): "keys are unique",
			}},
			record: contactRecord, update: intent.Fields{k.text: "changed"},
			alter: func(o fakerest.Object) { setContact(o, intent.Fields{k.text: "by hand"}) },
			other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // the same values, and our key if taken
				f.Put(k.collection, func(now fakerest.View) (string, fakerest.Object) {
					id, fields := fmt.Sprint(900_000+now.Next()), map[string]any(k.expect(n))
					if taken {
						fields["readback_key"] = w.Key["readback_key"]
					}
					return id, fakerest.Object{"id": id, "archived": false, "properties": fields}
				})
			},
		}
	}
}
