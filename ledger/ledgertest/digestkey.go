package ledgertest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// Vault is what a test seals and opens with: a redact.Vault.
type Vault interface {
	ledger.Keys
	OpenEntry(tenant, id string, sealed []byte) ([]byte, error)
}

// DigestKeys is what a ledger does with its digest key, for drivers whose ledgers outlive a
// process.
type DigestKeys struct {
	// Fresh makes a place for a ledger, and returns what opens the one that is there, as
	// one more process does: with keys, or nil for none.
	Fresh func(t *testing.T) (open func(keys ledger.Keys) (ledger.Ledger, error))
	// Vault has the redaction keys with these ids, of which the first seals.
	Vault func(ids ...string) Vault
	// Enqueue is [Options.EnqueueSealed], also without keys.
	Enqueue func(t *testing.T, l ledger.Ledger, keys ledger.Keys, ws ...intent.WriteIntent) error
}

// place is a ledger in some processes.
type place struct {
	*harness
	keys DigestKeys
	with func(keys ledger.Keys) (ledger.Ledger, error)
}

// open is one more process on the ledger.
func (p *place) open(ids ...string) *harness {
	p.Helper()
	var keys ledger.Keys
	if len(ids) > 0 {
		keys = p.keys.Vault(ids...)
	}
	l, err := p.with(keys)
	if err != nil {
		p.Fatal(err)
	}
	h := &harness{T: p.T, ledger: l}
	if len(ids) > 0 {
		l.KeepWith(func(r ledger.Record) (ledger.Record, error) {
			if !ledger.SealedEntry(r.Intent) {
				return r, nil
			}
			text, err := p.keys.Vault(ids...).OpenEntry(r.Tenant, string(r.ID), r.Intent)
			if err != nil {
				return r, errors.Join(ledger.ErrNoKey, err)
			}
			w, err := intent.Decode(text)
			if err != nil {
				return r, err
			}
			return ledger.NewRecord(w)
		})
	}
	return h
}

// Run runs the tests.
func (k DigestKeys) Run(t *testing.T) {
	for name, run := range map[string]func(p *place){
		"whichever key is first, writes about one record are one queue": func(p *place) {
			first := p.open("k1").fresh(update("a", "x", 1), announced)
			both := p.open("k2", "k1")
			if err := k.Enqueue(p.T, both.ledger, k.Vault("k2", "k1"), update("a", "x", 2)); err != nil {
				p.Fatal(err)
			}
			both.nothing(ledger.Claim{Limit: 10})
			second := both.get(ledger.Record{Tenant: "a", ID: p.id(update("a", "x", 2))})
			last := p.open("k2")
			third := last.fresh(update("a", "x", 3))
			if second.QueuedBehind != first.ID || third.QueuedBehind != second.ID {
				p.Errorf("the second is behind %q, the third behind %q; want %s and %s", second.QueuedBehind, third.QueuedBehind, first.ID, second.ID)
			}
			if again := last.replayed(last.reservation(update("a", "x", 1), announced)); again.KeyDigest != first.KeyDigest {
				p.Errorf("the repeat is about %s, the write about %s", again.KeyDigest, first.KeyDigest)
			}
			if !strings.HasPrefix(first.KeyDigest, "hmac:ledger:") {
				p.Errorf("the digest is %s, want a keyed one", first.KeyDigest)
			}
		},
		"without the key it is read, and nothing that needs a digest is done": func(p *place) {
			p.open() // in the clear at first
			rec := p.open("k1").fresh(update("a", "x", 1), announced)
			h := p.open()
			res, asked := h.reservation(update("a", "x", 2)), p.reservation(update("a", "x", 1)).Record
			ctx := context.Background()
			for name, call := range map[string]func() error{
				"reserve": func() error { _, _, err := h.ledger.Reserve(ctx, res); return err },
				"file": func() error {
					_, err := h.ledger.Commit(ctx, ledger.Batch{Reserve: &res})
					return err
				},
				"precheck": func() error { _, err := h.ledger.Precheck(ctx, asked); return err },
				"list": func() error {
					_, err := h.ledger.List(ctx, ledger.Filter{Tenant: "a", KeyDigest: asked.KeyDigest})
					return err
				},
				"find": func() error {
					_, err := h.ledger.Find(ctx, ledger.Search{Tenant: "a", KeyDigest: asked.KeyDigest})
					return err
				},
				"erase": func() error {
					_, err := h.ledger.Erase(ctx, ledger.Erasing{Tenant: "a", Erasure: "er_1", KeyDigests: []string{asked.KeyDigest}})
					return err
				},
				"enqueue":                  func() error { return k.Enqueue(p.T, h.ledger, nil, update("a", "x", 2)) },
				"enqueue with another key": func() error { return k.Enqueue(p.T, h.ledger, k.Vault("k2"), update("a", "x", 2)) },
			} {
				if err := call(); !errors.Is(err, ledger.ErrNoKey) || !strings.Contains(err.Error(), `"k1"`) {
					p.Errorf("%s: error %v, want the missing key k1", name, err)
				}
			}
			h.same(rec, h.get(rec), "LeaseUntil")
			if all := h.list(ledger.Filter{Tenant: "a"}); len(all) != 1 || len(h.list(ledger.Filter{Tenant: "a", KeyDigest: rec.KeyDigest})) != 1 {
				p.Errorf("%d writes are listed, want the one", len(all))
			}
			h.absent(update("a", "x", 2))
			if n := h.queueStats().Outbox; n != 0 {
				p.Errorf("%d wait in the outbox", n)
			}
		},
		"processes that begin or seal at once have one digest key": func(p *place) {
			for _, sealed := range []bool{false, true} { // made by all, then sealed by all
				digests := make([]string, 8)
				var all sync.WaitGroup
				for i := range digests {
					ids := [][]string{{"k1", "k2"}, {"k2", "k1"}}[i%2]
					all.Go(func() {
						var keys ledger.Keys
						if sealed {
							keys = k.Vault(ids...)
						}
						l, err := p.with(keys)
						if err != nil {
							p.Errorf("open: %v", err)
							return
						}
						digests[i], err = l.KeyDigests().Of("d")
						if err != nil || digests[i] == "d" {
							p.Errorf("%q, %v; want a keyed digest", digests[i], err)
						}
					})
				}
				all.Wait()
				for _, d := range digests {
					if d != digests[0] {
						p.Errorf("two digests of one: %s and %s", digests[0], d)
					}
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(&place{harness: &harness{T: t}, keys: k, with: k.Fresh(t)})
		})
	}
}
