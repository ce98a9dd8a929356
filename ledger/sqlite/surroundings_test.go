package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	zombiezen "zombiezen.com/go/sqlite"
)

// refusal is what an error must wrap and contain.
type refusal struct {
	is   error
	says string
}

func (r refusal) check(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, r.is) || !strings.Contains(err.Error(), r.says) {
		t.Errorf("%s: error %v; want %v, and %q in it", what, err, r.is, r.says)
	}
}

// closed makes a ledger with one write and closes it.
func closed(t *testing.T) (path string, rec ledger.Record) {
	t.Helper()
	path = file(t)
	l, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	rec = reserve(t, l, "w1")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path, rec
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		path   func(t *testing.T) string
		want   refusal
	}{
		"no directory": {"a typing error must not become a ledger somewhere", func(t *testing.T) string {
			return filepath.Join(t.TempDir(), "missing", "ledger.db")
		}, refusal{ledger.ErrUnavailable, "missing does not exist"}},
		"no path":  {"a ledger without a file forgets", func(*testing.T) string { return "" }, refusal{ledger.ErrUnavailable, "names no file"}},
		"memory":   {"a ledger without a file forgets", func(*testing.T) string { return ":memory:" }, refusal{ledger.ErrUnavailable, "NewMemory"}},
		"a folder": {"a directory is no ledger", func(t *testing.T) string { return t.TempDir() }, refusal{ledger.ErrUnavailable, "cannot be opened"}},
		"not a database": {"a file of something else is not overwritten", func(t *testing.T) string {
			path := file(t)
			if err := os.WriteFile(path, bytes.Repeat([]byte("this is a letter\n"), 100), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, refusal{ledger.ErrCorrupt, "not a database"}},
		"newer": {"an older program must not write what it does not understand", func(t *testing.T) string {
			path, _ := closed(t)
			sql(t, outsider(t, path), "UPDATE ledger_meta SET version = 99, compatible_from = 98")
			return path
		}, refusal{ledger.ErrVersion, "version 99"}},
		"no version": {"a ledger that lost its first row is not a new one", func(t *testing.T) string {
			path, _ := closed(t)
			sql(t, outsider(t, path), "DELETE FROM ledger_meta")
			return path
		}, refusal{ledger.ErrCorrupt, "version"}},
		"a table gone": {"a ledger that lost a table is not repaired by chance", func(t *testing.T) string {
			path, _ := closed(t)
			sql(t, outsider(t, path), "DROP TABLE ledger_events")
			return path
		}, refusal{ledger.ErrCorrupt, "no such table"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := c.path(t)
			l, err := sqlite.Open(context.Background(), path, nil)
			if err == nil {
				l.Close()
				t.Fatalf("opened; reason: %s", c.reason)
			}
			c.want.check(t, c.reason, err)
			if path != "" && !strings.Contains(err.Error(), path) {
				t.Errorf("the error does not name the path: %v", err)
			}
		})
	}
}

func TestOpenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := sqlite.Open(ctx, file(t), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestFileIsPrivate(t *testing.T) {
	path := file(t)
	reserve(t, open(t, path, nil), "w1")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, error %v: no other user may read intents", suffix, info.Mode(), err)
		}
	}
}

