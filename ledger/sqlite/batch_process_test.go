package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

func init() { roles["filer"] = filer }

// filer takes one step after another, until it is killed: each is a document and a write in one
// batch, and one more on a counter that all processes share. It prints its results.
func filer(path, name string) error {
	l, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for g := range inflight {
		wg.Go(func() {
			for i := 0; ; i++ {
				if err := takeStep(l, fmt.Sprint(name, "-", g, "-", i)); err != nil {
					fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
					return
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// takeStep retries until no other process has changed the counter meanwhile.
func takeStep(l *sqlite.Ledger, name string) error {
	rec, err := ledger.NewRecord(asked(name))
	if err != nil {
		return err
	}
	for {
		count, err := l.Document(context.Background(), "acme", "counter", "all")
		if err != nil {
			return err
		}
		_, err = l.Commit(context.Background(), ledger.Batch{
			Documents: []ledger.Document{step(name), count},
			Reserve:   &ledger.Reservation{Record: rec, Events: []ledger.Event{{Kind: ledger.EvAnnounced}}, Owner: name, LeaseFor: time.Minute},
		})
		if errors.Is(err, ledger.ErrStale) {
			continue
		}
		if err == nil {
			fmt.Println("committed", name)
		}
		return err
	}
}

// Processes that write one document at once are killed meanwhile. Each version of the document is
// one process's, and no batch is applied by half.
func TestFilersKilled(t *testing.T) {
	path := file(t)
	l := open(t, path, nil)
	counter := ledger.Document{Tenant: "acme", Kind: "counter", ID: "all", Body: []byte("{}")}
	_, err := l.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{counter}})
	must(t, err)
	reported := untilKilled(t, "filer", path, "p", 30, 50, 70)
	steps := map[string]bool{}
	q := ledger.DocumentQuery{Tenant: "acme", Kind: "step", Limit: 1000}
	found, total, err := l.FindDocuments(t.Context(), q)
	if err != nil || total != len(found) {
		t.Fatalf("%d of %d documents, error %v", len(found), total, err)
	}
	for _, p := range found {
		steps[p.ID] = true
		if !present(t, l, p.ID) {
			t.Errorf("step %s has a document and no write", p.ID)
		}
	}
	for name := range reported {
		if !steps[name] {
			t.Errorf("step %s was committed, and is not there", name)
		}
	}
	recs, err := l.List(t.Context(), ledger.Filter{Tenant: "acme", Limit: 1000})
	must(t, err)
	counted, err := l.Document(t.Context(), "acme", "counter", "all")
	if err != nil || len(recs) != total || counted.Version != int64(total)+1 {
		t.Errorf("%d documents, %d writes, counter at version %d, error %v", total, len(recs), counted.Version, err)
	}
	t.Logf("%d steps, %d of them reported", total, len(reported))
}
