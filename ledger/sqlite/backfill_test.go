package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/storebench"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/ledgertest"
	"github.com/readback-go/readback/ledger/sqlite"
)

func init() { roles["switcher"] = switcher }

// oldWrites and oldDocuments are more than two portions of each.
const (
	oldWrites    = 2*sqlite.MaxBackfilled + 300
	oldDocuments = sqlite.MaxBackfilled + 200
)

// history makes a ledger with many writes and documents, and nothing to seal.
func history(t *testing.T, path string) *sqlite.Ledger {
	t.Helper()
	l := open(t, path, nil)
	must(t, storebench.Pair(t.Context(), l, storebench.Intent("model", 0)))
	must(t, l.Change(fmt.Sprintf(fill, 2, oldWrites)))
	put(t, l, ledger.Document{Tenant: "acme", Kind: "step", ID: "0", Body: []byte(`{}`)})
	must(t, l.Change(fmt.Sprintf(`WITH RECURSIVE count (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM count WHERE n < %d)
		INSERT INTO ledger_documents (tenant, kind, id, collection, subject, trace, created, state, due, done, version, updated, body)
		SELECT p.tenant, p.kind, c.n, p.collection, p.subject, p.trace, p.created, p.state, p.due, p.done, p.version, p.updated, p.body
		FROM ledger_documents AS p, count AS c WHERE p.id = '0'`, oldDocuments-1)))
	return l
}

func put(t *testing.T, l *sqlite.Ledger, p ledger.Document) ledger.Document {
	t.Helper()
	did, err := l.Commit(t.Context(), ledger.Batch{Documents: []ledger.Document{p}})
	must(t, err)
	return did.Documents[0]
}

// During the backfill of a long history others work between any two portions: on what is
// backfilled, on what is not yet, on new writes. Another process continues where the first was
// ended. No event is left out, and none comes twice.
func TestBackfillInPortions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := history(t, path)
	other := open(t, path, nil)
	late := append(everyFew(t, l), storebenchReserved(t, l, "open", 0))
	documents := []ledger.Document{documentOf(t, l, "0"), documentOf(t, l, fmt.Sprint(oldDocuments-1))}
	portions, nothing := 0, func() {}
	for more := true; more; portions++ {
		one, two := l, other
		if portions%2 == 1 {
			one, two = other, l
		}
		var err error
		more, err = one.SwitchOn(portions > 0, nothing)
		must(t, err)
		if finding, err := two.Finding(t.Context()); finding != more || err != nil {
			t.Fatalf("it is being found: %v, error %v; want %v", finding, err, more)
		}
		for i := range late {
			late[i] = ledgertest.OneMore(t, two, late[i])
		}
		storebenchReserved(t, two, "new", portions)
		for i := range documents {
			documents[i] = put(t, two, documents[i])
		}
		put(t, one, ledger.Document{Tenant: "acme", Kind: "step", ID: fmt.Sprint("new", portions), Body: []byte(`{}`)})
	}
	if least := 1 + oldWrites/sqlite.MaxBackfilled + oldDocuments/sqlite.MaxBackfilled; portions < least {
		t.Errorf("it took %d portions, want %d at least: no caller may wait for all of it", portions, least)
	}
	if changed, err := l.SetRecording(t.Context(), true); changed || err != nil {
		t.Errorf("changed %v, error %v; it was on", changed, err)
	}
	ledgertest.AllUnsealed(t, l, oldWrites, oldDocuments)
}

// everyFew returns some of the existing writes, the first and the last among them.
func everyFew(t *testing.T, l *sqlite.Ledger) (some []ledger.Record) {
	t.Helper()
	ids, err := l.Read("SELECT id FROM ledger_writes WHERE n = 1 OR n % 450 = 0 ORDER BY n")
	must(t, err)
	for _, id := range ids {
		rec, err := l.Get(t.Context(), "acme", ledger.ID(id))
		must(t, err)
		some = append(some, rec)
	}
	return some
}

func storebenchReserved(t *testing.T, l *sqlite.Ledger, batch string, n int) ledger.Record {
	t.Helper()
	rec, err := storebench.Reserve(t.Context(), l, storebench.Intent(batch, n))
	must(t, err)
	return rec
}

func documentOf(t *testing.T, l *sqlite.Ledger, id string) ledger.Document {
	t.Helper()
	p, err := l.Document(t.Context(), "acme", "step", id)
	must(t, err)
	return p
}

// An interrupted call leaves nothing half done, and the next one continues; a call that switches
// it off meanwhile wins.
func TestFindingIsInterrupted(t *testing.T) {
	l := history(t, filepath.Join(t.TempDir(), "ledger.db"))
	ctx, end := context.WithCancel(t.Context())
	end()
	if changed, err := l.SetRecording(ctx, true); changed || !errors.Is(err, context.Canceled) {
		t.Errorf("changed %v, error %v", changed, err)
	}
	for i := range 2 {
		more, err := l.SwitchOn(i > 0, func() {})
		if must(t, err); !more {
			t.Fatal("it is on already")
		}
	}
	if changed, err := l.SetRecording(t.Context(), false); !changed || err != nil {
		t.Errorf("changed %v, error %v; want it off", changed, err)
	}
	if more, err := l.SwitchOn(true, func() {}); more || err != nil {
		t.Errorf("more %v, error %v; another actor has switched it off", more, err)
	}
	if finding, err := l.Finding(t.Context()); finding || err != nil {
		t.Errorf("it is being found: %v, error %v; it is off", finding, err)
	}
	if left, err := l.Read("SELECT count(*) FROM ledger_unsealed"); err != nil || cmp.Diff([]string{"0"}, left) != "" {
		t.Errorf("%v rows are left, error %v", left, err)
	}
	for i := range 2 {
		_, err := l.SwitchOn(i > 0, func() {})
		must(t, err)
	}
	if changed, err := l.SetRecording(t.Context(), true); !changed || err != nil {
		t.Errorf("changed %v, error %v; want it on", changed, err)
	}
	ledgertest.AllUnsealed(t, l, oldWrites, oldDocuments)
}

// switcher is a process that backfills a history, and stops in the middle: name says after how
// many portions, with the next not committed.
func switcher(path, name string) error {
	l, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	within := func() {}
	for i, portions := 0, len(name); err == nil; i++ {
		if i == portions {
			within = func() {
				fmt.Println("here")
				select {}
			}
		}
		_, err = l.SwitchOn(i > 0, within)
	}
	return err
}

// A process that is really killed in the middle of any portion leaves what the next one needs to
// continue.
func TestFindingIsKilled(t *testing.T) {
	for _, portions := range []string{"", ".", "..", "...", "....", "....."} {
		t.Run(fmt.Sprint(len(portions)), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			l := history(t, path)
			cmd := process(t, "switcher", path, portions)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			output, err := bufio.NewReader(out).ReadString('\n')
			if err != nil || strings.TrimSpace(output) != "here" {
				t.Errorf("it wrote %q, error %v", output, err)
			}
			must(t, cmd.Process.Kill()) // SIGKILL
			_ = cmd.Wait()              // which says that it was killed
			ledgertest.GoesOn(t, l, everyFew(t, l), oldWrites, oldDocuments)
		})
	}
}
