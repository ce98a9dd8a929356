package rest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
	"github.com/readback-go/readback/verify"
)

// uniqueFakes are the shipped declarations whose keys the API keeps unique.
var uniqueFakes = map[string]func() api{
	"hubspot":       func() api { a, _ := hubSpot("contact"); return a },
	"hubspot-keyed": func() api { a, _ := hubSpot("keyed-contact"); return a },
	"calendar":      func() api { a, _ := calendar(); return a },
	"salesforce":    func() api { a, _ := salesforce(true); return a },
}

// randomSeeds is how many runs of each declaration are made: enough for each fault to meet each
// write type, few enough to take a second.
const randomSeeds = 60

// TestRandomLives takes a write of any type through the engine while several faults apply at
// once, and checks the outcome against the API's own store.
func TestRandomLives(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(uniqueFakes)) {
		counts := map[ledger.Status]int{}
		for seed := range uint64(randomSeeds) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := uniqueFakes[name]()
					counts[randomLife(t, a, rand.New(rand.NewPCG(seed, 1)))]++
				})
			})
		}
		if counts[ledger.Verified] < randomSeeds/3 {
			t.Errorf("%s: %v; a verifier that never says yes proves nothing", name, counts)
		}
	}
}

// randomLife makes one run and returns the engine's outcome.
func randomLife(t *testing.T, a api, r *rand.Rand) ledger.Status {
	writes := []intent.WriteType{intent.Create, intent.Update, intent.Delete}
	if a.kind != "event" {
		writes = append(writes, intent.Upsert)
	}
	w := writes[r.IntN(len(writes))]
	if w == intent.Update || w == intent.Delete || r.IntN(4) == 0 {
		if err := a.put(merged(a.intent(intent.Create, 1)), ""); err != nil {
			t.Fatal(err)
		}
	}
	for range 1 + r.IntN(3) {
		misbehave(t, a, r)
	}
	in := whole(a, a.intent(w, 1))
	if r.IntN(2) == 0 {
		in.OnMismatch = intent.MismatchRetry
	}
	before := a.under(in.Key)
	out := engineDo(t, a, in)
	<-time.After(3 * time.Minute) // what is late has come
	truthful(t, a, in, before, out)
	return out.Status
}

var randomFaults = []fault.Kind{
	fault.LostAnswer, fault.DroppedBefore, fault.BadGateway, fault.LateCommit, fault.PhantomSuccess,
	fault.DroppedField, fault.NormalisedField, fault.Unreachable, fault.Refused, fault.Throttled,
	fault.UnreadableRead, fault.HangingRead,
}

func misbehave(t *testing.T, a api, r *rand.Rand) {
	t.Helper()
	f := fault.Fault{Kind: randomFaults[r.IntN(len(randomFaults))], Times: 1, Delay: time.Duration(r.IntN(90)) * time.Second}
	if forms := fakerest.Forms[f.Kind]; len(forms) > 0 {
		f.How = forms[r.IntN(len(forms))]
	}
	if err := a.fake.Set(f); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s %v", f.Kind, f.How, f.Delay)
}

func engineDo(t *testing.T, a api, in intent.WriteIntent) engine.Outcome {
	t.Helper()
	con, _ := a.connector(t)
	var reg connectors.Registry
	if err := reg.Register(a.name, connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
		t.Fatal(err)
	}
	e := engine.New(ledger.NewMemory(), &reg, nil)
	defer e.Close()
	out, err := e.Do(t.Context(), in)
	if errors.Is(err, intent.ErrInvalid) { // turned down before anything was recorded: no status
		return engine.Outcome{Text: err.Error()}
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// truthful compares the outcome with the store.
func truthful(t *testing.T, a api, in intent.WriteIntent, before []connectors.Record, out engine.Outcome) {
	t.Helper()
	_, p := a.connector(t)
	same, now := sameAs(p), a.under(in.Key)
	asWanted := len(now) == 1
	for name, want := range in.Expect {
		asWanted = asWanted && same(name, want, now[0].Fields[name])
	}
	if in.Write == intent.Delete {
		asWanted = len(now) == 0
	}
	made := 0
	for _, e := range a.fake.Effects() {
		if e.By == fault.ByRequest && e.Before == nil && e.After != nil {
			made++
		}
	}
	changed := len(now) != len(before)
	switch {
	case made > 1:
		t.Errorf("it was made %d times", made)
	case out.Status == ledger.Verified && !asWanted:
		t.Errorf("%s is called verified, and the store has %v", in.Write, now)
	case out.Status == ledger.NotApplied && changed:
		t.Errorf("%s is called not applied, and the store had %v and has %v", in.Write, before, now)
	}
}

// TestSamples: the samples by which a destination is measured can be written,
// and are found as they were declared.
func TestSamples(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(uniqueFakes)) {
		t.Run(name, func(t *testing.T) {
			a := uniqueFakes[name]()
			con, p := a.connector(t)
			for _, w := range []intent.WriteType{intent.Create, intent.Update, intent.Delete} {
				in, err := con.Sample(a.kind, w, "s1")
				if err != nil {
					t.Fatal(err)
				}
				if v := judged(t, a, con, p, in); v != verify.Verified {
					t.Errorf("%s of a sample is %s, want verified", w, v)
				}
			}
		})
	}
}

// TestUniqueNumbersAsKeys: a key that was given as a number, or as a truth
// value, is a text there. It must be found again, or be turned down.
func TestUniqueNumbersAsKeys(t *testing.T) {
	for _, name := range []string{"hubspot-keyed", "calendar", "salesforce"} {
		for _, key := range []any{json.Number("47110"), json.Number("1.0"), false} {
			t.Run(fmt.Sprintf("%s/%v", name, key), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := uniqueFakes[name]()
					in := whole(a, a.intent(intent.Create, 1))
					for field := range in.Key {
						in.Key[field] = key
					}
					if err := a.fake.Set(fault.Fault{Kind: fault.LostAnswer}.Once()); err != nil {
						t.Fatal(err)
					}
					out := engineDo(t, a, in)
					n := len(a.fake.Now(a.collection))
					if n > 1 || out.Status == ledger.Verified && n != 1 || out.Status == ledger.NotApplied && n != 0 {
						t.Errorf("%s (%s), %d records", out.Status, out.Text, n)
					}
					if key == json.Number("47110") && out.Status != ledger.Verified {
						t.Errorf("%s (%s), want it found again and verified", out.Status, out.Text)
					}
				})
			})
		}
	}
}
