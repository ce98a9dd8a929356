package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

func (b *bench) readBack(w intent.WriteIntent, c engine.ReadBackCase) engine.ReadResult {
	b.t.Helper()
	calls, _ := b.world.Count()
	found, err := b.engine.ReadBack(b.t.Context(), w, c)
	if err != nil {
		b.t.Fatalf("ReadBack: %v", err)
	}
	if after, _ := b.world.Count(); after != calls {
		b.t.Errorf("a read made %d writes", after-calls)
	}
	return found
}

// readBackTest is a write that its caller makes itself: it asks readback before and after.
type readBackTest struct {
	write   intent.WriteType
	before  intent.Fields
	options func(*orders.Options)
	does    func(*bench)
	after   time.Duration // since the caller gave up
	effect  engine.Effect
	verdict verify.Verdict
	more    bool // another read can show more
	reason  string
}

func readBackCases() map[string]readBackTest {
	wrong := intent.Fields{"order_id": "A-1", "amount_cents": jsonNumber(7), "currency": "USD"}
	wrote := func(b *bench) { b.seed(asStored("A-1"), "") }
	set := func(b *bench) { b.edit(intent.Fields{"amount_cents": jsonNumber(1999), "currency": "USD"}) }
	horizonless := func(o *orders.Options) { o.Horizon = connectors.Bound{} }
	lagging := func(o *orders.Options) {
		o.Lags, o.Settle = []time.Duration{time.Minute}, connectors.Within(time.Minute)
	}
	unsettled := func(o *orders.Options) { o.Lags, o.Settle = []time.Duration{time.Minute}, connectors.Bound{} }
	return map[string]readBackTest{
		"created":              {intent.Create, nil, nil, wrote, 0, engine.EffectPresent, verify.Verified, false, "it is there, and was not before"},
		"not created":          {intent.Create, nil, nil, nil, time.Hour, engine.EffectAbsent, verify.Absent, false, "a strong read after the horizon"},
		"not created yet":      {intent.Create, nil, nil, nil, 5 * time.Second, engine.EffectUnknown, verify.Absent, true, "it may be on its way"},
		"nearly the horizon":   {intent.Create, nil, nil, nil, 25 * time.Second, engine.EffectAbsent, verify.Absent, false, "the rest is waited for"},
		"no horizon":           {intent.Create, nil, horizonless, nil, 100 * time.Hour, engine.EffectUnknown, verify.Absent, false, "it is unknown when it is over"},
		"created wrongly":      {intent.Create, nil, nil, func(b *bench) { b.seed(wrong, "") }, time.Hour, engine.EffectUnknown, verify.Mismatched, false, "what is there is not as declared"},
		"created twice":        {intent.Create, nil, nil, func(b *bench) { wrote(b); wrote(b) }, time.Hour, engine.EffectUnknown, verify.Duplicated, false, "one was declared"},
		"there before":         {intent.Create, asStored("A-1"), nil, nil, time.Hour, engine.EffectUnknown, verify.Mismatched, false, "it is another actor's"},
		"there before, twice":  {intent.Create, asStored("A-1"), nil, wrote, time.Hour, engine.EffectUnknown, verify.Mismatched, false, "which one is it?"},
		"updated":              {intent.Update, seeded, nil, set, 0, engine.EffectPresent, verify.Verified, false, "it is as declared, and was not before"},
		"not updated":          {intent.Update, seeded, nil, nil, time.Hour, engine.EffectAbsent, verify.Stale, false, "it is as before, and nothing can land"},
		"not updated yet":      {intent.Update, seeded, nil, nil, time.Second, engine.EffectUnknown, verify.Stale, true, "it may be on its way"},
		"as wished before":     {intent.Update, asStored("A-1"), nil, nil, time.Hour, engine.EffectPresent, verify.Vacuous, false, "the wish was fulfilled"},
		"changed by others":    {intent.Update, seeded, nil, func(b *bench) { b.edit(intent.Fields{"amount_cents": jsonNumber(3)}) }, time.Hour, engine.EffectUnknown, verify.Mismatched, false, "it is neither"},
		"and others besides":   {intent.Update, seeded, nil, func(b *bench) { set(b); b.edit(intent.Fields{"note": "x"}) }, time.Hour, engine.EffectUnknown, verify.Collateral, false, "something else has changed"},
		"removed by others":    {intent.Update, seeded, nil, func(b *bench) { b.remove("A-1") }, time.Hour, engine.EffectUnknown, verify.Absent, false, "its absence says nothing"},
		"deleted":              {intent.Delete, seeded, nil, func(b *bench) { b.remove("A-1") }, 0, engine.EffectPresent, verify.Verified, false, "it is gone"},
		"gone before":          {intent.Delete, nil, nil, nil, time.Hour, engine.EffectPresent, verify.Vacuous, false, "the wish was fulfilled"},
		"not deleted":          {intent.Delete, seeded, nil, nil, time.Hour, engine.EffectAbsent, verify.Stale, false, "it is as before"},
		"upserted":             {intent.Upsert, nil, nil, wrote, 0, engine.EffectPresent, verify.Verified, false, "it is there"},
		"created, reads lag":   {intent.Create, nil, lagging, wrote, 55 * time.Second, engine.EffectPresent, verify.Verified, false, "the lag is waited for"},
		"created, far behind":  {intent.Create, nil, lagging, wrote, time.Second, engine.EffectUnknown, verify.Indeterminate, true, "what is seen may be from before"},
		"not created, lags":    {intent.Create, nil, lagging, nil, 70 * time.Second, engine.EffectUnknown, verify.Absent, true, "settle time and horizon count"},
		"not created, settled": {intent.Create, nil, lagging, nil, 2 * time.Minute, engine.EffectAbsent, verify.Absent, false, "settle time and horizon have passed"},
		"reads lag for ever":   {intent.Create, nil, unsettled, nil, 100 * time.Hour, engine.EffectUnknown, verify.Absent, false, "no read proves absence"},
		"cannot be read": {intent.Create, nil, nil, func(b *bench) { b.set(orders.Fault{Kind: orders.UnreadableRead, Times: 1000}) }, time.Hour,
			engine.EffectUnknown, verify.Unavailable, true, "nothing was seen"},
		"read at second try": {intent.Create, nil, nil, func(b *bench) {
			wrote(b)
			b.set(orders.Fault{Kind: orders.UnreadableRead, Times: 1})
		}, 0, engine.EffectPresent, verify.Verified, false, "once is no reason"},
	}
}

