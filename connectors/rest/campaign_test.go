// The seed of math/rand counts here, since runs must be repeatable.
//
//go:debug randseednop=0
package rest_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	rand1 "math/rand"
	"math/rand/v2"
	"slices"
	"strings"
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
	"github.com/readback-go/readback/verify"
)

var (
	allSeeds = flag.Bool("campaign.whole", false, "all seeds, and compare with the table of docs/guide/destinations.md")
	update   = flag.Bool("update", false, "render that table anew, with -campaign.whole")
)

// destination is a kind of record of a shipped declaration, on the fake of its API.
type destination struct {
	kind string
	// parameters and secrets of the account.
	parameters map[string]string
	secrets    map[string]string
	// connect makes the connector of a type that is no declaration. Default: the declaration's.
	connect func(t *testing.T, f *fakerest.Fake) connector
	// open starts the fake, with what writes need there.
	open func() *fakerest.Fake
	// collection is where the fake keeps the records.
	collection string
	// create is the n-th create, or another write where it says so.
	create func(n int) intent.WriteIntent
	// record is the record of an object of the collection, also one that another actor made, with its
	// fields as they are declared; false: it is none of this kind.
	record func(o fakerest.Object) (connectors.Record, bool)
	// other does what another actor does at the n-th write, before it: other records of the same
	// payment, channel or table, and, if taken, one under its key.
	other func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool)
	// native: the API keeps a second record away, by our key or one that it enforces. No write needs
	// a reviewer then, where neither another actor took its key nor the API stored something else.
	native bool
	// blind: nothing can be read there. A write is accepted, and never verified; without a key of the
	// API a reviewer decides about each lost answer.
	blind bool
	// lag of weak reads.
	lag time.Duration
	// names are those of the account, by the fake's; see renamed.
	names map[string]string

	// What the suite of connectors needs besides. member is that of the key which names a
	// record; default the only one.
	member string
	// update is what an update declares, where there is one, and alter another actor's change of a
	// record, by hand.
	update intent.Fields
	alter  func(o fakerest.Object)
	// patience is how long one read may take where calls are paced. Default a second.
	patience time.Duration
	traits
	// trap means that the declaration is test data.
	trap bool
}

// connector is one with its profiles.
type connector interface {
	connectors.Connector
	Profiles() map[string]connectors.Profile
}

// destinations are the kinds, by declaration/kind.
var destinations = map[string]destination{}

const (
	campaignSeeds  = 5
	campaignWrites = 200 // of one seed; with -short a quarter
)

// met is what a write met, besides the faults of networks.
type met struct{ taken, altered bool }

// tally is what became of the writes of one kind.
type tally struct {
	writes, calls, duplicates, wrong, lost, reviews, judged, clean int
}

// networkFaults are those in which the API does what it was asked for, once, late, or not at all.
var networkFaults = []fault.Kind{fault.LostAnswer, fault.DroppedBefore, fault.BadGateway, fault.LateCommit, fault.Unreachable, fault.Throttled,
	fault.UnreadableRead, fault.HangingRead, fault.LaggingRead}

// storeFaults are those in which it says that it did, and did something else.
var storeFaults = []fault.Kind{fault.DroppedField, fault.NormalisedField, fault.PhantomSuccess, fault.Rollback, fault.DuplicateBehindOurBack}

