package audit_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

func headsOf(t *testing.T) (signing.Envelope, signing.Keys) {
	t.Helper()
	sign, keys := signer(t)
	l, kept := ledger.NewMemory(), &drawer{}
	s := audit.New(l, audit.Options{Signer: sign, HeadStores: map[string]audit.HeadStore{"drawer": kept}})
	life(t, l, "a", "w1")
	seal(t, s, 5)
	_, err := s.SignHeads(t.Context())
	must(t, err)
	must(t, s.Flush(t.Context()))
	own, err := audit.NewestHead(t.Context(), l, "a")
	if must(t, err); own.Payload != kept.heads[0].Payload {
		t.Fatal("the ledger keeps another head than the head store")
	}
	if h, err := audit.OpenHead(own, keys); err != nil || h.Entries != 5 || h.Tenant != "a" {
		t.Fatalf("head %+v, error %v", h, err)
	}
	return own, keys
}

func TestFile(t *testing.T) {
	head, keys := headsOf(t)
	path := filepath.Join(t.TempDir(), "heads.jsonl")
	must(t, os.WriteFile(path, []byte(`{"payload`), 0o600)) // a process was killed while writing
	k, err := audit.NewFile(path)
	must(t, err)
	must(t, errors.Join(k.Keep(t.Context(), head), k.Keep(t.Context(), head)))
	text, err := os.ReadFile(path)
	must(t, err)
	heads, bad := audit.ReadHeads(strings.NewReader(string(text)))
	if len(heads) != 2 || len(bad) != 1 {
		t.Fatalf("%d heads, bad %v, of:\n%s", len(heads), bad, text)
	}
	if _, err := audit.OpenHead(heads[1], keys); err != nil {
		t.Error(err)
	}
	if _, err := audit.NewFile(filepath.Join(path, "x")); err == nil {
		t.Error("a file that cannot be written was taken")
	}
}

func TestHTTP(t *testing.T) {
	head, _ := headsOf(t)
	var got []string
	status := http.StatusCreated
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.Header.Get("Authorization")+" "+string(body))
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	k, err := audit.NewHTTP(server.URL+"/heads?key=hidden", func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer x"}}, nil
	})
	must(t, err)
	must(t, k.Keep(t.Context(), head))
	for _, status = range []int{301, 307, 400, 500} {
		if err := k.Keep(t.Context(), head); err == nil {
			t.Errorf("an answer of %d was taken for an acceptance", status)
		}
	}
	text, err := head.Encode()
	must(t, err)
	if len(got) != 5 || got[0] != "POST Bearer x "+string(text) {
		t.Errorf("asked %d times, first %s", len(got), got[0])
	}
	server.Close()
	if err := k.Keep(t.Context(), head); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("error %v; want one without the URL", err)
	}
	for _, bad := range []string{"", "heads", "ftp://x/y", "https://", "::"} {
		if _, err := audit.NewHTTP(bad, nil); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// flaky fails for some time.
type flaky struct {
	mu    sync.Mutex
	until time.Time
	kept  []audit.Head
}

func (f *flaky) Keep(ctx context.Context, e signing.Envelope) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Now().Before(f.until) {
		return errors.New("not now")
	}
	h, err := audit.ReadHead(e)
	f.kept = append(f.kept, h)
	return err
}

func (f *flaky) all() []audit.Head {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.kept)
}

// stuck never answers.
type stuck struct{}

func (stuck) Keep(ctx context.Context, _ signing.Envelope) error { <-ctx.Done(); return ctx.Err() }

// A head store that fails or hangs delays neither sealing nor other head stores, and gets the newest head
// when it recovers.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sign, keys := signer(t)
		l, good, bad := ledger.NewMemory(), &drawer{}, &flaky{until: time.Now().Add(10 * time.Minute)}
		s := audit.New(l, audit.Options{Signer: sign, Logger: slog.New(slog.DiscardHandler), HeadStores: map[string]audit.HeadStore{"good": good, "bad": bad, "stuck": stuck{}}})
		idle := audit.New(l, audit.Options{Signer: sign, Logger: slog.New(slog.DiscardHandler)})
		ctx, end := context.WithCancel(t.Context())
		var working sync.WaitGroup
		working.Go(func() { must(t, s.Work(ctx)) })
		synctest.Wait()
		working.Go(func() { must(t, idle.Work(ctx)) })
		time.Sleep(500 * time.Millisecond) // between two ticks: a write whose events a sealer sees in part is of two pages
		for i := range 5 {
			life(t, l, "a", string(rune('a'+i)))
			time.Sleep(2 * time.Minute)
		}
		synctest.Wait()
		if len(good.all()) != 5 || len(bad.all()) != 0 || idle.Stats().Entries != 0 {
			t.Errorf("the good head store has %d, the bad %d, the idle sealer sealed %d", len(good.all()), len(bad.all()), idle.Stats().Entries)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		stats := s.Stats()
		if kept := bad.all(); len(kept) != 1 || kept[0].Entries != 25 || stats.HeadStores["bad"].Dropped != 4 || stats.HeadStores["bad"].Failures == 0 || stats.HeadStores["stuck"].Waiting != 1 {
			t.Errorf("the bad head store has %+v; stats %+v", kept, stats)
		}
		end()
		working.Wait()
		clean(t, l, audit.VerifyOptions{Keys: keys, Heads: good.heads})
	})
}

// Another sealer takes over when the active one stops reporting.
func TestAnotherSealerTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledger.NewMemory()
		first, second := audit.New(l, audit.Options{Logger: slog.New(slog.DiscardHandler)}), audit.New(l, audit.Options{Logger: slog.New(slog.DiscardHandler)})
		ctx, end := context.WithCancel(t.Context())
		var working sync.WaitGroup
		working.Go(func() { must(t, first.Work(ctx)) })
		synctest.Wait()
		also, endAll := context.WithCancel(t.Context())
		working.Go(func() { must(t, second.Work(also)) })
		life(t, l, "a", "w1")
		time.Sleep(time.Minute)
		end()
		life(t, l, "a", "w2")
		time.Sleep(time.Minute)
		endAll()
		working.Wait()
		if a, b := first.Stats().Entries, second.Stats().Entries; a != 5 || b != 5 {
			t.Errorf("the first sealed %d, the second %d", a, b)
		}
		clean(t, l, audit.VerifyOptions{})
	})
}

// slow runs a function while it keeps a head.
type slow struct {
	drawer
	meanwhile func()
}

func (k *slow) Keep(ctx context.Context, head signing.Envelope) error {
	if k.meanwhile != nil {
		do := k.meanwhile
		k.meanwhile = nil
		do()
	}
	return k.drawer.Keep(ctx, head)
}

// A head that arrives while an older one is being kept is kept as well.
func TestNewerHeadMeanwhile(t *testing.T) {
	sign, _ := signer(t)
	l, k := ledger.NewMemory(), &slow{}
	s := audit.New(l, audit.Options{Signer: sign, Logger: slog.New(slog.DiscardHandler), HeadStores: map[string]audit.HeadStore{"slow": k}})
	next := func(workflow string) {
		life(t, l, "a", workflow)
		seal(t, s, 5)
		_, err := s.SignHeads(t.Context())
		must(t, err)
	}
	next("w1")
	k.meanwhile = func() { next("w2") }
	must(t, s.Flush(t.Context()))
	if len(k.heads) != 2 || s.Stats().HeadStores["slow"].Waiting != 0 {
		t.Errorf("%d heads are kept, want both", len(k.heads))
	}
}
