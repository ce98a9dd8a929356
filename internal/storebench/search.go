package storebench

import (
	"fmt"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
)

// Search measures what people ask of a ledger with a long history, whose writes
// are named after their numbers: each way to find one write, a page of those that
// nothing narrows, a page without a hit, and the plot of all changes.
func Search(b *testing.B, filled func(b *testing.B, rows int) ledger.Ledger) {
	rows := Histories(b)
	l := filled(b, rows)
	name := fmt.Sprint("model-", rows/2)
	sought, err := l.Find(b.Context(), ledger.Search{Tenant: "acme", Workflow: name})
	if err != nil || len(sought.Records) != 1 {
		b.Fatalf("%d writes of workflow %s, unread %v, error %v", len(sought.Records), name, sought.Unread, err)
	}
	one := sought.Records[0]
	for what, s := range map[string]ledger.Search{
		"workflow": {Workflow: name}, "operation": {IdempotencyKey: one.IdempotencyKey}, "key": {KeyDigest: one.KeyDigest},
		"text": {Query: name}, "sealed text": {Query: "ann@example.com", QueryDigests: []string{"hmac:k:0"}},
		"text of many": {Query: "model-"}, "text of none": {Query: "A-1042"}, "id": {Query: string(one.ID)[:12]},
		"newest": {}, "oldest": {Oldest: true}, "settled": {Settlements: []ledger.Status{ledger.Verified}},
		"no hit": {Destination: "nowhere"},
	} {
		s.Tenant = "acme"
		b.Run(fmt.Sprintf("rows=%d/%s", rows, what), func(b *testing.B) {
			found := 0
			b.ReportAllocs()
			for b.Loop() {
				page, err := l.Find(b.Context(), s)
				if err != nil || len(page.Unread) > 0 {
					b.Fatal(page.Unread, err)
				}
				found = len(page.Records)
			}
			b.ReportMetric(float64(found), "found")
		})
	}
	b.Run(fmt.Sprintf("rows=%d/history", rows), func(b *testing.B) {
		q := ledger.Past{Tenant: "acme", Since: one.Created.Add(-time.Hour), Until: one.Created.Add(7 * 24 * time.Hour), Step: time.Hour}
		for b.Loop() {
			if _, err := l.History(b.Context(), q); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run(fmt.Sprintf("rows=%d/follow", rows), func(b *testing.B) {
		for b.Loop() {
			if _, _, err := l.Follow(b.Context(), ledger.Following{Tenant: "acme"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
