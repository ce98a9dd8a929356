package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// The canaries: values that must be at the destination and nowhere in a ledger. One is marked
// by the destination, some by the intent, one is found by a pattern.
const (
	canaryKey      = "Canary-Key-77"
	canaryAmount   = "190919"
	canaryCurrency = "PATTERN-X42"
	canaryNote     = `Canary "näme" <17>`
	canaryBefore   = "Canary was there"
)

// canaries returns the forms in which they could be written.
func canaries() []string {
	all := []string{canaryAmount, "19.09.19"}
	for _, c := range []string{canaryKey, canaryCurrency, canaryNote, canaryBefore} {
		quoted, _ := json.Marshal(c)
		all = append(all, c, strings.Trim(string(quoted), `"`), url.QueryEscape(c), url.PathEscape(c), "Canary")
	}
	return all
}

func vaultOf(t testing.TB, ids ...string) *redact.Vault {
	t.Helper()
	var keys []redact.Key
	for _, id := range ids {
		keys = append(keys, redact.Key{ID: id, Secret: []byte(strings.Repeat(id, 32)[:32])})
	}
	v, err := redact.New(keys, redact.Options{Patterns: []redact.Pattern{{Name: "currency", Regexp: regexp.MustCompile(`PATTERN-[A-Z0-9]+`)}}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// nosy is a destination that repeats its input in errors, names and URLs, and reports when a
// token reaches it.
type nosy struct {
	connectors.Connector
	t *testing.T
}

func (n nosy) check(w intent.WriteIntent, more ...string) {
	w.Context = nil // stays without its sensitive values
	text, err := w.Encode()
	if err != nil {
		n.t.Error(err)
	}
	if all := string(text) + strings.Join(more, " "); strings.Contains(all, redact.Prefix) || strings.Contains(all, redact.ShownPrefix) {
		n.t.Errorf("the destination was given what is sealed: %.300s", all)
	}
}

func (n nosy) echo(err error, w intent.WriteIntent) error {
	if err == nil {
		return nil
	}
	text, _ := w.Encode()
	return fmt.Errorf("%w: you said %s, %v and %s", err, text, w.Payload["note"], url.QueryEscape(canaryKey))
}

func (n nosy) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	n.check(r.Intent, string(r.Prepared), r.Stamp, r.IdempotencyKey)
	if r.Intent.Compensates == "" && !strings.Contains(string(r.Prepared), "Canary") {
		n.t.Errorf("what was prepared came as %q", r.Prepared)
	}
	if r.Before != nil {
		text, _ := json.Marshal(r.Before)
		n.check(r.Intent, string(text))
		before := *r.Before
		before.Records = slices.Clone(before.Records)
		for i, one := range before.Records {
			before.Records[i].Ref = plain(one.Ref)
		}
		r.Before = &before
	}
	got, err := n.Connector.Write(ctx, r)
	got.Ref = named(r.Intent.Key["order_id"], got.Ref)
	got.URL = "https://crm.test/?q=" + strings.ToLower(fmt.Sprint(r.Intent.Key["order_id"]))
	return got, n.echo(err, r.Intent)
}

func (n nosy) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	n.check(q.Intent, q.Ref)
	q.Ref = plain(q.Ref)
	seen, err := n.Connector.Read(ctx, q)
	for i := range seen.Records {
		seen.Records[i].Ref = named(seen.Records[i].Fields["order_id"], seen.Records[i].Ref)
		seen.Records[i].URL = fmt.Sprint("https://crm.test/", seen.Records[i].Fields["order_id"])
	}
	return seen, n.echo(err, q.Intent)
}

func (n nosy) Prepare(_ context.Context, r connectors.Request) ([]byte, error) {
	n.check(r.Intent)
	r.Intent.Context = nil
	return r.Intent.Encode()
}

func (n nosy) Invert(w intent.WriteIntent, before *connectors.Observation, after connectors.Observation) (intent.WriteIntent, error) {
	n.check(w)
	undo, err := n.Connector.(connectors.Inverter).Invert(w, before, after)
	n.check(undo)
	return undo, n.echo(err, w)
}

// named returns an id that contains a sensitive value; plain is the destination's own.
func named(order any, ref string) string {
	if ref == "" {
		return ""
	}
	return fmt.Sprintf("of %v/%s", order, ref)
}

func plain(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// discreet is a bench whose destination is nosy and whose engine seals.
func discreet(t *testing.T, o orders.Options, opts *engine.Options) *bench {
	t.Helper()
	b := newBench(t, o, nil)
	b.engine = b.sealing(vaultOf(t, "k1"), opts)
	return b
}

// sealing returns another engine for the same destination.
func (b *bench) sealing(v *redact.Vault, opts *engine.Options) *engine.Engine {
	b.t.Helper()
	return b.sealingOn(b.ledger, nil, v, opts)
}

func (b *bench) sealingOn(l ledger.Ledger, c connectors.Connector, v *redact.Vault, opts *engine.Options) *engine.Engine {
	b.t.Helper()
	d := b.world.Destination()
	p := d.Profiles[orders.Kind]
	p.Sensitive = []string{"/order_id"}
	d.Profiles[orders.Kind] = p
	if c == nil {
		c = d.Connector
	}
	d.Connector = nosy{c, b.t}
	var o engine.Options
	if opts != nil {
		o = *opts
	}
	o.Vault = v
	return b.engineOn(l, d, &o)
}

// private returns an intent whose values are canaries.
func private(write intent.WriteType) intent.WriteIntent {
	w := order("A-1", write)
	w.Step, w.Key = "pay", intent.Fields{"order_id": canaryKey}
	w.Sensitive = []string{"/amount_cents", "/note"}
	w.Context = map[string]string{"model": "m-1", "asked": "pay " + canaryKey}
	if write != intent.Delete {
		w.Expect = intent.Fields{"amount_cents": jsonNumber(190919), "currency": canaryCurrency}
		w.Payload = intent.Fields{"note": canaryNote}
	}
	return w
}

// clean fails if a canary is in the ledger or in an outcome.
func (b *bench) clean(outs ...engine.Outcome) {
	b.t.Helper()
	ctx := context.Background()
	all, err := b.ledger.List(ctx, ledger.Filter{Tenant: "acme", Limit: 1000})
	if err != nil || len(all) == 0 {
		b.t.Fatalf("%d writes, %v", len(all), err)
	}
	for _, r := range all {
		events, err := b.ledger.Events(ctx, "acme", r.ID)
		if err != nil {
			b.t.Fatal(err)
		}
		kept := fmt.Sprintf("%s\n%s\n", r.Prepared, text(b.t, r))
		for _, e := range events {
			kept += fmt.Sprintf("%s\n%s\n", e.Prepared, text(b.t, e))
		}
		noCanary(b.t, "the ledger", kept)
		if w, err := b.engine.Opened(r); err == nil && redact.Sealed(r.Intent) {
			if digest, err := w.Digest(); err != nil || strings.Contains(kept, digest) || !strings.HasPrefix(r.Digest, "hmac:") {
				b.t.Errorf("a reader of the ledger can test a guess of the intent against its plain digest: %s, %v", r.Digest, err)
			}
		}
		outs = append(outs, engine.OutcomeOf(r))
	}
	for _, o := range outs {
		shown := text(b.t, o)
		noCanary(b.t, "an outcome", shown)
		if strings.Contains(shown, redact.Prefix) {
			b.t.Errorf("an outcome shows a token: %s", shown)
		}
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	all, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func noCanary(t *testing.T, where, kept string) {
	t.Helper()
	low := strings.ToLower(kept)
	for _, c := range canaries() {
		if at := strings.Index(low, strings.ToLower(c)); at >= 0 {
			t.Errorf("%s has %q in the clear: …%s…", where, c, low[max(at-80, 0):min(at+80, len(low))])
			return
		}
	}
}

func TestSensitiveValuesStayOutOfTheLedger(t *testing.T) {
	for name, c := range map[string]struct {
		write  intent.WriteType
		fault  orders.FaultKind
		change func(w *intent.WriteIntent)
		then   func(b *bench, id ledger.ID)
		want   ledger.Status
		reason string
	}{
		"create":      {intent.Create, "", nil, nil, ledger.Verified, "the values are equal"},
		"lost answer": {intent.Create, orders.LostAnswer, nil, nil, ledger.Verified, "it is searched for by the key as it is"},
		"phantom":     {intent.Create, orders.PhantomSuccess, nil, nil, ledger.Verified, "the second send is the same to the byte"},
		"refused":     {intent.Create, orders.Refused, nil, nil, ledger.NotApplied, "what the destination says quotes what it was sent"},
		"unreadable":  {intent.Update, orders.UnreadableRead, nil, nil, ledger.Verified, "as do errors of reads"},
		"mismatch":    {intent.Update, orders.NormalisedField, nil, nil, ledger.StatusReview, "what was seen is not what was wanted"},
		"dropped":     {intent.Create, orders.DroppedField, undone, nil, ledger.Compensated, "the undoing requires what was seen"},
		"update":      {intent.Update, "", nil, nil, ledger.Verified, "the pre-state is kept"},
		"upsert":      {intent.Upsert, orders.LostAnswer, nil, nil, ledger.Verified, "the same"},
		"delete":      {intent.Delete, orders.LostAnswer, nil, nil, ledger.Verified, "what was deleted is kept"},
		"undone update": {intent.Update, "", undone, func(b *bench, id ledger.ID) {
			b.undo(id, engine.Undoing{By: "saga", Reason: "not wanted, says " + canaryNote})
		}, ledger.Compensated, "what was there before is written again"},
		"undone delete": {intent.Delete, "", undone, func(b *bench, id ledger.ID) {
			b.undo(id, engine.Undoing{By: "saga", Reason: "not wanted"})
		}, ledger.Compensated, "what was deleted is made again"},
		"held": {intent.Update, "", func(w *intent.WriteIntent) { w.Risk = intent.RiskApprove }, func(b *bench, id ledger.ID) {
			if _, err := b.engine.Resolve(b.t.Context(), "acme", id, engine.Decision{Word: engine.WordApprove, By: "kim", Reason: "agreed with " + canaryNote}); err != nil {
				b.t.Error(err)
			}
		}, ledger.Verified, "what a reviewer says may quote it too"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, w, out := sealedOnce(t, c.write, c.fault, c.change)
				if c.then != nil {
					c.then(b, out.ID)
				}
				b.worked(2 * time.Hour)
				rec := b.state(out.ID)
				if got := rec.Status(); got != c.want {
					t.Errorf("%s, want %s: %s%s", got, c.want, c.reason, b.life(out.ID))
				}
				if again := b.do(w); again.ID != out.ID || !again.Replayed {
					t.Errorf("a repeat was not recognised: %+v", again)
				}
				b.clean(out)
				if got, err := b.engine.Opened(rec); err != nil || got.Key["order_id"] != canaryKey {
					t.Errorf("opened: %+v, %v", got.Key, err)
				}
				if name == "undone update" || name == "undone delete" {
					if now := b.world.Records(canaryKey); len(now) != 1 || now[0].Fields["note"] != canaryBefore {
						t.Errorf("it was not brought back: %+v", now)
					}
				}
			})
		})
	}
}

// sealedOnce makes one write of canaries under a fault. The canaries were there before unless
// it is a create.
func sealedOnce(t *testing.T, write intent.WriteType, kind orders.FaultKind, change func(*intent.WriteIntent)) (*bench, intent.WriteIntent, engine.Outcome) {
	t.Helper()
	o := orders.Plain.Options()
	o.Versions = true
	b := discreet(t, o, nil)
	if write != intent.Create {
		b.seed(intent.Fields{"order_id": canaryKey, "amount_cents": jsonNumber(5), "currency": "EUR", "note": canaryBefore}, "")
	}
	time.Sleep(time.Hour)
	f := orders.Fault{Kind: kind, Times: 1}
	switch kind {
	case orders.DroppedField:
		f.Field = "currency"
	case orders.NormalisedField:
		f.Field, f.How = "currency", "lower"
	}
	if kind != "" {
		b.set(f)
	}
	w := private(write)
	if change != nil {
		change(&w)
	}
	return b, w, b.do(w)
}

// A sensitive number is sealed also in the texts that quote it as the caller wrote it, which is
// not as canonical JSON writes it.
func TestASensitiveNumberIsSealedAsItIsWritten(t *testing.T) {
	b := discreet(t, orders.Plain.Options(), nil)
	w := private(intent.Create)
	w.Sensitive = []string{"/amount_cents"}
	w.Expect["amount_cents"], w.Payload["note"] = json.Number("19.00"), "charge 19.00 to the card"
	id, err := b.engine.Enqueue(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if kept := text(t, b.state(id)); strings.Contains(kept, "19.00") {
		t.Errorf("the ledger has the number in the clear:\n%s", kept)
	}
}

func undone(w *intent.WriteIntent) { *w = undoable(*w) }

// The control without sealing: the test that searches for canaries finds them.
func TestCanariesAreDetected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		w := private(intent.Create)
		w.Sensitive = nil
		out := b.do(w)
		kept := strings.ToLower(text(t, b.state(out.ID)))
		for _, c := range []string{canaryKey, canaryAmount, canaryCurrency} {
			if !strings.Contains(kept, strings.ToLower(c)) {
				t.Errorf("%s is not in a ledger that seals nothing", c)
			}
		}
	})
}