// damage is done to an open ledger.
var damage = map[string]struct {
	reason string
	query  string
	calls  map[string]refusal // what each call must return; the others must work
}{
	"newer version": {
		"an engine that was upgraded beside this one is noticed at once",
		"UPDATE ledger_meta SET version = 99, compatible_from = 98",
		everyCall(refusal{ledger.ErrVersion, "version 99"}),
	},
	"state in the column": {
		"a row that says two things is neither believed nor changed",
		"UPDATE ledger_writes SET state = 'settled'",
		but(ofTheWrite(refusal{ledger.ErrCorrupt, "contradict"}), "reserve another", "claim", "list sending"),
	},
	"due in the column": {
		"a row that says two things is neither believed nor changed",
		"UPDATE ledger_writes SET due = 1, lease_until = 0",
		but(ofTheWrite(refusal{ledger.ErrCorrupt, "contradict"}), "reserve another", "claim"),
	},
	"blocks in the column": {
		"an operation must not be begun twice because a row says so that does not know",
		"UPDATE ledger_writes SET blocks = 0",
		but(ofTheWrite(refusal{ledger.ErrCorrupt, "contradict"}), "reserve another", "claim"),
	},
	"step in the column": {
		"likewise",
		"UPDATE ledger_writes SET step_of = 'other'",
		but(ofTheWrite(refusal{ledger.ErrCorrupt, "contradict"}), "reserve another", "claim"),
	},
	"tenant in the column": {
		"a row does not change its owner",
		"UPDATE ledger_writes SET tenant = 'other'",
		map[string]refusal{
			"reserve again": {ledger.ErrCorrupt, "contradict"}, "append": {ledger.ErrCorrupt, "contradict"},
			"claim it": {ledger.ErrCorrupt, "contradict"},
			"get":      {ledger.ErrNotFound, ""}, "events": {ledger.ErrNotFound, ""},
		},
	},
	"body": {
		"what cannot be read is not taken for nothing",
		"UPDATE ledger_writes SET body = '{'",
		but(ofTheWrite(refusal{ledger.ErrCorrupt, "cannot be read"}), "reserve another", "claim"),
	},
	"newer body": {
		"what a newer engine wrote into the same file is not dropped by this one",
		`UPDATE ledger_writes SET body = json_set(body, '$.invented', 1)`,
		but(ofTheWrite(refusal{ledger.ErrVersion, "invented"}), "reserve another", "claim"),
	},
	"newer event": {
		"a life is not shown without what only a newer engine understands",
		`UPDATE ledger_events SET body = json_set(body, '$.invented', 1) WHERE seq = 1`,
		map[string]refusal{"events": {ledger.ErrVersion, "invented"}},
	},
	"lost event": {
		"a life with a gap is not shown as if it were whole",
		"DELETE FROM ledger_events WHERE seq = 1",
		map[string]refusal{"events": {ledger.ErrCorrupt, "event 1 is missing"}},
	},
	"lost last event": {
		"a life without its end is not shown as if it were whole",
		"DELETE FROM ledger_events WHERE seq = 2",
		map[string]refusal{"events": {ledger.ErrCorrupt, "1 events of 2"}},
	},
	"event that is there already": {
		"two writers of one life is a fault, and not the caller's",
		`INSERT INTO ledger_events (write, seq, body) VALUES (1, 3, '{"seq":3}')`,
		map[string]refusal{"append": {ledger.ErrCorrupt, "UNIQUE"}, "events": {ledger.ErrCorrupt, "3 events of 2"}},
	},
}

// ofWrite are the calls on a ledger with one write.
var ofWrite = map[string]func(l *sqlite.Ledger, res, other ledger.Reservation) error{
	"reserve again": func(l *sqlite.Ledger, res, _ ledger.Reservation) error {
		_, _, err := l.Reserve(context.Background(), res)
		return err
	},
	"reserve another": func(l *sqlite.Ledger, _, other ledger.Reservation) error {
		_, _, err := l.Reserve(context.Background(), other)
		return err
	},
	"claim": func(l *sqlite.Ledger, _, _ ledger.Reservation) error {
		_, err := l.Claim(context.Background(), ledger.Claim{Owner: "x", LeaseFor: time.Minute})
		return err
	},
	"claim it": func(l *sqlite.Ledger, res, _ ledger.Reservation) error {
		_, err := l.Claim(context.Background(), ledger.Claim{Owner: "x", LeaseFor: time.Minute, Tenant: res.Record.Tenant, ID: res.Record.ID})
		return err
	},
	"append": func(l *sqlite.Ledger, res, _ ledger.Reservation) error {
		_, err := l.Append(context.Background(), res.Record.ID, 1, ledger.Event{Kind: ledger.EvLate})
		return err
	},
	"get": func(l *sqlite.Ledger, res, _ ledger.Reservation) error {
		_, err := l.Get(context.Background(), res.Record.Tenant, res.Record.ID)
		return err
	},
	"events": func(l *sqlite.Ledger, res, _ ledger.Reservation) error {
		_, err := l.Events(context.Background(), res.Record.Tenant, res.Record.ID)
		return err
	},
	"list": func(l *sqlite.Ledger, res, _ ledger.Reservation) error {
		_, err := l.List(context.Background(), ledger.Filter{Tenant: res.Record.Tenant})
		return err
	},
	"list sending": func(l *sqlite.Ledger, res, _ ledger.Reservation) error {
		_, err := l.List(context.Background(), ledger.Filter{Tenant: res.Record.Tenant, States: []ledger.State{ledger.Sending}})
		return err
	},
}

