//go:build unix

package soak

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
	"github.com/readback-go/readback/redact"
)

// spoilt are the faults that leave a record which is not as it was declared: a reviewer must see
// it.
var spoilt = []orders.FaultKind{orders.DroppedField, orders.NormalisedField}

// verdictOn is what the oracle knows of one write.
type verdictOn struct {
	record  string
	n       int
	rec     ledger.Record
	known   bool            // to the ledger
	effects []orders.Effect // its own
	before  int64           // the change that the destination had before it
}

// tally is the account of a run.
type tally struct {
	verified, notApplied, reviews, behind int
	again                                 int // sent more than once
	duplicates, lost, disorder            int
	overHalted, falseAborts, unexplained  int
	reasons                               map[string]int
}

// account holds the destination's log against the callers' table and against
// the ledger.
func (f *fire) account() {
	f.t.Helper()
	effects, err := orders.ReadLog(f.log)
	f.must(err)
	committed := f.committed()
	sum := tally{reasons: map[string]int{}}
	recorded := f.recorded()
	byStamp := f.byStamp(effects, committed, recorded)
	total := 0
	for record, changes := range committed {
		blocked, before := false, int64(0)
		for _, n := range changes {
			total++
			rec, known := recorded[changeID(record, n)]
			v := verdictOn{record, n, rec, known, byStamp[change(record, n).Stamp()], before}
			f.judge(&sum, v, blocked)
			delete(recorded, rec.ID)
			blocked = blocked || rec.State == ledger.Review
			if len(v.effects) > 0 {
				before = int64(n)
			}
		}
	}
	sum.disorder = f.disorder(effects)
	if total != f.size.writes {
		f.t.Errorf("%d writes were to be made, the callers committed %d", f.size.writes, total)
	}
	for id, rec := range recorded {
		if rec.Workflow == callers {
			f.t.Errorf("the ledger has %s (%s %d), which no caller has committed", id, rec.Step, rec.Call)
		}
	}
	f.accountSagas(recorded, byStamp)
	if f.undone == 0 || f.kills == 0 || f.cuts == 0 {
		f.t.Errorf("%d transactions rolled back on purpose, %d kills, %d cuts: that was no fire", f.undone, f.kills, f.cuts)
	}
	f.t.Logf("of %d: %d verified, %d refused by the destination, %d in review, %d behind one of those; %d sent more than once",
		total, sum.verified, sum.notApplied, sum.reviews, sum.behind, sum.again)
	f.t.Logf("duplicates %d, lost %d, out of order %d, false aborts %d, reviews: %d unexplained, %d that a longer read would have avoided",
		sum.duplicates, sum.lost, sum.disorder, sum.falseAborts, sum.unexplained, sum.overHalted)
	for reason, times := range sum.reasons {
		f.t.Logf("%5d: %s", times, reason)
	}
}

// byStamp groups the effects by the write that made them, and reports those without one: of a
// transaction that was rolled back.
func (f *fire) byStamp(effects []orders.Effect, committed map[string][]int, recorded map[ledger.ID]ledger.Record) map[string][]orders.Effect {
	f.t.Helper()
	asked := map[string]bool{}
	for record, changes := range committed {
		for _, n := range changes {
			asked[change(record, n).Stamp()] = true
		}
	}
	for _, rec := range recorded {
		if rec.Workflow != callers { // a saga's
			asked[f.stampOf(rec)] = true
		}
	}
	made := map[string][]orders.Effect{}
	for _, e := range effects {
		if !asked[e.Stamp] {
			f.t.Errorf("effect %d on %s was made for a transaction that was never committed", e.Seq, e.OrderID)
		}
		if e.Applied() {
			made[e.Stamp] = append(made[e.Stamp], e)
		}
	}
	return made
}

// stampOf is the stamp of a write.
func (f *fire) stampOf(rec ledger.Record) string {
	f.t.Helper()
	w, err := new(redact.Scope).OpenIntent(rec.Intent)
	f.must(err)
	return w.Stamp()
}

// recorded is every write in the ledger.
func (f *fire) recorded() map[ledger.ID]ledger.Record {
	f.t.Helper()
	book, err := postgres.Open(f.t.Context(), f.dsn, nil)
	f.must(err)
	defer func() { f.must(book.Close()) }()
	explained(f.t, book)
	all := map[ledger.ID]ledger.Record{}
	page := ledger.Filter{Tenant: tenant, Limit: 1000}
	for {
		recs, err := book.List(f.t.Context(), page)
		f.must(err)
		for _, rec := range recs {
			all[rec.ID] = rec
		}
		if len(recs) < page.Limit {
			return all
		}
		page.Before = recs[len(recs)-1].ID
	}
}

