package ledgertest

import (
	"testing"

	"github.com/readback-go/readback/ledger"
)

// wait is what waits to be sealed: how far each write and each document has come, and
// each batch.
type wait struct {
	next      map[ledger.ID]int64
	documents map[string]int64
	once      map[committedDocument]bool
}

// committedDocument is one batch of a document; a document that was found counts as it is when it is
// read.
type committedDocument struct {
	id         string
	version    int64
	backfilled bool
}

// AllUnsealed holds what is not sealed against what the ledger has, of which nothing
// is sealed: each event is there once, in the order of its write, each document was found
// once, and each later batch is there once. There must be so many writes and documents
// at the least, and documents must differ in their ids.
func AllUnsealed(t *testing.T, l ledger.Ledger, writes, documents int) {
	t.Helper()
	w := wait{map[ledger.ID]int64{}, map[string]int64{}, map[committedDocument]bool{}}
	for after := int64(0); ; {
		runs, err := l.Unsealed(t.Context(), after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) == 0 {
			break
		}
		for _, r := range runs {
			after = r.Ticket
			w.take(t, r)
		}
	}
	for f := range w.once {
		if f.backfilled && w.once[committedDocument{f.id, 1, false}] {
			t.Errorf("document %s was found, and was new as well", f.id)
		}
	}
	if haveWrites, haveDocuments := w.writes(t, l), w.kept(t, l); haveWrites < writes || haveDocuments < documents {
		t.Fatalf("%d writes and %d documents; want %d and %d that were there", haveWrites, haveDocuments, writes, documents)
	}
}

// OneMore is a write after one more event, whatever is legal of it.
func OneMore(t *testing.T, l ledger.Ledger, r ledger.Record) ledger.Record {
	t.Helper()
	e := ledger.Event{Kind: ledger.EvRechecked}
	switch r.State {
	case ledger.Sending:
		e = ledger.Event{Kind: ledger.EvSent, Fate: ledger.FateUnknown}
	case ledger.Checking:
		e = ledger.Event{Kind: ledger.EvRead, Verdict: "absent", Evidence: []byte(`{}`)}
	}
	r, err := l.Append(t.Context(), r.ID, r.Fence, e)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// GoesOn switches recording on where another actor was interrupted in the middle of finding what
// was there, while some of the writes change before and after, and holds what is not
// sealed then against the ledger ([AllUnsealed]).
func GoesOn(t *testing.T, l ledger.Ledger, some []ledger.Record, writes, documents int) {
	t.Helper()
	for i := range some {
		some[i] = OneMore(t, l, some[i])
	}
	if changed, err := l.SetRecording(t.Context(), true); !changed || err != nil {
		t.Errorf("changed %v, error %v; want it on", changed, err)
	}
	for i := range some {
		OneMore(t, l, some[i])
	}
	AllUnsealed(t, l, writes, documents)
}

// take takes one run.
func (w *wait) take(t *testing.T, r ledger.Run) {
	t.Helper()
	if r.Unread != nil {
		t.Fatalf("ticket %d: %v", r.Ticket, r.Unread)
	}
	if m := r.Mark; m != nil {
		f := committedDocument{m.DocumentID, m.Version, r.Backfilled}
		if r.Backfilled {
			f.version = 0
		}
		if w.once[f] {
			t.Errorf("%+v came twice", f)
		}
		w.once[f], w.documents[m.DocumentID] = true, max(w.documents[m.DocumentID], m.Version)
	}
	for _, e := range r.Events {
		if w.next[r.ID]++; e.Seq != w.next[r.ID] {
			t.Fatalf("write %s: event %d came where event %d was to come", r.ID, e.Seq, w.next[r.ID])
		}
	}
}

// writes goes over all writes, and counts them.
func (w *wait) writes(t *testing.T, l ledger.Ledger) (n int) {
	t.Helper()
	for after := ledger.ID(""); ; {
		lives, err := l.Lifetimes(t.Context(), after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, life := range lives {
			if after = life.Record.ID; w.next[after] != int64(len(life.Events)) || life.Unread != nil {
				t.Fatalf("write %s: %d of its %d events wait to be sealed; %v", after, w.next[after], len(life.Events), life.Unread)
			}
		}
		if n += len(lives); len(lives) < 1000 {
			return n
		}
	}
}

// kept goes over all documents, and counts them.
func (w *wait) kept(t *testing.T, l ledger.Ledger) (n int) {
	t.Helper()
	for after := (ledger.Document{}); ; {
		some, err := l.Kept(t.Context(), after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range some {
			if after = p; w.documents[p.ID] != p.Version {
				t.Fatalf("document %s: version %d waits to be sealed, and it has %d", p.ID, w.documents[p.ID], p.Version)
			}
		}
		if n += len(some); len(some) < 1000 {
			return n
		}
	}
}