// ofDocuments are the calls on documents.
var ofDocuments = map[string]func(l *sqlite.Ledger, res, other ledger.Reservation) error{
	"file": func(l *sqlite.Ledger, _, other ledger.Reservation) error {
		_, err := l.Commit(context.Background(), ledger.Batch{Documents: []ledger.Document{step("s1")}, Reserve: &other})
		return err
	},
	"document": func(l *sqlite.Ledger, _, _ ledger.Reservation) error {
		_, err := l.Document(context.Background(), "acme", "step", "none")
		if errors.Is(err, ledger.ErrNoDocument) {
			return nil
		}
		return err
	},
	"find documents": func(l *sqlite.Ledger, _, _ ledger.Reservation) error {
		_, _, err := l.FindDocuments(context.Background(), ledger.DocumentQuery{Tenant: "acme", Kind: "step"})
		return err
	},
	"due documents": func(l *sqlite.Ledger, _, _ ledger.Reservation) error {
		_, _, err := l.DueDocuments(context.Background(), "step", 1)
		return err
	},
}

// calls are all calls.
var calls = func() map[string]func(l *sqlite.Ledger, res, other ledger.Reservation) error {
	all := maps.Clone(ofWrite)
	maps.Copy(all, ofDocuments)
	return all
}()

// ofTheWrite returns every call that concerns the one existing write.
func ofTheWrite(r refusal) map[string]refusal {
	return but(everyCall(r), slices.Collect(maps.Keys(ofDocuments))...)
}

func everyCall(r refusal) map[string]refusal {
	all := map[string]refusal{}
	for name := range calls {
		all[name] = r
	}
	return all
}

func but(all map[string]refusal, these ...string) map[string]refusal {
	for _, name := range these {
		delete(all, name)
	}
	return all
}

func TestDamage(t *testing.T) {
	for name, d := range damage {
		for call, do := range calls {
			t.Run(name+"/"+call, func(t *testing.T) {
				path := file(t)
				l := open(t, path, nil)
				res := reservation(t, asked("w1"))
				reserve(t, l, "w1")
				sql(t, outsider(t, path), d.query)
				err := do(l, res, reservation(t, asked("w2")))
				if want, ok := d.calls[call]; ok {
					want.check(t, d.reason, err)
				} else if err != nil {
					t.Errorf("error %v; this call touches nothing that is damaged", err)
				}
			})
		}
	}
}