// TestCampaign sends 200 creates of each kind for each of five seeds while the network loses answers
// and requests, delivers late, reads lag and fail, the API stores something else now and then, and
// another actor writes to the same place. Each outcome is compared with the fake's own store.
func TestCampaign(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("| kind | lines of YAML | writes | duplicates | silently wrong | lost | reviews | calls for a write, nothing wrong | under faults |\n|---|---|---|---|---|---|---|---|---|\n")
	all := maps.Clone(destinations)
	maps.Copy(all, suited)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d := all[name]
		var sum tally
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { sum.clean = d.calm(t, name) })
			d.campaigns(t, name, &sum)
		})
		declaration, kind, _ := strings.Cut(name, "/")
		lines := "Go"
		if d.connect == nil {
			text, err := rest.ShippedText(declaration)
			if err != nil {
				t.Fatal(err)
			}
			lines = fmt.Sprint(bytes.Count(text, []byte("\n")))
		}
		fmt.Fprintf(&b, "| %s %s | %s | %d | %d | %d | %d | %d of %d | %.1f | %.1f |\n", declaration, kind, lines,
			sum.writes, sum.duplicates, sum.wrong, sum.lost, sum.reviews, sum.judged, float64(sum.clean)/cleanWrites, float64(sum.calls)/float64(max(sum.writes, 1)))
	}
	t.Logf("\n%s", b.String())
	if *allSeeds && !t.Failed() {
		need.Document(t, "../../docs/guide/destinations.md", "make campaign CAMPAIGN=-update", b.String(), *update)
	}
}

// campaigns makes the writes of some seeds, of which none may be made twice, be silently wrong or lost.
func (d destination) campaigns(t *testing.T, name string, sum *tally) {
	seeds := uint64(1) // all of them take ten minutes of a processor
	if *allSeeds {
		seeds = campaignSeeds
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { d.campaign(t, name, seed+1, sum) })
	}
	switch {
	case sum.duplicates+sum.wrong+sum.lost > 0:
		t.Errorf("%+v; want no duplicate, nothing silently wrong and nothing lost", *sum)
	case d.native && sum.reviews > 0, !d.blind && sum.reviews*100 > sum.judged:
		t.Errorf("%d of %d writes need a reviewer; want none where a key is native or unique, and 1 %% elsewhere", sum.reviews, sum.judged)
	}
}

func (d destination) engine(t *testing.T, name string, f *fakerest.Fake) *engine.Engine {
	declaration, _, _ := strings.Cut(name, "/")
	con := d.connector(t, declaration, f)
	var reg connectors.Registry
	if err := reg.Register(declaration, connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
		t.Fatal(err)
	}
	e := engine.New(ledger.NewMemory(), &reg, nil)
	t.Cleanup(e.Close)
	return e
}

func (d destination) connector(t *testing.T, declaration string, f *fakerest.Fake) connector {
	if d.connect != nil {
		return d.connect(t, f)
	}
	con, _ := d.api(declaration, f).connector(t)
	return con
}

// write is the n-th create, whole.
func (d destination) write(name string, n int) intent.WriteIntent {
	w := d.create(n)
	w.Destination, _, _ = strings.Cut(name, "/")
	w.Tenant, w.Workflow, w.Step, w.Tool, w.Write = "acme", "campaign", fmt.Sprint("s-", n), "create", cmp.Or(w.Write, intent.Create)
	w.Kind = d.kind
	return w
}

// of reports whether an object is the record of a write, and returns its fields.
func (d destination) of(o fakerest.Object, w intent.WriteIntent) (intent.Fields, bool) {
	if o == nil {
		return nil, false
	}
	r, ok := d.record(o)
	return r.Fields, ok && has(r.Fields, w.Key) && (w.Write != intent.Update || has(r.Fields, w.Expect))
}

// good is how a write ends with which nothing is wrong.
func (d destination) good() ledger.Status {
	if d.blind {
		return ledger.Reported
	}
	return ledger.Verified
}

const cleanWrites = 10

// calm is how many calls a number of creates cost where nothing is wrong.
func (d destination) calm(t *testing.T, name string) int {
	f := d.open()
	e := d.engine(t, name, f)
	for n := range cleanWrites {
		if out, err := e.Do(t.Context(), d.write(name, n)); err != nil || out.Status != d.good() {
			t.Fatalf("a write with which nothing is wrong is %s: %s; %v", out.Status, out.Text, err)
		}
		time.Sleep(2 * time.Minute)
	}
	writes, reads := f.Count()
	return writes + reads
}

