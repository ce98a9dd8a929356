package audit_test

import (
	"context"
	"testing"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/signing"
)

func TestStatusOf(t *testing.T) {
	ctx := context.Background()
	private, _, err := signing.Generate()
	must(t, err)
	signer, err := signing.ReadSigner(private)
	must(t, err)
	l := ledger.NewMemory()
	s := audit.New(l, audit.Options{Signer: signer})
	status := func(limit int) audit.Status {
		t.Helper()
		got, err := audit.StatusOf(ctx, l, "acme", limit)
		must(t, err)
		return got
	}
	if got := status(10); got != (audit.Status{}) {
		t.Errorf("off: %+v", got)
	}
	found := life(t, l, "acme", "found")
	if got := status(10); got != (audit.Status{}) {
		t.Errorf("a write, and no sealer: %+v", got)
	}
	_, err = l.BeginSealing(ctx)
	must(t, err)
	if got := status(10); got.Unsealed != 2 || got.Oldest.IsZero() || got.Chained {
		t.Errorf("what was there before is to be sealed: %+v", got)
	}
	_, err = s.Seal(ctx)
	must(t, err)
	if got := status(10); got.Unsealed != 0 || !got.Chained || !got.Head.At.IsZero() || got.Key != "" {
		t.Errorf("sealed, and no head: %+v", got)
	}
	_, err = s.SignAll(ctx)
	must(t, err)
	first := reserve(t, l, "other", "a")
	reserve(t, l, "acme", "b")
	reserve(t, l, "acme", "c")
	got := status(10)
	if events, err := l.Events(ctx, "other", first.ID); err != nil || got.Unsealed != 3 || got.More || !got.Oldest.Equal(events[0].At) {
		t.Errorf("three are behind, of all tenants: %+v, %v", got, err)
	}
	if got.Key != signer.ID() || time.Since(got.Head.At) > time.Hour || got.Head.Tenant != "acme" || got.Head.Entries < found.Seq {
		t.Errorf("the head: %+v", got)
	}
	if got := status(2); got.Unsealed != 2 || !got.More {
		t.Errorf("at most two: %+v", got)
	}
	p, err := l.Document(ctx, "acme", ledger.AuditKind, "head")
	must(t, err)
	p.Body = []byte(`{}`)
	_, err = l.Commit(ctx, ledger.Batch{Documents: []ledger.Document{p}})
	must(t, err)
	if got := status(2); got.BadHead == nil || got.Key != "" || got.Unsealed != 2 {
		t.Errorf("another actor's head: %+v", got)
	}
}