// Bytes of the file are overwritten, a page at a time. Whatever is read afterwards is right, or
// an error says that it is not.
func TestOverwrittenBytes(t *testing.T) {
	const page = 4096
	whole, rec := closed(t)
	image, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	noticed := 0
	for at := 0; at < len(image); at += page {
		path := file(t)
		torn := bytes.Clone(image)
		copy(torn[at:at+page], bytes.Repeat([]byte{0xa5}, page))
		if err := os.WriteFile(path, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := reopen(path, rec); err != nil {
			noticed++
			if !errors.Is(err, ledger.ErrCorrupt) {
				t.Errorf("page %d: error %v, want one that says corrupt", at/page, err)
			}
		}
	}
	if noticed < 4 { // header and schema, the writes, their index, the events
		t.Errorf("%d torn pages of %d were noticed", noticed, len(image)/page)
	}
}

// reopen opens a ledger, reads everything of a write and adds another.
func reopen(path string, rec ledger.Record) error {
	l, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	got, err := l.Get(context.Background(), rec.Tenant, rec.ID)
	if err != nil {
		return err
	}
	if got.Digest != rec.Digest || string(got.Intent) != string(rec.Intent) {
		return fmt.Errorf("read %+v, want %+v", got, rec)
	}
	if _, err = l.Events(context.Background(), rec.Tenant, rec.ID); err != nil {
		return err
	}
	_, err = l.List(context.Background(), ledger.Filter{Tenant: rec.Tenant})
	return err
}

// A file that is replaced or removed under a running process must not swallow what is written
// from then on.
func TestFileReplaced(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, path string){
		"removed":       func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"log removed":   func(t *testing.T, path string) { must(t, os.Remove(path+"-wal")) },
		"index removed": func(t *testing.T, path string) { must(t, os.Remove(path+"-shm")) },
		"log replaced": func(t *testing.T, path string) {
			backup, _ := closed(t)
			must(t, os.Rename(backup, path+"-wal"))
		},
		"restored": func(t *testing.T, path string) {
			backup, _ := closed(t)
			must(t, os.Rename(backup, path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			l := open(t, path, nil)
			rec := reserve(t, l, "w1")
			do(t, path)
			_, _, err := l.Reserve(context.Background(), reservation(t, asked("w2")))
			refusal{ledger.ErrUnavailable, path}.check(t, "reserve", err)
			_, err = l.Append(context.Background(), rec.ID, rec.Fence, ledger.Event{Kind: ledger.EvSent})
			refusal{ledger.ErrUnavailable, path}.check(t, "append", err)
			_, err = l.Get(context.Background(), rec.Tenant, rec.ID)
			refusal{ledger.ErrUnavailable, path}.check(t, "get", err)
		})
	}
}

// A ledger behind a link has its log beside the link's target.
func TestLinkedFile(t *testing.T) {
	path := file(t)
	link := filepath.Join(t.TempDir(), "link.db")
	must(t, os.Symlink(path, link))
	reserve(t, open(t, path, nil), "w1")
	l := open(t, link, nil)
	reserve(t, l, "w2")
	must(t, os.Remove(path+"-wal"))
	_, _, err := l.Reserve(context.Background(), reservation(t, asked("w3")))
	if !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A file that cannot grow refuses what needs space, loses nothing, and continues when there is
// space again.
func TestFullFile(t *testing.T) {
	path := file(t)
	l := open(t, path, nil)
	reserve(t, l, "w0")
	must(t, l.Write("PRAGMA max_page_count = 12"))
	made, err := 1, error(nil)
	for err == nil && made < 100 {
		if _, _, err = l.Reserve(context.Background(), reservation(t, asked(fmt.Sprint("w", made)))); err == nil {
			made++
		}
	}
	refusal{ledger.ErrUnavailable, "full"}.check(t, "reserve", err)
	if errors.Is(err, ledger.ErrUnsure) {
		t.Errorf("error %v, but it is known that nothing was applied", err)
	}
	for i := range made + 1 {
		if got, want := present(t, l, fmt.Sprint("w", i)), i < made; got != want {
			t.Errorf("write %d is there: %v, want %v", i, got, want)
		}
	}
	must(t, l.Write("PRAGMA max_page_count = 100000"))
	reserve(t, l, fmt.Sprint("w", made))
}

// The WAL-reset fault of SQLite, which corrupts a file that several connections write and
// checkpoint, was fixed in 3.51.3.
func TestSQLiteVersion(t *testing.T) {
	if zombiezen.VersionNumber < 3_051_003 {
		t.Errorf("SQLite %s", zombiezen.Version)
	}
}

// A second name of the file would get a log of its own.
func TestHardLinkedFile(t *testing.T) {
	path := file(t)
	reserve(t, open(t, path, nil), "w1")
	second := filepath.Join(t.TempDir(), "second.db")
	must(t, os.Link(path, second))
	l, err := sqlite.Open(context.Background(), second, nil)
	if err == nil {
		must(t, l.Close())
	}
	if !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "hard links") {
		t.Errorf("error %v; want one that says what is wrong", err)
	}
}