// judge checks the result of one committed write. blocked means that an earlier one on the same
// record is in review.
func (f *fire) judge(sum *tally, v verdictOn, blocked bool) {
	f.t.Helper()
	wrong := func(count *int, format string, args ...any) {
		f.t.Helper()
		*count++
		if *count <= 5 { // the first ones are enough
			f.t.Errorf("change %d of %s: %s%s", v.n, v.record, fmt.Sprintf(format, args...), f.life(v.rec))
		}
	}
	made := len(v.effects)
	if v.rec.Sends > 1 {
		sum.again++
	}
	switch r := v.rec; {
	case !v.known:
		wrong(&sum.lost, "committed by its caller and unknown to the ledger")
	case made > 1:
		wrong(&sum.duplicates, "applied %d times, %s", made, r.Phase())
	case r.Settlement == ledger.Verified:
		sum.verified++
		if made != 1 || !asDeclared(v.effects[0], v.record, v.n) {
			wrong(&sum.lost, "verified with %d effects: %+v", made, v.effects)
		}
	case r.Settlement == ledger.NotApplied:
		sum.notApplied++
		sum.reasons["not applied: "+r.Rule]++
		if made != 0 || r.LastRefusal == "" {
			wrong(&sum.falseAborts, "settled as not applied (%s) with %d effects", r.Reason, made)
		}
	case r.State == ledger.Review:
		sum.reviews++
		why := explanation(v)
		sum.reasons[fmt.Sprintf("review, %s: %s", why, r.Reason)]++
		if why == oldBase {
			sum.overHalted++
		}
		if why == "" {
			wrong(&sum.unexplained, "in review (%s), and the destination's log shows no reason: %+v", r.Reason, v.effects)
		}
	case r.QueuedBehind != "" && blocked && made == 0:
		sum.behind++
	default:
		wrong(&sum.lost, "left over: %s behind %q, %d effects", r.Phase(), r.QueuedBehind, made)
	}
}

// The explanations of a review.
const (
	spoiltRecord = "the destination spoilt the record"
	refusedLate  = "an earlier send may have been applied, and the destination refuses the next"
	oldBase      = "the state before it was read from a replica that lagged"
)

// explanation is what in the destination's log explains that a write needs a review, or "".
func explanation(v verdictOn) string {
	if len(v.effects) == 1 && slices.ContainsFunc(spoilt, func(s orders.FaultKind) bool { return slices.Contains(v.effects[0].Faults, s) }) {
		return spoiltRecord
	}
	if v.rec.Step == refusedRecord && v.rec.Unknown && v.rec.LastRefusal != "" {
		return refusedLate
	}
	var seen connectors.Observation
	if err := json.Unmarshal(v.rec.Before, &seen); err != nil || len(seen.Records) != 1 || seen.Strength == connectors.Strong {
		return ""
	}
	if amount, _ := seen.Records[0].Fields["amount_cents"].(json.Number); amount.String() != strconv.FormatInt(v.before, 10) {
		return oldBase
	}
	return ""
}

func asDeclared(e orders.Effect, record string, n int) bool {
	return e.After.AmountCents() == int64(n) && e.After.Fields["note"] == noteOf(record, n)
}

// disorder counts the changes that came after a later one of the same record.
func (f *fire) disorder(effects []orders.Effect) (wrong int) {
	f.t.Helper()
	last := map[string]int64{}
	for _, e := range effects {
		if !e.Applied() || e.After == nil { // a saga takes its record back
			continue
		}
		n := e.After.AmountCents()
		if n <= last[e.OrderID] {
			wrong++
			f.t.Errorf("%s: change %d was applied after change %d", e.OrderID, n, last[e.OrderID])
		}
		last[e.OrderID] = max(n, last[e.OrderID])
	}
	return wrong
}

// life is every event of a write, for failures.
func (f *fire) life(rec ledger.Record) string {
	if rec.ID == "" {
		return ""
	}
	book, err := postgres.Open(f.t.Context(), f.dsn, nil)
	if err != nil {
		return err.Error()
	}
	defer func() { f.must(book.Close()) }()
	return life(book, rec)
}