// Whatever call of its process is the last, another process with the same key continues the
// write.
func TestSealedWritesSurviveEveryCrash(t *testing.T) {
	for _, write := range []intent.WriteType{intent.Create, intent.Update} {
		for _, how := range []string{"before", "after", "landing"} {
			for calls := range 8 {
				synctest.Test(t, func(t *testing.T) {
					b := discreet(t, orders.Plain.Options(), nil)
					if write == intent.Update {
						b.seed(intent.Fields{"order_id": canaryKey, "amount_cents": jsonNumber(5), "note": canaryBefore}, "")
					}
					time.Sleep(time.Hour)
					m := &mortal{Ledger: b.ledger, Connector: b.world.Destination().Connector, settled: func(ledger.Record) {}}
					m.doom(calls, how)
					dying := b.sealingOn(m, m, vaultOf(t, "k1"), nil)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					_, _ = dying.Do(ctx, private(write))
					b.worked(2 * time.Hour)
					out := b.do(private(write))
					if live := b.world.Records(canaryKey); out.Status != ledger.Verified || len(live) != 1 || live[0].Fields["currency"] != canaryCurrency {
						t.Errorf("%s, %s call %d: %s with %d records%s", write, how, calls, out.Status, len(live), b.life(out.ID))
					}
					b.clean(out)
				})
			}
		}
	}
}

