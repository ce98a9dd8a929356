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

func TestPaperNext(t *testing.T) {
	have := ledger.Paper{Tenant: "a", Kind: "k", ID: "i", Binder: "b", Subject: "s", Trace: "t", State: "old",
		Due: earlier, Body: json.RawMessage("1"), Version: 3, Created: earlier, Updated: earlier}
	berlin := time.FixedZone("", 3600)
	p := ledger.Paper{Tenant: "a", Kind: "k", ID: "i", Binder: "B", Subject: "S", Trace: "T", State: "new",
		Due: at.In(berlin), Done: true, Body: json.RawMessage("2")}
	first := p
	first.Version, first.Due, first.Created, first.Updated, first.Now = 1, at, at, at, at
	over := first
	over.Binder, over.Subject, over.Trace, over.Version, over.Created = "b", "s", "t", 4, earlier
	for name, c := range map[string]struct {
		reason  string
		version int64
		have    ledger.Paper
		want    ledger.Paper
	}{
		"new":             {"it begins now", 0, ledger.Paper{}, first},
		"over the last":   {"what it belongs to and when it came never changes", 3, have, over},
		"over an older":   {"somebody else was quicker", 2, have, ledger.Paper{}},
		"over a newer":    {"it was never read", 4, have, ledger.Paper{}},
		"there already":   {"it is not new", 0, have, ledger.Paper{}},
		"no longer there": {"nor is it there by chance", 1, ledger.Paper{}, ledger.Paper{}},
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

func TestFilingCheck(t *testing.T) {
	paper := func(change func(*ledger.Paper)) ledger.Paper {
		p := ledger.Paper{Tenant: "a", Kind: "k", ID: "i", Body: json.RawMessage("{}")}
		if change != nil {
			change(&p)
		}
		return p
	}
	other := paper(func(p *ledger.Paper) { p.ID = "other" })
	many := func(n int) (f ledger.Filing) { f.Append = make([]ledger.Appending, n); return f }
	for name, c := range map[string]struct {
		reason string
		filing ledger.Filing
		says   string // "": nothing is wrong
	}{
		"nothing":       {"a filing of nothing is a mistake", ledger.Filing{}, "0 parts"},
		"a reservation": {"is enough", ledger.Filing{Reserve: &ledger.Reservation{}}, ""},
		"one unchanged": {"likewise: it asks whether something still is so", ledger.Filing{Unchanged: []ledger.Paper{paper(nil)}}, ""},
		"the most":      {"others wait for it", many(100), ""},
		"too many":      {"others wait for it", many(101), "101 parts"},
		"two papers":    {"are two", ledger.Filing{Papers: []ledger.Paper{paper(nil), other}}, ""},
		"one twice":     {"which of them should stand?", ledger.Filing{Papers: []ledger.Paper{paper(nil), other, paper(nil)}}, "twice"},
		"written and unchanged": {"it is one or the other",
			ledger.Filing{Papers: []ledger.Paper{paper(nil)}, Unchanged: []ledger.Paper{paper(nil)}}, "twice"},
		"no body":           {"null is something else", ledger.Filing{Papers: []ledger.Paper{paper(func(p *ledger.Paper) { p.Body = nil })}}, "no JSON"},
		"half a body":       {"half a document is none", ledger.Filing{Papers: []ledger.Paper{paper(func(p *ledger.Paper) { p.Body = []byte("{") })}}, "no JSON"},
		"body not in UTF-8": {"not every database keeps it", ledger.Filing{Papers: []ledger.Paper{paper(func(p *ledger.Paper) { p.Body = []byte("\"\xff\"") })}}, "UTF-8"},
		"unchanged, no body": {"of those only the name and the version count",
			ledger.Filing{Unchanged: []ledger.Paper{paper(func(p *ledger.Paper) { p.Body = nil })}}, ""},
		"unchanged, no name": {"but those do", ledger.Filing{Unchanged: []ledger.Paper{paper(func(p *ledger.Paper) { p.Tenant = "" })}}, "tenant"},
		"no kind":            {"every paper has one", ledger.Filing{Papers: []ledger.Paper{paper(func(p *ledger.Paper) { p.Kind = "" })}}, "kind"},
		"no id":              {"likewise", ledger.Filing{Papers: []ledger.Paper{paper(func(p *ledger.Paper) { p.ID = "" })}}, "id"},
		"long id":            {"names are bounded", ledger.Filing{Papers: []ledger.Paper{paper(func(p *ledger.Paper) { p.ID = strings.Repeat("i", 601) })}}, "601 bytes"},
		"below zero":         {"a version is one that was read", ledger.Filing{Papers: []ledger.Paper{paper(func(p *ledger.Paper) { p.Version = -1 })}}, "version"},
	} {
		err := c.filing.Check()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want %q; reason: %s", name, err, c.says, c.reason)
		}
	}
}

func TestForgetsPaper(t *testing.T) {
	p := ledger.Prune{Keep: time.Hour, Remember: 2 * time.Hour}
	for name, c := range map[string]struct {
		reason string
		paper  ledger.Paper
		want   bool
	}{
		"done":     {"it is over", ledger.Paper{Done: true, Updated: at.Add(-2 * time.Hour)}, true},
		"of late":  {"somebody may still ask", ledger.Paper{Done: true, Updated: at.Add(-2*time.Hour + 1)}, false},
		"not done": {"it goes on", ledger.Paper{Updated: at.Add(-1000 * time.Hour)}, false},
		"due":      {"somebody is to look at it", ledger.Paper{Done: true, Updated: at.Add(-1000 * time.Hour), Due: earlier}, false},
	} {
		if got := p.ForgetsPaper(c.paper, at); got != c.want {
			t.Errorf("%s: %v, want %v; reason: %s", name, got, c.want, c.reason)
		}
	}
	for _, c := range []struct {
		binder, id string
		want       bool
	}{{"w", "w", true}, {"w", "s", false}, {"", "", false}, {"", "w", false}} {
		if got := (ledger.Paper{Binder: c.binder, ID: c.id}).Covers(); got != c.want {
			t.Errorf("binder %q, id %q: covers %v", c.binder, c.id, got)
		}
	}
}