func TestReadBackResults(t *testing.T) {
	for name, c := range readBackCases() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := orders.Plain.Options()
				if c.options != nil {
					c.options(&o)
				}
				b := newBench(t, o, nil)
				if c.before != nil {
					b.seed(c.before, "")
				}
				time.Sleep(time.Hour)
				w := order("A-1", c.write)
				before := b.readBack(w, engine.ReadBackCase{})
				if before.Seen == nil {
					t.Fatalf("before: %+v", before)
				}
				began := time.Now()
				if c.does != nil {
					c.does(b)
				}
				time.Sleep(time.Minute)
				ended := time.Now()
				time.Sleep(c.after)
				asked := time.Now()
				found := b.readBack(w, engine.ReadBackCase{Began: began, Ended: ended, Before: before.Seen})
				if found.Effect != c.effect || found.Verdict != c.verdict || found.Reason == "" {
					t.Fatalf("%q, %s: %s; want %q, %s: %s", found.Effect, found.Verdict, found.Reason, c.effect, c.verdict, c.reason)
				}
				if found.After.After(time.Now()) != c.more || time.Since(asked) > 11*time.Second {
					t.Errorf("after %s, to be asked again in %s", time.Since(asked), time.Until(found.After))
				}
				if named := found.Ref != ""; named != (found.Effect == engine.EffectPresent && len(b.world.Records("A-1")) == 1) {
					t.Errorf("named %q", found.Ref)
				}
			})
		})
	}
}

