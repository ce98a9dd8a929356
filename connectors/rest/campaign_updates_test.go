package rest_test

import (
	"fmt"
	"maps"
	rand1 "math/rand"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// updated is what became of the updates of one kind.
type updated struct {
	writes, meddled, replaced, noticed, reviews, judged int
	met                                                 map[ledger.Status]int
}

// TestUpdates updates records while another actor changes the same field between our read and our send,
// or right after it, and the network fails. Where the API takes a condition none of these changes is
// replaced. Elsewhere the first send that is taken up may replace one, as the sheet says, and no repeat
// does.
func TestUpdates(t *testing.T) {
	type kind struct {
		open    func() api
		connect func(t *testing.T, a api) connector
	}
	kinds := map[string]kind{}
	for _, fakes := range []map[string]func() api{shippedFakes, uniqueFakes} {
		for name, open := range fakes {
			kinds[name] = kind{open, func(t *testing.T, a api) connector { c, _ := a.connector(t); return c }}
		}
	}
	for name, d := range destinations {
		if d.update != nil {
			kinds[name] = kind{func() api { return d.api(name, d.open()) }, func(t *testing.T, a api) connector { return d.connector(t, a.name, a.fake) }}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(name, func(t *testing.T) {
			sum := updated{met: map[ledger.Status]int{}}
			seeds := uint64(1)
			if *allSeeds {
				seeds = campaignSeeds
			}
			for seed := range seeds {
				synctest.Test(t, func(t *testing.T) {
					a := kinds[name].open()
					a.updates(t, kinds[name].connect(t, a), seed+1, &sum)
				})
			}
			t.Logf("%+v", sum)
			if sum.meddled == 0 || sum.met[ledger.Verified] == 0 || sum.reviews*100 > sum.judged {
				t.Errorf("%+v; want writes that another actor meets, and verified ones, and no more than 1 %% of the others in review", sum)
			}
		})
	}
}

func (a api) updates(t *testing.T, con connector, seed uint64, sum *updated) {
	r := rand.New(rand.NewPCG(seed, 11))
	rand1.Seed(int64(seed)) //nolint:staticcheck // as in the campaign
	p := con.Profiles()[a.kind]
	conditional := slices.Contains(p.Conditional, intent.Update)
	if !conditional {
		a.unconditional(t)
	}
	settle, _ := p.Settle.Declared()
	var reg connectors.Registry
	if err := reg.Register(a.name, connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
		t.Fatal(err)
	}
	e := engine.New(ledger.NewMemory(), &reg, nil)
	t.Cleanup(e.Close)
	many := 24 / need.OneIn(2)
	type update struct {
		in      intent.WriteIntent
		from    int // the effects before it
		moment  int
		open    bool // the first write that arrives may not be the first that is executed
		field   string
		foreign any // what another actor wrote there, nil for nothing
	}
	var all []*update
	for n := range many {
		made := a.step(intent.Create, n)
		if len(p.Writes) == 0 || slices.Contains(p.Writes, intent.Create) {
			if out, err := e.Do(t.Context(), made); err != nil || out.Status != ledger.Verified {
				t.Fatalf("%s: %s; %v", out.Status, out.Text, err)
			}
		}
		time.Sleep(30 * time.Minute)
		u := &update{in: a.step(intent.Update, n), from: len(a.fake.Effects()), moment: r.IntN(4)}
		for _, name := range slices.Sorted(maps.Keys(u.in.Expect)) {
			if _, ok := u.in.Expect[name].(string); ok {
				u.field = name
				break
			}
		}
		meddle := func(moment fakerest.Moment) func(fakerest.Moment) {
			return func(now fakerest.Moment) {
				if now != moment {
					return
				}
				if err := a.alter(a.object(u.in.Key), intent.Fields{u.field: "by hand"}); err != nil {
					t.Error(err)
				}
				r, _ := a.record(a.object(u.in.Key))
				u.foreign = r.Fields[u.field]
			}
		}
		switch {
		case u.moment == 1:
			a.fake.Meanwhile(1, meddle(fakerest.Arrived))
		case u.moment == 2:
			a.fake.Meanwhile(1, meddle(fakerest.Left))
		case u.moment == 3 && conditional: // elsewhere nothing keeps a repeat from what came since the read before it
			a.fake.Meanwhile(2, meddle(fakerest.Arrived))
		}
		a.fake.SetLag(time.Duration(r.Int64N(int64(settle)*2/3 + 1)))
		for range r.IntN(3) {
			set := fault.Fault{Kind: networkFaults[r.IntN(len(networkFaults))], Times: 1, Delay: time.Duration(1+r.IntN(90)) * time.Second}
			if forms := fakerest.Forms[set.Kind]; len(forms) > 0 {
				set.How = forms[r.IntN(len(forms))]
			}
			u.open = u.open || set.Kind == fault.LateCommit || set.Kind == fault.Throttled
			if err := a.fake.Set(set); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := e.Do(t.Context(), u.in); err != nil {
			t.Fatal(err)
		}
		for range 8 { // to its end, so that what another actor does is of this record
			time.Sleep(15 * time.Minute)
			if _, err := e.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		a.fake.Clear()
		a.fake.SetLag(0)
		a.fake.Meanwhile(1, nil)
		all = append(all, u)
	}
	for range 30 {
		time.Sleep(30 * time.Minute)
		if _, err := e.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	same := sameAs(p)
	for n, u := range all {
		out, err := e.Do(t.Context(), u.in)
		if err != nil {
			t.Fatal(err)
		}
		wants := func(f intent.Fields) bool {
			for name, want := range u.in.Expect {
				if !same(name, want, f[name]) {
					return false
				}
			}
			return true
		}
		applied, replaced := 0, 0
		for _, effect := range a.fake.Effects()[u.from:] {
			before, was := a.record(effect.Before)
			after, is := a.record(effect.After)
			if effect.Collection != a.collection || effect.By != fault.ByRequest || !was || !is || !has(after.Fields, u.in.Key) || !wants(after.Fields) {
				continue
			}
			applied++
			if u.foreign != nil && fmt.Sprint(before.Fields[u.field]) == fmt.Sprint(u.foreign) {
				replaced++
			}
		}
		now := a.under(u.in.Key)
		asWanted := len(now) == 1 && wants(now[0].Fields)
		wrong := ""
		switch {
		case replaced > 0 && conditional:
			wrong = "it replaced what another actor wrote, and the API takes a condition"
		case replaced > 1, replaced > 0 && u.moment == 2 && !u.open:
			wrong = "a repeat replaced what another actor wrote"
		case out.Status == ledger.Verified && !asWanted:
			wrong = fmt.Sprintf("the store has %v", now)
		case out.Status == ledger.NotApplied && applied > 0:
			wrong = "it was applied"
		case out.Status != ledger.Verified && out.Status != ledger.NotApplied && out.Status != ledger.StatusReview:
			wrong = "it never ended"
		}
		if wrong != "" {
			t.Errorf("seed %d, update %d (moment %d, open %t) is %s (%s): %s", seed, n, u.moment, u.open, out.Status, out.Text, wrong)
		}
		sum.writes++
		sum.replaced += replaced
		sum.met[out.Status]++
		if u.foreign != nil {
			sum.meddled++
			if out.Status != ledger.Verified {
				sum.noticed++
			}
			continue
		}
		sum.judged++
		if out.Status == ledger.StatusReview {
			sum.reviews++
			t.Logf("seed %d, update %d needs a reviewer: %s", seed, n, out.Text)
		}
	}
}

// unconditional checks that the sheet says what becomes of others' changes.
func (a api) unconditional(t *testing.T) {
	t.Helper()
	for _, s := range rest.Sheets() {
		if s.Profile.Kind != a.kind || s.Name != a.name && s.Name != a.name+"-"+a.kind {
			continue
		}
		for _, claim := range s.Claims {
			if claim.About == "conditional writes" && claim.Says != "" {
				return
			}
		}
	}
	t.Error("no sheet says anything of conditional writes")
}

// step is a write of its own step.
func (a api) step(w intent.WriteType, n int) intent.WriteIntent {
	in := whole(a, a.intent(w, n))
	in.Step = fmt.Sprint(w, "-", n)
	return in
}
