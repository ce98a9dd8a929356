package v1

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/receipt"
	"github.com/readback-go/readback/signing"
)

// signed issues receipts of a ledger.
type signed struct {
	ledger ledger.Ledger
	reg    *connectors.Registry
	signer *signing.Signer
	keys   signing.Keys
}

func newSigned(t *testing.T, l ledger.Ledger, reg *connectors.Registry) *signed {
	t.Helper()
	private, public, err := signing.Generate()
	if err != nil {
		t.Fatal(err)
	}
	s := &signed{ledger: l, reg: reg}
	if s.signer, err = signing.ReadSigner(private); err != nil {
		t.Fatal(err)
	}
	if s.keys, err = signing.ReadKeys(public); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *signed) Keys() []signing.PublicKey { return s.keys.List() }

func (s *signed) Issue(ctx context.Context, tenant string, id ledger.ID, values bool) (signing.Envelope, error) {
	rec, err := s.ledger.Get(ctx, tenant, id)
	if err != nil {
		return signing.Envelope{}, err
	}
	events, err := s.ledger.Events(ctx, tenant, id)
	if err != nil {
		return signing.Envelope{}, err
	}
	_, p, err := s.reg.Lookup(rec.Destination, rec.Kind)
	if err != nil {
		return signing.Envelope{}, err
	}
	statement, err := receipt.Of(rec, events, p, receipt.Options{Values: values, Version: "test"})
	if err != nil {
		return signing.Envelope{}, err
	}
	return statement.Sign(ctx, s.signer)
}

func TestReceipts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), nil)
		out := b.submit(order("A-1"))
		keys := into[Keys](b.ask(auditor, "GET", "/v1/keys", "").want(200))
		if len(keys.Keys) != 1 {
			t.Fatalf("%+v", keys)
		}
		trusted, err := signing.ReadKeys([]byte(keys.Keys[0].PEM))
		if err != nil || trusted.List()[0].ID != keys.Keys[0].ID {
			t.Fatalf("%v: %+v", err, keys)
		}
		for query, want := range map[string]string{"": "", "?values=false": "", "?values=true": `{"order_id":"A-1"}`} {
			s, err := receipt.Verify(b.ask(auditor, "GET", writePath(out.ID, "/receipt"+query), "").want(200).Body, trusted)
			if diff := cmp.Diff(want, s.Predicate.Write.BusinessKey.Value); err != nil || diff != "" || s.Subject[0].Name != string(out.ID) {
				t.Errorf("%s: %v %s", query, err, diff)
			}
		}
		b.ask(auditor, "GET", writePath(out.ID, "/receipt?values=yes"), "").problem(invalidRequest)
		held := b.submit(order("A-2", held))
		if p := b.ask(auditor, "GET", writePath(held.ID, "/receipt"), "").problem(notObserved); p.Detail == "" {
			t.Errorf("it does not say why: %+v", p)
		}
		b.ask(agent, "GET", writePath(out.ID, "/receipt"), "").problem(forbidden)
		b.ask(agent, "GET", "/v1/keys", "").problem(forbidden)
		b.ask(auditor, "POST", writePath(out.ID, "/receipt"), "").want(405)
	})
}

func TestNoReceipts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Native.Options(), func(o *Options) { o.Receipts = nil })
		out := b.submit(order("A-1"))
		b.ask(auditor, "GET", writePath(out.ID, "/receipt"), "").problem(unsupported)
		b.ask(auditor, "GET", "/v1/keys", "").problem(unsupported)
	})
}