// Before a write is begun the read shows whether there is anything to do.
func TestReadBackBeforehand(t *testing.T) {
	for name, c := range map[string]struct {
		write   intent.WriteType
		there   intent.Fields
		lags    bool
		effect  engine.Effect
		verdict verify.Verdict
	}{
		"nothing there":      {intent.Create, nil, false, engine.EffectAbsent, verify.Absent},
		"nothing, may lag":   {intent.Create, nil, true, engine.EffectUnknown, verify.Absent},
		"the key is taken":   {intent.Create, asStored("A-1"), false, engine.EffectUnknown, verify.Mismatched},
		"to be changed":      {intent.Update, seeded, false, engine.EffectAbsent, verify.Indeterminate},
		"as wished":          {intent.Update, asStored("A-1"), false, engine.EffectPresent, verify.Vacuous},
		"as wished, may lag": {intent.Update, asStored("A-1"), true, engine.EffectUnknown, verify.Indeterminate},
		"nothing to change":  {intent.Update, nil, false, engine.EffectUnknown, verify.Absent},
		"gone already":       {intent.Delete, nil, false, engine.EffectPresent, verify.Vacuous},
		"to be deleted":      {intent.Delete, seeded, false, engine.EffectAbsent, verify.Indeterminate},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				class := orders.Plain
				if c.lags {
					class = orders.Lagging
				}
				b := newBench(t, class.Options(), nil)
				if c.there != nil {
					b.seed(c.there, "")
				}
				time.Sleep(time.Hour)
				if found := b.readBack(order("A-1", c.write), engine.ReadBackCase{}); found.Effect != c.effect || found.Verdict != c.verdict {
					t.Errorf("%q, %s: %s; want %q, %s", found.Effect, found.Verdict, found.Reason, c.effect, c.verdict)
				}
			})
		})
	}
}

// A write of this ledger answers by its outcome.
func TestReadBackAsksTheLedger(t *testing.T) {
	w := order("A-1", intent.Create)
	risky := order("A-1", intent.Create)
	risky.Risk = intent.RiskApprove
	word := func(b *bench, word engine.Word) {
		if _, err := b.engine.Resolve(b.t.Context(), "acme", b.do(risky).ID, engine.Decision{Word: word, By: "ada", Reason: "x"}); err != nil {
			b.t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		w      intent.WriteIntent
		made   func(b *bench)
		effect engine.Effect
	}{
		"verified":    {w, func(b *bench) { b.do(w) }, engine.EffectPresent},
		"not applied": {w, func(b *bench) { b.set(orders.Fault{Kind: orders.Refused, Times: 1}); b.do(w) }, engine.EffectAbsent},
		"denied":      {risky, func(b *bench) { word(b, engine.WordDeny) }, engine.EffectAbsent},
		"held":        {risky, func(b *bench) { b.do(risky) }, engine.EffectUnknown},
		"expired":     {risky, func(b *bench) { b.do(risky); time.Sleep(48 * time.Hour); b.do(risky) }, engine.EffectAbsent},
		"review":      {w, func(b *bench) { b.seed(seeded, ""); b.do(w) }, engine.EffectUnknown},
		"undone": {compensable(w), func(b *bench) {
			if out := b.undo(b.do(compensable(w)).ID, unwanted); out.Status != ledger.Compensated {
				b.t.Fatal(out.Status)
			}
		}, engine.EffectAbsent},
		"something else": {risky, func(b *bench) { b.do(w) }, engine.EffectUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				c.made(b)
				_, reads := b.world.Count()
				found := b.readBack(c.w, engine.ReadBackCase{Began: time.Now(), Ended: time.Now()})
				if _, after := b.world.Count(); found.Effect != c.effect || found.Write == "" || found.Reason == "" || after != reads {
					t.Errorf("%+v after %d reads, want %q", found, after-reads, c.effect)
				}
			})
		})
	}
}

func TestReadBackIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		far, empty, ours := order("A-1", intent.Create), order("A-1", intent.Create), order("A-1", intent.Create)
		far.Destination, empty.Expect, ours.Compensates = "moon", nil, "wr_1"
		for name, c := range map[string]struct {
			w    intent.WriteIntent
			c    engine.ReadBackCase
			want error
		}{
			"unknown destination": {far, engine.ReadBackCase{}, connectors.ErrUnknownDestination},
			"expects nothing":     {empty, engine.ReadBackCase{}, intent.ErrInvalid},
			"the engine's":        {ours, engine.ReadBackCase{}, intent.ErrInvalid},
			"no pre-state":        {order("A-1", intent.Create), engine.ReadBackCase{Before: json.RawMessage(`[]`)}, intent.ErrInvalid},
		} {
			if found, err := b.engine.ReadBack(t.Context(), c.w, c.c); !errors.Is(err, c.want) {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
			if err := b.engine.Check(c.w); c.c.Before == nil && !errors.Is(err, c.want) {
				t.Errorf("check: %s: %v", name, err)
			}
		}
		if recs, err := b.ledger.List(t.Context(), ledger.Filter{Tenant: "acme"}); err != nil || len(recs) != 0 {
			t.Errorf("%d writes recorded, %v", len(recs), err)
		}
		b.engine.Close()
		if _, err := b.engine.ReadBack(context.Background(), order("A-1", intent.Create), engine.ReadBackCase{}); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// A write that was not given up may be on its way.
func TestReadBackOfWhatWasNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		if found := b.readBack(order("A-1", intent.Create), engine.ReadBackCase{Began: time.Now().Add(-time.Hour)}); found.Effect != engine.EffectUnknown || found.Verdict != verify.Absent {
			t.Errorf("%+v", found)
		}
	})
}

// A read that began before the write was given up, and was answered after it, proves nothing:
// another is made at once.
func TestReadBackAcrossTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		d := b.world.Destination()
		d.Connector = distant{d.Connector}
		b.engine = b.engineOn(b.ledger, d, nil)
		b.seed(asStored("A-1"), "")
		c := engine.ReadBackCase{Began: time.Now().Add(-time.Minute), Ended: time.Now().Add(way / 2)}
		if found := b.readBack(order("A-1", intent.Create), c); found.Effect != engine.EffectPresent || found.Verdict != verify.Verified {
			t.Errorf("%q, %s: %s", found.Effect, found.Verdict, found.Reason)
		}
	})
}

// If the effect may be invisible to reads, absence is never certain.
func TestAbsenceOfTheIrreversibleProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		d := b.world.Destination()
		p := d.Profiles[orders.Kind]
		p.Irreversible = []intent.WriteType{intent.Create}
		d.Profiles = map[string]connectors.Profile{orders.Kind: p}
		b.engine = b.engineOn(b.ledger, d, nil)
		time.Sleep(100 * time.Hour)
		began := time.Now().Add(-90 * time.Hour)
		if found := b.readBack(order("A-1", intent.Create), engine.ReadBackCase{Began: began, Ended: began}); found.Effect != engine.EffectUnknown {
			t.Errorf("%+v", found)
		}
	})
}

// A message has our stamp, or is indistinguishable from others: another actor's message cannot
// be found by its recipient.
func TestReadBackWithoutAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		d := b.world.Destination()
		p := d.Profiles[orders.Kind]
		p.FreshKeys = true
		d.Profiles = map[string]connectors.Profile{orders.Kind: p}
		b.engine = b.engineOn(b.ledger, d, nil)
		found := b.readBack(order("A-1", intent.Create), engine.ReadBackCase{Began: time.Now(), Ended: time.Now().Add(-time.Hour)})
		if found.Effect != engine.EffectUnknown || found.Reason == "" || len(b.world.Calls()) != 0 {
			t.Errorf("%+v", found)
		}
	})
}
