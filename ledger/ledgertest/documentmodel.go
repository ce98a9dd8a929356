package ledgertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/readback-go/readback/ledger"
	"pgregory.net/rapid"
)

// shelf is the plainest ledger of documents beside a real one: the machine that
// rapid drives. All its documents are of one kind, which no other shelf has.
type shelf struct {
	h         *harness
	kind      string
	documents []ledger.Document // in the order in which they came
	now       time.Time         // of the last batch
	dues      time.Duration     // grows with each due time
}

// The words that documents of a shelf are made of.
var (
	shelfTenants = []string{"a", "b"}
	shelfIDs     = []string{"1", "2", "3", "4", "5", "6"}
	shelfWords   = []string{"", "x", "y"}
)

func (s *shelf) find(tenant, id string) int {
	return slices.IndexFunc(s.documents, func(p ledger.Document) bool { return p.Tenant == tenant && p.ID == id })
}

// version is that of a document, or a wrong one.
func (s *shelf) version(t *rapid.T, tenant, id string) (version int64) {
	if i := s.find(tenant, id); i >= 0 {
		version = s.documents[i].Version
	}
	return max(0, version+rapid.SampledFrom([]int64{0, 0, 0, 0, 0, 0, 1, -1}).Draw(t, "off by"))
}

// file files some documents, perhaps over versions that are gone.
func (s *shelf) file(t *rapid.T) {
	var f ledger.Batch
	word := func(name string) string { return rapid.SampledFrom(shelfWords).Draw(t, name) }
	tenant := rapid.SampledFrom(shelfTenants).Draw(t, "tenant")
	for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(shelfIDs), 1, 3, rapid.ID).Draw(t, "ids") {
		p := ledger.Document{Tenant: tenant, Kind: s.kind, ID: id, Version: s.version(t, tenant, id)}
		if rapid.IntRange(0, 4).Draw(t, "unchanged") == 0 {
			f.Unchanged = append(f.Unchanged, p)
			continue
		}
		p.Collection, p.Subject, p.Trace, p.State = word("collection"), word("subject"), word("trace"), word("state")
		p.Done = rapid.Bool().Draw(t, "done")
		if rapid.Bool().Draw(t, "due") && !s.now.IsZero() {
			s.dues++ // no two at the same time: their order is unspecified
			in := time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "in"))
			p.Due = s.now.Add(in).Truncate(time.Microsecond).Add(s.dues)
		}
		p.Body = json.RawMessage(fmt.Sprint(rapid.Int().Draw(t, "body")))
		f.Documents = append(f.Documents, p)
	}
	stale := slices.ContainsFunc(slices.Concat(f.Documents, f.Unchanged), func(p ledger.Document) bool {
		i := s.find(p.Tenant, p.ID)
		return i < 0 && p.Version != 0 || i >= 0 && p.Version != s.documents[i].Version
	})
	did, err := s.h.ledger.Commit(context.Background(), f)
	if stale != errors.Is(err, ledger.ErrStale) || !stale && err != nil {
		t.Fatalf("file %+v: error %v, want stale %v", f, err, stale)
	}
	if err == nil {
		s.keep(t, f.Documents, did)
	}
}

// keep puts onto the shelf what was committed.
func (s *shelf) keep(t *rapid.T, asked []ledger.Document, did ledger.Committed) {
	s.now = did.Now
	for i, want := range asked {
		at := s.find(want.Tenant, want.ID)
		want.Version, want.Created, want.Updated, want.Due = want.Version+1, did.Now, did.Now, want.Due.UTC()
		if at < 0 {
			s.documents = append(s.documents, want)
		} else {
			was := s.documents[at]
			want.Collection, want.Subject, want.Trace, want.Created = was.Collection, was.Subject, was.Trace, was.Created
			s.documents[at] = want
		}
		s.equal(t, []ledger.Document{want}, []ledger.Document{did.Documents[i]})
	}
}

// query finds some documents.
func (s *shelf) query(t *rapid.T) {
	word := func(name string) string { return rapid.SampledFrom(shelfWords).Draw(t, name) }
	q := ledger.DocumentQuery{
		Tenant: rapid.SampledFrom(shelfTenants).Draw(t, "tenant"), Kind: s.kind,
		Collection: word("collection"), Subject: word("subject"), Trace: word("trace"),
		States: rapid.SliceOfN(rapid.SampledFrom(shelfWords), 0, 2).Draw(t, "states"),
		Limit:  rapid.IntRange(1, 4).Draw(t, "limit"), Offset: rapid.IntRange(0, 4).Draw(t, "offset"),
	}
	var want []ledger.Document
	for _, p := range s.documents {
		if p.Tenant == q.Tenant && (q.Collection == "" || p.Collection == q.Collection) && (q.Subject == "" || p.Subject == q.Subject) &&
			(q.Trace == "" || p.Trace == q.Trace) && (len(q.States) == 0 || slices.Contains(q.States, p.State)) {
			want = append(want, p)
		}
	}
	if q.Collection == "" {
		slices.Reverse(want)
	}
	got, total, err := s.h.ledger.FindDocuments(context.Background(), q)
	if err != nil || total != len(want) {
		t.Fatalf("find %+v: %d in all, error %v; want %d", q, total, err, len(want))
	}
	want = want[min(q.Offset, len(want)):]
	s.equal(t, want[:min(q.Limit, len(want))], got)
}

// due lets time pass and checks what is due.
func (s *shelf) due(t *rapid.T) {
	s.h.sleep(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "pass")))
	limit := rapid.IntRange(1, 5).Draw(t, "limit")
	got, now, err := s.h.ledger.DueDocuments(context.Background(), s.kind, limit)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(slices.Clone(s.documents), func(p ledger.Document) bool { return p.Due.IsZero() || p.Due.After(now) })
	slices.SortStableFunc(want, func(a, b ledger.Document) int { return cmp.Compare(a.Due.UnixNano(), b.Due.UnixNano()) })
	s.equal(t, want[:min(limit, len(want))], got)
}

func (s *shelf) equal(t *rapid.T, want, got []ledger.Document) {
	if diff := gocmp.Diff(want, got, cmpopts.IgnoreFields(ledger.Document{}, "Now"), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("documents (-want +got):\n%s", diff)
	}
}

// check reads each document by its name.
func (s *shelf) check(t *rapid.T) {
	for _, tenant := range shelfTenants {
		for _, id := range shelfIDs {
			got, err := s.h.ledger.Document(context.Background(), tenant, s.kind, id)
			i := s.find(tenant, id)
			switch {
			case i < 0 && errors.Is(err, ledger.ErrNoDocument):
			case i < 0 || err != nil:
				t.Fatalf("document %s of %s: %+v, error %v; want it there: %v", id, tenant, got, err, i >= 0)
			default:
				s.equal(t, s.documents[i:i+1], []ledger.Document{got})
			}
		}
	}
}

var documentModel = map[string]scenario{
	"any history": {
		"whatever is committed in whatever order, a ledger of documents does what the plainest one would do",
		func(h *harness) {
			shelves := 0
			// In a bubble a test must not be asked for its deadline.
			rapid.Check(struct{ rapid.TB }{h.T}, func(t *rapid.T) {
				shelves++
				s := &shelf{h: h, kind: fmt.Sprint("k", shelves)}
				t.Repeat(map[string]func(*rapid.T){"file": s.file, "find": s.query, "due": s.due})
				s.check(t)
			})
		},
	},
}
