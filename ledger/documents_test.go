package ledger_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/readback-go/readback/ledger"
)

func TestDocumentNext(t *testing.T) {
	have := ledger.Document{Tenant: "a", Kind: "k", ID: "i", Collection: "b", Subject: "s", Trace: "t", State: "old",
		Due: earlier, Body: json.RawMessage("1"), Version: 3, Created: earlier, Updated: earlier}
	berlin := time.FixedZone("", 3600)
	p := ledger.Document{Tenant: "a", Kind: "k", ID: "i", Collection: "B", Subject: "S", Trace: "T", State: "new",
		Due: at.In(berlin), Done: true, Body: json.RawMessage("2")}
	first := p
	first.Version, first.Due, first.Created, first.Updated, first.Now = 1, at, at, at, at
	over := first
	over.Collection, over.Subject, over.Trace, over.Version, over.Created = "b", "s", "t", 4, earlier
	for name, c := range map[string]struct {
		reason  string
		version int64
		have    ledger.Document
		want    ledger.Document
	}{
		"new":             {"it begins now", 0, ledger.Document{}, first},
		"over the last":   {"what it belongs to and when it came never changes", 3, have, over},
		"over an older":   {"another actor was quicker", 2, have, ledger.Document{}},
		"over a newer":    {"it was never read", 4, have, ledger.Document{}},
		"there already":   {"it is not new", 0, have, ledger.Document{}},
		"no longer there": {"nor is it there by chance", 1, ledger.Document{}, ledger.Document{}},
	} {
		mine := p
		mine.Version = c.version
		got, err := mine.Next(c.have, at)
		if c.want.Version == 0 {
			if !errors.Is(err, ledger.ErrStale) || !cmp.Equal(mine, got) {
				t.Errorf("%s: %+v, error %v; want stale; reason: %s", name, got, err, c.reason)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil || got.Due.Location() != time.UTC {
			t.Errorf("%s: error %v (-want +got):\n%s\nreason: %s", name, err, diff, c.reason)
		}
		if got.Body[0] = 'x'; mine.Body[0] == 'x' {
			t.Errorf("%s: the body is the caller's memory", name)
		}
	}
}

func TestBatchCheck(t *testing.T) {
	document := func(change func(*ledger.Document)) ledger.Document {
		p := ledger.Document{Tenant: "a", Kind: "k", ID: "i", Body: json.RawMessage("{}")}
		if change != nil {
			change(&p)
		}
		return p
	}
	other := document(func(p *ledger.Document) { p.ID = "other" })
	many := func(n int) (f ledger.Batch) { f.Append = make([]ledger.Appending, n); return f }
	for name, c := range map[string]struct {
		reason string
		batch  ledger.Batch
		says   string // "": nothing is wrong
	}{
		"nothing":       {"a batch of nothing is a mistake", ledger.Batch{}, "0 parts"},
		"a reservation": {"is enough", ledger.Batch{Reserve: &ledger.Reservation{}}, ""},
		"one unchanged": {"likewise: it asks whether something still is so", ledger.Batch{Unchanged: []ledger.Document{document(nil)}}, ""},
		"the most":      {"others wait for it", many(100), ""},
		"too many":      {"others wait for it", many(101), "101 parts"},
		"two documents": {"are two", ledger.Batch{Documents: []ledger.Document{document(nil), other}}, ""},
		"one twice":     {"which of them should stand?", ledger.Batch{Documents: []ledger.Document{document(nil), other, document(nil)}}, "twice"},
		"written and unchanged": {"it is one or the other",
			ledger.Batch{Documents: []ledger.Document{document(nil)}, Unchanged: []ledger.Document{document(nil)}}, "twice"},
		"no body":           {"null is something else", ledger.Batch{Documents: []ledger.Document{document(func(p *ledger.Document) { p.Body = nil })}}, "no JSON"},
		"half a body":       {"half a document is none", ledger.Batch{Documents: []ledger.Document{document(func(p *ledger.Document) { p.Body = []byte("{") })}}, "no JSON"},
		"body not in UTF-8": {"not every database keeps it", ledger.Batch{Documents: []ledger.Document{document(func(p *ledger.Document) { p.Body = []byte("\"\xff\"") })}}, "UTF-8"},
		"unchanged, no body": {"of those only the name and the version count",
			ledger.Batch{Unchanged: []ledger.Document{document(func(p *ledger.Document) { p.Body = nil })}}, ""},
		"unchanged, no name": {"but those do", ledger.Batch{Unchanged: []ledger.Document{document(func(p *ledger.Document) { p.Tenant = "" })}}, "tenant"},
		"no kind":            {"every document has one", ledger.Batch{Documents: []ledger.Document{document(func(p *ledger.Document) { p.Kind = "" })}}, "kind"},
		"no id":              {"likewise", ledger.Batch{Documents: []ledger.Document{document(func(p *ledger.Document) { p.ID = "" })}}, "id"},
		"long id":            {"names are bounded", ledger.Batch{Documents: []ledger.Document{document(func(p *ledger.Document) { p.ID = strings.Repeat("i", 601) })}}, "601 bytes"},
		"below zero":         {"a version is one that was read", ledger.Batch{Documents: []ledger.Document{document(func(p *ledger.Document) { p.Version = -1 })}}, "version"},
	} {
		err := c.batch.Check()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want %q; reason: %s", name, err, c.says, c.reason)
		}
	}
}

func TestForgetsDocument(t *testing.T) {
	p := ledger.Prune{Keep: time.Hour, Remember: 2 * time.Hour}
	for name, c := range map[string]struct {
		reason   string
		document ledger.Document
		want     bool
	}{
		"done":     {"it is over", ledger.Document{Done: true, Updated: at.Add(-2 * time.Hour)}, true},
		"of late":  {"another actor may still ask", ledger.Document{Done: true, Updated: at.Add(-2*time.Hour + 1)}, false},
		"not done": {"it continues", ledger.Document{Updated: at.Add(-1000 * time.Hour)}, false},
		"due":      {"it is due for a check", ledger.Document{Done: true, Updated: at.Add(-1000 * time.Hour), Due: earlier}, false},
	} {
		if got := p.ForgetsDocument(c.document, at); got != c.want {
			t.Errorf("%s: %v, want %v; reason: %s", name, got, c.want, c.reason)
		}
	}
	for _, c := range []struct {
		collection, id string
		want           bool
	}{{"w", "w", true}, {"w", "s", false}, {"", "", false}, {"", "w", false}} {
		if got := (ledger.Document{Collection: c.collection, ID: c.id}).Covers(); got != c.want {
			t.Errorf("collection %q, id %q: covers %v", c.collection, c.id, got)
		}
	}
}