// campaign makes the writes of one seed.
func (d destination) campaign(t *testing.T, name string, seed uint64, sum *tally) {
	r := rand.New(rand.NewPCG(seed, 7))
	rand1.Seed(int64(seed)) //nolint:staticcheck // backoff draws from the global source, and no other can make a seed one run
	f := d.open()
	e := d.engine(t, name, f)
	many := campaignWrites / need.OneIn(4)
	fates := make([]met, many)
	settled := map[int]engine.Outcome{}
	for n := range many {
		w := d.write(name, n)
		if d.other != nil && r.IntN(4) == 0 {
			fates[n].taken = r.IntN(10) == 0
			d.other(f, w, n, fates[n].taken)
		}
		f.SetLag(0)
		if r.IntN(2) == 0 {
			f.SetLag(time.Duration(r.Int64N(int64(d.lag) + 1)))
		}
		for range r.IntN(4) {
			kinds := networkFaults
			if r.IntN(12) == 0 {
				kinds, fates[n].altered = storeFaults, true
			}
			set := fault.Fault{Kind: kinds[r.IntN(len(kinds))], Times: 1, Delay: time.Duration(1+r.IntN(90)) * time.Second}
			if forms := fakerest.Forms[set.Kind]; len(forms) > 0 {
				set.How = forms[r.IntN(len(forms))]
			}
			if err := f.Set(set); err != nil {
				t.Fatal(err)
			}
		}
		out, err := e.Do(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		settled[n] = out
		f.Clear()
		time.Sleep(time.Duration(r.IntN(60)) * time.Second)
	}
	f.SetLag(0)
	for range 60 { // what is open is continued by a worker, and what is late has come
		time.Sleep(30 * time.Minute)
		if _, err := e.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	writes, reads := f.Count()
	sum.calls += writes + reads
	for n := range many {
		w := d.write(name, n)
		out, err := e.Do(t.Context(), w) // the recorded outcome; nothing is sent
		if err != nil {
			t.Fatal(err)
		}
		d.judge(t, f, seed, n, w, out, fates[n], sum)
	}
	if again, _ := f.Count(); again != writes {
		t.Errorf("seed %d: repeats of settled writes sent %d times", seed, again-writes)
	}
}

// judge compares an outcome with the store.
func (d destination) judge(t *testing.T, f *fakerest.Fake, seed uint64, n int, w intent.WriteIntent, out engine.Outcome, m met, sum *tally) {
	compare := d.connector(t, w.Destination, f).Profiles()[d.kind].Compare
	made := 0
	for _, e := range f.Effects() {
		if _, ours := d.of(e.After, w); ours && e.Collection == d.collection && e.By == fault.ByRequest && e.Before == nil {
			made++
		}
		if _, ours := d.of(e.Before, w); ours && e.Collection == d.collection && e.By == fault.ByItself && e.After == nil {
			made-- // the API took it back
		}
	}
	var now []intent.Fields
	for _, o := range f.Now(d.collection) {
		if fields, ours := d.of(o, w); ours {
			now = append(now, fields)
		}
	}
	wrong := ""
	switch {
	case made > 1:
		sum.duplicates++
		wrong = fmt.Sprintf("it was made %d times", made)
	case out.Status == ledger.Verified && (len(now) != 1 || len(verify.Diff(w, compare, now[0])) > 0):
		sum.wrong++
		wrong = fmt.Sprintf("the store has %v", now)
	case out.Status == ledger.Reported && len(now) != 1 && !m.altered:
		sum.wrong++
		wrong = fmt.Sprintf("the store has %v", now)
	case out.Status == ledger.NotApplied && len(now) > 0 && !m.taken:
		sum.wrong++
		wrong = fmt.Sprintf("the store has %v", now)
	case out.Status != d.good() && out.Status != ledger.NotApplied && out.Status != ledger.StatusReview:
		sum.lost++
		wrong = "it never ended"
	}
	if wrong != "" {
		t.Errorf("seed %d, write %d is %s (%s): %s", seed, n, out.Status, out.Text, wrong)
	}
	sum.writes++
	if m.taken || m.altered {
		return
	}
	sum.judged++
	if out.Status == ledger.StatusReview {
		if sum.reviews++; sum.reviews > 5 { // enough to see why
			return
		}
		t.Logf("seed %d, write %d needs a reviewer: %s", seed, n, out.Text)
	}
}