// A caller of ReadBack passes the earlier observation back, and learns nothing sensitive.
func TestReadsAreSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discreet(t, orders.Plain.Options(), nil)
		b.seed(intent.Fields{"order_id": canaryKey, "amount_cents": jsonNumber(5), "note": canaryBefore}, "")
		w := private(intent.Update)
		w.Require = intent.Fields{"note": "Canary, another"}
		first, err := b.engine.ReadBack(t.Context(), w, engine.ReadBackCase{})
		if err != nil || first.Seen == nil {
			t.Fatalf("%+v, %v", first, err)
		}
		if err := connectorEdit(b); err != nil {
			t.Fatal(err)
		}
		w.Require = nil
		then, err := b.engine.ReadBack(t.Context(), w, engine.ReadBackCase{Began: time.Now().Add(-time.Minute), Ended: time.Now(), Before: first.Seen})
		if err != nil || then.Effect != engine.EffectPresent {
			t.Errorf("%+v, %v", then, err)
		}
		b.set(orders.Fault{Kind: orders.UnreadableRead})
		failed, err := b.engine.ReadBack(t.Context(), w, engine.ReadBackCase{})
		if err != nil || !strings.Contains(failed.Reason, redact.ShownPrefix) {
			t.Errorf("%+v, %v", failed, err)
		}
		for _, one := range []engine.ReadResult{first, then, failed} {
			noCanary(t, "a read", text(t, one))
			one.Seen = nil
			if strings.Contains(text(t, one), redact.Prefix) {
				t.Errorf("a read shows a token: %+v", one)
			}
		}
		other := b.sealing(vaultOf(t, "k2"), nil)
		if _, err := other.ReadBack(t.Context(), w, engine.ReadBackCase{Began: time.Now(), Before: first.Seen}); !errors.Is(err, redact.ErrNoKey) {
			t.Errorf("another key: %v", err)
		}
	})
}

// connectorEdit makes the declared change, as its caller would.
func connectorEdit(b *bench) error {
	_, err := b.world.Edit(b.world.Records(canaryKey)[0].ID, intent.Fields{"amount_cents": jsonNumber(190919), "currency": canaryCurrency})
	return err
}
